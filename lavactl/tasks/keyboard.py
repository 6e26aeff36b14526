"""The user's terminal while a process elsewhere has it: raw, so that what is typed reaches the process as it is.

Invariant: the terminal is as it was before whenever this process ends, stops, or waits for a lost connection.
"""

import fcntl
import os
import struct
import termios

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lavactl.io import Io

_INPUT = (
    termios.BRKINT | termios.ICRNL | termios.IGNBRK | termios.IGNCR | termios.INLCR | termios.INPCK | termios.ISTRIP
    | termios.IXON | termios.PARMRK
)  # fmt: skip
_LOCAL = termios.ECHO | termios.ECHONL | termios.ICANON | termios.IEXTEN


class Keyboard:
    """Terminal on a descriptor. ``keeps_signals``: Ctrl-C, Ctrl-Z and Ctrl-\\ stay signals of this process."""

    def __init__(self, descriptor: int, keeps_signals: bool) -> None:
        self._descriptor = descriptor
        self._before = termios.tcgetattr(descriptor)
        self._is_raw = False
        self._keeps_signals = keeps_signals

    def hand_over(self) -> None:
        """Give the terminal to the process elsewhere."""
        mode: list[Any] = [*self._before[:6], list(self._before[6])]
        mode[0] &= ~_INPUT
        mode[1] &= ~termios.OPOST
        mode[2] = mode[2] & ~(termios.CSIZE | termios.PARENB) | termios.CS8
        mode[3] &= ~(_LOCAL if self._keeps_signals else _LOCAL | termios.ISIG)
        mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
        termios.tcsetattr(self._descriptor, termios.TCSADRAIN, mode)
        self._is_raw = True

    def take_back(self) -> None:
        """Restore the terminal; a repetition is no error."""
        if self._is_raw:
            self._is_raw = False
            try:
                termios.tcsetattr(self._descriptor, termios.TCSADRAIN, self._before)
            except termios.error:
                return  # the terminal is gone


def keyboard_of(io: "Io", keeps_signals: bool) -> Keyboard | None:
    """The terminal behind standard input; None if that is none."""
    if not io.is_terminal(io.stdin):
        return None
    try:
        return Keyboard(io.stdin.fileno(), keeps_signals)
    except (OSError, termios.error):
        return None


def window() -> tuple[int, int]:
    """Lines and columns of the terminal on one of the standard streams; zeros for none."""
    for descriptor in (0, 1, 2):
        try:
            lines, columns, _, _ = struct.unpack("HHHH", fcntl.ioctl(descriptor, termios.TIOCGWINSZ, bytes(8)))
        except OSError:
            continue
        if os.isatty(descriptor) and columns:
            return lines, columns
    return 0, 0
