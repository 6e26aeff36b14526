"""Checkpoints of a job (bsub -k): made by the program of its method while it runs, and used when it starts again.

The program runs as the job's user in the job's control group, as do all commands beside a job. It outlives the agent
with its shepherd, which tells the next agent the newest results. A checkpoint that ends the job may go on for a while
after the job's processes: until then what is left of the job is not killed. One that an action of the job's queue is
(SUSPEND[CHKPNT], TERMINATE[CHKPNT]) holds that back, but for no longer than a command of the queue may; the job is then
stopped or ended, even if it failed.
"""

import os
import shlex
import signal
import stat
import time
from resource import struct_rusage
from typing import NamedTuple

from agents.shepherd import messages
from agents.shepherd.around import Step
from agents.shepherd.attempt import ENDING, RUNNING
from agents.shepherd.clock import KILL, NEVER, Termination
from agents.shepherd.clock import TERMINATE as TERMINATE_SEQUENCE
from agents.shepherd.controls import SUSPEND, TERMINATE, WARNING
from agents.shepherd.messages import OF_RESTART, ChangedLimits, JobSetup, Key, Program
from agents.shepherd.notices import WarnedWork
from agents.shepherd.process import processes
from agents.shepherd.process.spawner import Spawner
from agents.shepherd.process.start import UNUSABLE, HostFailure, StartFailure
from agents.shepherd.tools import Tools

MADE = ".checkpointed"  # in the job's directory: the process group that the checkpoint was made of
RESTART_COMMAND = ".restart_cmd"  # by erestart.METHOD
NAME = "LSB_RESTART_CMD="
TERM_CHKPNT = "TERM_CHKPNT"
COMMAND_MAX = 1 << 16
KILLED = int(signal.SIGKILL)  # as a wait status
NO_DIRECTORY, NO_PROGRAM, NOT_MOVED, NOT_OWN = 121, 122, 123, 124  # exit codes of the commands below
# Whoever owns the directory could let the user write to any of the user's files through a symbolic link.
_OWN = """\
own() { [ -O "$1" ] && [ ! -h "$1" ]; }
d=$LSB_CHKPNT_DIR
"""
_MAKE = """\
mkdir -p -- "$d" || exit 121
own "$d" || exit 124
: > "$d/echkpnt.out" && : > "$d/echkpnt.err" || exit 121
[ -f {program} ] && [ -x {program} ] || exit 122
{program} {words}-d "$d" {group} < /dev/null > "$d/echkpnt.out" 2> "$d/echkpnt.err"
status=$?
case $status in
121|122|124) status=1 ;;
0) echo {group} > "$d/{made}" || status=121 ;;
esac
exit $status
"""
_RESTART = """\
from={source}
if [ -n "$from" ] && [ ! -e "$d" ]; then
    own "$from" || exit 124
    mv -- "$from" "$d" || exit 123
fi
[ -f "$d/{made}" ] || exit 0
own "$d" && own "$d/{made}" || exit 124
rm -f -- "$d/{command}"
[ -f {program} ] && [ -x {program} ] || exit 122
read -r LSB_RESTART_PGID < "$d/{made}"
LSB_RESTART_PID=$LSB_RESTART_PGID
export LSB_RESTART_PGID LSB_RESTART_PID
{program} {words}"$d" < /dev/null > "$d/erestart.out" 2> "$d/erestart.err" || exit 1
"""


class _Asked(NamedTuple):
    """A checkpoint to be made; number 0 without an action: it is due by the job's period."""

    number: int
    force: bool = False
    ends: bool = False
    action: str = ""  # SUSPEND, TERMINATE or WARNING, if it is one
    began: float = 0.0


