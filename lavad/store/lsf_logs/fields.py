"""Fields of LSF's log records: one record a line, strings in double quotes, numbers bare, lists with their count."""

from collections.abc import Iterable, Sequence

from lavad.core.model import Allocation
from protos.jobs_pb2 import JobSpec

ACCT_VERSION = "10.1"  # LSF's layout of JOB_FINISH
EVENTS_VERSION = "22"  # OpenLava's layout, the only one whose order is published for all records
EXIT, DONE = 32, 64

# Bits of a job's options.
_OPTIONS = (
    ("name", 0x1),
    ("queues", 0x2),
    ("hosts", 0x4),
    ("input", 0x8),
    ("output", 0x10),
    ("error", 0x20),
    ("exclusive", 0x40),
    ("rerunnable", 0x4000),
    ("dependency", 0x20000),
    ("requirement_text", 0x40000),
)
WITH_POST_EXEC = 0x40000000

_TERM_WORDS = (
    "UNKNOWN PREEMPT WINDOW LOAD OTHER RUNLIMIT DEADLINE PROCESSLIMIT FORCE_OWNER FORCE_ADMIN REQUEUE_OWNER "
    "REQUEUE_ADMIN CPULIMIT CHKPNT OWNER ADMIN MEMLIMIT EXTERNAL_SIGNAL RMS ZOMBI SWAP THREADLIMIT SLURM "
    "BUCKET_KILL CTRL_PID CWD_NOTEXIST REMOVE_HUNG_JOB ORPHAN_SYSTEM PRE_EXEC_FAIL"
)
TERMS = {name: number for number, name in enumerate(_TERM_WORDS.split())}
_UNKNOWN_USAGE = " ".join(["-1"] * 17)


def quoted(text: str) -> str:
    """Return a string field; a line break, which would end the record, becomes a semicolon."""
    if not text:  # most of a job's
        return '""'
    if "\n" in text or "\r" in text:
        text = text.strip("\r\n").replace("\r\n", "\n").replace("\n", ";").replace("\r", ";")
    return '"' + text.replace('"', '""') + '"'


def seconds(value: float) -> str:
    """Return a duration to the microsecond."""
    return f"{value:.6f}"


def listed(texts: Iterable[str]) -> list[str]:
    """Return a list of strings: its count, then its items."""
    items = [quoted(text) for text in texts]
    return [str(len(items)), *items]


def host_list(allocation: Allocation, is_short: bool) -> list[str]:
    """Return the execution hosts as a list: a name for each slot or, if short, ``4*n001``."""
    if is_short:
        return listed(f"{share.slots}*{share.host}" if share.slots > 1 else share.host for share in allocation)
    names = [name for share in allocation for name in [quoted(share.host)] * max(1, share.slots)]
    return [str(len(names)), *names]


def usage(user_s: float, system_s: float) -> list[str]:
    """Return the 19 numbers of struct rusage, of which the two times are known."""
    return [seconds(user_s), seconds(system_s), _UNKNOWN_USAGE]


def cpu_parts(cpu_s: float, system_s: float) -> tuple[float, float]:
    """Return user and system time, whose sum is the CPU time.

    Hosts measure it apart from its parts, which may come to a little more or less; the difference is put to the user
    time.
    """
    system_s = min(system_s, cpu_s)
    return cpu_s - system_s, system_s


def options_of(spec: JobSpec) -> int:
    """Return the bits of the options given."""
    return sum(bit for name, bit in _OPTIONS if getattr(spec, name))


def term_of(reason: str) -> int:
    """Return the number of a reason that begins with a TERM_ word; 0 for any other."""
    word = reason.partition(":")[0]
    return TERMS.get(word.removeprefix("TERM_"), 0) if word.startswith("TERM_") else 0


def umask_of(spec: JobSpec) -> int:
    """Return the submitter's file mode creation mask."""
    return spec.umask_plus_one - 1 if spec.umask_plus_one else 0o022


def limits_of(spec: JobSpec, run_limit_s: int) -> list[str]:
    """Return the eleven resource limits, sizes in KB; -1 for none."""
    soft = {one.name: one.soft for one in spec.rlimits}
    sizes = [soft[name] >> 10 if name in soft else -1 for name in ("fsize", "data", "stack", "core", "swap")]
    memory = spec.memory_limit_mib << 10 if spec.memory_limit_mib else -1
    rest = (memory, -1, -1, sizes.pop(), run_limit_s or -1, soft.get("nproc", -1))
    return [str(one) for one in (soft.get("cpu", -1), *sizes, *rest)]


def line(kind: str, version: str, at: float, parts: Sequence[str]) -> bytes:
    """Return a whole record."""
    text = " ".join([quoted(kind), quoted(version), str(int(at)), *parts])
    return text.replace("\0", "").encode("utf-8", "surrogateescape") + b"\n"
