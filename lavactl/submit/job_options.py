"""Values of single bsub options: text converted to a job's field, or one sentence that says what was expected."""

import os

from lavactl.errors import CommandError
from lavactl.options import printable
from lavactl.text import units
from lavactl.wire import messages
from protos import gpu_vendors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, MutableSequence, Sequence

    from lavactl.io import Io

NAME_MAX = 4094
BAD_NAME = f"Bad job name: it must be printable and of 1 to {NAME_MAX} characters, an index list apart."

UNIT = "LSF_UNIT_FOR_LIMITS"
ALWAYS_KIB = ("F", "D")  # LSF_UNIT_FOR_LIMITS is for core, memory, stack and swap
MIGRATION_MAX = 1_000_000  # minutes of -mig, as of MIG

SECTIONS = ("select[", "order[", "rusage[", "span[", "same[", "cu[", "affinity[")

# Set by the batch system for one job: a job submitted from inside it must not inherit them.
JOB_PREFIXES = (b"LSB_", b"LSF_PM_")
SUCCESS_VALUES = "LSB_SUCCESS_EXIT_VALUES"
USERS_PREFIXES = (b"LSB_DEFAULT", SUCCESS_VALUES.encode())  # the user's own: defaults for queue, project and group
JOB_NAMES = frozenset((b"LSFUSER", b"LS_JOBPID", b"LS_SUBCWD", b"LS_EXECCWD", b"LS_EXEC_T", b"TERM", b"TERMCAP"))
# Set for the processes of one job or rank; outside a job they are the user's own.
INNER_PREFIXES = (b"PMI_", b"PMIX_", b"OMPI_", b"LAVA_JOB_", b"SLURM_", b"SLURMD_")
INNER_NAMES = frozenset(name.encode() for name in gpu_vendors.VARIABLES)


def bad(option: str, text: str, expected: str) -> CommandError:
    """Error for a malformed value."""
    return CommandError(f"-{option} {printable(text)}: expected {expected}.")


def run_limit_s(text: str, option: str = "W") -> int:
    """Seconds of -W, -We, -c. A host or host model behind a slash has no effect: limits are not scaled."""
    try:
        return units.read_minutes(text.partition("/")[0].strip())
    except ValueError:
        raise bad(option, text, "[hours:]minutes, such as 90 or 1:30") from None


def unscaled_note(option: str, text: str) -> str:
    """Remark on a limit that names a host or host model; empty for any other."""
    host = text.partition("/")[2].strip()
    return (
        f"-{option}: /{printable(host)} has no effect: limits are never scaled by a host's CPU factor" if host else ""
    )


def warning_time_s(text: str) -> int:
    """Seconds of -wt: [hours:]minutes, or seconds as 30s."""
    if text.endswith("s") and units.is_digits(text[:-1]) and 0 < int(text[:-1]) < 1 << 31:
        return int(text[:-1])
    try:
        return units.read_minutes(text.strip())
    except ValueError:
        raise bad("wt", text, "[hours:]minutes, such as 2 or 1:30, or seconds, such as 30s") from None


def migration_min(text: str) -> int:
    """Minutes of -mig; 0 is a threshold, too."""
    if not units.is_digits(text.strip()) or int(text) > MIGRATION_MAX:
        raise bad("mig", text, f"minutes from 0 to {MIGRATION_MAX}")
    return int(text)


def check_warning_action(text: str) -> None:
    """Check -wa, a signal's name, CHKPNT or a command.

    Raises:
        CommandError: it is a signal that no job can handle.
    """
    name = text.strip().upper().removeprefix("SIG")
    if name in ("KILL", "STOP"):
        raise CommandError(f"-wa {text.strip()}: this signal would not warn the job: it can't be handled.")


def check_mail(addresses: str, events: str) -> None:
    """Check -u and -notify.

    Raises:
        CommandError: an address that no mail program takes for one, or an event that no mail is sent for.
    """
    for address in addresses.replace(",", " ").split():
        if address.startswith("-") or not address.isprintable():
            raise bad("u", address, "addresses such as ann or ann@example.org")
    for event in events.split():
        if event not in ("start", "done", "exit"):
            raise bad("notify", event, "words of start, done and exit: mails are sent at a job's start and end only")


def unit_of(io: "Io") -> str:
    """Unit of limits that are written without one."""
    return io.setting(UNIT) or "K"


def memory_mib(text: str, unit: str, option: str = "M") -> int:
    """MiB of -M: a number in ``unit``, or one with its own unit. ``!`` (hard limit) is accepted: lava's limits are
    hard.
    """
    try:
        return units.read_memory_mib(text.strip().removesuffix("!"), unit)
    except ValueError:
        raise bad(option, text, "a number, optionally followed by K, M, G or T, such as 4G") from None


