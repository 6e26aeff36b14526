"""Interactive job: its streams belong to a client, as those of a kept task do.

Invariants: the end of the job is not recorded before its client has read all output and the exit status, has left, or
has had ``UNREAD_S`` (or the job's patience) to read it; a job whose client has left, or does not come within that
patience, is ended: HUP, then the terminate sequence.
"""

import os
import signal
import time
from collections.abc import Callable

from agents.shepherd.clock import NEVER
from agents.shepherd.messages import OWN, TERMINAL, JobSetup
from agents.shepherd.process.identity import Identity
from agents.shepherd.process.start import HostFailure, Streams
from agents.shepherd.tasks.kept import Host, KeptTask, KeptTasks, Order, Refusal
from agents.shepherd.tasks.terminal import COLUMNS, LINES
from agents.shepherd.tools import Tools

UNREAD_S = 60.0
GONE = "The client of the interactive job has gone."

Spawn = Callable[[int, int, int], int]  # its descriptors of input, output and error -> process id


class Client:
    """Client of an interactive job, from the start of the job's command to its end; no client of a batch job.

    ``signalled(number)``: the client signals the job, or 0: the job has to end.
    """

    def __init__(self, setup: JobSetup, kept: KeptTasks, tools: Tools, signalled: Callable[[int], None]) -> None:
        self._setup = setup
        self._kept = kept
        self._tools = tools
        self._signalled = signalled
        self._task: KeptTask | None = None
        self._pid = 0
        self._read_until = NEVER  # end of the time to read in, once the job has ended
        self.next_at = NEVER  # that time, until it has passed

    def start(self, spawn: Spawn) -> int:
        """Start the command with streams for the client; return its process id.

        Raises:
            HostFailure: there is no pipe or terminal for it, or what ``spawn`` raises.
        """
        setup, tools = self._setup, self._tools
        window = (LINES, COLUMNS) if setup.interactive == TERMINAL else ()
        order = Order(0, False, False, (0, 0, 0), setup.patience_s, (), "", {}, bool(setup.input), False, -1, window)

        def spawn_kept(_serial: int, _order: Order, ends: list[int]) -> int:
            self._pid = _spawned(tools.identity, spawn, ends, bool(window))
            return self._pid

        owner = (setup.uid, setup.gid)
        here = Host(spawn_kept, self._signal, tools.watch, tools.has_agent, owner, tools.null, int(signal.SIGHUP))
        try:
            self._task = self._kept.begin(OWN, order, here)
        except Refusal as refusal:
            raise HostFailure(str(refusal)) from None
        self._task.be_patient(time.monotonic())
        return self._pid

    def _signal(self, number: int, _serial: int) -> None:
        self._signalled(0 if number == signal.SIGKILL else number)

    def ended(self, pid: int, status: int) -> None:
        """Tell the client the end of the command, if this process was it."""
        if self._task is not None and pid == self._pid:
            self._task.ended(status, time.monotonic())

    @property
    def loss(self) -> str:
        """Sentence that the client has left; empty if it has not."""
        return GONE if self._task is not None and self._task.is_gone else ""

    def is_reading(self) -> bool:
        """Return True while the ended job's client may still read its output, or come for it."""
        task, now = self._task, time.monotonic()
        if task is None or task.status is None or task.is_over or task.is_gone:
            self.next_at = NEVER
            return False
        if self._read_until == NEVER:
            self._read_until = now + min(UNREAD_S, self._setup.patience_s)
        self.next_at = self._read_until if now < self._read_until else NEVER
        return self.next_at != NEVER

    def files_of(self, streams: Streams) -> Streams:
        """Return the job's files among its streams: those of the client are closed here, and no file."""
        if not self._setup.interactive:
            return streams
        output = streams.output if streams.output_path else -1
        error = streams.error if streams.error_path and streams.error != streams.output else -1
        return streams._replace(input=-1, output=output, error=output if error < 0 else error)


def _spawned(identity: Identity, spawn: Spawn, ends: list[int], on_terminal: bool) -> int:
    """Start the command with these ends of its client's streams, and close them."""
    try:
        if not on_terminal:
            return spawn(*ends)
        with identity.on_terminal():
            return spawn(*ends)
    finally:
        for descriptor in ends:
            os.close(descriptor)
