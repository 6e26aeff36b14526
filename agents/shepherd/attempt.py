"""One attempt on this host, from its order to its release: processes, limits, leftovers, and the record of its end.

Invariants: nothing is started before the log has it; the end is recorded before it is reported; the attempt is over
only when none of its processes is left; any failure becomes a report, never a dead shepherd. Everything is done in
short steps, driven by orders, by `reaped` and by `tick`, so that no step waits.
"""

import os
import re
import signal
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from resource import struct_rusage
from typing import Any

from agents.shepherd import controls, messages
from agents.shepherd.clock import KILL, LIMIT_REACHED, NEVER, NO_LIMITS, TERMINATE, RunClock, Termination
from agents.shepherd.confinement.groups import Leftovers, confine
from agents.shepherd.controls import STOPPING, Commands, Control
from agents.shepherd.ending import Figures, OthersUsed, limit_reached, with_hosts, write_report
from agents.shepherd.interactive import Client
from agents.shepherd.lease import LeaseClock
from agents.shepherd.messages import TERMINAL, ChangedLimits, Finish, JobSetup, Key, NotStarted, Program, Status, pack
from agents.shepherd.process import gpu_daemon, processes, start
from agents.shepherd.process.spawner import Spawner
from agents.shepherd.process.start import UNUSABLE, HostFailure, StartFailure, Streams
from agents.shepherd.tasks.beside import TaskRun, TasksBeside
from agents.shepherd.tasks.kept import Refusal
from agents.shepherd.tools import Tools
from agents.shepherd.usage import Meter
from protos import endings
from protos.failpoints import reach

GRACE_S, FIRST_SAMPLE_S = 0.02, 1.0  # a job shorter than the first causes one report, not two
FIRST_COUNT_S = 0.1  # processes are counted then, and after twice as long each time until the first sample
# Time that a job's end waits for its last processes; then it is reported, and the slot stays taken until they are gone.
GIVE_UP_S = 5.0
RECORD_AGAIN_S = 5.0
KILLED = int(signal.SIGKILL)  # as a wait status
LEAVE = (
    signal.SIGTERM,
    signal.SIGKILL,
)  # for what others have started on a host that the job leaves, or that it ends on

STAGING, HELD, PRE, RUNNING, ENDING, POST, OVER = "staging", "held", "pre", "running", "ending", "post", "over"

SHELLS = frozenset(("sh", "bash", "dash", "ksh", "mksh", "zsh", "csh", "tcsh", "fish", "ash", "busybox"))
_BACKGROUND = re.compile(r"(?<![&>|<])&(?![&>])")  # the sign of a shell, neither of && nor of a redirection


def shell_of(program: Program | None) -> str:
    """Return the name of the shell of a script, or of a line that starts something in the background; else empty."""
    if program is None:
        return ""
    words = [os.path.basename(word).lstrip("-") for word in (program.path, *program.argv[1:2])]
    shell = words[1] if words[0] == "env" and words[1:] else words[0]
    is_line = program.argv[1:2] == ("-c",)
    return shell if shell in SHELLS and not (is_line and not _BACKGROUND.search(program.argv[-1])) else ""


