"""Attempts of a host that run their tasks as plain processes of this test, without shepherds."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field

from agents.ranks.contract import PMI_DESCRIPTOR, Key, TaskRefused, TaskRequest
from protos.common_pb2 import HostShare

# Redirects the socket, whatever its number, to the one that PMI_FD names, as a shepherd does.
_WITH_PMI = f'n=$1; shift; eval "exec {PMI_DESCRIPTOR}<&$n $n<&-"; exec "$@"'


@dataclass(slots=True)
class Held:
    """An attempt held by a fake host."""

    key: Key
    allocation: Sequence[HostShare]
    uid: int = field(default_factory=os.getuid)
    gid: int = field(default_factory=os.getgid)
    groups: tuple[int, ...] = ()
    user: str = "someone"
    output_path: str = ""
    error_path: str = ""
    environment: dict[bytes, bytes] = field(default_factory=dict)


class Handle:
    """A started process, waited for by its descriptor."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid = process.pid
        loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[int] = loop.create_future()
        self._descriptor = os.pidfd_open(process.pid)
        loop.add_reader(self._descriptor, self._reap)

    def signal(self, number: int) -> None:
        """To the process group."""
        assert type(number) is int, "the real one sends it as a plain number"
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return

    async def wait(self) -> int:
        """The raw wait status."""
        return await asyncio.shield(self._ended)

    def _reap(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)
        code = self._process.wait()
        self._ended.set_result(code << 8 if code >= 0 else -code)


def _spawn(
    argv: list[bytes], request: TaskRequest, environment: dict[bytes, bytes], keep: tuple[int, ...]
) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        argv,
        stdin=request.stdin_fd,
        stdout=request.stdout_fd,
        stderr=request.stderr_fd,
        pass_fds=keep,
        cwd=request.cwd or None,
        env=environment,
        start_new_session=True,
    )


class FakeAttempts:
    """The attempts of one fake host; ``handles`` are the tasks it started, oldest first."""

    def __init__(self) -> None:
        self.held: list[Held] = []
        self.handles: list[Handle] = []
        self.requests: list[TaskRequest] = []

    def find(self, job: int, index: int, attempt: int = 0) -> Held | None:
        """The attempt, or the newest of that job."""
        found = [held for held in self.held if held.key[:2] == (job, index) and attempt in (0, held.key[2])]
        return max(found, key=lambda held: held.key[2], default=None)

    async def run_task(self, key: Key, request: TaskRequest) -> Handle:
        """Start the process."""
        held = self.find(*key)
        if held is None:
            raise TaskRefused(f"job <{key[0]}> does not run here")
        environment = {b"PATH": os.environb[b"PATH"], **held.environment}
        environment.update((name, value) for name, _, value in (one.partition(b"=") for one in request.environment))
        argv = list(request.argv)
        keep: tuple[int, ...] = ()
        if request.pmi_fd is not None:
            keep = (request.pmi_fd,)
            argv = [b"/bin/bash", b"-c", _WITH_PMI.encode(), b"pmi", b"%d" % request.pmi_fd, *argv]
        try:
            process = _spawn(argv, request, environment, keep)
        except OSError as error:
            raise TaskRefused(f"cannot start: {error}") from error
        self.requests.append(request)
        self.handles.append(Handle(process))
        return self.handles[-1]

    def kill_all(self) -> None:
        """End what a failed test left behind."""
        for handle in self.handles:
            handle.signal(int(signal.SIGKILL))
