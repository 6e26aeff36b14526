"""Interactive job from its submission to its end: bsub -I, -Ip, -Is and their kin.

Invariants: a job whose bsub is ended while it is pending is ended, too; the exit code is the job's, 126 if it ended
without having started, 255 if its end is not known.
"""

from lavactl.errors import FAILURE, CommandError
from lavactl.tasks.interruption import Interruptible
from lavactl.tasks.keyboard import keyboard_of
from lavactl.tasks.session import Session
from lavactl.tasks.surrounding_job import JobKey
from lavactl.text.exits import exit_code
from lavactl.text.render import clean
from lavactl.wire import messages
from lavactl.wire.connection import LostError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from lavactl.io import Io
    from lavactl.tasks.task import Task

PIPES, TERMINAL, SHELL = "pipes", "terminal", "shell"
OWN = b"job"  # names the streams of the job itself
ENDED_PENDING = 126
# The master hears of an end after its client: time to wait for its word, and between two questions about a lost job.
WORD_S, LOST_AGAIN_S = 5.0, 2.0
ENDED = (messages.DONE, messages.EXIT)
WAITING = (messages.PEND, messages.PSUSP)


class _Interrupted(Exception):
    """Signal to this process while its job is pending."""

    def __init__(self, number: int) -> None:
        super().__init__(str(number))
        self.number = number


class InteractiveJob:
    """Client of one job. ``kind``: its streams; ``quiet``: without LSF's notices."""

    def __init__(self, job: int, kind: str, quiet: bool, io: "Io") -> None:
        self._job = job
        self._kind = kind
        self._quiet = quiet
        self._io = io
        self._asked_at = 0.0

    def run(self) -> int:
        """Wait for the job's start, pass on its streams, and return its exit code."""
        attempt = 0
        while True:
            change = self._dispatched(attempt)
            if change.state in ENDED:
                return self._without_start(change)
            self.tell_start(change.hosts[0])
            attempt = change.attempt
            task, left = self._pass_on(change)
            if left:
                return 128 + left
            code = self._end(change, task)
            if code is not None:
                return code

    def tell_start(self, host: str) -> None:
        """Tell the user where the job starts."""
        self._notice(f"Starting on {host}")

    def _notice(self, text: str) -> None:
        if not self._quiet:
            self._io.error(f"<<{text}>>")

    # -- while it is pending

    def _dispatched(self, after: int) -> messages.JobChange:
        """The first change with which an attempt after this one runs, or the job has ended."""
        interrupted = 0
        while True:
            try:
                with Interruptible(_Interrupted):
                    if not interrupted:
                        self._notice("Waiting for dispatch ...")
                    return next(change for change in self._changes() if _has_begun(change, after))
            except _Interrupted as signalled:
                if interrupted:
                    raise KeyboardInterrupt from None
                interrupted = signalled.number
                self._io.client().close()  # it was left in the middle of an answer
                self._kill()
            except StopIteration:
                raise CommandError(f"The master stopped telling about Job <{self._job}> before its end.") from None

    def _changes(self) -> "Iterator[messages.JobChange]":
        return self._io.client().watch([messages.JobRef(job=self._job)])

    def _kill(self) -> None:
        request = messages.SignalRequest(action=messages.TERMINATE)
        request.filter.refs.add(job=self._job)
        request.filter.user = "all"
        self._io.client().signal(request)

    def _without_start(self, change: messages.JobChange) -> int:
        if change.state == messages.EXIT and not change.hosts:
            self._notice("Terminated while pending")
            return ENDED_PENDING
        if change.exit_reason:
            self._io.error(f"Job <{self._job}>: {clean(change.exit_reason)}")
        return exit_code(change.exit_status) or int(change.state == messages.EXIT)

    # -- while it runs

    def _pass_on(self, change: messages.JobChange) -> "tuple[Task, int]":
        keyboard = keyboard_of(self._io, self._kind == TERMINAL) if self._kind != PIPES else None
        key = JobKey(self._job, change.index, change.attempt, list(change.hosts))
        session = Session(self._io, "bsub", key, keyboard, self._notice, lambda: self._is_over(change.attempt))
        try:
            return session.pass_on(change.hosts[0], messages.TaskStart(resume=True), OWN)
        except LostError as error:
            raise CommandError(f"The agent of this host has gone: {error}. Job <{self._job}> is being ended.") from None

    def _is_over(self, attempt: int) -> bool:
        """True if the master says, when it is asked again, that this attempt is over."""
        now = self._io.monotonic()
        if now - self._asked_at < LOST_AGAIN_S:
            return False
        self._asked_at = now
        change = next(self._io.client().watch_briefly(messages.JobRef(job=self._job), 1.0), None)
        return change is not None and (change.state in (*ENDED, *WAITING) or change.attempt > attempt)

    def _end(self, change: messages.JobChange, task: "Task") -> int | None:
        """Exit code of the job, as its host or the master tells it; None if it was requeued."""
        has_status = task.status is not None
        for word in self._io.client().watch_briefly(messages.JobRef(job=self._job), WORD_S):
            if word.state in ENDED:
                if not has_status and word.exit_reason:
                    self._io.error(f"Job <{self._job}>: {clean(word.exit_reason)}")
                return task.code if has_status else exit_code(word.exit_status) or int(word.state == messages.EXIT)
            if word.state in WAITING or word.attempt > change.attempt:
                return None
        if has_status:
            return task.code
        reason = clean(task.error).rstrip(".") or "its connection was lost"
        self._io.error(f"Job <{self._job}> on host <{change.hosts[0]}>: {reason}. How it ends is not known here.")
        return FAILURE


def _has_begun(change: messages.JobChange, after: int) -> bool:
    """True if the job has ended, or an attempt after this one runs."""
    if change.state in ENDED:
        return True
    return change.state in (messages.RUN, messages.USUSP, messages.SSUSP) and bool(
        change.hosts and change.attempt > after
    )
