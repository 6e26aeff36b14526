"""Submission parameters as esub programs read and write them: NAME=value lines, each for an option of bsub.

Times are seconds, sizes KB. A value is quoted so that a shell may read the file: ``. $LSB_SUB_PARM_FILE``.
"""

import re
import time
from typing import NamedTuple

from lavactl.errors import CommandError
from lavactl.options import Options, printable
from lavactl.submit import checkpoints, job_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.submit.submission import Choices

YES = "Y"
RESET = "SUB_RESET"  # in bmod: the parameter is taken back
COMMAND = "LSB_SUB_COMMAND_LINE"
LEAST, MOST = "LSB_SUB_NUM_PROCESSORS", "LSB_SUB_MAX_NUM_PROCESSORS"
CHECKPOINTS, CHECKPOINT_PERIOD = "LSB_SUB_CHKPNT_DIR", "LSB_SUB_CHKPNT_PERIOD"  # together bsub -k
NAMES_OF_ESUBS = "LSB_SUB_ADDITIONAL"
# Kinds of values.
TEXT, FLAG, MINUTES, SECONDS, DATE, KIB, NUMBER, FIXED = (
    "text",
    "flag",
    "minutes",
    "seconds",
    "date",
    "KB",
    "n",
    "fixed",
)

_ASSIGNMENT = re.compile(
    r"[ \t]*([A-Za-z_]\w*)[ \t]*=[ \t]*(?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|([^\n]*))[ \t]*(?:\n|\Z)", re.DOTALL
)
_ESCAPED = re.compile(r"\\([\"\\$`])")
_TO_ESCAPE = re.compile(r"([\"\\$`])")


class Parameter(NamedTuple):
    """Options that one parameter stands for: the last of them that was given counts, and a change keeps its form."""

    options: tuple[str, ...]
    kind: str = TEXT


PARAMETERS: dict[str, Parameter] = {
    "LSB_SUB_QUEUE": Parameter(("q",)),
    "LSB_SUB_HOSTS": Parameter(("m",)),
    "LSB_SUB_JOB_NAME": Parameter(("J",)),
    "LSB_SUB_JOB_DESCRIPTION": Parameter(("Jd",)),
    "LSB_SUB_PROJECT_NAME": Parameter(("P",)),
    "LSB_SUB_USER_GROUP": Parameter(("G",)),
    "LSB_SUB_RES_REQ": Parameter(("R",)),
    "LSB_SUB_GPU_REQ": Parameter(("gpu",)),
    "LSB_SUB_IN_FILE": Parameter(("i",)),
    "LSB_SUB2_IN_FILE_SPOOL": Parameter(("is",)),
    "LSB_SUB2_JOB_CMD_SPOOL": Parameter(("Zs",), FLAG),
    "LSB_SUB_OUT_FILE": Parameter(("o", "oo")),
    "LSB_SUB_ERR_FILE": Parameter(("e", "eo")),
    "LSB_SUB_DEPEND_COND": Parameter(("w",)),
    "LSB_SUB_BEGIN_TIME": Parameter(("b",), DATE),
    "LSB_SUB_TERM_TIME": Parameter(("t",), DATE),
    "LSB_SUB_LOGIN_SHELL": Parameter(("L",)),
    "LSB_SUB_PRE_EXEC": Parameter(("E",)),
    "LSB_SUB3_POST_EXEC": Parameter(("Ep",)),
    "LSB_SUB_MAIL_USER": Parameter(("u",)),
    "LSB_SUB_NOTIFY_BEGIN": Parameter(("B",), FLAG),
    "LSB_SUB_NOTIFY_END": Parameter(("N",), FLAG),
    "LSB_SUB_EXCLUSIVE": Parameter(("x",), FLAG),
    "LSB_SUB_HOLD": Parameter(("H",), FLAG),
    "LSB_SUB_RERUNNABLE": Parameter(("r",), FLAG),
    "LSB_SUB_INTERACTIVE": Parameter(("I", "Ip", "Is", "IS", "ISp", "ISs"), FIXED),
    "LSB_SUB_PTY": Parameter(("Ip", "Is", "ISp", "ISs"), FIXED),
    "LSB_SUB_PTY_SHELL": Parameter(("Is", "ISs"), FIXED),
    "LSB_SUB_OTHER_FILES": Parameter(("f",)),
    "LSB_SUB_EXTSCHED_PARAM": Parameter(("ext", "extsched")),
    "LSB_SUB_WINDOW_SIG": Parameter(("s",)),
    "LSB_SUB_RLIMIT_CORE": Parameter(("C",), KIB),
    "LSB_SUB_RLIMIT_CPU": Parameter(("c",), MINUTES),
    "LSB_SUB_RLIMIT_DATA": Parameter(("D",), KIB),
    "LSB_SUB_RLIMIT_FSIZE": Parameter(("F",), KIB),
    "LSB_SUB_RLIMIT_PROCESS": Parameter(("p",), NUMBER),
    "LSB_SUB_RLIMIT_RSS": Parameter(("M",), KIB),
    "LSB_SUB_RLIMIT_RUN": Parameter(("W",), MINUTES),
    "LSB_SUB_RLIMIT_STACK": Parameter(("S",), KIB),
    "LSB_SUB_RLIMIT_SWAP": Parameter(("v",), KIB),
    "LSB_SUB_RLIMIT_THREAD": Parameter(("T",), NUMBER),
    "LSB_SUB_JOB_WARNING_ACTION": Parameter(("wa",)),
    "LSB_SUB_JOB_ACTION_WARNING_TIME": Parameter(("wt",), SECONDS),
    "LSB_SUB2_JOB_GROUP": Parameter(("g",)),
    "LSB_SUB2_JOB_PRIORITY": Parameter(("sp",), NUMBER),
    "LSB_SUB2_SLA": Parameter(("sla",)),
    "LSB_SUB2_USE_RSV": Parameter(("U",)),
    "LSB_SUB2_LICENSE_PROJECT": Parameter(("Lp",)),
    "LSB_SUB3_APP": Parameter(("app",)),
    "LSB_SUB3_CWD": Parameter(("cwd",)),
    "LSB_SUB3_RUNTIME_ESTIMATION": Parameter(("We",), MINUTES),
    "LSB_SUB3_AUTO_RESIZABLE": Parameter(("ar",), FLAG),
    "LSB_SUB3_RESIZE_NOTIFY_CMD": Parameter(("rnc",)),
    "LSB_SUB3_JOB_REQUEUE": Parameter(("Q",)),
    "LSB_SUB3_USER_SHELL_LIMITS": Parameter(("ul",), FLAG),
}
_BARE = frozenset((FLAG, MINUTES, SECONDS, DATE, KIB, NUMBER, FIXED))


