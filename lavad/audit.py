"""Audit trail: user, host, action, object and result of each change, one line in the master's log.

Lines of one iteration of the event loop are written at once, so that a busy master pays for the text and little else.
Texts that users chose are quoted: none of them can start a line of its own.
"""

import asyncio
import logging
from collections.abc import Iterable

from protos.logs import MANY

log = logging.getLogger("audit")

JOBS_SHOWN_BYTES = 1000  # of the job list of one request


class AuditTrail:
    """Buffer of audit lines, written at the end of the loop's iteration."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def note(self, user: str, host: str, action: str, what: str, refusal: str = "", *, is_left: bool = False) -> None:
        """Add one action.

        Args:
            what: trusted text.
            refusal: empty if it was carried out.
            is_left: the caller left before its end; a part of it may have been carried out.
        """
        result = f"result=refused reason={refusal!r}" if refusal else "result=left" if is_left else "result=ok"
        if not self._lines:
            asyncio.get_running_loop().call_soon(self.flush)
        self._lines.append(f"user={_plain(user)} host={_plain(host)} action={action} {what} {result}")

    def flush(self) -> None:
        """Write the buffered lines."""
        lines, self._lines = self._lines, []
        if lines:
            log.info("%s", "\n".join(lines), extra=MANY)


TRAIL = AuditTrail()


def _plain(text: str) -> str:
    return text if text.isidentifier() or text.replace("-", "").replace(".", "").isalnum() else repr(text)


def ranges(numbers: Iterable[int]) -> str:
    """Format job ids as ranges: ``1-3,7``; cut if the text is too long."""
    parts: list[str] = []
    first = last = -1
    for number in numbers:
        if number == last + 1 and first >= 0:
            last = number
            continue
        if first >= 0:
            parts.append(_range(first, last))
        first = last = number
    if first >= 0:
        parts.append(_range(first, last))
    text = ",".join(parts)
    return text if len(text) <= JOBS_SHOWN_BYTES else f"{text[:JOBS_SHOWN_BYTES]}..."


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"
