"""Text for the terminal: escapes, dates, columns, wrapped paragraphs.

Invariants: no text of a user's job can move the cursor or forge a line; dates are local time, months English.
"""

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.wire.messages import JobSpec

MISSING = "-"
WRAP_COLUMNS = 80
WRAP_INDENT = 21

_ESCAPES = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\x1b": "\\e"}
MINUTES_MAX = 1 << 16  # of a process that serves commands for months
_minutes: dict[int, str] = {}
_compact_minutes: dict[int, str] = {}
SECONDS = tuple(f"{second:02d}" for second in range(60))


def clean(text: str) -> str:
    """Text on one line, with every non-printable character escaped."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else _escape(letter) for letter in text)


def _escape(letter: str) -> str:
    known = _ESCAPES.get(letter)
    if known:
        return known
    code = ord(letter)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def clean_script(text: str) -> str:
    """A command or script on one line: its lines joined by semicolons."""
    return clean(text.strip("\n").replace("\r\n", "\n").replace("\n", ";"))


def short_time(moment: float) -> str:
    """``Nov 21 09:02``; cached by the minute, since a list of jobs repeats them."""
    minute = int(moment // 60)
    text = _minutes.get(minute)
    return _kept(_minutes, minute, "%b %d %H:%M") if text is None else text


def _kept(minutes: dict[int, str], minute: int, form: str) -> str:
    if len(minutes) >= MINUTES_MAX:
        minutes.clear()
    text = minutes[minute] = time.strftime(form, time.localtime(minute * 60))
    return text


def long_time(moment: float) -> str:
    """``Sat Nov 21 09:02:11``."""
    return time.strftime("%a %b %d %H:%M:%S", time.localtime(moment))


def compact_time(moment: float) -> str:
    """``11/21-09:02:11``; ``-`` for an unset time. Cached by the minute: all zones of today differ by whole minutes."""
    if not moment:
        return MISSING
    minute, second = divmod(int(moment), 60)
    text = _compact_minutes.get(minute)
    if text is None:
        text = _kept(_compact_minutes, minute, "%m/%d-%H:%M:")
    return text + SECONDS[second]


def is_output_kept(spec: "JobSpec", sends_mail: bool) -> bool:
    """True if the output of a job is for bpeek alone: no file has it, no client, and no mail of a site that sends any.

    About jobs of tasks and those submitted in Slurm's words no mail is sent without a wish.
    """
    is_mailed = sends_mail and not (spec.HasField("tasks") or spec.HasField("slurm"))
    return not (spec.output or spec.interactive or is_mailed)


def kept_output(key: str) -> str:
    """Hint at bpeek for a job without an output file; the key is ``123`` or ``123[5]``."""
    job = f'"{key}"' if "[" in key else key
    return f"No output file: bpeek {job} shows its output, also for a while after its end"


def keep_tail(text: str, width: int) -> str:
    """Text cut to a width; the tail is kept, since it distinguishes job names."""
    return text if len(text) <= width else "*" + text[1 - width :]


def wrap(paragraph: str) -> str:
    """Paragraph of the -l forms: broken anywhere at 80 columns, further lines indented by 21 blanks."""
    lines = [paragraph[:WRAP_COLUMNS]]
    step = WRAP_COLUMNS - WRAP_INDENT
    indent = " " * WRAP_INDENT
    lines += [indent + paragraph[at : at + step] for at in range(WRAP_COLUMNS, len(paragraph), step)]
    return "\n".join(lines)


def limit(value: int) -> str:
    """Limit in a table; zero means unlimited."""
    return str(value) if value else MISSING


def json_text(command: str, noun: str, records: list[dict[str, str]]) -> str:
    """JSON document of -json: every value is a string."""
    import json

    document = {"COMMAND": command, noun: len(records), "RECORDS": records}
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)
