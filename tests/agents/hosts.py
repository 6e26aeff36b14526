"""A host for tests: an agent's inner half in this process, with real shepherds; no process is left afterwards.

`Host` is used as ``async with Host(place) as host``. Orders are given as the master would give them, reports are kept
in order of arrival.
"""

import asyncio
import os
import pwd
import signal
import time
from collections.abc import Callable
from pathlib import Path

from agents.assembly import Local
from agents.job_setup.host_context import HostContext
from agents.local_socket.callers import CallFailed
from agents.shepherd.confinement import hierarchy
from agents.shepherd.process import processes
from protos import frames
from protos.agents_pb2 import (
    CountReply,
    CountRequest,
    JobSpecBlob,
    JobUsage,
    LaunchOrder,
    Order,
    Orders,
    Release,
    Report,
    SignalOrder,
    Stage,
)
from protos.common_pb2 import AttemptKey, HostShare, Role
from protos.jobs_pb2 import JobSpec

PATIENCE_S = 60.0
NAME = "h1"
Key = tuple[int, int, int]


def clock() -> float:
    """The clock that ages of orders are measured with."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Place:
    """Directory in which users' jobs can work, and its owner."""

    def __init__(self, root: Path, user: pwd.struct_passwd) -> None:
        self.root = root
        self.user = user
        self.state = root / "state"
        self.work = root / "work"
        root.chmod(0o711)
        self.work.mkdir()
        self.give(self.work)

    def give(self, path: Path) -> None:
        """Make a file the user's."""
        if os.geteuid() == 0:
            os.chown(path, self.user.pw_uid, self.user.pw_gid)

    def out(self, name: str = "out") -> Path:
        """A file in the user's directory."""
        return self.work / name


def blob(place: Place, job: int, command: str, **fields: object) -> JobSpecBlob:
    """Job of the place's user; output goes to `place.out()` unless given."""
    given: dict[str, object] = {
        "name": "job",
        "command": command,
        "cwd": str(place.work),
        "output": str(place.out()),
        "environment": [b"PATH=/usr/local/bin:/usr/bin:/bin"],
        "roles": [Role(tasks_min=1, tasks_max=1)],
        "submit_host": "login1",
    }
    spec = JobSpec(**{**given, **fields})  # type: ignore[arg-type]
    user = place.user
    return JobSpecBlob(
        job=job, spec=spec, user=user.pw_name, uid=user.pw_uid, gid=user.pw_gid, version=1, submit_time=time.time(),
        queue="normal", cluster="c1",
    )  # fmt: skip