def parameters(choices: "Choices", command: str, now: float, unit: str) -> dict[str, str]:
    """Parameters of a submission, by their names.

    Args:
        unit: of a memory limit that has none of its own.

    Raises:
        CommandError: a malformed option.
    """
    found = {NAMES_OF_ESUBS: names} if (names := choices.value("a")) else {}
    for name, parameter in PARAMETERS.items():
        given = choices.last(*parameter.options)
        if given is not None:
            texts = choices.all("R") if name == "LSB_SUB_RES_REQ" else []
            text = job_options.requirement(texts) if texts else given[1]
            found[name] = _as_told(parameter.kind, given[0], text, now, unit)
    if (slots := choices.value("n")) is not None:
        least, most = job_options.slots(slots)
        found[LEAST], found[MOST] = str(least), str(most)
    if (terms := choices.value("k")) is not None:
        found[CHECKPOINTS], seconds = checkpoints.parts(terms)
        found |= {CHECKPOINT_PERIOD: str(seconds)} if seconds else {}
    if command:
        found[COMMAND] = command
    return found


def _as_told(kind: str, option: str, text: str, now: float, unit: str) -> str:
    """Value of an option as a parameter."""
    if kind in (FLAG, FIXED):
        return YES
    if kind == MINUTES:
        return str(job_options.run_limit_s(text, option))
    if kind == SECONDS:
        return str(job_options.warning_time_s(text))
    if kind == DATE:
        return str(int(job_options.date(option, text, now)))
    if kind == KIB:
        size = (
            job_options.memory_mib(text, unit) << 20 if option == "M" else job_options.limit_bytes(text, option, unit)
        )
        return str(size >> 10)
    return text


def written(found: dict[str, str]) -> str:
    """Parameters as the lines of a file that a shell can read."""
    return "".join(f"{name}={_quoted(name, value)}\n" for name, value in found.items())


def _quoted(name: str, value: str) -> str:
    parameter = PARAMETERS.get(name)
    if name in (LEAST, MOST, CHECKPOINT_PERIOD) or value == YES or (parameter is not None and parameter.kind in _BARE):
        return value
    return '"' + _TO_ESCAPE.sub(r"\\\1", value) + '"'


