"""Signals that end a command while it waits: each raises an exception, and none is lost."""

import signal

from lavactl.tasks.terminal_ends import is_wanted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Self

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Interruptible:
    """Context manager in which signals raise ``error(number)``, unless this process was started to ignore them.

    Python drops an exception that is raised while an answer that was left early is being closed: `check` raises it
    again, and so does the end of the context.
    """

    def __init__(self, error: "Callable[[int], BaseException]") -> None:
        self._error, self._number = error, 0

    def __enter__(self) -> "Self":
        self._before = {number: signal.signal(number, self._raise) for number in ENDING if is_wanted(number)}
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if kind is None:
            self.check()

    def _raise(self, number: int, _frame: "FrameType | None") -> None:
        self._number = number
        raise self._error(number)

    def check(self) -> None:
        """Raise the exception of a signal that has come before."""
        if self._number:
            raise self._error(self._number)