def state_of(pid: int) -> str:
    """R, S, T ... of /proc."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def stage(*shares: HostShare, **fields: object) -> Stage:
    """A stage order for this allocation, launched at once if it is one host."""
    allocation = shares or (HostShare(host=NAME, slots=1),)
    given: dict[str, object] = {"launch_now": len(allocation) == 1, "spec_version": 1}
    return Stage(allocation=allocation, **{**given, **fields})  # type: ignore[arg-type]


def key_message(key: Key) -> AttemptKey:
    """As on the wire."""
    return AttemptKey(job=key[0], index=key[1], attempt=key[2])


def key_of(message: AttemptKey) -> Key:
    """As a tuple."""
    return (message.job, message.index, message.attempt)


class Host:
    """One host."""

    def __init__(self, place: Place, slots: int = 4, has_gpus: bool = False) -> None:
        self.place = place
        self.reports: list[Report] = []
        self.usages: list[JobUsage] = []
        self.slots = slots
        self._context = HostContext(
            NAME, str(place.root / "agent.sock"), "/opt/lava/bin", "/etc/lava", has_gpus, oversubscribed=False
        )
        self._news = asyncio.Condition()

    async def __aenter__(self) -> "Host":
        await self.start()
        return self

    async def start(self) -> None:
        """Start, and take over the attempts of an earlier agent."""
        self.local = Local(self._context, self.place.state, self.slots)
        self.base = self.local.base
        self.launcher_pid = self.local._launcher.pid
        self.local.preparation.intervals.terminate_s = 0.3
        self.local.keeper.say = self._say
        self.local.keeper.use = self.usages.append
        self.local.counting.ask = _is_away
        await self.local.start()

    async def __aexit__(self, *_: object) -> None:
        await self.leave()
        sweep(self.place.state, self.base)

    async def leave(self) -> None:
        """Stop as an agent does: jobs keep running."""
        await self.local.close()
        await asyncio.to_thread(os.waitpid, self.launcher_pid, 0)

    async def replace(self) -> None:
        """Stop and start again as another agent on the same place."""
        await self.leave()
        self.reports.clear()
        await self.start()

    def _say(self, report: Report) -> None:
        kept = Report()
        kept.CopyFrom(report)
        self.reports.append(kept)

    # -- as the master

    async def order(
        self, *orders: Order, specs: tuple[JobSpecBlob, ...] = (), age_s: float = 0.0, term: int = 1
    ) -> bool:
        """Give orders; whether their term was accepted."""
        message = Orders(term=term, orders=orders, specs=specs, echo_monotonic=clock() - age_s)
        return await self.local.keeper.take(message)

    async def run(self, job: JobSpecBlob, where: Stage | None = None, index: int = 0, attempt: int = 1) -> Key:
        """Start a job here (only stage it, where it has several hosts); its key."""
        key = (job.job, index, attempt)
        await self.order(Order(key=key_message(key), stage=where or stage()), specs=(job,))
        return key

    async def launch(self, key: Key) -> None:
        """The launch order."""
        await self.order(Order(key=key_message(key), launch=LaunchOrder()))

    async def signal(self, key: Key, number: int, reason: str = "", serial: int = 0, causes: int = 0) -> None:
        """A signal order."""
        order = SignalOrder(signal=number, reason=reason, serial=serial, causes=causes)
        await self.order(Order(key=key_message(key), signal=order))

    async def release(self, key: Key) -> None:
        """A release order."""
        await self.order(Order(key=key_message(key), release=Release()))

    async def forget(self, key: Key) -> None:
        """Acknowledge."""
        await self.local.keeper.take(Orders(term=1, forget=[key_message(key)], echo_monotonic=clock()))

    # -- reports

    def last(self, key: Key) -> Report | None:
        """The newest report of an attempt, as the next session's hello has it."""
        held = (one for one in self.local.ledger.held() if key_of(one.key) == key and one.HasField("last"))
        return next((one.last for one in held), None)

    def shepherd_of(self, key: Key) -> int:
        """The process that keeps an attempt."""
        handle = self.local.pool.holder(key)
        assert handle is not None
        return handle.pid

    def said(self, key: Key, what: str) -> list[Report]:
        """Reports of this kind about an attempt."""
        return [one for one in self.reports if key_of(one.key) == key and one.WhichOneof("what") == what]

    async def until(self, condition: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
        """Wait until an event makes the condition true."""
        await until(condition, patience_s, lambda: f"reports: {self.reports}")

    async def report(self, key: Key, what: str) -> Report:
        """The first report of this kind about an attempt, waited for."""
        await self.until(lambda: bool(self.said(key, what)))
        return self.said(key, what)[0]

    async def finish(self, job: JobSpecBlob, where: Stage | None = None, index: int = 0) -> Report:
        """Start a job and wait for its end."""
        return await self.report(await self.run(job, where, index), "finished")


async def _is_away(share: HostShare, _: CountRequest) -> CountReply:
    """The other hosts of an attempt answer at once that nothing is known of them; a shepherd would wait for seconds."""
    raise CallFailed(frames.UNAVAILABLE, f"{share.host} is away")


async def until(condition: Callable[[], bool], patience_s: float = PATIENCE_S, more: Callable[[], str] = str) -> None:
    """Poll until a condition holds, for a bounded time; another process's actions raise no event here."""
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {patience_s} s in vain; {more()}")
        await asyncio.sleep(0.005)


def shepherd_pids(state: Path) -> list[int]:
    """Launcher and shepherds of this state directory: the command line they share names it."""
    wanted = os.fsencode(state / "shepherds")
    found = []
    for pid in processes.everyone():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if wanted in words:
            found.append(pid)
    return found


def sweep(state: Path, base: hierarchy.Base) -> None:
    """Kill all remaining processes of a host: shepherds, their descendants, and members of their groups."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        alive = shepherd_pids(state)
        everyone = processes.everyone()
        left = {pid for one in alive for pid in processes.descendants(one, everyone)} | set(alive)
        for slot in range(64):
            left.update(hierarchy.members(base, slot))
        if not left:
            break
        processes.send(left, signal.SIGKILL)
        time.sleep(0.01)
    hierarchy.remove(base)


def lines(path: Path) -> list[str]:
    """Output of a job before its report."""
    return path.read_text().partition("\n" + "-" * 60)[0].splitlines()


def alive(pid: int) -> bool:
    """True if a process exists and is not a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in ("Z", "X")
