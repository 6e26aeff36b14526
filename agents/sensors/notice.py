"""Notice that this host will be taken away: the site's program is asked every few seconds (a spot instance's metadata,
the owner of a desktop).

Its exit status says: 0, the host stays; 2, it will be taken away in so many seconds, the first word of its output. All
else is no answer: what was known before stays.
"""

import logging
import math
import time
from collections.abc import Sequence

from agents.sensors.health import BAD, OK, HealthProgram
from protos.agents_pb2 import HostNotice as NoticeMessage

DEFAULT_S = 30.0  # notice of a program that names no seconds
LIMIT_S = 10.0
TEXT_MAX = 200
LOG = logging.getLogger("lava.notice")


class HostNotice:
    """The notice as last heard; its time counts on this host's own clock."""

    def __init__(self) -> None:
        self.program = HealthProgram()
        self.is_known = False  # the program has answered
        self._until = 0.0  # monotonic; 0: none
        self._text = ""
        self._complaint = ""

    def ask(self, argv: Sequence[str]) -> bool:
        """Ask the program; return True if its answer is news, as the first one is. Blocks until it has answered."""
        verdict, text = self.program.run(argv, LIMIT_S)
        if verdict == OK:
            is_news = bool(self._until) or not self.is_known  # the last agent may have told a notice
            self.is_known, self._until, self._complaint = True, 0.0, ""
            return is_news
        if verdict != BAD or self.program.is_late:
            self._complain(text or "it exits with 1, which says nothing")
            return False
        is_news, self.is_known, self._complaint = not self._until, True, ""
        if is_news:
            seconds, self._text = _read(text)
            self._until = time.monotonic() + seconds
        return is_news

    def _complain(self, text: str) -> None:
        if text != self._complaint:
            LOG.warning("event=notice_unknown reason=%r", text)
        self._complaint = text

    def message(self) -> NoticeMessage:
        """Return the notice, or its withdrawal, for the master."""
        if not self._until:
            return NoticeMessage(withdrawn=True)
        return NoticeMessage(seconds=max(0.0, self._until - time.monotonic()), text=self._text)


def _read(text: str) -> tuple[float, str]:
    """Read the seconds at the beginning of a line, and the rest of it."""
    word, _, rest = text.partition(" ")
    try:
        seconds = float(word)
    except ValueError:
        return DEFAULT_S, text[:TEXT_MAX]
    return (seconds, rest.strip()[:TEXT_MAX]) if 0 <= seconds < math.inf else (DEFAULT_S, text[:TEXT_MAX])