def assignments(text: str, program: str) -> dict[str, str]:
    """NAME=value lines that a program wrote; of a name given twice the last counts.

    Raises:
        CommandError: a line is something else.
    """
    found: dict[str, str] = {}
    place = 0
    while place < len(text):
        line = text[place:].partition("\n")[0]
        if not line.strip() or line.lstrip().startswith("#"):
            place += len(line) + 1
            continue
        match = _ASSIGNMENT.match(text, place)
        if match is None:
            raise CommandError(f"{program} wrote {printable(line)!r}: expected NAME=value.")
        name, double, single, bare = match.groups()
        found[name] = _unescaped(double) if double is not None else single if single is not None else _unquoted(bare)
        place = match.end()
    return found


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)


def _unquoted(text: str) -> str:
    """Value of a line whose quotes do not match its content, as a script that escapes nothing writes it."""
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def as_options(changes: dict[str, str], choices: "Choices", program: str) -> tuple[list[str], list[tuple[str, str]]]:
    """(options that changed parameters replace, options that stand for their new values).

    Raises:
        CommandError: a parameter that is unknown, or that no esub may change.
    """
    replaced: list[str] = []
    added: list[tuple[str, str]] = []
    for name, value in changes.items():
        if name in (COMMAND, LEAST, MOST, CHECKPOINTS, CHECKPOINT_PERIOD):
            continue
        parameter = PARAMETERS.get(name)
        if parameter is None:
            raise CommandError(f"{program} set {name}: lava knows no submission parameter of this name to change.")
        if parameter.kind == FIXED:
            raise CommandError(f"{program} set {name}: whether a job is interactive is its user's to say.")
        replaced += parameter.options
        if value != RESET and (parameter.kind != FLAG or value.upper() == YES):
            given = choices.last(*parameter.options)
            option = given[0] if given else parameter.options[0]
            added.append((option, _as_typed(parameter.kind, option, value, f"{program} set {name}")))
    if LEAST in changes or MOST in changes:
        replaced.append("n")
        added += _slots(changes, choices)
    if CHECKPOINTS in changes or CHECKPOINT_PERIOD in changes:
        replaced.append("k")
        added += _checkpoints(changes, choices, program)
    return replaced, added


def _checkpoints(changes: dict[str, str], choices: "Choices", program: str) -> list[tuple[str, str]]:
    """Option -k with another directory or period, the rest as it was; none where the directory is taken back."""
    directory, period = changes.get(CHECKPOINTS, ""), changes.get(CHECKPOINT_PERIOD, "")
    before = choices.value("k") or ""
    if directory == RESET or not (directory or before):
        return []
    if period not in ("", RESET) and not (period.isascii() and period.isdigit()):
        raise CommandError(f"{program} set {CHECKPOINT_PERIOD}={printable(period)}: expected a number of seconds.")
    minutes = "" if not period else "0" if period == RESET else str(-(-int(period) // 60))
    return [("k", checkpoints.changed(before, directory, minutes))]


def _slots(changes: dict[str, str], choices: "Choices") -> list[tuple[str, str]]:
    """Option -n with a changed number, the other one as it was."""
    if RESET in (changes.get(LEAST), changes.get(MOST)):
        return []
    least, most = job_options.slots(choices.value("n") or "1")
    new_least = changes.get(LEAST, str(least))
    new_most = changes.get(MOST, new_least if LEAST in changes and least == most else str(most))
    return [("n", f"{new_least},{new_most}")]


def _as_typed(kind: str, option: str, value: str, origin: str) -> str:
    """Value of a parameter as that of its option; rounded up where the option counts in minutes."""
    if kind == FLAG:
        return ""
    if kind in (TEXT, NUMBER):
        return value
    if not (value.isascii() and value.isdigit()):
        raise CommandError(f"{origin}={printable(value)}: expected a number of {'KB' if kind == KIB else 'seconds'}.")
    if kind == MINUTES:
        return str(-(-int(value) // 60))
    if kind == DATE:
        return time.strftime("%Y:%m:%d:%H:%M", time.localtime(-(-int(value) // 60) * 60))
    if kind == SECONDS:
        return f"{value}s"
    return f"{value}K"


def of_change(options: Options, now: float, unit: str) -> dict[str, str]:
    """Parameters of a bmod: those that it names; SUB_RESET for one that it takes back."""
    from lavactl.submit.submission import Choices

    plain = Options()
    plain.items = [(name, value) for name, value in options.items if name not in ("Z", "a")]
    names = options.last("a")
    found = {NAMES_OF_ESUBS: names} if names else {}
    found |= parameters(Choices(plain, Options()), options.last("Z") or "", now, unit)
    reset = {name for name, _ in options.items}
    found |= {
        name: RESET for name, parameter in PARAMETERS.items() if any(f"{one}n" in reset for one in parameter.options)
    }
    return found
