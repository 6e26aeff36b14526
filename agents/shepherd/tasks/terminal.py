"""Pseudo-terminal of a task or of an interactive job: the shepherd has its master, the process its other side.

The kernel's line discipline does the rest: it edits lines, and turns control characters into signals.
"""

import fcntl
import os
import struct
import termios
from collections.abc import Callable

from agents.shepherd.tasks.streams import Input

END_OF_FILE = b"\x04"  # VEOF, as every new terminal has it
LINES, COLUMNS = 24, 80  # of a client that does not know its own
SIZE_MAX = 0xFFFF


def open_pair() -> tuple[int, int]:
    """Open a pseudo-terminal; return the descriptors of its master and of its other side, neither inheritable."""
    return os.openpty()


def resize(descriptor: int, lines: int, columns: int) -> None:
    """Set the size of a terminal; its foreground processes get SIGWINCH if that is a change."""
    size = (min(max(0, lines) or LINES, SIZE_MAX), min(max(0, columns) or COLUMNS, SIZE_MAX))
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))


class TerminalInput(Input):
    """Input of a task on a terminal. Its end is the character that ends a file: the terminal stays open.

    After the start of a line that character only hands the line over: it is typed once more then.
    """

    def __init__(self, descriptor: int, closing: Callable[[int], None]) -> None:
        super().__init__(descriptor, closing)
        self._has_ended = False
        self._last = b""  # byte of the input

    def accept(self, place: int, data: bytes) -> None:
        """Take input as any other, and remember how it ends."""
        if data and place + len(data) > self.taken + len(self._waiting):
            self._last = data[-1:]
        super().accept(place, data)

    def end(self) -> None:
        """Type the end of file, once."""
        if not self._has_ended:
            self._has_ended = True
            is_within_line = self._last not in (b"", b"\n", b"\r", END_OF_FILE)
            self._waiting += END_OF_FILE * (1 + is_within_line)  # counted as input: nothing follows it
            self.write()