class Work:
    """Attempt held by this shepherd."""

    def __init__(self, key: Key, setup: JobSetup, tools: Tools) -> None:
        self.key = key
        self.setup = setup
        self.phase = STAGING
        self.launched = False
        self.pid, self.started = 0, 0.0  # of the first process
        self._tools = tools
        self._spawner = Spawner(key, setup, tools.identity, tools.null)
        self._has_command = setup.program is not None or bool(setup.companions)
        self._meter = Meter(tools.confinement)
        self._logged = False
        self._deciding: set[int] = set()  # the attempt ends with the last of these
        self._outcome: int | None = None  # status of its command, which has left something in the background
        self._others: set[int] = set()  # or with the first of these that fails
        self._helper = 0  # that starts the daemon of its GPUs
        self._controls = {fields[0]: Control(*fields[1:]) for fields in setup.controls}
        self._commands = Commands()
        self.beside = TasksBeside(setup, tools, self._spawner, self._before_task, self._after_task, self._placed)
        self._client = Client(setup, self.beside.kept, tools, self._signalled_by_client)
        self._streams: Streams | None = None
        self._cwd = ""
        self._status, self._ended = 0, 0.0
        self._reason = self._detail = ""
        self._told = False
        self._refusal: NotStarted | None = None  # why nothing of it was started
        self._leftovers = Leftovers(tools.confinement)
        self._releasing, self._limits_version = False, 0
        self._clock, self._lease = NO_LIMITS, LeaseClock(tools.lease, setup.lease_s)
        self._termination = Termination(setup.terminate_interval_s)
        self._announce_at = self._sample_at = self._kill_at = self._give_up_at = self._helper_until = NEVER
        self._record_at = NEVER
        self._count_at, self._count_after = NEVER, FIRST_COUNT_S
        self._others_used = OthersUsed(setup.is_wide, setup.has_gpus)
        confine(tools.confinement, setup)

    # -- orders of the agent

    def stage(self, launch: bool) -> None:
        """Set the attempt up, once; then launch, or report STAGED."""
        self.launched = launch
        self._prepare()

    def _prepare(self) -> None:
        if self.setup.gpu_daemon:
            self._attempt(self._start_gpu_daemon)
        else:
            self._staged()

    def _start_gpu_daemon(self) -> None:
        self._helper = self._spawner.gpu_daemon()
        self._helper_until = time.monotonic() + gpu_daemon.START_S

    def _gpu_daemon_started(self, status: int) -> None:
        self._helper, self._helper_until = 0, NEVER
        if self._termination.next_at != NEVER:
            self._end(KILLED)
        elif status == 0:
            self._staged()
        else:
            self._leftovers.kill()
            self._refuse(gpu_daemon.failure(self.setup, status))

    def _staged(self) -> None:
        self.phase = HELD
        if self.setup.needs_cwd and (self.setup.role_names or not self.launched):
            self._attempt(self._enter)
        if self.phase == HELD and self.launched:
            self._start()
        elif self.phase == HELD:
            self._send(messages.STAGED)

    def _enter(self) -> None:
        """Enter the job's directory for a moment: a host that lacks it is left before anything starts elsewhere."""
        self._spawner.as_user()
        try:
            start.enter(self.setup, self.key)
        finally:
            self._tools.identity.back()
            os.chdir("/")

    def launch(self) -> None:
        """Start the job's processes on this host, if any."""
        if self.launched:
            return
        self.launched = True
        if self.phase == HELD:
            self._start()

    def _start(self) -> None:
        if self._has_command:
            self._attempt(self._begin)

    def _begin(self) -> None:
        self._start_processes()

    def task(
        self,
        serial: int,
        argv: tuple[bytes, ...],
        cwd: str,
        overlay: dict[bytes, bytes],
        fds: list[int],
        runs: tuple[TaskRun, ...] = (),
    ) -> None:
        """Start a further task with the descriptors sent with the order."""
        pid, error = 0, ""
        try:
            pid = self.beside.start(serial, argv, cwd, overlay, fds, runs=runs)
        except Refusal as refusal:
            error = str(refusal)
        self._send(messages.TASK_STARTED, serial, pid, error)

    def _before_task(self) -> None:
        if self.phase not in (HELD, RUNNING):
            raise Refusal("The job is ending on this host.")
        self._note_start()

    def _placed(self, serial: int, runs: tuple[TaskRun, ...]) -> AbstractContextManager[None]:
        """Return the context in which a further task is started: here, one of a job without tasks of its own."""
        return nullcontext()

    def _after_task(self) -> None:
        if self._sample_at == NEVER:  # on a host with only tasks they are all that is sampled
            self._sample_at = time.monotonic() + FIRST_SAMPLE_S

    def signal(self, number: int, reason: str, serial: int, causes: int = 0) -> None:
        """Signal the job (0: end it), or one of its tasks. ``causes``: LSF's bits of the suspension reasons."""
        if serial:
            self.beside.signals.add(number, serial)
        elif self.phase in (STAGING, HELD, PRE, RUNNING):
            if number == 0:
                self._end_as_configured(TERMINATE, reason)
            elif number == signal.SIGKILL:
                self.terminate(KILL, reason)
            else:
                self._signal_as_configured(number, causes)
                # An ordinary signal may end the job or not: only if it does is it the reason.
                self._reason = self._reason or (reason if number not in (*STOPPING, signal.SIGCONT) else "")

    def _signalled_by_client(self, number: int) -> None:
        if number:
            self.signal(number, "", 0)
        elif self.phase == RUNNING:
            self._end_as_configured(TERMINATE, "")

    def count(self) -> None:
        """Report the usage until now."""
        self._send(messages.USED, tuple(self._meter.used_now()), self._limit_reached())

    def look(self) -> None:
        """Report CPU time and processes."""
        self._send(messages.LOOKED, *self._meter.look())

    def counted(self, used: Figures, missing: tuple[str, ...], limit: str, *more: Any) -> None:
        """Take the usage of other hosts, a limit reached there, the hosts the job has had, and text about GPUs."""
        self.setup = with_hosts(self.setup, more[0], more[1]) if more else self.setup
        self._others_used.take(used, missing, *more[2:])
        self._reason = self._reason or limit

    def release(self, why: str) -> None:
        """End all that is left; the attempt is then over. Further tasks hear of it first, a job's command does not."""
        self._releasing = True
        if self.phase in (STAGING, HELD, PRE, RUNNING):
            if why == messages.TAKEN_DOWN and not self._reason:
                self._reason, self._detail = endings.SHUT_DOWN
            is_command = bool(self._deciding) or self._outcome is not None
            if why or is_command or not self._tools.confinement.members():
                self._end(KILLED)
            elif self._termination.next_at == NEVER:
                self.terminate(LEAVE, self._reason)
        elif self._commands:
            self._kill_at = time.monotonic()

    def limit(self, new: ChangedLimits) -> None:
        """Replace the limits, unless newer ones are in force."""
        if new.version <= self._limits_version or self.phase not in (STAGING, HELD, PRE, RUNNING):
            return
        self._limits_version, run_limit_s, deadline, memory_mib = new[:4]
        self.setup = self.setup._replace(run_limit_s=run_limit_s, deadline=deadline, memory_limit_mib=memory_mib)
        try:
            self._tools.confinement.limit_memory(memory_mib)
        except OSError as error:  # more is in use: the next sample ends the job
            print(f"event=memory_limit_not_set key={self.key} error={error.strerror!r}", file=sys.stderr)
        if self.phase == RUNNING:
            self._clock.change(run_limit_s, deadline, time.monotonic(), time.time())

    def revoke(self, seconds: float) -> None:
        """End with the host, which is taken away in so many seconds; negative: it is not after all."""
        self._termination.kill_due = self._lease.take_away(seconds)

    def terminate(self, signals: tuple[int, ...], reason: str) -> None:
        """Start to end the job with these signals, the terminate interval between them."""
        if self.phase in (STAGING, HELD, PRE, RUNNING) and self._termination.begin(signals, time.monotonic()):
            self._reason = reason
            self._signal_due(time.monotonic())

    # -- timers and ends of processes

    @property
    def next_at(self) -> float:
        """Monotonic time of the next `tick` with work."""
        return min(
            self._announce_at, self._sample_at, self._kill_at, self._give_up_at, self._helper_until,
            self._termination.next_at, self._clock.next_at, self._commands.until, self._count_at, self._record_at,
            self.beside.next_at, self._lease.next_at, self._others_used.next_at,
            self._tools.output.next_at, self._client.next_at,
        )  # fmt: skip

    @property
    def busy(self) -> bool:
        """True if processes are, or may be, alive."""
        return self.phase != HELD or bool(self.beside.serials or self.setup.gpu_daemon)

    def reaped(self, pid: int, status: int, usage: struct_rusage) -> None:
        """Handle the end of a child of the shepherd."""
        self._meter.reaped(usage)
        failure = self._tools.identity.late_failure(pid)
        if failure:
            self._detail = f"The job's program cannot be executed: {os.strerror(failure)}."
        if pid in self.beside.serials:
            if status and self.phase == HELD:  # before the job notices, and ends for that reason alone
                self._tell_limit()
            serial = self.beside.serials.pop(pid)
            if not self.beside.kept.ended(serial, status):
                self._send(messages.TASK_ENDED, serial, status)
        elif pid == self._helper:
            self._gpu_daemon_started(status)
        elif self._commands.ended(pid):
            self._give_up_at = self._end_of_patience()
        elif pid in self._deciding or pid in self._others:
            self._deciding.discard(pid)
            self._others.discard(pid)
            self._command_ended(pid, status)
        elif self._outcome is not None and self._termination.next_at != NEVER:
            self._outcome = self._outcome or status  # the job is being ended: it is no success of its command any more

    def _command_ended(self, pid: int, status: int) -> None:
        is_over = self.phase == RUNNING and (bool(status) or not self._deciding)
        if is_over and self._waits_for_background(status):
            self._outcome = status
            return
        self._client.ended(pid, status)
        if is_over:
            self._end(status)

    def _waits_for_background(self, status: int) -> bool:
        """Return True if the job lasts as long as what its command has left in the background, as in LSF.

        LSF's job file has a `wait` behind the command, which waits for what a shell has started. A job in Slurm's words
        ends with its script, and one on a terminal with its shell; so does one whose command was killed, or is being
        ended.
        """
        setup = self.setup
        is_lsf = setup.slurm_base < 0 and setup.interactive != TERMINAL
        if not is_lsf or not shell_of(setup.program) or setup.companions or os.WIFSIGNALED(status):
            return False
        return self._termination.next_at == NEVER and processes.have_children() and self._has_background()

    def _has_background(self) -> bool:
        """Return True if a process is left that was started in the background of the command's session.

        A daemon has a session of its own. What a program has left behind, as a launcher its commands on other hosts, is
        nothing that a shell would wait for, and would keep the job's slots until its run limit.
        """
        shell = shell_of(self.setup.program)
        for pid in self._tools.confinement.members():
            entry = processes.stat(pid)
            if entry is not None and entry.session == self.pid and processes.is_in_background(pid, shell):
                return True
        return False

    def settle(self, children: bool) -> None:
        """Continue the attempt's end after reaping; ``children``: True if the shepherd still has any."""
        if self._outcome is not None and not (self.phase == RUNNING and children and self._has_background()):
            outcome, self._outcome = self._outcome, None
            self._client.ended(self.pid, outcome)
            if self.phase == RUNNING:
                self._end(outcome)
        if self._releasing and not children and self.phase in (HELD, RUNNING):
            self._end(KILLED)
        if self.phase != ENDING:
            return
        if children:
            if not self._is_left_alone():
                self._kill_leftovers()
        elif (self._client.is_reading() and not self._releasing) or self._waits_for_others():
            self._kill_at = self._give_up_at = NEVER
        elif not self._wind_up():
            self._finish(released=True)

    def _wind_up(self) -> bool:
        """Return True if something is still to be done on this host before the attempt is over."""
        return False

    def tick(self, now: float) -> None:
        """Carry out all due work."""
        self.beside.tick(now)
        if self._lease.has_ended(now):
            self._fence()
        if now >= self._announce_at:
            self._announce()
        if now >= self._count_at:
            self._count(now)
        if now >= self._sample_at:
            self._sample(now)
        if now >= self._clock.next_at and (reason := self._clock.reached(now)):
            self._end_as_configured(LIMIT_REACHED, reason)
        if now >= self._termination.next_at:
            self._signal_due(now)
        if now >= self._kill_at:
            self._kill_leftovers()
        if now >= self._give_up_at:
            self._give_up_at = self._others_used.next_at if self._waits_for_others() else NEVER
            if self._give_up_at == NEVER:
                self._finish(released=False)
        if now >= self._commands.until:
            self._commands.kill()
        if now >= self._helper_until:
            self._gpu_daemon_started(KILLED)
        if now >= self._record_at:
            self._record_at = NEVER  # `settle` follows
        self._tools.output.bound(now)

    def status(self) -> bytes:
        """Return the STATUS message of a held attempt."""
        status = Status(
            self.key, messages.PROTOCOL, os.getpid(), self.launched, self.pid, self.started, *self._descriptors()
        )
        return pack(messages.STATUS, *status)

    # -- starting

    def _send(self, kind: int, *fields: object) -> None:
        self._tools.send(pack(kind, *self.key, *fields))

    def _note_start(self) -> None:
        if not self._logged:
            self._tools.log.starting(self.key)
            self._logged = True
            reach("shepherd.before_spawn")

    def _attempt(self, action: Callable[[], None]) -> None:
        """Start something; on failure end the attempt with a sentence."""
        try:
            action()
        except StartFailure as failure:
            self._fail(failure)
        except UNUSABLE as error:
            self._detail = f"The job cannot be started as it was submitted: {error}."
            self._end(start.exit_status(126))
        except HostFailure as failure:
            self._refuse(str(failure))
        except OSError as error:  # of a call that should not fail: the host is faulty
            self._refuse(f"the job could not be started: {error.strerror}")

    def _fail(self, failure: StartFailure) -> None:
        """End the attempt; one of which nothing runs yet is refused if only this host lacks what it needs."""
        if failure.lacking and not (self._deciding or self._others):
            self._refusal = NotStarted(str(failure), "", 0, failure.lacking, failure.status, failure.reason)
            self._end(KILLED)
            return
        self._detail, self._reason = str(failure), failure.reason or self._reason
        self._end(failure.status)

    def _refuse(self, reason: str) -> None:
        if self._deciding or self._others:
            self._detail = reason
            self._end(start.exit_status(126))
            return
        self._refusal = NotStarted(reason)
        self._end(KILLED)

    def _start_processes(self) -> None:
        self._note_start()
        setup, tools = self.setup, self._tools
        if setup.interactive and setup.program is not None:
            self._deciding.add(self._client.start(self._start_first))
        else:
            if pid := self._start_first(tools.null, self._spooled(), -1):
                self._deciding.add(pid)
        reach("shepherd.after_spawn")
        assert self._streams is not None, "opened for the first process"
        deciding = self._deciding if setup.program is None else self._others
        for companion in setup.companions:
            environment = {**self._spawner.environment(), **companion.environment}
            deciding.add(self._spawner.spawn(companion.program, environment, self._streams[:3], self._cwd))
        self._running(min(self._deciding))
        if setup.interactive:
            self._announce()  # at once: for its client, who may be needed before it ends

    def _start_first(self, source: int, output: int, error: int) -> int:
        """Open the job's files, and start its command, if it has one here; return its process id.

        The descriptors take the place of files without a name; -1 for an error that joins the output.
        """
        setup, identity, environment = self.setup, self._tools.identity, self._spawner.environment()
        self._spawner.as_user()
        try:
            self._cwd = start.enter(setup, self.key)
            streams = self._streams or start.open_streams(setup, self.key, source, output, error)
            self._streams = self._client.files_of(streams)
            return start.spawn(identity, setup, setup.program, environment, streams[:3]) if setup.program else 0
        finally:
            identity.back()
            os.chdir("/")

    def _spooled(self) -> int:
        """Return the descriptor of an output without a file; -1 if the output is open already, or has a file."""
        return -1 if self.setup.output or self._streams is not None else self._tools.output.fresh(self.setup)

    def _open_files(self) -> Streams:
        """Open the files of a batch job before its command is started."""
        spooled = self._spooled()
        self._spawner.as_user()
        try:
            self._cwd = start.enter(self.setup, self.key)
            self._streams = start.open_streams(self.setup, self.key, self._tools.null, spooled)
            return self._streams
        finally:
            self._tools.identity.back()
            os.chdir("/")

    def _running(self, pid: int) -> None:
        now, self.started = time.monotonic(), time.time()
        self.phase, self.pid = RUNNING, pid
        self._clock = RunClock(self.setup.run_limit_s, self.setup.deadline, now, self.started)
        self._announce_at = now + GRACE_S
        self._sample_at = now + FIRST_SAMPLE_S
        self._count_at = now + FIRST_COUNT_S if self.setup.report is not None else NEVER

    # -- while it runs

    def _descriptors(self) -> tuple[int, int]:
        return (-1, -1) if self._streams is None else self._streams.written

    def _announce(self) -> None:
        self._announce_at = NEVER
        self._send(messages.STARTED, self.pid, self.started, *self._descriptors())

    def _count(self, now: float) -> None:
        """Count processes for the report of a job that ends before its first sample."""
        self._meter.count()
        self._count_at = now + self._count_after if 2 * self._count_after < FIRST_SAMPLE_S else NEVER
        self._count_after *= 2

    def _sample(self, now: float) -> None:
        self._sample_at = now + self.setup.usage_interval_s
        sample = self._meter.sample()
        self._tools.send_optional(pack(messages.USAGE, *self.key, *sample, *self._meter.used()))
        limit = self.setup.memory_limit_mib
        if limit and (sample.memory_mib > limit or self._tools.confinement.oom_kills()):
            self.terminate(KILL, "TERM_MEMLIMIT")
            self._tell_limit()
        elif reason := self._meter.exceeded(self.setup.totals, sample):
            self.terminate(TERMINATE, reason)
            self._tell_limit()

    def _limit_reached(self) -> str:
        """Return a per-host limit that was reached here; empty for none."""
        if self._reason in messages.LIMITS_OF_HOST:
            return self._reason
        return "TERM_MEMLIMIT" if self.setup.memory_limit_mib and self._tools.confinement.oom_kills() else ""

    def _tell_limit(self) -> None:
        """Report a limit if only tasks of the job run here, since the job's end is not decided on this host."""
        if self.phase == HELD and (reason := self._limit_reached()):
            self._send(messages.LIMIT_REACHED, reason)

    def _signal_as_configured(self, number: int, causes: int) -> None:
        """Suspend or resume the job by its queue's JOB_CONTROLS; send any other signal to the processes."""
        now = time.monotonic()
        if number in STOPPING:
            self._clock.stop(now)
        elif number == signal.SIGCONT:
            self._clock.resume(now)
        if not self._control(controls.kind_of(number), causes):
            processes.send(self._tools.confinement.members(), number)

    def _end_as_configured(self, signals: tuple[int, ...], reason: str) -> None:
        """End the job by its queue's JOB_CONTROLS, which may take a while; without them by these signals."""
        if self._termination.next_at != NEVER:
            return
        if self._control(controls.TERMINATE, 0):
            self._termination.kill_at(self._patience_ends())
            self._reason = reason
            processes.send(self._tools.confinement.members(), signal.SIGCONT)
        else:
            self.terminate(signals, reason)

    def _control(self, kind: str, causes: int) -> bool:
        """Apply the queue's JOB_CONTROLS; return False if there is no such control or it fails."""
        control, members = self._controls.get(kind), self._tools.confinement.members()
        if control is None or self.phase in (STAGING, PRE) or not members:
            return False
        return self._commands.carry_out(control, members, causes, self._spawner, self._patience_ends())

    def _patience_ends(self) -> float:
        return time.monotonic() + controls.PATIENCE_INTERVALS * self.setup.terminate_interval_s

    def _signal_due(self, now: float) -> None:
        number = self._termination.due(now)
        if number == signal.SIGKILL:
            self._kill_leftovers()
        elif number:
            processes.send(self._tools.confinement.members(), number)
            processes.send(self._tools.confinement.members(), signal.SIGCONT)

    # -- ending

    def _fence(self) -> None:
        """Kill all that is left at once, without a command: the master may take the attempt for ended."""
        if not (self._told or self._reason):
            self._reason, self._detail = self._lease.ending
        self._releasing = True
        if self.phase != ENDING:
            self._end(self._status if self.phase == POST else KILLED)
        self._kill_at = time.monotonic()

    def _end(self, status: int) -> None:
        self.phase = ENDING
        if not self._told:
            self._status, self._ended = status, time.time()
        now = time.monotonic()
        self._announce_at = self._sample_at = self._count_at = self._helper_until = NEVER
        self._clock = NO_LIMITS
        if self._termination.next_at != NEVER:
            self._termination = Termination(self.setup.terminate_interval_s)
        self._give_up_at = self._end_of_patience()
        self._kill_at = NEVER if self._is_left_alone() else now  # unless `settle` comes first and finds nothing left

    def _is_left_alone(self) -> bool:
        """Return True if the leftovers of an ended job wait for the queue's terminate command."""
        return bool(self._commands) and not self._releasing

    def _end_of_patience(self) -> float:
        """Return the time at which the job's end is reported even if something is left of it."""
        if self.phase != ENDING or self._told or self._refusal or self._is_left_alone():
            return NEVER
        return time.monotonic() + GIVE_UP_S

    def _kill_leftovers(self) -> None:
        found = self._leftovers.kill()
        if self.phase == HELD and not found:  # only tasks were here, and they are gone
            self._kill_at = NEVER
            self._leftovers.allow_forks()
            return
        self._kill_at = time.monotonic() + self._leftovers.pause_s()

    def _waits_for_others(self) -> bool:
        """Return True if the usage of the job's other hosts is still awaited; request it once nothing is left here."""
        if self._told or self._releasing or not (self.launched and self._has_command and self.started):
            return False
        if self._others_used.ask(time.monotonic()):
            self._send(messages.COUNT_OTHERS)
        return self._others_used.is_awaited

    def _finish(self, released: bool) -> None:
        """Record and report the end; with ``released`` the attempt is over. A record that fails is retried."""
        try:
            self._tell(released)
        except OSError as error:
            print(f"event=end_not_recorded key={self.key} error={error.strerror!r}", file=sys.stderr)
            self._record_at = time.monotonic() + RECORD_AGAIN_S
        else:
            if released or self._refusal:
                self._close()

    def _tell(self, released: bool) -> None:
        """Record and send a refusal, an end or a release; OSError if the disk refuses."""
        if self._refusal:
            message = pack(messages.REFUSED, *self.key, *self._refusal)
            self._tools.log.append(message)
            self._tools.send(message)
        elif not self._told and self.launched and self._has_command:
            self._tell_end(released)
        elif released:
            self._tell_release()

    def _tell_release(self) -> None:
        message = pack(messages.RELEASED, *self.key, *self._meter.used())
        if self._logged and not self._told:  # only tasks ran here: no record of an end has their usage
            self._tools.log.append(message)
        self._tools.send(message)

    def _tell_end(self, released: bool) -> None:
        finish = self._summary(released)
        message = pack(messages.FINISHED, *finish)
        reach("shepherd.before_record")
        self._tools.log.append(message)
        self._told = True
        self._report(finish)
        self._tools.output.keep(self.key)
        reach("shepherd.after_record")
        self._tools.send(message)

    def _report(self, finish: Finish) -> None:
        write_report(self.setup, finish, self._cwd, self._streams, self._others_used.gpus)

    def _summary(self, released: bool) -> Finish:
        used, oom_kills = self._meter.used(), self._tools.confinement.oom_kills
        self._reason = self._reason or limit_reached(self.setup, self._status, oom_kills)
        self._detail = self._detail or self._client.loss
        reason = self._reason if endings.is_kept(self._status, self._reason) else ""
        return Finish(
            *self.key, self._status, self._ended, used.cpu_s, used.memory_mib_max, used.memory_mib_mean,
            used.processes_max, reason, self._detail, self.pid, self.started, released,
            used.user_s, used.system_s, used.swap_mib_max, used.threads_max, used.seconds, *self._others_used.found(),
            self._post_state(),
        )  # fmt: skip

    def _post_state(self) -> int:
        return 0

    def _close(self) -> None:
        self.phase = OVER
        if self._refusal:
            self._tools.output.forsake()
        self._kill_at = self._give_up_at = self._record_at = NEVER
        self.beside.kept.close()
        self._leftovers.allow_forks()
        if self._streams is not None:
            self._streams.close()
