"""An attempt that warns its job: of limits before they are reached, of what the master will do before it is done.

A notice is a line of JSON in the job's notice file, an event for the agent, and the job's warning action: a signal, or
a command beside the job. The file is written first, so that what is woken by the others finds it. Invariants: a notice
is given once for what it announces, again if the time of that moves, and withdrawn if it moves out of the warning time;
a signal order waits for its notice at most as long as it says, and any stronger order does not.
"""

import contextlib
import json
import os
import signal
import sys
import time
from resource import struct_rusage

from agents.shepherd import messages
from agents.shepherd.attempt import HELD, RUNNING
from agents.shepherd.changes.work import ChangedWork
from agents.shepherd.clock import NEVER, NO_LIMITS, RunClock
from agents.shepherd.controls import STOPPING, Commands, Control
from agents.shepherd.messages import ChangedLimits, JobSetup, Key, Notice
from agents.shepherd.tools import Tools

MOVED_S = 1.0  # smaller changes of an announced time are not told
LIMITS = {
    "TERM_RUNLIMIT": ("run-limit", "the job reaches its run limit"),
    "TERM_DEADLINE": ("deadline", "the job reaches its termination deadline"),
}
WITHDRAWN = "withdrawn"


class NoticeFile:
    """Notices of an attempt on disk, one a line, the newest last.

    They are readable by the job's user, by its group, and written by the shepherd alone: the next agent reads them.
    """

    def __init__(self, path: str, gid: int) -> None:
        self._path = path
        self._gid = gid
        self._lines: list[str] = []

    def add(self, event: str, reason: str, at: float) -> Notice:
        """Add a notice of what happens at a time (0: unknown); a disk that refuses it keeps nothing else back."""
        now = time.time()
        notice = Notice(len(self._lines) + 1, event, reason, now, at)
        self._lines.append(json.dumps(shown(notice, now)))
        try:
            self._write()
        except OSError as error:
            print(f"event=notice_not_written path={self._path} error={error.strerror!r}", file=sys.stderr)
        return notice

    def _write(self) -> None:
        temporary = f"{self._path}.new"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(temporary, flags, 0o600), "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in self._lines)
            if os.geteuid() == 0:
                os.fchown(file.fileno(), -1, self._gid)
                os.fchmod(file.fileno(), 0o640)
        os.replace(temporary, self._path)


def shown(notice: Notice, now: float) -> dict[str, object]:
    """Return a notice as jobs read it."""
    left = max(0.0, round(notice.at - now, 1)) if notice.at else None
    return {
        "number": notice.number,
        "event": notice.event,
        "reason": notice.reason,
        "time": round(notice.time, 3),
        "at": round(notice.at, 3) or None,
        "seconds_left": left,
    }


