"""JOB_CONTROLS of a job's queue: actions in place of LSF's own signals to suspend, resume or terminate the job.

A command runs beside the job as the job's user, and gets its processes in variables. A terminating one may go on for a
while after the job's end: until then the job's leftovers are not killed.
"""

import signal
import sys
from collections.abc import Iterable
from typing import NamedTuple

from agents.shepherd.clock import NEVER
from agents.shepherd.process import processes
from agents.shepherd.process.spawner import Spawner
from agents.shepherd.process.start import HostFailure, StartFailure

SUSPEND, RESUME, TERMINATE = "SUSPEND", "RESUME", "TERMINATE"
WARNING = "WARNING"  # the action of notices
STOPPING = (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
# Terminate intervals (ten minutes in all) that the queue's terminate action may take, and a command may run; then the
# job is killed, or the command.
PATIENCE_INTERVALS = 60


class Control(NamedTuple):
    """A signal (0: none), a command or a checkpoint; without any the action does nothing."""

    signal: int
    command: str
    checkpoint: bool = False


def kind_of(number: int) -> str:
    """Return the control that replaces this signal; empty for none."""
    if number in STOPPING:
        return SUSPEND
    return RESUME if number == signal.SIGCONT else ""


def variables(pids: Iterable[int], causes: int) -> dict[bytes, bytes]:
    """Return LSF's variables for a control's command. ``causes`` are the bits of LSF's suspension reasons."""
    known = sorted(pids)
    groups = sorted({found.group for pid in known if (found := processes.stat(pid)) is not None})
    return {
        b"LSB_JOBPIDS": _joined(known),
        b"LSB_JOBPGIDS": _joined(groups),
        b"LSB_SUSP_REASONS": b"%d" % causes,
        b"LSB_SUSP_SUBREASONS": b"0",
        b"LS_EXEC_T": b"JOB_CONTROLS",
    }


def _joined(numbers: Iterable[int]) -> bytes:
    return b" ".join(b"%d" % number for number in numbers)


class Commands:
    """Running commands of controls; ``until`` is the time at which they are killed."""

    def __init__(self) -> None:
        self.pids: set[int] = set()
        self.until = NEVER

    def __bool__(self) -> bool:
        return bool(self.pids)

    def started(self, pid: int, until: float) -> None:
        self.pids.add(pid)
        self.until = until

    def carry_out(self, control: Control, members: list[int], causes: int, spawner: Spawner, until: float) -> bool:
        """Apply a control to the job's processes; return False if that fails."""
        if control.signal:
            processes.send(members, control.signal)
        elif control.command:
            try:
                pid = spawner.shell(control.command, variables(members, causes))
            except (StartFailure, HostFailure, OSError, ValueError, OverflowError) as error:
                print(f"event=control_not_started command={control.command!r} error={error}", file=sys.stderr)
                return False
            self.started(pid, until)
        return True

    def ended(self, pid: int) -> bool:
        """Return True if the process was one of the commands."""
        if pid not in self.pids:
            return False
        self.pids.discard(pid)
        if not self.pids:
            self.until = NEVER
        return True

    def kill(self) -> None:
        """Kill all commands and their descendants."""
        self.until = NEVER
        processes.send([-pid for pid in self.pids], signal.SIGKILL)
