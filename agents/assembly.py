"""Assembly of the agent's parts that need no network: journal, ledger, shepherds and attempts, and their recovery.

Used by the daemon, by tests and by benchmarks. Order matters: the launcher before anything that makes threads; the
surviving shepherds before the logs (attempts that ended before they answered are in a log by then); the journal's new
file last.
"""

import asyncio
import logging
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from agents.attempts.attempts import Attempts
from agents.attempts.autoscaling import Autoscaling
from agents.attempts.journal import Journal
from agents.attempts.kept_outputs import Use, numbers_in, remove_old
from agents.attempts.ledger import key_of
from agents.attempts.order_executor import Keeper
from agents.attempts.resizes import name_of
from agents.attempts.usage_exchange import Counting
from agents.gpu_use.job_gpus import JobGpus
from agents.gpu_use.watch import GpuWatch
from agents.gpus.vendor import Vendor
from agents.gpus.vendors import vendor
from agents.job_setup.gpu_setup import Devices
from agents.job_setup.host_context import HostContext
from agents.job_setup.preparation import Preparation
from agents.job_setup.users import Users
from agents.job_socket.interface import JobInterface
from agents.launcher_process import LauncherProcess, Spool, shorten
from agents.mail.mailer import Mailer
from agents.master.checkpoints import Checkpoints
from agents.master.report_messages import finished_message, report_for
from agents.shepherd import messages
from agents.shepherd.confinement import hierarchy
from agents.shepherd.confinement.hierarchy import Base
from agents.shepherd.lease import Lease
from agents.shepherd.messages import Finish, Key, Message, pack
from agents.shepherd.spool import Traces
from agents.shepherd_pool.pool import Handle, Pool
from agents.shepherd_pool.watchdog import Watchdog
from agents.state_directory import PASSABLE, PRIVATE, find_groups, lock
from protos.agents_pb2 import Held
from protos.common_pb2 import Usage

LOG = logging.getLogger("lava.agent")

REMOVE_EVERY_S = 60.0

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
ENDS_TOLD = 1000  # the newest ends of the logs, if the journal does not say which of them the master knows


