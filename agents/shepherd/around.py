"""An attempt with pre- and post-execution commands around it: the queue's on each host, the queue's on the first, the
job's; one after the other, and after the job in the reverse order.

Invariants: the job is not started before all pre-execution commands have succeeded; once one of the queue has begun,
its post-execution command runs, however the attempt ends, unless the host itself is taken away; the queue's commands
see nothing of the job's user where they are another user's.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from resource import struct_rusage
from typing import NamedTuple

from agents.shepherd import messages
from agents.shepherd.attempt import ENDING, POST, PRE, RUNNING, STAGING, Work
from agents.shepherd.clock import NEVER, NO_LIMITS
from agents.shepherd.messages import (
    OF_HOST,
    OF_JOB,
    OF_QUEUE,
    OF_RESTART,
    POST_AWAITED,
    POST_DONE,
    POST_ERR,
    POST_NONE,
    ChangedLimits,
    JobSetup,
    Key,
    NotStarted,
    Program,
)
from agents.shepherd.process import processes, start
from agents.shepherd.process.spawner import Spawner
from agents.shepherd.process.start import UNUSABLE, HostFailure, StartFailure
from agents.shepherd.tools import Tools

ABORT_EXIT = 99  # of a pre-execution command: the job must not be tried again
KILLED = int(signal.SIGKILL)  # as a wait status
PLACE = "/tmp"  # directory of the queue's commands
PATH = b"/bin:/usr/bin:/sbin:/usr/sbin"
WORDS = {OF_HOST: "the queue's pre-execution command for each host", OF_QUEUE: "the queue's pre-execution command",
         OF_JOB: "the job's pre-execution command",
         OF_RESTART: "the program that restarts the job from its checkpoint"}  # fmt: skip


class Step(NamedTuple):
    """One command."""

    whose: str
    command: str
    limit_s: float = 0.0  # 0: none


def steps_of(*steps: tuple[str, str, float]) -> list[Step]:
    """Return those of the steps that have a command; most jobs have none, and pay for this at each end."""
    return [Step(*one) for one in steps if one[1]]


class Steps:
    """Commands of one phase, one after the other. ``streams`` opens the files of the job."""

    def __init__(self, key: Key, setup: JobSetup, tools: Tools, streams: Callable[[], tuple[int, ...]]) -> None:
        self.pid = 0
        self.until = self.own_until = NEVER  # end of the running command's time; by its own limit alone
        self.is_late = False  # it was killed for that
        self.now = Step("", "")
        self._left: list[Step] = []
        self._variables: dict[bytes, bytes] = {}
        self._setup, self._key, self._tools = setup, key, tools
        self._streams = streams
        self._spawner = Spawner(key, setup, tools.identity, tools.null)

    def plan(self, steps: list[Step], variables: dict[bytes, bytes] | None = None) -> None:
        """Set the commands to come."""
        self._left = steps
        self._variables = variables or {}

    def __bool__(self) -> bool:
        return bool(self._left)

    @property
    def next_whose(self) -> str:
        """Owner of the next command."""
        return self._left[0].whose

    def next(self) -> None:
        """Start the next command; raises what `Spawner.spawn` raises."""
        self.now, self.is_late = self._left.pop(0), False
        self.until = self.own_until = time.monotonic() + self.now.limit_s if self.now.limit_s else NEVER
        try:
            self.pid = self._of_job() if self.now.whose in (OF_JOB, OF_RESTART) else self._of_queue()
        except BaseException:
            self.until = NEVER
            raise

    def _of_job(self) -> int:
        setup = self._setup
        program = Program("/bin/sh", ("/bin/sh", "-c", self.now.command))
        cwd = start.expand(setup.cwd, self._key) or setup.home or "/"
        environment = {**self._spawner.environment(), **self._variables}
        return self._spawner.spawn(program, environment, self._streams(), cwd)

    def _of_queue(self) -> int:
        program = Program("/bin/sh", ("/bin/sh", "-c", self.now.command))
        environment = self._spawner.environment()
        around = self._setup.around
        if around.user and around.uid != self._setup.uid:
            names = {*around.variables, *self._spawner.own_variables()}
            environment = {name: value for name, value in environment.items() if name in names}
            user = os.fsencode(around.user)
            environment |= {b"USER": user, b"LOGNAME": user, b"HOME": os.fsencode(around.home), b"SHELL": b"/bin/sh"}
        environment |= {**self._variables, b"PATH": PATH, b"PWD": os.fsencode(PLACE)}
        null = self._tools.null
        spawner = Spawner(self._key, _for_queue(self._setup), self._tools.identity, null)
        return spawner.spawn(program, environment, (null,) * 3, PLACE)

    def ended(self) -> None:
        """Note that the running command has ended."""
        self.pid, self.until = 0, NEVER

    def kill(self, is_late: bool) -> None:
        """Kill the running command."""
        self.until, self.is_late = NEVER, is_late
        if self.pid:
            processes.send([-self.pid], signal.SIGKILL)


def _for_queue(setup: JobSetup) -> JobSetup:
    """Return the setup of the queue's commands: their user, and no limits of the job's processes.

    They are outside its private files, so that what they mount is there for the job as well.
    """
    around = setup.around
    plain = setup._replace(rlimits=(), nice=0, private_files="", umask=0o022)
    if not around.user:
        return plain
    uid, gid, groups = around.uid, around.gid, around.groups
    return plain._replace(user=around.user, uid=uid, gid=gid, groups=groups, home=around.home)


class SurroundedWork(Work):
    """Attempt held by this shepherd, with the commands around it."""

    def __init__(self, key: Key, setup: JobSetup, tools: Tools) -> None:
        super().__init__(key, setup, tools)
        self._steps = Steps(key, setup, tools, self._files_of_commands)
        self._begun: set[str] = set()  # whose pre-execution commands have begun
        self._is_staged = self._is_wound_up = self._is_cut = False
        self._ran = NO_LIMITS  # clock of the job's limits: with JOB_INCLUDE_POSTPROC they hold until all is done
        self._post_status = 0
        self._posted_at = 0.0

    # -- before

    def _prepare(self) -> None:
        """Run the queue's command for this host, then set up the rest."""
        around = self.setup.around
        of_profile = (OF_HOST, around.profile_host_pre, around.pre_limit_s)
        self._steps.plan(steps_of((OF_HOST, around.host_pre, around.pre_limit_s), of_profile))
        self._attempt(self._go_on)

    def _begin(self) -> None:
        """Run the commands before the job, then start it."""
        self._steps.plan(self._steps_before())
        self.phase = PRE if self._steps else self.phase
        self._go_on()

    def _steps_before(self) -> list[Step]:
        around = self.setup.around
        limit_s = around.pre_limit_s
        return steps_of((OF_QUEUE, around.pre, limit_s), (OF_JOB, self.setup.pre_exec, limit_s))

    def _go_on(self) -> None:
        """Start the next command before the job; after the last one what follows."""
        if self._steps:
            self._note_start()
            self._begun.add(self._steps.next_whose)
            self._steps.next()
        elif self.phase == STAGING:
            super()._prepare()
        else:
            super()._begin()

    def _staged(self) -> None:
        self._is_staged = True
        super()._staged()

    def _files_of_commands(self) -> tuple[int, ...]:
        """Return the descriptors of the job's own command: before a batch job, its output files."""
        null = self._tools.null
        if self.phase == POST or self.setup.interactive or self.setup.role_names:
            return (null,) * 3
        streams = self._streams or self._open_files()
        return (null, streams.output, streams.error)

    def _pre_ended(self, status: int) -> None:
        step = self._steps.now
        if self._termination.next_at != NEVER:
            self._end(status or KILLED)
        elif not status:
            self._attempt(self._go_on)
        elif status == start.exit_status(ABORT_EXIT) and step.whose != OF_HOST:
            self._reason, self._detail = "TERM_PRE_EXEC_FAIL", f"{_capital(WORDS[step.whose])} asked to abort the job."
            self._end(status)
        else:
            how = f"took longer than its limit of {self.setup.around.pre_limit_s:g} seconds"
            how = how if self._steps.is_late else self._how(step, status)
            code = 0 if self._steps.is_late or not os.WIFEXITED(status) else os.WEXITSTATUS(status)
            whose = OF_JOB if step.whose == OF_RESTART else step.whose
            self._refusal = NotStarted(f"{WORDS[step.whose]} {how}", whose, code)
            self._end(status)

    def _how(self, step: Step, status: int) -> str:
        """Return how a command before the job ended that did not succeed."""
        return _outcome(status)

    # -- after

    def _post_steps(self) -> list[Step]:
        setup, around = self.setup, self.setup.around
        has_run, limit_s = bool(self.started), around.post_limit_s
        is_after = self._is_staged or OF_HOST in self._begun
        return steps_of(
            (OF_JOB, setup.post_exec if has_run else "", around.own_post_limit_s),
            (OF_QUEUE, around.post if has_run or OF_QUEUE in self._begun else "", limit_s),
            (OF_HOST, around.profile_host_post if is_after else "", limit_s),
            (OF_HOST, around.host_post if is_after else "", limit_s),
        )

    def _wind_up(self) -> bool:
        """Run the commands after the job: its end is reported before them or with them, its slots are free after
        them."""
        steps = self._post_steps()
        if self._is_wound_up or self._is_cut or not steps:
            return False
        if self.started and not (self.setup.around.includes_post or self._told or self._refusal):
            self._finish(released=False)
            if self._is_untold():
                return True  # the record of the end is to be written again first
        self._leftovers.allow_forks()
        self.phase = POST
        self._kill_at = self._give_up_at = NEVER
        self._steps.plan(steps, self._variables_after())
        self._post_next()
        return True

    def _is_untold(self) -> bool:
        return not self._told and self.launched and self._has_command

    def _post_next(self) -> None:
        """Start the next command after the job; one that cannot be started has failed."""
        while self._steps:
            try:
                self._steps.next()
            except (StartFailure, HostFailure, OSError, *UNUSABLE) as error:
                print(f"event=post_exec_not_started key={self.key} error={error}", file=sys.stderr)
                self._note_post(start.exit_status(126))
            else:
                self._bound_by_limits()
                return
        self._close_post()

    def _bound_by_limits(self) -> None:
        """End the job's own command after it with the limits of the job that includes it."""
        if self._steps.now.whose == OF_JOB and self.setup.around.includes_post:
            self._steps.until = min(self._steps.own_until, self._ran.next_at)

    def _note_post(self, status: int) -> None:
        if self._steps.now.whose != OF_HOST:
            self._post_status = self._post_status or status

    def _close_post(self) -> None:
        """End the attempt after its last command: what the commands have left is killed."""
        self._is_wound_up, self._posted_at = True, time.time()
        if self._told and self._has_posts():
            message = messages.pack(messages.POSTED, *self.key, self._post_status, self._posted_at)
            try:
                self._tools.log.append(message)
            except OSError as error:  # the agent hears it; only if it died, too, the commands count as failed
                print(f"event=post_not_recorded key={self.key} error={error.strerror!r}", file=sys.stderr)
            self._tools.send(message)
        self._end(self._status)

    def _has_posts(self) -> bool:
        """Return True if a command after the job counts for its state."""
        return any(step.whose != OF_HOST for step in self._post_steps())

    def _post_state(self) -> int:
        if not self._has_posts():
            return POST_NONE
        if not (self._is_wound_up or self._is_cut):
            return POST_AWAITED
        return POST_ERR if self._post_status or not self._is_wound_up else POST_DONE

    def _variables_after(self) -> dict[bytes, bytes]:
        """Return the variables that tell the commands after the job how it has ended."""
        if self._refusal:
            return {b"LSB_JOBEXIT_STAT": b"0", b"LSB_JOBPEND": b"Y"}
        found = {b"LSB_JOBEXIT_STAT": b"%d" % self._status}
        if self._is_requeued():
            found[b"LSB_JOBPEND"] = b"Y"
        if told := _how(self._status, self._reason):
            found[b"LSB_JOBEXIT_INFO"] = told.encode()
        return found

    def _is_requeued(self) -> bool:
        around, status = self.setup.around, self._status
        if self._reason:
            return self._reason.startswith("TERM_REQUEUE")
        is_bounded = 0 <= around.requeues_max < self.key[2]
        return not (status & 0x7F or is_bounded) and status >> 8 in around.requeued_codes

    # -- orders, timers and ends of processes

    def signal(self, number: int, reason: str, serial: int, causes: int = 0) -> None:
        """Signal the job or one of its tasks; what ends the job ends its own command after it, too."""
        if self.phase == POST and self._steps.now.whose == OF_JOB and number in (0, signal.SIGKILL) and not serial:
            self._steps.kill(is_late=False)
        super().signal(number, reason, serial, causes)

    def limit(self, new: ChangedLimits) -> None:
        """Replace the limits; where the job's own command after it belongs to the job, they hold for that, too."""
        super().limit(new)
        is_over = self._ran is NO_LIMITS or not self.setup.around.includes_post or self._is_wound_up
        if new.version <= self._limits_version or self.phase not in (ENDING, POST) or is_over:
            return
        self._limits_version = new.version
        self.setup = self.setup._replace(run_limit_s=new.run_limit_s, deadline=new.deadline)
        self._ran.change(new.run_limit_s, new.deadline, time.monotonic(), time.time())
        if self.phase == POST and self._steps.pid:
            self._bound_by_limits()

    def release(self, why: str) -> None:
        """Kill all that is left but the commands after the job; with the host also these."""
        if why == messages.TAKEN_DOWN:
            self._cut()
        super().release(why)

    def _fence(self) -> None:
        self._cut()
        super()._fence()

    def _end(self, status: int) -> None:
        if self.phase == RUNNING:
            self._ran = self._clock
            self._ran.resume(time.monotonic())
        super()._end(status)

    def _cut(self) -> None:
        """Run no further command after the job."""
        self._is_cut = True
        if self.phase == POST:
            self._steps.plan([])
            self._post_status = self._post_status or KILLED
            self._steps.kill(is_late=False)

    @property
    def next_at(self) -> float:
        """Monotonic time of the next `tick` with work."""
        return min(super().next_at, self._steps.until)

    def tick(self, now: float) -> None:
        """Carry out all due work."""
        if now >= self._steps.until:
            self._steps.kill(is_late=True)
        super().tick(now)

    def reaped(self, pid: int, status: int, usage: struct_rusage) -> None:
        """Handle the end of a child of the shepherd."""
        if pid != self._steps.pid or not pid:
            super().reaped(pid, status, usage)
            return
        self._meter.reaped(usage)
        self._tools.identity.late_failure(pid)
        self._steps.ended()
        if self.phase == POST:
            self._note_post(status)
            self._post_next()
        elif self.phase != ENDING:
            self._pre_ended(status)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _outcome(status: int) -> str:
    """Return how a command ended that did not succeed."""
    if os.WIFSIGNALED(status):
        return f"was ended by signal {os.WTERMSIG(status)}"
    return f"exited with code {os.WEXITSTATUS(status)}"


def _how(status: int, reason: str) -> str:
    """Return the signal that ended the job and lava's reason for its end, as far as there are any."""
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else max(0, os.WEXITSTATUS(status) - 128)
    known = number in signal.valid_signals() and number > 0
    words = f"SIGNAL {number} {_signal_name(number)}" if known else ""
    return " ".join(word for word in (words, reason.partition(":")[0]) if word)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"
