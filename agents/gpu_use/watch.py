"""Watch over this host's GPUs: one reader for all parts of the agent, accounts of attempts, and memory that stays.

Accounts and marks are on disk after each reading, so the next agent goes on with them. A device that keeps memory
although its job is gone is marked, which takes it out of use, until the memory is free again. Readings block as long
as the driver does, so they are made in its thread, one at a time; while it hangs, all devices are out of use.
"""

import contextlib
import json
import logging
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agents.gpu_use.account import Account, IdlePower, Part, parts, unowned_mib
from agents.gpu_use.driver import DriverHangs, DriverThread
from agents.gpu_use.owners import Key, Owners, described, exists
from agents.gpus.vendor import OK, Devices
from agents.job_setup.environment import write_whole
from protos.cluster_pb2 import Gpu
from protos.common_pb2 import GpuUsage

LOG = logging.getLogger("lava.gpu")

BASE_MIB = 512  # memory that a device may have in use when it is handed on
FRESH_S = 0.2  # a reading that is younger serves again


class Holder(NamedTuple):
    """An attempt with devices here, and its processes as its control group has them."""

    key: Key
    gpus: tuple[int, ...]
    idle: IdlePower = IdlePower()
    members: tuple[int, ...] = ()


class GpuWatch:
    """The devices with everything that this agent knows of their use. ``path``: the file for accounts and marks.

    It is itself a reader of devices: unfit ones say so in their status, and processes of no job are told apart. All
    methods that block are for the driver's thread, but for `read`.
    """

    def __init__(self, devices: Devices, path: Path, socket: str, clock: Callable[[], float] = time.time) -> None:
        self.base_mib = BASE_MIB
        self.holders: Callable[[], Sequence[Holder]] = tuple
        self._devices = devices
        self._path = path
        self._socket = socket
        self._clock = clock
        self.driver = DriverThread()
        self._lock = threading.Lock()  # of the marks
        self._last: list[Gpu] = []
        self._read_at = 0.0
        self._foreign: set[int] = set()
        self._accounts: dict[Key, dict[int, Account]] = {}
        self._lowest_w: dict[str, float] = {}
        self._marked: set[str] = set()
        self._usages: dict[Key, list[GpuUsage]] = {}
        self._dropped: set[Key] = set()
        self._kept = b""
        self._load()

    # -- readings

    def read(self) -> list[Gpu]:
        """Return the devices, from a reading of just now; as last read while the driver hangs. Blocks within limits."""
        try:
            return self.driver.wait(lambda: self.observe(self.holders()))
        except DriverHangs as error:
            return [_with_status(gpu, str(error)) for gpu in self._last]

    async def close(self) -> None:
        """Release the driver, unless it hangs."""
        with contextlib.suppress(DriverHangs):
            await self.driver.call(self._devices.close)

    def observe(self, holders: Sequence[Holder], is_final: bool = False) -> list[Gpu]:
        """Read the devices, add to the accounts of those who hold some, and return them. Blocks.

        A reading that is young enough serves again, unless ``is_final``.
        """
        now = self._clock()
        if is_final or not 0 <= now - self._read_at < FRESH_S:
            gpus = self._devices.read()
            now = self._clock()
            owners = _owners(self._socket, holders)
            for gpu in gpus:
                self._note_lowest(gpu)
            self._add(gpus, holders, owners, now)
            self._publish()
            self._last, self._read_at = [self._told(gpu, owners) for gpu in gpus], now
            self._save()
        return self._last

    def _publish(self) -> None:
        """Replace what `usage` answers: it must not wait for a driver that does not."""
        while self._dropped:
            self._accounts.pop(self._dropped.pop(), None)
        self._usages = {key: [_copy(one.usage) for _, one in sorted(of.items())] for key, of in self._accounts.items()}

    def _note_lowest(self, gpu: Gpu) -> None:
        if gpu.power_w and gpu.status == OK:
            self._lowest_w[gpu.uuid] = min(gpu.power_w, self._lowest_w.get(gpu.uuid, gpu.power_w))

    def _add(self, gpus: Sequence[Gpu], holders: Sequence[Holder], owners: Owners, now: float) -> None:
        for gpu in gpus:
            of_it = {number: holder for number, holder in enumerate(holders) if gpu.index in holder.gpus}
            if of_it:
                by_key: dict[Key | None, list[int]] = {}
                for process in gpu.processes:
                    by_key.setdefault(owners.of(process.pid), []).append(process.pid)
                mine = {number: tuple(by_key.get(holder.key, ())) for number, holder in of_it.items()}
                for number, part in parts(gpu, mine).items():
                    self._add_to(of_it[number], gpu, part, now)

    def _add_to(self, holder: Holder, gpu: Gpu, part: Part, now: float) -> None:
        of_attempt = self._accounts.setdefault(holder.key, {})
        account = of_attempt.setdefault(gpu.index, Account.opened(gpu, now))
        idle_w = holder.idle.threshold_w(self._lowest_w.get(gpu.uuid, 0.0), gpu.power_limit_w)
        account.add(gpu, now, part, idle_w)

    def _told(self, gpu: Gpu, owners: Owners) -> Gpu:
        """Return the device with marks, and with the processes on it that belong to no job here."""
        told = Gpu()
        told.CopyFrom(gpu)
        strangers = [one for one in gpu.processes if owners.of(one.pid) is None and exists(one.pid)]
        told.foreign.extend(map(described, strangers))
        for process in told.foreign:
            if process.pid not in self._foreign:
                self._foreign.add(process.pid)
                LOG.warning(
                    "event=foreign_process gpu=%d pid=%d user=%s command=%r", gpu.index, process.pid, process.user,
                    process.command,
                )  # fmt: skip
        if gpu.uuid in self._marked and gpu.status == OK:
            held = unowned_mib(gpu, _gone(gpu))
            if held > self.base_mib:
                told.status = f"it holds {held} MiB of memory without a process"
            else:
                LOG.info("event=memory_free_again gpu=%d", gpu.index)
                with self._lock:
                    self._marked.discard(gpu.uuid)
        return told

    # -- ends of attempts

    def unclear(self, holders: Sequence[Holder], key: Key, gpus: Collection[int]) -> dict[int, int]:
        """Read the devices and return which of these hold memory of an attempt that has ended, with the MiB. Blocks.

        A device that does not answer is not among them: its status keeps it out of use.
        """
        found = self.observe(holders, is_final=True)
        owners = _owners(self._socket, holders)
        held = {
            gpu.index: unowned_mib(gpu, {one.pid for one in gpu.processes if owners.of(one.pid) == key} | _gone(gpu))
            for gpu in found
            if gpu.index in gpus and gpu.status == OK
        }
        return {index: mib for index, mib in held.items() if mib > self.base_mib}

    async def mark(self, gpus: Collection[int]) -> None:
        """Take devices out of use until their memory is free; also if the driver hangs, for when it does no more."""
        self._mark(gpus)
        with contextlib.suppress(DriverHangs):
            await self.driver.call(self._keep_marks)

    def _mark(self, gpus: Collection[int]) -> None:
        with self._lock:
            self._marked |= {gpu.uuid for gpu in self._last if gpu.index in gpus}

    def _keep_marks(self) -> None:
        self._read_at = 0.0  # a reading that was under way does not have them
        self._save()

    def usage(self, key: Key) -> list[GpuUsage]:
        """Return the use of each of an attempt's devices as of the last reading."""
        return self._usages.get(key, [])

    def forget(self, key: Key) -> None:
        """Drop the accounts of an attempt that the master needs no more."""
        self._usages.pop(key, None)
        self._dropped.add(key)

    def keep_only(self, keys: Collection[Key]) -> None:
        """Drop the accounts of all other attempts, after a restart."""
        for key in self._accounts.keys() - set(keys):
            self.forget(key)

    # -- on disk

    def _save(self) -> None:
        if not (self._accounts or self._marked or self._lowest_w):
            return  # a host without devices
        text = {
            "accounts": [[*key, *map(_packed, of.values())] for key, of in list(self._accounts.items())],
            "lowest_w": self._lowest_w,
            "marked": sorted(tuple(self._marked)),
        }
        content = json.dumps(text).encode()
        if content == self._kept:
            return
        try:
            write_whole(str(self._path), content, 0o600)
            self._kept = content
        except OSError as error:
            LOG.error("event=gpu_use_not_kept path=%s reason=%r", self._path, error.strerror)

    def _load(self) -> None:
        try:
            text = json.loads(self._path.read_text(encoding="ascii"))
            self._lowest_w, self._marked = dict(text["lowest_w"]), set(text["marked"])
            for job, index, attempt, *accounts in text["accounts"]:
                of = {account.usage.index: account for account in map(_unpacked, accounts)}
                self._accounts[job, index, attempt] = of
            self._publish()
        except FileNotFoundError:
            return
        except (ValueError, KeyError, TypeError, OSError) as error:
            LOG.warning("event=gpu_use_unreadable path=%s reason=%r", self._path, str(error))


def _owners(socket: str, holders: Sequence[Holder]) -> Owners:
    return Owners(socket, {holder.key: holder.members for holder in holders})


def _with_status(gpu: Gpu, status: str) -> Gpu:
    told = Gpu()
    told.CopyFrom(gpu)
    told.status = status
    return told


def _copy(usage: GpuUsage) -> GpuUsage:
    copied = GpuUsage()
    copied.CopyFrom(usage)
    return copied


def _gone(gpu: Gpu) -> set[int]:
    """Return processes that the driver still lists, and the kernel no more."""
    return {process.pid for process in gpu.processes if not exists(process.pid)}


def _packed(account: Account) -> list[Any]:
    usage = b64encode(account.usage.SerializeToString()).decode()
    return [usage, account.at, account.energy_j, account.ecc_errors]


def _unpacked(fields: list[Any]) -> Account:
    usage, at, energy_j, ecc_errors = fields
    return Account(GpuUsage.FromString(b64decode(usage)), float(at), float(energy_j), int(ecc_errors))
