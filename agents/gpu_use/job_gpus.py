"""GPUs of this host's attempts, from their start to the moment at which they may be handed on.

Invariants: a host says that nothing of an attempt is left only when the memory of its GPUs is free, or when those that
keep some are out of use; it says so within a bounded time; nothing here delays the report of the job's end.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence

from agents.attempts.held_back import hold_back, let_go
from agents.attempts.ledger import Ledger
from agents.attempts.ledger_entry import Entry, State
from agents.gpu_use.account import IdlePower
from agents.gpu_use.driver import DriverHangs
from agents.gpu_use.owners import Key
from agents.gpu_use.watch import BASE_MIB, GpuWatch, Holder
from agents.job_setup.task_devices import gpus_of
from protos.agents_pb2 import Report
from protos.common_pb2 import GpuUsage

LOG = logging.getLogger("lava.gpu")

CLEAR_S = 60.0
POLL_S, POLL_MAX_S = 0.1, 1.0
READ_EVERY_S = 5.0
NOW_S = 2.0  # for a reading that others wait for


class JobGpus:
    """The GPUs of attempts. ``members`` returns the processes of each attempt's control group; it may read files."""

    def __init__(
        self, ledger: Ledger, host: str, watch: GpuWatch, members: Callable[[Iterable[Key]], Mapping[Key, list[int]]]
    ) -> None:
        self.watch = watch
        self.read_every_s = READ_EVERY_S
        self.clear_s = CLEAR_S
        self.say: Callable[[Report], None] = lambda _: None
        self.tell_load: Callable[[], Awaitable[None]] = _nothing
        self._ledger = ledger
        self._host = host
        self._members = members
        self._clearing: set[Key] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._holders: tuple[Holder, ...] = ()
        self._fault = ""
        watch.holders = self._with_members

    # -- while they run

    def note(self) -> bool:
        """Note the attempts that hold GPUs now; return True if there are any."""
        entries = self._ledger.entries.values()
        found = (self._holder(one) for one in entries if one.state in (State.HELD, State.ENDED))
        self._holders = tuple(one for one in found if one.gpus and one.key not in self._clearing)
        return bool(self._holders)

    def _holder(self, entry: Entry) -> Holder:
        gpu = entry.stage.gpu
        idle = IdlePower(gpu.idle_power_w, gpu.idle_power_fraction)
        return Holder(entry.key, tuple(gpus_of(entry.stage, self._host)), idle)

    def _with_members(self) -> Sequence[Holder]:
        """Return the attempts with GPUs and their processes; called in the threads that read."""
        holders = self._holders
        members = self._members([holder.key for holder in holders])
        return [holder._replace(members=tuple(members.get(holder.key, ()))) for holder in holders]

    async def run(self) -> None:
        """Read at intervals as long as an attempt holds GPUs."""
        while True:
            if self.note():
                async with self._faults_pass():
                    await self.watch.driver.call(self._read)
            await asyncio.sleep(self.read_every_s)

    @contextlib.asynccontextmanager
    async def _faults_pass(self) -> AsyncIterator[None]:
        """Go on after a fault of the machine or the driver, which may pass; a new one is told."""
        try:
            yield
        except (OSError, DriverHangs) as error:
            if str(error) != self._fault and isinstance(error, OSError):
                LOG.warning("event=gpus_not_read reason=%r", str(error))
            self._fault = str(error)
        else:
            self._fault = ""

    async def usage_now(self, key: Key) -> list[GpuUsage]:
        """Return the use of each of an attempt's GPUs here, read now if that is possible in time."""
        if not self.watch.usage(key):
            return []
        async with self._faults_pass():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(NOW_S):
                    await self.watch.driver.call(self._read, True)
        return self.watch.usage(key)

    def _read(self, is_final: bool = False) -> None:
        self.watch.observe(self._with_members(), is_final)

    def set_bounds(self, settings: Mapping[str, str]) -> None:
        """Take the master's settings."""
        self.clear_s = float(settings.get("LAVA_GPU_CLEAR_TIME") or CLEAR_S)
        self.watch.base_mib = int(settings.get("LAVA_GPU_CLEAR_MEMORY") or BASE_MIB)

    # -- at their end

    def ended(self, key: Key, reports: list[Report]) -> list[Report]:
        """Return what can be told now of an attempt's last reports: that nothing is left waits for its GPUs."""
        entry = self._ledger.entries.get(key)
        if entry is None:
            return reports
        holder = self._holder(entry)
        if not holder.gpus or not entry.launched:
            return reports
        for report in reports:
            self.add_usage(report)
        if entry.state is not State.OVER or key in self._clearing or not _is_end(entry.last):
            return reports
        told = hold_back(entry)
        self._clearing.add(key)
        self.note()
        task = asyncio.get_running_loop().create_task(self._clear(holder))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return told

    def adopt(self) -> None:
        """Check again, after a restart, the GPUs of all attempts whose release may not have been reported."""
        for key in list(self._ledger.entries):
            self.ended(key, [])
        self.watch.keep_only(self._ledger.entries.keys())
        self.note()

    def add_usage(self, report: Report) -> None:
        """Set the use of GPUs in a report of an end or a release."""
        key = (report.key.job, report.key.index, report.key.attempt)
        usage = self.watch.usage(key)
        kind = report.WhichOneof("what")
        if kind == "finished" and usage:
            del report.finished.gpus[:]
            report.finished.gpus.extend(usage)
        elif kind == "released" and usage:
            del report.released.usage.gpus[:]
            report.released.usage.gpus.extend(usage)

    async def _clear(self, holder: Holder) -> None:
        """Wait for the memory of an ended attempt's GPUs, then report that nothing of it is left."""
        key, loop, pause_s = holder.key, asyncio.get_running_loop(), POLL_S
        until = loop.time() + self.clear_s
        with_it: tuple[Holder, ...] = (holder,)
        while True:
            left: Mapping[int, int] = dict.fromkeys(holder.gpus, -1)  # not known
            async with self._faults_pass():
                left = await self.watch.driver.call(self._unclear, key, holder.gpus, with_it)
                with_it = ()
            if not left:
                break
            if loop.time() >= until:
                await self._give_up(key, left)
                break
            await asyncio.sleep(min(pause_s, max(0.0, until - loop.time())))
            pause_s = min(POLL_MAX_S, 2 * pause_s)
        self._clearing.discard(key)
        entry = self._ledger.entries.get(key)
        for report in let_go(entry) if entry is not None else ():
            self.add_usage(report)
            self.say(report)

    def _unclear(self, key: Key, gpus: Sequence[int], more: Sequence[Holder]) -> dict[int, int]:
        return self.watch.unclear([*self._with_members(), *more], key, gpus)

    async def _give_up(self, key: Key, left: Mapping[int, int]) -> None:
        for gpu, mib in left.items():
            known = str(mib) if mib >= 0 else "unknown"
            LOG.error("event=gpu_memory_stays job=%d index=%d attempt=%d gpu=%d mib=%s", *key, gpu, known)
        await self.watch.mark(left)
        await self.tell_load()  # before the release: the devices must be out of use when the host is free

    async def close(self) -> None:
        """End all waiting; the next agent begins it again."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.watch.close()


def _is_end(report: Report | None) -> bool:
    return report is not None and report.WhichOneof("what") in ("finished", "released")


async def _nothing() -> None:
    """Ignore the call: without a session there is no load to tell."""
