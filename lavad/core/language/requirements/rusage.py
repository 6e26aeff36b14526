"""Section rusage[...]: resources that a job reserves, for each host, each task or the job, and for how long."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from lavad.core.language.requirements.lexer import MEMORY_MAX_MIB, bad, number, seconds, shown, size_mib
from lavad.core.language.requirements.vocabulary import ALIASES, ANY, Vocabulary
from lavad.core.model import PARTS
from lavad.core.model.reasons import Refused

GPU_NAMES = ("ngpus_physical", "ngpus_excl_p", "ngpus_excl_t", "ngpus_shared", "ngpus")
SIZES = ("mem", "swp", "tmp")
GPU_OPTIONS = ("gmodel", "gmem", "nvlink", "glink", "gvendor", "mig")
_PER = re.compile(r"^(.*?)(?:/(host|task|job))?$", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_]\w*|port\.\d+")  # the last is of a fixed port, which no user writes


class Per(Enum):
    """Unit that an amount is for; DEFAULT is each host, or the job if several hosts share the resource."""

    DEFAULT = ""
    HOST = "host"
    TASK = "task"
    JOB = "job"


@dataclass(frozen=True, slots=True)
class Phase:
    """An amount for a time; 0 is to the end of the job. With ``decays`` it decreases linearly to 0."""

    amount: int  # thousandths; sizes are in thousandths of MiB
    seconds: float = 0.0
    decays: bool = False


@dataclass(frozen=True, slots=True)
class Reserve:
    """Reservation of one resource; ``threshold`` must be available beside it, without being reserved."""

    name: str
    phases: tuple[Phase, ...]
    per: Per = Per.DEFAULT
    threshold: int = 0

    @property
    def first(self) -> int:
        """Amount reserved at the start, in thousandths."""
        return self.phases[0].amount if self.phases else 0

    @property
    def largest(self) -> int:
        """Largest amount ever reserved, in thousandths."""
        return max((phase.amount for phase in self.phases), default=0)

    def held(self, elapsed_s: float) -> int:
        """Amount reserved at that time after the start, in thousandths."""
        for phase in self.phases:
            if not phase.seconds or elapsed_s < phase.seconds:
                left = 1 - elapsed_s / phase.seconds if phase.decays and phase.seconds else 1.0
                return round(phase.amount * min(1.0, max(0.0, left)))
            elapsed_s -= phase.seconds
        return 0

    @property
    def is_timed(self) -> bool:
        """True if the amount changes while the job runs."""
        return any(phase.seconds for phase in self.phases)


@dataclass(frozen=True, slots=True)
class Usage:
    """One of the alternatives between ``||``. It has only the number of GPUs; other properties are -gpu's."""

    reserves: tuple[Reserve, ...] = ()
    gpus: int = 0
    gpus_per_task: bool = False
    gpu_options: str = ""

    def of(self, name: str) -> Reserve | None:
        """Reservation of a resource, or None."""
        return next((one for one in self.reserves if one.name == name), None)


def parse(text: str, at: int = 0, vocabulary: Vocabulary = ANY) -> tuple[Usage, ...]:
    """Parse alternatives, the preferred one first.

    Raises:
        Refused: bad syntax, an unknown name, or one that can't be reserved, with the character.
    """
    found = []
    for part in text.split("||"):
        found.append(_usage(part, at, vocabulary))
        at += len(part) + 2
    return tuple(found)


def _usage(text: str, at: int, vocabulary: Vocabulary) -> Usage:
    usage = Usage()
    for group, start in _split(text, at, ","):
        usage = _with_group(usage, group, start, vocabulary)
    if not usage.reserves and not usage.gpus:
        raise bad(at, "rusage takes name=value")
    return usage


def _split(text: str, at: int, sign: str) -> Iterator[tuple[str, int]]:
    """Split at signs outside parentheses; each part with its place."""
    depth = begin = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == sign and depth == 0:
            yield text[begin:place], at + begin
            begin = place + 1
    yield text[begin:], at + begin


def _with_group(usage: Usage, text: str, at: int, vocabulary: Vocabulary) -> Usage:
    """Parse ``res=v[:res=v]...[:duration=..][:decay=..][:threshold=..]``: options apply to all resources before
    them."""
    amounts: list[tuple[str, list[int], Per, int]] = []
    options: dict[str, tuple[str, int]] = {}
    for item, start in _split(text, at, ":"):
        name, equals, value = (part.strip() for part in item.partition("="))
        start += len(item) - len(item.lstrip())
        if not equals or not value or not _NAME.fullmatch(name):
            raise bad(start, f"rusage takes name=value, found {item.strip()!r}")
        if name in ("duration", "decay", "threshold"):
            if not amounts:
                raise bad(start, f"{name} follows the resource that it is about")
            options[name] = value, start
        elif name in GPU_NAMES:
            usage = _with_gpus(usage, value, start)
        elif usage.gpus and name in GPU_OPTIONS:
            usage = replace(usage, gpu_options=f"{usage.gpu_options}:{name}={value}".strip(":"))
        else:
            amounts.append(_amounts(name, value, start, vocabulary))
    for name, values, per, _start in amounts:
        rest = tuple(one for one in usage.reserves if one.name != name)
        usage = replace(usage, reserves=(*rest, _reserve(name, values, per, options, vocabulary)))
    return usage