def limit_bytes(text: str, option: str, unit: str) -> int:
    """Bytes of -C, -D, -F, -S or -v, given with its own unit or in ``unit``, but for those that are always in KiB."""
    unit = "K" if option in ALWAYS_KIB else unit
    try:
        return units.read_size(text, unit)
    except ValueError:
        raise bad(option, text, f"a number of {unit[:1].upper()}iB, such as 8192") from None


def slots(text: str) -> tuple[int, int]:
    """(least, most) of -n."""
    try:
        return units.read_count_range(text)
    except ValueError:
        raise bad("n", text, "min[,max], such as 4 or 2,8") from None


def count(option: str, text: str, most: int = 2**31 - 1) -> int:
    """Number of at least one."""
    try:
        return units.read_count(text, 1, most)
    except ValueError:
        raise bad(option, text, "a number of at least 1") from None


def date(option: str, text: str, now: float) -> float:
    """Seconds since the epoch of -b and -t: a future time."""
    try:
        moment = units.read_date(text, now)
    except (ValueError, OverflowError):
        raise CommandError(f"-{option} {printable(text)}: Bad time specification.") from None
    if moment <= now:
        raise CommandError(f"-{option} {printable(text)}: Bad time specification: the time has passed.")
    return moment


def job_name(text: str) -> tuple[str, list[messages.IndexRange], int]:
    """(name, array ranges, limit of running elements) of -J; no ranges for a plain job.

    ``name[1-10:2,15]%5`` is an array; closed brackets elsewhere belong to the name.
    """
    if not text.isprintable() or not text:
        raise CommandError(BAD_NAME)
    body, limit = text, 0
    head, percent, tail = text.rpartition("%")
    if percent and head.endswith("]"):
        body, limit = head, int(tail) if units.is_digits(tail) else 0
        if not 0 < limit < 2**31:
            raise CommandError(f"{printable(text)}: Job array index error.")
    if not body.endswith("]") or "[" not in body:
        if text.count("[") != text.count("]"):
            raise CommandError(f"{printable(text)}: Job array index error.")
        if len(text) > NAME_MAX:
            raise CommandError(BAD_NAME)
        return text, [], 0
    name, _, indices = body[:-1].rpartition("[")
    if len(name) > NAME_MAX:  # the index list does not count
        raise CommandError(BAD_NAME)
    try:
        ranges = units.read_index_list(indices)
    except ValueError:
        raise CommandError(f"{printable(text)}: Job array index error.") from None
    return name, [messages.IndexRange(first=f, last=t, step=s) for f, t, s in ranges], limit


def requirement(texts: "Sequence[str]") -> str:
    """Several -R as one text. A bare condition among several is wrapped in ``select[...]``, to be and-ed."""
    if len(texts) == 1:
        return texts[0].strip()
    return " ".join(_with_select(text.strip()) for text in texts if text.strip())


def _with_select(text: str) -> str:
    starts = [place for section in SECTIONS if (place := _section_start(text, section)) >= 0]
    end = min(starts, default=len(text))
    if end == 0 or text.startswith("{") or not text[:end].strip():
        return text
    return f"select[{text[:end].strip()}] {text[end:]}".rstrip()


def _section_start(text: str, section: str) -> int:
    """Position where a section begins as a word of its own, or -1."""
    place = text.find(section)
    while place > 0 and (text[place - 1].isalnum() or text[place - 1] == "_"):
        place = text.find(section, place + 1)
    return place


def gpu_request(text: str) -> messages.GpuRequest:
    """-gpu: ``-`` or ``key=value`` pairs joined by colons; only the number is parsed here, the rest by the master.

    Raises:
        CommandError: the number is malformed.
    """
    request = messages.GpuRequest(num=1, text=text)
    for pair in [] if text.strip() == "-" else text.split(":"):
        key, _, value = pair.strip().partition("=")
        _gpu_pair(request, key.strip().lower(), value.strip())
    return request


def _gpu_pair(request: messages.GpuRequest, key: str, value: str) -> None:
    word = value.lower()
    if key == "num":
        number, _, per = value.partition("/")
        if per not in ("", "task", "host"):
            raise bad("gpu", f"num={value}", "num=N, num=N/task or num=N/host")
        try:
            request.num = units.read_count(number, 1, 1024)
        except ValueError:
            raise bad("gpu", f"num={value}", "num=N with N from 1 to 1024") from None
        request.per_task = per == "task"
    elif key == "j_exclusive" and word in ("yes", "no"):
        request.j_exclusive = word == "yes"


