"""Log format of all daemons, with the priority in front for journald.

``time=... level=... part=... words``; where standard error is the journal's, the time is omitted and ``<N>`` (syslog's
priority) put in front: the journal records both itself, and `journalctl -p warning` then finds warnings.
"""

import logging
import os
import sys
from collections.abc import Mapping

# Marks a record whose message is several lines, each a log line of its own.
MANY = {"is_many": True}
_PRIORITIES = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))


class LineFormatter(logging.Formatter):
    """Formats for a file or terminal, or for the journal."""

    def __init__(self, for_journal: bool) -> None:
        super().__init__()
        self._for_journal = for_journal

    def format(self, record: logging.LogRecord) -> str:
        """Record as lines; those of a traceback have only the priority in front."""
        text = record.getMessage()
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        priority = f"<{_priority(record.levelno)}>" if self._for_journal else ""
        time = "" if self._for_journal else f"time={self.formatTime(record).replace(' ', 'T')} "
        head = f"{priority}{time}level={record.levelname} part={record.name} "
        return head + text.replace("\n", "\n" + (head if hasattr(record, "is_many") else priority))


def _priority(level: int) -> int:
    return next((priority for least, priority in _PRIORITIES if level >= least), 7)


def is_journal(environment: Mapping[str, str], descriptor: int = 2) -> bool:
    """True if a descriptor is the stream to journald that systemd names in $JOURNAL_STREAM."""
    try:
        found = os.fstat(descriptor)
    except OSError:
        return False
    return environment.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"


def error_mark(environment: Mapping[str, str]) -> str:
    """Prefix for a last sentence on standard error, so that the journal records it as an error."""
    return "<3>" if is_journal(environment) else ""


def start_logging(level: str = "INFO") -> None:
    """Send the log of this process to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter(is_journal(os.environ)))
    logging.basicConfig(level=level, handlers=[handler])
    logging.getLogger("grpc").setLevel(logging.WARNING)