def _with_gpus(usage: Usage, text: str, at: int) -> Usage:
    value, per = _suffix(text, at)
    if per is Per.JOB:
        raise bad(at, "GPUs are counted for each host or each task")
    gpus = number(value, at)
    if not 0 <= gpus <= 1_000_000:
        raise bad(at, "expected a number from 0 to 1000000")
    return replace(usage, gpus=int(-(-gpus // 1)), gpus_per_task=per is Per.TASK)


def _suffix(text: str, at: int) -> tuple[str, Per]:
    found = _PER.match(text)
    assert found is not None, text
    value, word = found.group(1).strip(), found.group(2)
    if "/" in value:
        raise bad(at, f"an amount is for each /host, each /task or the /job, found {text!r}")
    return value, Per(word or "")


def _amounts(name: str, text: str, at: int, vocabulary: Vocabulary) -> tuple[str, list[int], Per, int]:
    name = ALIASES.get(name, name)
    vocabulary.known(name, at)
    if not vocabulary.is_consumable(name):
        raise Refused(f"Resource {name!r} at character {at + 1} can't be reserved: it is not consumable")
    value, per = _suffix(text, at)
    words = value[1:-1].split() if value.startswith("(") and value.endswith(")") else [value]
    if not words:
        raise bad(at, f"{name}: an amount is missing")
    return name, [_thousandths(name, word, at, vocabulary) for word in words], per, at


def _thousandths(name: str, word: str, at: int, vocabulary: Vocabulary) -> int:
    """Parse an amount; sizes are rounded up to whole MiB, the unit of allocation."""
    value = size_mib(word, at, vocabulary.unit_of(name)) if name in SIZES else number(word, at)
    if not 0 <= value <= MEMORY_MAX_MIB:
        raise bad(at, f"expected a number from 0 to {MEMORY_MAX_MIB}")
    return -int(-value // 1) * PARTS if name in SIZES else round(value * PARTS)


def _list(text: str) -> list[str]:
    return text[1:-1].split() if text.startswith("(") and text.endswith(")") else [text]


def _reserve(
    name: str, values: list[int], per: Per, options: dict[str, tuple[str, int]], vocabulary: Vocabulary
) -> Reserve:
    durations: list[float] = []
    if "duration" in options:
        text, at = options["duration"]
        durations = [seconds(word, at) for word in _list(text)]
    decays: list[bool] = []
    if "decay" in options:
        text, at = options["decay"]
        words = _list(text)
        if any(word not in ("0", "1") for word in words):
            raise bad(at, f"decay is 0 or 1, found {text!r}")
        decays = [word == "1" for word in words]
    phases = tuple(
        Phase(
            value,
            durations[place] if place < len(durations) else 0.0,
            place < len(decays) and decays[place] and place < len(durations),
        )
        for place, value in enumerate(values)
    )
    threshold = 0
    if "threshold" in options:
        text, at = options["threshold"]
        threshold = _thousandths(name, text, at, vocabulary)
    return Reserve(name, phases, per, threshold)


def text_of(reserves: tuple[Reserve, ...]) -> str:
    """Text that parses to the same reservations."""
    return ",".join([_text(one) for one in reserves])


def _text(one: Reserve) -> str:
    amounts = [shown(phase.amount / PARTS) for phase in one.phases]
    per = f"/{one.per.value}" if one.per is not Per.DEFAULT else ""
    text = f"{one.name}={amounts[0] if len(amounts) == 1 else '(' + ' '.join(amounts) + ')'}{per}"
    durations = [f"{shown(phase.seconds)}s" for phase in one.phases if phase.seconds]
    if durations:
        text += f":duration=({' '.join(durations)})" if len(durations) > 1 else f":duration={durations[0]}"
    if any(phase.decays for phase in one.phases):
        decays = [str(int(phase.decays)) for phase in one.phases[: len(durations)]]
        text += f":decay=({' '.join(decays)})" if len(decays) > 1 else f":decay={decays[0]}"
    if one.threshold:
        text += f":threshold={shown(one.threshold / PARTS)}"
    return text
