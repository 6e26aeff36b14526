"""The audit trail: who did what, from which host, on what, with which result; one line each in the master's log.

Lines of one turn of the event loop leave in one write, so that a busy master pays for the text and little else.
Texts that users chose are quoted: none of them can make a line of its own.
"""

import asyncio
import logging
from collections.abc import Iterable

from protos.logs import MANY

log = logging.getLogger("audit")

JOBS_SHOWN_BYTES = 1000  # of the list of jobs that one request was about


class AuditTrail:
    """Collects lines and writes them at the end of the turn."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def note(self, user: str, host: str, action: str, what: str, refusal: str = "") -> None:
        """Note one act. ``what`` is text of ours; ``refusal`` is empty where it was carried out."""
        result = f"result=refused reason={refusal!r}" if refusal else "result=ok"
        if not self._lines:
            asyncio.get_running_loop().call_soon(self.flush)
        self._lines.append(f"user={_plain(user)} host={_plain(host)} action={action} {what} {result}")

    def flush(self) -> None:
        """Write what was collected."""
        lines, self._lines = self._lines, []
        if lines:
            log.info("%s", "\n".join(lines), extra=MANY)


TRAIL = AuditTrail()


def _plain(text: str) -> str:
    return text if text.isidentifier() or text.replace("-", "").replace(".", "").isalnum() else repr(text)


def ranges(numbers: Iterable[int]) -> str:
    """Job numbers in few words: ``1-3,7``; cut where they are very many."""
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