class Local:
    """Agent without its network.

    Construction locks the state directory, makes the parts and starts the launcher: no gRPC thread may exist yet.

    Raises:
        StateInUse: there is another agent.
        OSError: the directory cannot be used.
    """

    def __init__(
        self,
        context: HostContext,
        state: Path,
        slots: int,
        with_groups: bool = True,
        gpu_vendor: Vendor | None = None,
    ) -> None:
        self._lock = lock(state)
        for name, mode in (
            ("shepherds", PRIVATE),
            ("outputs", PRIVATE),
            ("scripts", PASSABLE),
            ("hostfiles", PASSABLE),
            ("taskfiles", PASSABLE),
        ):
            (state / name).mkdir(exist_ok=True)
            (state / name).chmod(mode)
        spool = Spool(state / "shepherds", state / "outputs", state / "shepherds.log")
        self.outputs, self._log = spool.outputs, spool.log
        self.base = find_groups(context.host, state) if with_groups else Base()
        self._launcher = LauncherProcess(spool, self.base)
        self._boot_id = BOOT_ID.read_text().strip()
        self._journal = Journal(state / "journal")
        self.ledger, self._boot_before = self._journal.load()
        self.users = Users()
        self.preparation = Preparation(context, state)
        gpus = gpu_vendor or vendor()
        self.devices = Devices(context.host, state, gpus.modes(), context.gpu_vendor)
        watch = GpuWatch(gpus.devices(), state / "gpu-use", context.socket)
        self.gpus = JobGpus(self.ledger, context.host, watch, self._members)
        self._lease = Lease(str(spool.shepherds))
        self._lease.begin()
        self.keeper = Keeper(
            self.ledger, self._journal, self._boot_id, self.preparation, self.users, self.devices,
            self.gpus, self._lease,
        )  # fmt: skip
        keeper = self.keeper
        self.pool = Pool(
            spool, self.base, slots, self._launcher, keeper.on_idle, self._on_message, self._on_lost, self._marks
        )
        self._background: list[asyncio.Task[None]] = []
        self.attempts = Attempts(self.ledger, self.pool, context)
        self.counting = Counting(self.ledger, self.pool.holder, context.host)
        self.checkpoints = Checkpoints(self.ledger, self.pool)
        self.interface = JobInterface(context, state, self.ledger, self.pool)
        self.counting.gpus = self.gpus.usage_now
        self.keeper.connect(self.pool, self.attempts, self.counting)
        self.keeper.interface = self.interface
        self.keeper.heard[messages.CHECKPOINTED] = self.checkpoints.made
        self.mailer = Mailer(
            self.ledger, self._journal, self.attempts, self.preparation, str(self.outputs), keeper.note_owner
        )
        self.watchdog = Watchdog(self.pool.handles)
        self.autoscaling = Autoscaling(self.ledger, self.attempts, context.host, lambda report: keeper.say(report))

    def _on_message(self, handle: Handle, message: Message) -> None:
        self.mailer.on_message(message)  # first: an attempt that is over is forgotten
        self.keeper.on_message(handle, message)

    def _on_lost(self, key: Key, finish: Finish | None, why: str, begun: bool) -> None:
        entry, job = self.ledger.entries.get(key), self.attempts.prepared(key)
        used = next((one.usage for one in self.keeper.newest_usages() if key_of(one.key) == key), Usage())
        self.keeper.on_lost(key, finish, why, begun)
        if entry is not None:
            self.mailer.on_lost(entry, job, finish, used)

    def _marks(self, key: Key) -> tuple[bytes, ...]:
        """Return environment entries that all processes of an attempt of this agent have, and no others."""
        return (b"LAVA_JOB_KEY=%d.%d.%d" % key, os.fsencode(f"LAVA_SOCKET={self.preparation.host.socket}"))

    def _members(self, keys: Iterable[Key]) -> dict[Key, list[int]]:
        """Return the processes in the control group of each attempt that a shepherd holds."""
        held = {key: handle.slot for key in keys if (handle := self.pool.holder(key)) is not None}
        return {key: hierarchy.members(self.base, slot) for key, slot in held.items()}

    async def start(self) -> None:
        """Take over the state of the last agent: living shepherds, recorded ends, orders that were never begun."""
        is_over = self.ledger.is_over
        alive = await self.pool.start()
        traces = self.pool.traces(self.pool.logged_slots())
        launched = {key: handle.status.launched for key, handle in alive.items()}
        self._find_without_orders(alive, traces)
        self._mail_about(traces.finished)
        unended = [one for one in self.ledger.entries.values() if one.key not in traces.finished and not is_over(one)]
        rebooted = self._boot_before not in ("", self._boot_id)
        self.ledger.reconcile(
            launched, traces.started, traces.finished, traces.refused, traces.released, rebooted, time.time(),
            traces.posted,
        )  # fmt: skip
        self._remember(traces.finished)
        for entry in filter(is_over, unended):
            self.mailer.on_lost(entry, None, None, Usage())
        held = {key for key, entry in self.ledger.entries.items() if not is_over(entry)}
        await asyncio.to_thread(self.devices.adopt, held)
        await asyncio.to_thread(self.interface.adopt, held)
        self.preparation.adopt_scripts(self.ledger.holds)
        self.preparation.adopt_lists({name_of(key) for key in self.ledger.entries})
        self.keeper.task_orders.adopt(held)
        for key, handle in alive.items():
            await self._adopt(key, handle)
        self._journal.rewrite(self.ledger, self._boot_id)
        self.gpus.adopt()
        self.pool.drop_dead_logs()
        self._background = [
            asyncio.create_task(self.watchdog.run()),
            asyncio.create_task(self._remove_outputs()),
            asyncio.create_task(self.autoscaling.run()),
            asyncio.create_task(self.gpus.run()),
        ]
        if self.ledger.entries:
            LOG.info("event=adopted attempts=%d with_shepherd=%d", len(self.ledger.entries), len(alive))

    def _mail_about(self, finished: Mapping[Key, Finish]) -> None:
        """Let mails tell the ends, in logs, that the last agent has not reported."""
        for key, finish in finished.items():
            entry = self.ledger.entries.get(key)
            if entry is not None and not self.ledger.is_over(entry) and entry.joined <= 1:
                self.mailer.missed(entry, finish.time, finish)

    def _remember(self, finished: Mapping[Key, Finish]) -> None:
        """Remember the ends, in logs, of attempts that the master told the last agent to forget."""
        for key, finish in finished.items():
            if key not in self.ledger.entries:
                report = report_for(key, 0)
                report.finished.CopyFrom(finished_message(finish, "", ""))
                report.also_released = True
                self.ledger.remember(Held(key=report.key, last=report, launched=True))

    def _find_without_orders(self, alive: Mapping[Key, Handle], traces: Traces) -> None:
        """Add attempts that the journal lacks: those held by shepherds and, if it was damaged, those in logs.

        The master knows whether they are still wanted.
        """
        entries, journal = self.ledger.entries, self._journal
        known_by_shepherds = [key for key in alive if key not in entries]
        for key in known_by_shepherds:
            self.ledger.found(key, alive[key].status.launched)
            LOG.error("event=found_without_order job=%d index=%d attempt=%d slot=%d", *key, alive[key].slot)
        is_missing = journal.is_missing and (traces.started or alive)
        if is_missing:
            LOG.error("event=journal_missing attempts=%d", len(known_by_shepherds))
        if is_missing or journal.is_damaged:
            ends = sorted(traces.finished.values(), key=lambda finish: finish.time)[-ENDS_TOLD:]
            lost = traces.started - traces.finished.keys() - traces.refused.keys()
            for key in {finish.key for finish in ends} | lost:
                if key not in entries:
                    self.ledger.found(key, True)

    async def _adopt(self, key: Key, handle: Handle) -> None:
        entry = self.ledger.entries[key]
        if entry.blob.user:
            await self.keeper.note_owner(entry)
        self.keeper.adopted(handle, key)
        if handle.status.job_pid:
            self.mailer.missed(entry, handle.status.job_started)
        if entry.releasing:
            handle.send(pack(messages.RELEASE, *key, ""))

    async def _remove_outputs(self) -> None:
        while True:
            bounds = self.preparation.bounds
            of_a_job = bounds.kept_output_mib << 20
            await asyncio.to_thread(remove_old, self.outputs, bounds.kept_s, of_a_job, time.time(), self._use_of)
            await asyncio.to_thread(shorten, self._log)
            await asyncio.sleep(REMOVE_EVERY_S)

    def _use_of(self, name: str) -> Use:
        """Return the use of a kept output."""
        numbers = numbers_in(name)
        entry = self.ledger.entries.get((numbers[0], numbers[1], numbers[2])) if len(numbers) > 2 else None
        if entry is None or entry.tasks is None or self.ledger.is_over(entry):
            return Use.OVER
        known = entry.tasks.known.get((numbers[3], numbers[4])) if len(numbers) == 6 else None
        is_newest = known is not None and known.run == numbers[5] and not known.has_ended
        return Use.RUNS if is_newest else Use.HELD

    async def close(self) -> None:
        """Stop the agent's parts; jobs and their shepherds continue."""
        for task in self._background:
            task.cancel()
        await self.mailer.close()
        await self.keeper.close()
        await self.gpus.close()
        await self.pool.close()
        await self.devices.close()
        self._journal.close()
        self._lease.close()
        os.close(self._lock)
