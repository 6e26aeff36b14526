"""The -gpu option: number, kind and sharing of GPUs."""

from dataclasses import dataclass, replace

from lavad.core.language.requirements.lexer import bad, count, size_mib, whole
from lavad.core.model.reasons import Refused

MEMORY_MAX_MIB = 1 << 30
PER_SOCKET = -1  # gtile='!': evenly over all sockets
DEFAULTS = ("-", "")  # arguments that mean the queue's or the cluster's default
VENDORS = ("nvidia",)  # of gvendor=; the first is that of devices that name none
_MPS = ("yes", "no", "per_socket", "per_gpu")


@dataclass(frozen=True, slots=True)
class GpuRequirement:
    """GPU requirement of a job. A GPU is shared with other jobs only if the job allows it.

    That is by ``j_exclusive`` False (None: not given), or by ``memory_mib``, the part that it reserves.
    """

    num: int = 1
    per_task: bool = False
    mode: str = "shared"  # or exclusive_process
    mps: str = "no"
    j_exclusive: bool | None = None
    aff: bool = True
    block: bool = False
    pack: bool = False
    tile: int = 0
    link: bool = False
    model: str = ""
    model_memory_mib: int = 0  # the model's size, as in gmodel=NAME-80G
    memory_mib: int = 0
    no_variable: bool = False  # mps=...,nocvd: the variable that lists devices is not set
    vendor: str = ""  # empty: any
    slices: tuple[int, ...] = ()  # mig=: of the GPU instance and of the compute instance; empty: whole GPUs

    @property
    def is_shared(self) -> bool:
        """True if other jobs may use the GPUs, too."""
        if self.mode != "shared" or self.mps != "no" or self.j_exclusive:
            return False
        return self.memory_mib > 0 or self.j_exclusive is False


def parse(text: str, at: int = 0, unit_mib: float = 1.0) -> GpuRequirement:
    """Parse ``-`` or ``num=2/task:mode=exclusive_process:gmodel=A100-80G:...``; ``unit_mib`` is that of gmem without
    one.

    Raises:
        Refused: bad syntax or an unsupported value, in one sentence.
    """
    wanted = GpuRequirement()
    if text.strip() in DEFAULTS:
        return wanted
    for part in text.strip().strip("\"'").split(":"):
        name, _, value = (piece.strip() for piece in part.partition("="))
        wanted = _with(wanted, name, value, at, unit_mib)
        at += len(part) + 1
    if wanted.slices and (wanted.mode != "shared" or wanted.mps != "no"):
        raise Refused("-gpu: a MIG device (mig=) has no compute mode and no MPS daemon of its own")
    return wanted


def _with(wanted: GpuRequirement, name: str, value: str, at: int, unit_mib: float) -> GpuRequirement:
    match name:
        case "num":
            return _num(wanted, value, at)
        case "mode":
            return replace(wanted, mode=_word(value, ("shared", "exclusive_process"), name, at))
        case "mps":
            return _mps(wanted, value, at)
        case "j_exclusive":
            return replace(wanted, j_exclusive=_flag(value, name, at))
        case "aff":
            return replace(wanted, aff=_flag(value, name, at))
        case "block":
            return replace(wanted, block=_flag(value, name, at))
        case "gpack":
            return replace(wanted, pack=_flag(value, name, at))
        case "glink" | "nvlink":
            return replace(wanted, link=_flag(value, name, at))
        case "gtile":
            return replace(wanted, tile=PER_SOCKET if value.strip("'\"") == "!" else count(value, at))
        case "gmem":
            return replace(wanted, memory_mib=whole(size_mib(value, at, unit_mib), MEMORY_MAX_MIB, at))
        case "gmodel":
            return _model(wanted, value, at)
        case "gvendor":
            if value not in VENDORS:
                known = " and ".join(VENDORS)
                raise Refused(f"-gpu: gvendor={value} is not supported: only {known} devices are managed here")
            return replace(wanted, vendor=value)
        case "mig":
            return replace(wanted, slices=_slices(value, at))
    raise bad(at, f"-gpu takes num, mode, mps, j_exclusive, gmodel, gmem and the like; found {name!r}")