class WarnedWork(ChangedWork):
    """Attempt held by this shepherd, with notices."""

    def __init__(self, key: Key, setup: JobSetup, tools: Tools) -> None:
        super().__init__(key, setup, tools)
        self._file = NoticeFile(messages.notice_path(setup.notices, key), setup.gid) if setup.notices else None
        self._action = Control(*setup.warning_action)
        self._warnings = Commands()  # of it; other than for the queue's, a job's end does not wait for them
        self._limits: RunClock = NO_LIMITS  # also where the job's command does not run, and no limit ends it
        self._announced = NEVER  # monotonic time of the limit that the job was warned of
        self._end_at = NEVER  # of the delayed signal order
        self._end_reason = ""

    # -- orders of the agent

    def signal(
        self,
        number: int,
        reason: str,
        serial: int,
        causes: int = 0,
        event: str = "",
        notice_s: float = 0.0,
        sentence: str = "",
    ) -> None:
        """Signal the job, that long after a notice if there is an event; or signal one of its tasks."""
        if event and not serial and self.phase in (HELD, RUNNING):
            if self._end_at != NEVER and notice_s > 0:
                return  # said again
            can_react = self.phase == HELD or not self._limits.is_stopped
            self.give_notice(event, sentence or reason, time.time() + notice_s, notice_s if can_react else 0.0)
            if number == 0 and notice_s > 0 and can_react:
                self._end_at, self._end_reason = time.monotonic() + notice_s, reason
                return
            self._end_at = NEVER if number == 0 else self._end_at
        super().signal(number, reason, serial, causes)

    def give_notice(self, event: str, reason: str, at: float, notice_s: float = 1.0) -> None:
        """Tell the job what happens at a time (0: unknown). Without time to react there is no warning action."""
        if self._file is None or self.phase not in (HELD, RUNNING):
            return
        self._send(messages.NOTICE, *self._file.add(event, reason, at))
        if notice_s > 0 and event != WITHDRAWN:
            self._warn()

    def _warn(self) -> None:
        """Apply the warning action."""
        if members := self._tools.confinement.members():
            self._warnings.carry_out(self._action, members, 0, self._spawner, self._patience_ends())

    def tell_time(self) -> None:
        """Report the time left until each limit."""
        now = time.monotonic()
        self._send(messages.TIME_LEFT, *self._limits.left(now), self._limits.elapsed(now))

    def limit(self, new: ChangedLimits) -> None:
        """Replace the limits, unless newer ones are in force."""
        before = self._limits_version
        super().limit(new)
        if self._limits_version != before and self._limits is not self._clock and self._limits is not NO_LIMITS:
            self._limits.change(new.run_limit_s, new.deadline, time.monotonic(), time.time())

    def _helpers(self) -> set[int]:
        return super()._helpers() | self._warnings.pids

    # -- timers

    @property
    def next_at(self) -> float:
        """Monotonic time of the next `tick` with work."""
        return min(super().next_at, self._end_at, self._warn_at(), self._warnings.until)

    def tick(self, now: float) -> None:
        """Carry out all due work."""
        self._look_at_limits(now)
        if now >= self._end_at:
            self._end_at = NEVER
            super().signal(0, self._end_reason, 0)
        if now >= self._warnings.until:
            self._warnings.kill()
        super().tick(now)

    def reaped(self, pid: int, status: int, usage: struct_rusage) -> None:
        """Handle the end of a child of the shepherd."""
        super().reaped(pid, status, usage)
        self._warnings.ended(pid)

    def _warn_at(self) -> float:
        """Return when the next limit is to be announced; NEVER if it has been."""
        if not self.setup.warning_time_s:
            return NEVER
        due = self._limits.next_at
        is_told = abs(due - self._announced) < MOVED_S
        return NEVER if due == NEVER or is_told else due - self.setup.warning_time_s

    def _look_at_limits(self, now: float) -> None:
        if (
            self._announced != NEVER
            and abs(self._limits.next_at - self._announced) >= MOVED_S
            and now < self._warn_at()
        ):
            self._announced = NEVER
            self.give_notice(WITHDRAWN, "the limit that was announced has moved", 0.0)
        if now >= self._warn_at():
            self._announced = self._limits.next_at
            left = max(0.0, self._announced - now)
            self.give_notice(*LIMITS[self._limits.next_reason], time.time() + left, left)

    # -- phases

    def _staged(self) -> None:
        super()._staged()
        if self.phase == HELD and not self._has_command:
            self._limits = RunClock(self.setup.run_limit_s, self.setup.deadline, time.monotonic(), time.time())

    def _running(self, pid: int) -> None:
        super()._running(pid)
        self._limits = self._clock

    def _signal_as_configured(self, number: int, causes: int) -> None:
        super()._signal_as_configured(number, causes)
        if self._limits is not self._clock and self._limits is not NO_LIMITS:
            if number in STOPPING:
                self._limits.stop(time.monotonic())
            elif number == signal.SIGCONT:
                self._limits.resume(time.monotonic())

    def _end(self, status: int) -> None:
        super()._end(status)
        self._warnings.kill()
        self._limits, self._announced, self._end_at = NO_LIMITS, NEVER, NEVER
