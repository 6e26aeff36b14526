"""Interfaces to the agent that holds the attempts; the agent's own types fit these protocols.

Invariant: owner, allocation, base environment and directory of an attempt come from the master's order alone.
"""

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

Key = tuple[int, int, int]
Run = tuple[int, int, int]  # role, index, run


class HostPart(Protocol):
    """One host of an allocation: a HostShare as the master sent it."""

    @property
    def host(self) -> str: ...
    @property
    def address(self) -> str: ...
    @property
    def slots(self) -> int: ...


class HeldAttempt(Protocol):
    """An attempt that this host holds, from its order to its release."""

    @property
    def key(self) -> Key: ...
    @property
    def user(self) -> str: ...
    @property
    def uid(self) -> int: ...
    @property
    def gid(self) -> int: ...
    @property
    def allocation(self) -> Sequence[HostPart]: ...
    @property
    def groups(self) -> Sequence[int]: ...
    @property
    def output_path(self) -> str:
        """Path of the job's standard output, through its shepherd's descriptor; empty while it is not open."""

    @property
    def error_path(self) -> str:
        """Path of its standard error, likewise; empty if it joins the output."""


class TaskHandle(Protocol):
    """A started task."""

    @property
    def pid(self) -> int: ...
    def signal(self, number: int) -> None:
        """Signal the task and its descendants, also those that outlive its first process."""

    async def wait(self) -> int:
        """Wait for the end of the task's first process and return its raw wait status."""


class TaskRefused(Exception):
    """Refusal to start a task; the text is one sentence for the user."""


@dataclass(frozen=True, slots=True)
class TaskRequest:
    """Command to run beside the job, as its user. ``environment`` is laid over the job's own."""

    argv: tuple[bytes, ...]
    cwd: str  # entered as the user; empty for the job's
    environment: tuple[bytes, ...]  # NAME=VALUE
    stdin_fd: int
    stdout_fd: int
    stderr_fd: int
    pmi_fd: int | None = None  # becomes descriptor PMI_DESCRIPTOR of the task
    task: int = 0  # its number in the job, 0 for a launch agent
    place: int = 0  # among the tasks of the same call on this host, from 1; 0 if unknown
    places: int = 0  # number of tasks that the call starts here
    runs: tuple[Run, ...] = ()  # of tasks of a job of tasks: one of these is to have it; empty: none has it


@dataclass(frozen=True, slots=True)
class KeptRequest:
    """Command to run beside the job, as its user, with streams that its shepherd owns; or the task to resume."""

    token: bytes
    connection: int
    resume: bool
    gone: bool
    got: tuple[int, int, int]  # bytes received of output, error and PMI
    argv: tuple[bytes, ...]
    cwd: str
    environment: tuple[bytes, ...]
    no_input: bool
    pmi: bool
    umask: int  # -1 for the job's
    task: int
    place: int = 0
    places: int = 0
    window: tuple[int, ...] = ()  # lines and columns of its terminal; empty for pipes
    runs: tuple[Run, ...] = ()  # of tasks of a job of tasks: one of these is to have it; empty: none has it


class RunOutput(Protocol):
    """Output of a run of a task of a job of tasks."""

    @property
    def path(self) -> str:
        """Path of the file that the job names for it; empty if its output is kept by the agent."""

    @property
    def pid(self) -> int:
        """Its first process while it runs; 0 before and after."""


# The descriptor of the PMI socket in a rank: the first after the standard ones.
PMI_DESCRIPTOR = 3


class Attempts(Protocol):
    """The attempts of this host."""

    async def place(self, key: Key, environment: Sequence[bytes]) -> "tuple[Run, ...]":
        """Return the runs of tasks of which one is to have a command that is called for with these variables.

        Another host may have started before: for a while it is waited for the job's task table and for the task. None
        for a job without tasks.

        Raises:
            TaskRefused: the task that is named does not run on this host, or none does.
        """

    @property
    def patience_s(self) -> float:
        """Seconds that a kept task waits for a caller that has lost its connection."""

    def find(self, job: int, index: int, attempt: int = 0) -> HeldAttempt | None:
        """Return the attempt, or the newest one of that job for ``attempt`` 0."""

    def open_task(self, key: Key, request: KeptRequest) -> socket.socket | None:
        """Open a connection to a task's shepherd, which starts or resumes it; None if that shepherd keeps no tasks.

        Raises:
            TaskRefused: the attempt is not running here (any more).
        """

    def run_output(self, key: Key, run: tuple[int, int, int], is_error: bool) -> RunOutput:
        """Return where a run (role, index, run) of an attempt that this host holds writes its output, or its errors."""

    async def run_task(self, key: Key, request: TaskRequest) -> TaskHandle:
        """Start a task inside the attempt: its user, cgroup and limits. The caller keeps ownership of the descriptors.

        Raises:
            TaskRefused: the attempt is not running here (any more), or the task could not be started.
        """