def _slices(value: str, at: int) -> tuple[int, int]:
    """Parse ``GI`` or ``GI/CI``: sizes of the GPU instance and of the compute instance, by default all of it."""
    instance, slash, compute = value.partition("/")
    slices = count(instance, at)
    computes = count(compute, at) if slash else slices
    if computes > slices:
        raise bad(at, f"mig takes GI or GI/CI, the compute instance no larger than the GPU instance; found {value!r}")
    return slices, computes


def _mps(wanted: GpuRequirement, value: str, at: int) -> GpuRequirement:
    first, *rest = value.split(",")
    if any(word not in ("shared", "nocvd") for word in rest):
        raise bad(at, f"mps takes yes, no, per_socket or per_gpu, then shared or nocvd; found {value!r}")
    if _word(first, _MPS, "mps", at).startswith("per_"):
        raise Refused(f"-gpu: mps={first} is not supported: a job has one MPS daemon on each host (mps=yes)")
    if first == "yes" and "shared" in rest:
        raise Refused("-gpu: mps=yes,shared is not supported: each job has an MPS daemon of its own")
    return replace(wanted, mps=first, no_variable="nocvd" in rest)


def _num(wanted: GpuRequirement, value: str, at: int) -> GpuRequirement:
    digits, slash, per = value.partition("/")
    if slash and per not in ("task", "host"):
        raise bad(at, f"num takes n, n/host or n/task, found {value!r}")
    return replace(wanted, num=count(digits, at), per_task=per == "task")


def _model(wanted: GpuRequirement, value: str, at: int) -> GpuRequirement:
    """Parse ``NAME`` or ``NAME-MEM``, as A100-80G."""
    if not value:
        raise bad(at, "gmodel takes the beginning of a model's name")
    name, dash, memory = value.rpartition("-")
    if dash and memory[:1].isdigit() and memory.upper().rstrip("B").endswith(("M", "G", "T")):
        return replace(wanted, model=name, model_memory_mib=whole(size_mib(memory, at), MEMORY_MAX_MIB, at))
    return replace(wanted, model=value)


def _word(value: str, words: tuple[str, ...], name: str, at: int) -> str:
    if value not in words:
        raise bad(at, f"{name} takes {', '.join(words[:-1])} or {words[-1]}, found {value!r}")
    return value


def _flag(value: str, name: str, at: int) -> bool:
    return _word(value, ("yes", "no"), name, at) == "yes"


def text_of(wanted: GpuRequirement) -> str:
    """Text that parses to the same requirement."""
    yes_no = [("block", wanted.block), ("gpack", wanted.pack)]
    parts = [f"num={wanted.num}" + ("/task" if wanted.per_task else ""), f"mode={wanted.mode}"]
    parts += [f"mps={wanted.mps}" + (",nocvd" if wanted.no_variable else "")]
    if wanted.j_exclusive is not None:
        parts.append(f"j_exclusive={'yes' if wanted.j_exclusive else 'no'}")
    parts += [f"{name}=yes" for name, holds in (*yes_no, ("glink", wanted.link)) if holds]
    parts += ["aff=no"] if not wanted.aff else []
    if wanted.tile:
        parts.append(f"gtile={'!' if wanted.tile == PER_SOCKET else wanted.tile}")
    if wanted.model:
        memory = f"-{wanted.model_memory_mib}M" if wanted.model_memory_mib else ""
        parts.append(f"gmodel={wanted.model}{memory}")
    parts += [f"gmem={wanted.memory_mib}M"] if wanted.memory_mib else []
    if wanted.slices:
        slices, computes = wanted.slices
        parts.append(f"mig={slices}" if slices == computes else f"mig={slices}/{computes}")
    parts += [f"gvendor={wanted.vendor}"] if wanted.vendor else []
    return ":".join(parts)