def job_environment(entries: "Sequence[bytes]", options: "Sequence[str]") -> list[bytes]:
    """NAME=VALUE entries for the job: the caller's, without the batch system's variables, changed as -env says.

    ``all``, ``none``, ``~NAME``, ``NAME`` and ``NAME=VALUE``, joined by commas; without ``all`` only the named
    variables. A value in single quotes may hold commas. Several -env count as one, in their order.
    """
    inner = any(entry.startswith(b"LSB_JOBID=") for entry in entries)
    kept: dict[bytes, bytes] = {}
    for entry in entries:
        name, _, value = entry.partition(b"=")
        if not is_of_batch_system(name, inner):
            kept.setdefault(name, value)
    if options:
        kept = _chosen(kept, [part for option in options for part in _env_parts(option) if part])
    return [name + b"=" + value for name, value in kept.items()]


def is_of_batch_system(name: bytes, inner: bool) -> bool:
    """True if a variable is of the caller's session or job, not of the next job. ``inner``: called inside a job."""
    if name.startswith(USERS_PREFIXES):
        return False
    if name.startswith(JOB_PREFIXES) or name in JOB_NAMES:
        return True
    return inner and (name.startswith(INNER_PREFIXES) or name in INNER_NAMES)


def _env_parts(text: str) -> list[str]:
    """Parts of -env: those between commas, but for commas within a value that is in single quotes as a whole."""
    found, place = [], 0
    while place <= len(text):
        end = _end_of_value(text, place)
        end = len(text) if end < 0 else end
        found.append(_bare_value(text[place:end].strip()))
        place = end + 1
    return found


def _end_of_value(text: str, place: int) -> int:
    """Position of the comma behind the part that begins here; -1 for none."""
    equals, comma = text.find("=", place), text.find(",", place)
    if equals < 0 or 0 <= comma < equals:
        return comma
    begin = len(text) - len(text[equals + 1 :].lstrip())
    if text[begin : begin + 1] != "'":
        return comma
    close = text.find("'", begin + 1)
    while close >= 0:
        behind = text[close + 1 :].lstrip()
        if not behind or behind.startswith(","):
            return len(text) - len(behind) if behind else -1
        close = text.find("'", close + 1)
    raise bad("env", text, "a ' at the end of the value that begins with one, as in TEST='A, B'")


def _bare_value(part: str) -> str:
    """NAME=VALUE without the single quotes around the value."""
    name, equals, value = part.partition("=")
    bare = value.strip()
    is_quoted = len(bare) > 1 and bare[0] == bare[-1] == "'"
    return f"{name}={bare[1:-1]}" if equals and is_quoted else part


def _chosen(kept: dict[bytes, bytes], parts: list[str]) -> dict[bytes, bytes]:
    if not parts:
        raise bad("env", "", "all, none, or a list of variables")
    chosen = dict(kept) if "all" in parts else {}
    for part in parts:
        if part in ("all", "none"):
            continue
        name_text, equals, value = part.lstrip("~").partition("=")
        name = os.fsencode(name_text.strip())
        if not name:
            raise bad("env", part, "NAME, NAME=VALUE or ~NAME")
        if part.startswith("~"):
            chosen.pop(name, None)
        elif equals:
            chosen[name] = os.fsencode(value)
        elif name in kept:
            chosen[name] = kept[name]
    return chosen


def success_values(spec: "messages.JobSpec", environ: "Mapping[str, str]") -> str:
    """Exit codes besides 0 that mean success: LSB_SUCCESS_EXIT_VALUES of the job's environment, as esub programs and
    -env make it, else of the caller's.

    Raises:
        CommandError: they are malformed.
    """
    start = os.fsencode(f"{SUCCESS_VALUES}=")
    own = [entry for entry in spec.environment if entry.startswith(start)]
    text = (os.fsdecode(own[-1].removeprefix(start)) if own else environ.get(SUCCESS_VALUES, "")).strip()
    for word in text.split():
        first, dash, last = word.partition("-")
        if not (is_code(first) and (not dash or (is_code(last) and int(first) <= int(last)))):
            expected = "expected exit codes from 0 to 255, as in 3 10-12"
            raise CommandError(f"{SUCCESS_VALUES}={printable(text)}: {expected}.")
    return text


def is_code(text: str) -> bool:
    """True for a whole number from 0 to 255."""
    return text.isascii() and text.isdigit() and len(text) <= 3 and int(text) <= 255


def replace_variables(entries: "MutableSequence[bytes]", changed: "Mapping[str, str]") -> None:
    """Give variables of a job another value, or add them."""
    names = {os.fsencode(name) for name in changed}
    kept = [entry for entry in entries if entry.partition(b"=")[0] not in names]
    entries[:] = kept + [os.fsencode(f"{name}={value}") for name, value in changed.items()]