class CheckpointedWork(WarnedWork):
    """Attempt held by this shepherd, with checkpoints if its job has any."""

    def __init__(self, key: Key, setup: JobSetup, tools: Tools) -> None:
        super().__init__(key, setup, tools)
        self._number = 0  # of the newest request
        self._maker, self._making = 0, _Asked(0)  # the program that makes one, and what for
        self._maker_until = NEVER
        self._after: list[_Asked] = []  # those that wait for its end
        self._answers: dict[bool, tuple[object, ...]] = {}  # the newest: of a request, and by the period
        self._due_at = NEVER
        self._is_first = False  # the next one by itself is that of the initial period
        self._is_stopping = False  # the job is stopped by way of a checkpoint, or is to be when that is made

    # -- orders of the agent

    def checkpoint(self, number: int, force: bool, ends: bool) -> None:
        """Make a checkpoint, once for each number; tell the newest results again if it is 0 or known."""
        if number > self._number:
            self._number = number
            self._make(_Asked(number, force, ends))
        else:
            for answer in self._answers.values():
                self._send(messages.CHECKPOINTED, *answer)

    def limit(self, new: ChangedLimits) -> None:
        """Replace the limits and the period, unless newer ones are in force."""
        before = self._limits_version
        super().limit(new)
        terms, period_s = self.setup.checkpoint, new.period_s
        if self._limits_version == before or period_s is None or period_s == terms.period_s or not terms.directory:
            return
        terms = terms._replace(period_s=period_s, first_s=terms.first_s if period_s else 0.0)
        self.setup = self.setup._replace(checkpoint=terms)
        if self.phase == RUNNING and not (period_s and self._is_first):
            self._due_at, self._is_first = self._after_period(), False

    def release(self, why: str) -> None:
        """Kill all that is left, a program that makes a checkpoint included."""
        super().release(why)
        if self._maker:
            self._kill_at = time.monotonic()

    def _helpers(self) -> set[int]:
        return super()._helpers() | {self._maker}

    # -- making one

    def _make(self, asked: _Asked) -> bool:
        """Make a checkpoint, after the present one if there is any; return False if that cannot be begun."""
        if self._maker:
            self._after.append(asked)
            return True
        asked = asked._replace(began=time.time())
        if self.phase != RUNNING or not self.setup.checkpoint.directory:
            self._answer(asked, "the job does not run here")
            return False
        try:
            self._maker = self._spawner.shell(self._command(asked), {b"LS_EXEC_T": b"CHKPNT"})
        except (StartFailure, HostFailure, OSError, *UNUSABLE) as error:
            self._answer(asked, f"{self._program('echkpnt')} cannot be started: {error}")
            return False
        self._making = asked
        self._maker_until = self._patience_ends() if asked.action in (SUSPEND, TERMINATE) else NEVER
        return True

    def _program(self, name: str) -> str:
        setup = self.setup.checkpoint
        return f"{setup.programs}/{name}.{setup.method}"

    def _command(self, asked: _Asked) -> str:
        found = processes.stat(self.pid)
        words = "-f " * asked.force + "-k " * asked.ends
        group = found.group if found is not None else self.pid
        return _OWN + _MAKE.format(program=shlex.quote(self._program("echkpnt")), words=words, group=group, made=MADE)

    def _made(self, status: int) -> None:
        asked, self._maker, self._maker_until = self._making, 0, NEVER
        error = self._why(status, asked)
        if asked.action:
            self._act(asked.action, bool(error))
        elif not error and asked.ends:
            self._end_by_it()
        self._answer(asked, error)
        self._give_up_at = self._end_of_patience()
        waiting, self._after = self._after, []
        for one in waiting:
            if not self._make(one):
                self._act(one.action, has_failed=True)

    def _why(self, status: int, asked: _Asked) -> str:
        """Return why a checkpoint was not made; empty if it was."""
        program, code = self._program("echkpnt"), os.waitstatus_to_exitcode(status)
        if not code:
            return ""
        if self.phase != RUNNING and not asked.ends:
            return "the job ended before it was made"
        directory = messages.checkpoint_path(self.setup.checkpoint, self.key)
        if code == NO_DIRECTORY:
            return f"the directory {directory} cannot be made or written to"
        if code == NO_PROGRAM:
            return f"{program} is not there or cannot be executed: it would make the checkpoints of this method"
        if code == NOT_OWN:
            return f"the directory {directory} is another user's, or a symbolic link"
        how = f"exited with code {code}" if code > 0 else f"was ended by signal {-code}"
        return f"{program} {how}; what it said is in {directory}/echkpnt.err"

    def _end_by_it(self) -> None:
        """End the job, whose state is saved; its program may have done so."""
        if self.phase == RUNNING:
            self.terminate(KILL, TERM_CHKPNT)
        elif self.phase == ENDING and not (self._told or self._reason):
            self._reason, self._status = TERM_CHKPNT, self._status or KILLED

    def _answer(self, asked: _Asked, error: str) -> None:
        ends = asked.ends and not asked.action  # of an action it is the action that ends the job
        answer = (asked.number, asked.began, time.time(), error, ends, asked.action)
        self._answers[bool(asked.number)] = answer
        self._send(messages.CHECKPOINTED, *answer)

    # -- as an action of the queue, or as the warning action

    def _control(self, kind: str, causes: int) -> bool:
        control = self._controls.get(kind)
        if control is None or not control.checkpoint:
            return super()._control(kind, causes)
        if self.phase != RUNNING:
            return False
        if kind == TERMINATE:
            return self._make(_Asked(0, ends=True, action=TERMINATE))
        is_making = any(one.action == SUSPEND for one in (*self._after, *([self._making] if self._maker else [])))
        if self._is_stopping and not is_making:
            return False  # it has been stopped: said again
        self._is_stopping = is_making or self._make(_Asked(0, action=SUSPEND))
        return self._is_stopping

    def _act(self, action: str, has_failed: bool) -> None:
        """Stop or end the job, now that the checkpoint is over that this waited for."""
        if self.phase != RUNNING:
            return
        if action == SUSPEND and self._is_stopping and self._termination.next_at == NEVER:
            processes.send(self._tools.confinement.members(), signal.SIGSTOP)
        elif action == TERMINATE:
            self._termination = Termination(self.setup.terminate_interval_s, self._termination.kill_due)
            self.terminate(TERMINATE_SEQUENCE if has_failed else KILL, self._reason)

    def _signal_as_configured(self, number: int, causes: int) -> None:
        if number == signal.SIGCONT:
            self._is_stopping = False
        super()._signal_as_configured(number, causes)

    def _warn(self) -> None:
        if not self._action.checkpoint:
            super()._warn()
        elif self.phase == RUNNING and not self._maker:  # the present one is as good
            self._make(_Asked(0, action=WARNING))

    # -- starting

    @property
    def _restarts(self) -> bool:
        return bool(self.setup.checkpoint.directory) and (self.key[2] > 1 or bool(self.setup.checkpoint.source))

    def _steps_before(self) -> list[Step]:
        steps = super()._steps_before()
        if self._restarts:
            setup, program = self.setup.checkpoint, shlex.quote(self._program("erestart"))
            source = shlex.quote(f"{setup.directory}/{setup.source}") if setup.source else ""
            words = "-f " * setup.force
            line = _OWN + _RESTART.format(
                program=program, made=MADE, command=RESTART_COMMAND, source=source, words=words
            )
            steps.append(Step(OF_RESTART, line, self.setup.around.pre_limit_s))
        return steps

    def _how(self, step: Step, status: int) -> str:
        how = super()._how(step, status)
        if step.whose != OF_RESTART:
            return how
        setup, program = self.setup.checkpoint, self._program("erestart")
        directory = messages.checkpoint_path(setup, self.key)
        known = {
            NO_PROGRAM: f"is not there or cannot be executed: {program}",
            NOT_MOVED: f"was not run: {setup.directory}/{setup.source} cannot be renamed to {directory}",
            NOT_OWN: f"was not run: the checkpoint in {directory} is another user's, or a symbolic link",
        }
        otherwise = f"({program}) {how}; what it said is in {directory}/erestart.err"
        return known.get(os.waitstatus_to_exitcode(status), otherwise)

    def _start_processes(self) -> None:
        """Start the job, from its checkpoint if it has one: by the command of the restart program, if that named
        any."""
        group = self._read(MADE).strip() if self._restarts else ""
        if group.isascii() and group.isdigit():
            variables = dict.fromkeys((b"LSB_RESTART_PGID", b"LSB_RESTART_PID"), group.encode())
            self.setup = self.setup._replace(environment={**self.setup.environment, **variables})
            self._spawner = Spawner(self.key, self.setup, self._tools.identity, self._tools.null)
            if command := restart_command(self._read(RESTART_COMMAND)):
                line = f"{self.setup.checkpoint.prefix} {command}".lstrip()
                self.setup = self.setup._replace(program=Program("/bin/sh", ("/bin/sh", "-c", line)))
        super()._start_processes()

    def _read(self, name: str) -> str:
        """Return the text of a file in the job's checkpoint directory, read as its user; empty if there is none."""
        path = f"{messages.checkpoint_path(self.setup.checkpoint, self.key)}/{name}"
        self._spawner.as_user()
        try:
            with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
                about = os.fstat(file.fileno())
                is_plain = stat.S_ISREG(about.st_mode) and about.st_uid == self.setup.uid
                return file.read(COMMAND_MAX).decode("utf-8", "surrogateescape") if is_plain else ""
        except OSError:  # no checkpoint was made, or no command is needed
            return ""
        finally:
            self._tools.identity.back()

    def _running(self, pid: int) -> None:
        super()._running(pid)
        setup = self.setup.checkpoint
        if setup.directory:
            self._is_first = bool(setup.first_s)
            self._due_at = time.monotonic() + setup.first_s if setup.first_s else self._after_period()

    def _after_period(self) -> float:
        period_s = self.setup.checkpoint.period_s
        return time.monotonic() + period_s if period_s else NEVER

    # -- timers, ends of processes, phases

    @property
    def next_at(self) -> float:
        """Monotonic time of the next `tick` with work."""
        return min(super().next_at, self._due_at, self._maker_until)

    def tick(self, now: float) -> None:
        """Carry out all due work."""
        if now >= self._due_at:
            self._due_at, self._is_first = self._after_period(), False
            if not (self._maker or self._clock.is_stopped):  # a suspended job has nothing new to save
                self._make(_Asked(0))
        if now >= self._maker_until:
            self._maker_until = NEVER
            processes.send([-self._maker], signal.SIGKILL)
        super().tick(now)

    def reaped(self, pid: int, status: int, usage: struct_rusage) -> None:
        """Handle the end of a child of the shepherd."""
        super().reaped(pid, status, usage)
        if pid and pid == self._maker:
            self._made(status)

    def _is_left_alone(self) -> bool:
        is_ending_it = bool(self._maker) and self._making.ends and not self._releasing
        return super()._is_left_alone() or is_ending_it

    def _end(self, status: int) -> None:
        super()._end(status)
        self._due_at = NEVER
        self._maker_until = self._patience_ends() if self._maker else NEVER


def restart_command(text: str) -> str:
    """Return the command line of LSB_RESTART_CMD="command" in a text; empty if it has none."""
    lines = [line.removeprefix(NAME).strip() for line in text.splitlines() if line.startswith(NAME)]
    command = lines[-1] if lines else ""
    is_quoted = len(command) > 1 and command[0] == command[-1] and command[0] in "\"'"
    return command[1:-1] if is_quoted else command
