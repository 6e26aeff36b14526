"""Durations of job files: ``90``, ``90s``, ``1h30m``, ``500ms``, ``2d``."""

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.job_files.text.fields import Fields

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
WORDING = "a duration, such as 90s, 10m or 1h30m"
_PART = re.compile(r"(\d{1,12}(?:\.\d{0,9})?)(ms|s|m|h|d)")
_PLAIN = re.compile(r"\d{1,12}(?:\.\d{0,9})?")
MOST_S = 1e9


def read_duration(text: str) -> float:
    """Seconds of a duration; a plain number is of seconds.

    Raises:
        ValueError: it is none, or longer than thirty years.
    """
    if _PLAIN.fullmatch(text):
        seconds = float(text)
    else:
        parts = _PART.findall(text)
        if not parts or "".join(number + unit for number, unit in parts) != text:
            raise ValueError(text)
        seconds = sum(float(number) * UNITS[unit] for number, unit in parts)
    if seconds > MOST_S:
        raise ValueError(text)
    return seconds


def read_field(fields: "Fields", key: str, default: float = 0.0) -> float:
    """Seconds of a field that is a duration."""
    node = fields.scalar(key, WORDING)
    if node is None:
        return default
    try:
        return read_duration(node.text)
    except ValueError:
        raise fields.expected(key, WORDING, node) from None


def duration_text(seconds: float) -> str:
    """Seconds as a job file has them."""
    return f"{seconds:.3f}".rstrip("0").rstrip(".") + "s"
