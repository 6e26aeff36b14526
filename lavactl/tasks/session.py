"""One process elsewhere with this process's streams: an interactive job, or a process within a running job.

Invariants: as of `Tasks`; while the connection to the process is lost the user's terminal is his own, he is told, and
Ctrl-C leaves; this process leaves at once when its own terminal has gone, and the agents then end the other.
"""

import os
import signal

from lavactl.tasks.keyboard import Keyboard, window
from lavactl.tasks.task import SIGNALS, Task
from lavactl.tasks.tasks import Tasks, connect
from lavactl.tasks.terminal_ends import FORWARDED, Signals
from lavactl.wire.messages import TaskInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from lavactl.io import Io
    from lavactl.tasks.surrounding_job import JobKey
    from lavactl.wire.messages import TaskOutput, TaskStart

ATTACH = "/lava.local/Attach"
LEAVING = (signal.SIGHUP, signal.SIGTERM)
ASKING_MS = 1000  # between two questions to `is_over`
PATIENCE_S = 300.0  # for a process that is there, before its agent told its own


class Session(Tasks):
    """Streams of one process.

    Args:
        keyboard: the user's terminal, if the process is to have it.
        told: called with a sentence for the user.
        is_over: called every second or so while the connection is lost: True if there is nothing to wait for.
    """

    caught: tuple[int, ...] = (*FORWARDED, signal.SIGWINCH, signal.SIGTSTP)

    def __init__(
        self,
        io: "Io",
        command: str,
        job: "JobKey",
        keyboard: Keyboard | None,
        told: "Callable[[str], None]",
        is_over: "Callable[[], bool]" = lambda: False,
    ) -> None:
        super().__init__(io, connect(io, command), job, by_line=False, method=ATTACH)
        self._keyboard = keyboard
        self._told = told
        self._is_over = is_over
        self._is_lost = False

    def pass_on(self, host: str, start: "TaskStart", token: bytes = b"") -> tuple[Task, int]:
        """Start the process, or attach to the one of this token; pass on its streams until its end.

        Returns the process as a task, and the signal by which this process has to leave early, or 0.
        """
        try:
            task = self.start(host, start, token, window() if start.terminal else (0, 0))
            self.feed(task)
            return task, self.run()
        finally:
            self._take_back()
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _take_back(self) -> None:
        if self._keyboard is not None:
            self._keyboard.take_back()

    def _runs(self, task: Task, output: "TaskOutput") -> None:
        super()._runs(task, output)
        if self._is_lost:
            self._is_lost = False
            self._told(f"Connected to {task.host} again" if task.host else "Connected again")
        if self._keyboard is not None:
            self._keyboard.hand_over()
        self._tell_window(task)

    def _tell_window(self, task: Task) -> None:
        lines, columns = window()
        if columns and task.call and not task.ended:
            self._send(task, TaskInput(lines=lines, columns=columns))

    def _signalled(self, number: int) -> None:
        if number == signal.SIGWINCH:
            for task in self._unfinished():
                self._tell_window(task)
        elif number == signal.SIGTSTP:
            self._stop()
        elif number in LEAVING or (self._is_lost and number == signal.SIGINT):
            self._left = number
        else:
            self.signal(number)

    def _stop(self) -> None:
        """Stop with the process elsewhere, as Ctrl-Z does; go on with it."""
        self._say_to_all(signal.SIGSTOP)
        self._take_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        if self._keyboard is not None and not self._is_lost:
            self._keyboard.hand_over()
        self._say_to_all(signal.SIGCONT)
        for task in self._unfinished():
            self._tell_window(task)

    def _say_to_all(self, number: int) -> None:
        for task in self._unfinished():
            self._tell(task, task.said(SIGNALS, bytes([number])))

    def _drops_output(self) -> bool:
        return self._left in LEAVING

    def _patience(self, task: Task) -> float:
        return PATIENCE_S if task.was_there and not task.started else super()._patience(task)

    def _lose(self, error: Exception) -> None:
        super()._lose(error)  # type: ignore[arg-type]
        now = self._io.monotonic()
        for task in list(self._apart):
            task.lose(now)
            if self._is_out_of_patience(task, now):
                self._apart.discard(task)
                self._conclude(task, f"the agent of this host does not answer: {error}")
        self._note_loss(f"The agent of this host does not answer: {error}")

    def _broke_off(self, task: Task, status: int, text: str) -> bool:
        is_repeated = super()._broke_off(task, status, text)
        if is_repeated:
            self._note_loss(text)
        return is_repeated

    def _turn(self, signals: Signals) -> None:
        super()._turn(signals)
        if self._is_lost and self._is_over():
            for task in self._unfinished():
                self._conclude(task, "its connection was lost")
            self._by_call.clear()
            self._apart.clear()

    def _timeout_ms(self) -> int | None:
        timeout_ms = super()._timeout_ms()
        if not self._is_lost:
            return timeout_ms
        return ASKING_MS if timeout_ms is None else min(timeout_ms, ASKING_MS)

    def _note_loss(self, reason: str) -> None:
        if not self._apart or self._is_lost or not any(task.started or task.was_there for task in self._apart):
            return
        self._is_lost = True
        self._take_back()
        self._told(f"{reason[:1].upper()}{reason[1:].rstrip('.')}; trying again, Ctrl-C leaves")
