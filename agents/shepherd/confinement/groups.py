"""Control group of a slot, version 1 and 2 behind one interface, and a fallback without groups.

A shepherd lives in its slot's group and its jobs are born there, because moving a process costs milliseconds. So a
group's counters include the shepherd: its own part is measured and subtracted, and it is spared when the others are
killed. While a group's memory is bounded the shepherd is beside it, and each new process enters the group by itself
when it shares no memory with the shepherd any more: an OOM kill ends all that share the victim's memory.
"""

import contextlib
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

from agents.shepherd.confinement import cpuset, hierarchy
from agents.shepherd.confinement.device_filter import DeviceFilter, FilterV1, FilterV2
from agents.shepherd.confinement.hierarchy import CPUSET, DEVICES, Base, read, write
from agents.shepherd.confinement.memory_policy import LOCAL_ONLY
from agents.shepherd.confinement.task_groups import TaskGroups
from agents.shepherd.messages import JobSetup
from agents.shepherd.process import processes

MIB = 1 << 20
# What the kernel counts beside the memory of programs: its own tables, and pages of the shepherd's time in the group.
# Added to a job's bound: a small one would let no program start.
OWN_GROWTH = 16 * MIB


NO_PIDS_MAX = "max"


class Memory(NamedTuple):
    """Bytes held by a job's processes now."""

    resident: int
    swap: int


class Confinement(Protocol):
    """Slot's group, as its shepherd sees it. Figures are of the job alone, since `begin`."""

    entrances: list[int]  # files of the groups that each new process is to enter before its program
    devices: DeviceFilter | None  # None if the group cannot be kept from devices
    tasks: TaskGroups | None  # groups of tasks below it; None without groups

    def join(self) -> None:
        """Enter the group for good; once, at the shepherd's birth."""

    def begin(self) -> None:
        """Start counting for a new attempt."""

    def limit_memory(self, mib: int) -> None:
        """Set the memory bound of the next attempt; 0 removes it."""

    def limit_processes(self, number: int) -> None:
        """Set the bound of processes and threads of the next attempt; 0 removes it."""

    def bind(self, cpus: tuple[int, ...], nodes: tuple[int, ...]) -> None:
        """Restrict the next attempt to these CPUs and memory nodes; no restriction if empty."""

    def members(self) -> list[int]:
        """Return all processes but the shepherd."""

    def threads(self) -> int:
        """Return the threads of all members; 0 if that would need a look at each process."""

    def kill(self) -> int:
        """Kill all members, who cannot fork meanwhile; return their number. Repeated until none are left."""

    def allow_forks(self) -> None:
        """Permit the forks that `kill` denied."""

    def cpu_s(self) -> float:
        """Return the CPU time in seconds."""

    def user_part(self) -> float:
        """Return the part of the CPU time spent in user mode, from 0 to 1."""

    def memory(self) -> Memory:
        """Return the memory held now."""

    def memory_peak(self) -> int:
        """Return the most bytes held at once, file caches included; 0 if unknown."""

    def oom_kills(self) -> int:
        """Return the number of processes killed for the memory bound; only counted with a bound."""

    def leave(self) -> None:
        """Return to the agent's own group and remove the slot's; OSError if that fails."""


def confinement(base: Base, slot: int) -> Confinement:
    """Return the group of a slot, made if needed; not entered yet.

    Raises:
        OSError: the group cannot be made.
    """
    paths = base.slot(slot)
    for path in paths.values():
        os.makedirs(path, exist_ok=True)
    if base.version == 1:
        return GroupV1(paths)
    if base.version == 2:
        return GroupV2(paths[""])
    return ProcessTree()


class _Modes:
    """CPU time of a group in user and in system mode, in units of their own."""

    def __init__(self, path: str, names: tuple[bytes, bytes]) -> None:
        self._file = _File(path)
        self._names = names
        self._first = self._last = (0, 0)

    def _now(self) -> tuple[int, int]:
        text = self._file.text()
        user, system = self._names
        return _value(text, user), _value(text, system)

    def begin(self) -> None:
        """Count from the last call of `user_part`."""
        self._first = self._last

    def user_part(self) -> float:
        self._last = user, system = self._now()
        spent = user - self._first[0], system - self._first[1]
        return spent[0] / sum(spent) if sum(spent) > 0 else 1.0


def confine(group: Confinement, setup: JobSetup) -> None:
    """Set a group up for an attempt.

    Raises:
        OSError: a limit of the job's cannot be set.
    """
    group.limit_memory(setup.memory_limit_mib)
    group.limit_processes(setup.processes_max)
    group.bind(setup.cpus, setup.nodes if setup.memory_policy == LOCAL_ONLY else ())
    if setup.denied_devices or setup.own_devices:
        _keep_from_devices(group, setup)
    group.begin()


def _keep_from_devices(group: Confinement, setup: JobSetup) -> None:
    """Deny the group others' GPUs; if that fails, the job still learns its own from the environment."""
    try:
        if group.devices is not None:
            group.devices.deny(setup.denied_devices, setup.own_devices)
    except OSError as error:
        print(f"event=devices_not_kept_apart error={error.strerror!r}", file=sys.stderr)


class _File:
    """Control file kept open: each further read costs one call."""

    def __init__(self, path: str, writable: bool = False) -> None:
        self._fd = os.open(path, (os.O_RDWR if writable else os.O_RDONLY) | os.O_CLOEXEC)

    def text(self) -> bytes:
        return os.pread(self._fd, 16384, 0)

    def number(self) -> int:
        return int(os.pread(self._fd, 32, 0))

    def put(self, text: bytes) -> None:
        os.pwrite(self._fd, text, 0)


def _value(text: bytes, name: bytes) -> int:
    """Return the number behind a name at the start of a line; 0 if there is none."""
    at = 0 if text.startswith(name + b" ") else text.find(b"\n" + name + b" ") + 1
    if at == 0 and not text.startswith(name + b" "):
        return 0
    return int(text[at + len(name) : at + len(name) + 24].split(None, 1)[0])


def kill_all(members: Callable[[], list[int]], pids_max: str) -> int:
    """Kill the members of a group and deny it forks; return the number killed.

    The first are killed before forks are denied: a shell that cannot fork would exit by itself, with a status that
    looks like the job's own. Processes started meanwhile are killed after that.
    """
    first = members()
    killed = processes.send(first, signal.SIGKILL)
    write(pids_max, "0")
    return killed + processes.send([pid for pid in members() if pid not in first], signal.SIGKILL)


def _others(procs: str, tasks: TaskGroups | None) -> list[int]:
    own = os.getpid()
    found = [pid for pid in map(int, read(procs).split()) if pid != own]
    return found + tasks.members() if tasks is not None else found


class _Seat:
    """Place of the shepherd: within a group that bounds memory, or beside it while there is a bound."""

    def __init__(self, group: str, beside: str) -> None:
        self.entrances: list[int] = []
        self.is_beside = False
        self._group, self._beside = f"{group}/cgroup.procs", f"{beside}/cgroup.procs"
        self._cpu_ns = 0  # own CPU time: when it left, or while it was beside

    def leave(self) -> None:
        """Take the place beside the group; new processes enter it by themselves."""
        if not self.is_beside:
            entrance = os.open(self._group, os.O_WRONLY | os.O_CLOEXEC)
            try:
                write(self._beside, str(os.getpid()))
            except OSError:
                os.close(entrance)
                raise
            self.entrances.append(entrance)
            self._cpu_ns, self.is_beside = self.cpu_ns(), True

    def take(self) -> None:
        """Return to the group."""
        if self.is_beside:
            write(self._group, str(os.getpid()))
            self._cpu_ns, self.is_beside = time.process_time_ns() - self._cpu_ns, False
            os.close(self.entrances.pop())

    def cpu_ns(self) -> int:
        """Return the CPU time of the shepherd within the group."""
        return self._cpu_ns if self.is_beside else time.process_time_ns() - self._cpu_ns


def _cpuset_v1(path: str | None) -> cpuset.Cpuset | None:
    if path is None:
        return None
    above = os.path.dirname(path)
    hierarchy.inherit_cpuset(above)  # it is removed with its last slot, and made again empty
    return cpuset.Cpuset(path, above)


class GroupV1:
    """Controllers cpuacct, memory, pids and, if there is one, cpuset, each in a hierarchy of its own."""

    NO_LIMIT = "-1"

    def __init__(self, paths: dict[str, str]) -> None:
        self._paths = paths
        memory = paths["memory"]
        self._cpu = _File(f"{paths['cpuacct']}/cpuacct.usage")
        self._modes = _Modes(f"{paths['cpuacct']}/cpuacct.stat", (b"user", b"system"))
        self._used = _File(f"{memory}/memory.usage_in_bytes")
        self._peak = _File(f"{memory}/memory.max_usage_in_bytes", writable=True)
        self._statistics = _File(f"{memory}/memory.stat")
        self._oom = _File(f"{memory}/memory.oom_control")
        self._swap_counted = os.path.exists(f"{memory}/memory.memsw.limit_in_bytes")
        self._cpuset = _cpuset_v1(paths.get(CPUSET))
        self._seat = _Seat(memory, os.path.dirname(os.path.dirname(memory)))
        self.entrances = self._seat.entrances
        self.devices: DeviceFilter | None = FilterV1(paths[DEVICES]) if DEVICES in paths else None
        self.tasks: TaskGroups | None = TaskGroups(paths["pids"], self.entrances)
        self._limit_mib = 0
        self._pids_max = NO_PIDS_MAX
        self._cpu_first = self._cpu_last = 0
        self._own_memory = Memory(0, 0)
        self._own_usage = 0
        self._oom_first = 0

    def bind(self, cpus: tuple[int, ...], nodes: tuple[int, ...]) -> None:
        if self._cpuset is not None:
            self._cpuset.hold(cpus, nodes)

    def join(self) -> None:
        for path in self._paths.values():
            write(f"{path}/cgroup.procs", str(os.getpid()))
        self.allow_forks()
        self._put_limit(self.NO_LIMIT)
        self._own_usage = self._used.number()
        self._own_memory = self._memory_now()
        self._cpu_last = self._cpu_now()
        self._modes.user_part()

    def begin(self) -> None:
        # Less the shepherd's own part the counter stands still between two jobs: no need to read it again.
        self._cpu_first = self._cpu_last
        self._modes.begin()
        self._peak.put(b"0")
        if self._limit_mib:
            self._oom_first = _value(self._oom.text(), b"oom_kill")

    def limit_memory(self, mib: int) -> None:
        if mib != self._limit_mib:
            if mib:
                self._seat.leave()
            self._put_limit(str(mib * MIB + self._own_usage + OWN_GROWTH) if mib else self.NO_LIMIT)
            if not mib:
                self._seat.take()
            self._limit_mib, had_none = mib, not self._limit_mib
            if mib and had_none:  # not read while there was no bound
                self._oom_first = _value(self._oom.text(), b"oom_kill")

    def _put_limit(self, text: str) -> None:
        """Set the memory bound; the bound with swap may never be the lower one, so it is removed first."""
        memory = self._paths["memory"]
        if self._swap_counted:
            write(f"{memory}/memory.memsw.limit_in_bytes", self.NO_LIMIT)
        write(f"{memory}/memory.limit_in_bytes", text)
        if self._swap_counted and text != self.NO_LIMIT:
            write(f"{memory}/memory.memsw.limit_in_bytes", text)

    def members(self) -> list[int]:
        return _others(f"{self._paths['pids']}/cgroup.procs", self.tasks)

    def threads(self) -> int:
        return max(0, int(read(f"{self._paths['pids']}/pids.current")) - 1)

    def kill(self) -> int:
        return kill_all(self.members, f"{self._paths['pids']}/pids.max")

    def allow_forks(self) -> None:
        write(f"{self._paths['pids']}/pids.max", self._pids_max)

    def limit_processes(self, number: int) -> None:
        wanted = str(number + 1) if number else NO_PIDS_MAX  # one more for the shepherd
        if wanted != self._pids_max:
            self._pids_max = wanted
            self.allow_forks()

    def _cpu_now(self) -> int:
        own = time.process_time_ns()  # first: reading it brings the group's counter up to date as well
        return self._cpu.number() - own

    def cpu_s(self) -> float:
        self._cpu_last = self._cpu_now()
        return max(0, self._cpu_last - self._cpu_first) / 1e9

    def user_part(self) -> float:
        return self._modes.user_part()

    def _memory_now(self) -> Memory:
        text = self._statistics.text()
        return Memory(_value(text, b"total_rss") + _value(text, b"total_shmem"), _value(text, b"total_swap"))

    def memory(self) -> Memory:
        now, own = self._memory_now(), self._own_memory
        return Memory(max(0, now.resident - own.resident), max(0, now.swap - own.swap))

    def memory_peak(self) -> int:
        return max(0, self._peak.number() - self._own_usage)

    def oom_kills(self) -> int:
        return _value(self._oom.text(), b"oom_kill") - self._oom_first if self._limit_mib else 0

    def leave(self) -> None:
        if self.tasks is not None:
            self.tasks.sweep()
        for path in self._paths.values():
            base = os.path.dirname(path)
            write(f"{os.path.dirname(base)}/cgroup.procs", str(os.getpid()))
            os.rmdir(path)
            with contextlib.suppress(OSError):  # other slots are still there
                os.rmdir(base)


class GroupV2:
    """One group in the unified hierarchy, with the memory and pids controllers, and cpuset if there is one."""

    NO_LIMIT = "max"

    def __init__(self, path: str) -> None:
        self._path = path
        self._cpu = _File(f"{path}/cpu.stat")
        self._modes = _Modes(f"{path}/cpu.stat", (b"user_usec", b"system_usec"))
        self._used = _File(f"{path}/memory.current")
        self._statistics = _File(f"{path}/memory.stat")
        self._events = _File(f"{path}/memory.events")
        self._peak = self._open_peak()
        self._cpuset = cpuset.Cpuset(path) if cpuset.is_in(path) else None
        self._supervisor = f"{os.path.dirname(os.path.dirname(path))}/supervisor"
        self._seat = _Seat(path, self._supervisor)
        self.entrances = self._seat.entrances
        self.devices: DeviceFilter | None = FilterV2(path)
        self.tasks: TaskGroups | None = TaskGroups(path, self.entrances)
        self._limit_mib = 0
        self._pids_max = NO_PIDS_MAX
        self._cpu_first = self._cpu_last = 0
        self._own_memory = Memory(0, 0)
        self._own_usage = 0
        self._oom_first = 0

    def bind(self, cpus: tuple[int, ...], nodes: tuple[int, ...]) -> None:
        if self._cpuset is not None:
            self._cpuset.hold(cpus, nodes)

    def _open_peak(self) -> _File | None:
        """Open the peak counter if it can be reset (Linux 6.12): a peak over all jobs of the slot would be useless."""
        try:
            peak = _File(f"{self._path}/memory.peak", writable=True)
            peak.put(b"reset")
        except OSError:
            return None
        return peak

    def join(self) -> None:
        write(f"{self._path}/cgroup.procs", str(os.getpid()))
        self.allow_forks()
        self._put_limit(self.NO_LIMIT)
        self._own_usage = self._used.number()
        self._own_memory = self._memory_now()
        self._cpu_last = self._cpu_now()
        self._modes.user_part()

    def begin(self) -> None:
        self._cpu_first = self._cpu_last
        self._modes.begin()
        if self._peak is not None:
            self._peak.put(b"reset")
        if self._limit_mib:
            self._oom_first = _value(self._events.text(), b"oom_kill")

    def limit_memory(self, mib: int) -> None:
        if mib != self._limit_mib:
            if mib:
                self._seat.leave()
            self._put_limit(str(mib * MIB + self._own_usage + OWN_GROWTH) if mib else self.NO_LIMIT)
            if not mib:
                self._seat.take()
            self._limit_mib, had_none = mib, not self._limit_mib
            if mib and had_none:  # not read while there was no bound
                self._oom_first = _value(self._events.text(), b"oom_kill")

    def _put_limit(self, text: str) -> None:
        write(f"{self._path}/memory.max", text)
        swap = f"{self._path}/memory.swap.max"
        if os.path.exists(swap):
            write(swap, self.NO_LIMIT if text == self.NO_LIMIT else "0")

    def members(self) -> list[int]:
        return _others(f"{self._path}/cgroup.procs", self.tasks)

    def threads(self) -> int:
        return max(0, int(read(f"{self._path}/pids.current")) - (not self._seat.is_beside))

    def kill(self) -> int:
        # cgroup.kill would kill the shepherd, too.
        return kill_all(self.members, f"{self._path}/pids.max")

    def allow_forks(self) -> None:
        write(f"{self._path}/pids.max", self._pids_max)

    def limit_processes(self, number: int) -> None:
        wanted = str(number + 1) if number else NO_PIDS_MAX  # one more for the shepherd
        if wanted != self._pids_max:
            self._pids_max = wanted
            self.allow_forks()

    def _cpu_now(self) -> int:
        own = self._seat.cpu_ns()
        return _value(self._cpu.text(), b"usage_usec") * 1000 - own

    def cpu_s(self) -> float:
        self._cpu_last = self._cpu_now()
        return max(0, self._cpu_last - self._cpu_first) / 1e9

    def user_part(self) -> float:
        return self._modes.user_part()

    def _memory_now(self) -> Memory:
        text = self._statistics.text()
        try:
            swap = int(read(f"{self._path}/memory.swap.current"))
        except FileNotFoundError:
            swap = 0
        return Memory(_value(text, b"anon") + _value(text, b"shmem"), swap)

    def memory(self) -> Memory:
        now, own = self._memory_now(), self._own_memory
        return Memory(max(0, now.resident - own.resident), max(0, now.swap - own.swap))

    def memory_peak(self) -> int:
        return 0 if self._peak is None else max(0, self._peak.number() - self._own_usage)

    def oom_kills(self) -> int:
        return _value(self._events.text(), b"oom_kill") - self._oom_first if self._limit_mib else 0

    def leave(self) -> None:
        if self.tasks is not None:
            self.tasks.sweep()
        write(f"{self._supervisor}/cgroup.procs", str(os.getpid()))
        os.rmdir(self._path)


class ProcessTree:
    """Fallback without groups: a job is all descendants of its shepherd, which is their subreaper.

    The memory and processes of a whole job cannot be bounded here, so there is no bound.
    """

    def __init__(self) -> None:
        self._cpu_first = self._user_first = 0.0
        self.entrances: list[int] = []
        self.devices: DeviceFilter | None = None
        self.tasks: TaskGroups | None = None

    def join(self) -> None:
        """No-op: there is no group to enter."""

    def begin(self) -> None:
        self._cpu_first = self._reaped_cpu_s()
        self._user_first = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime

    def limit_memory(self, mib: int) -> None:
        """Ignore the bound: it is impossible for a whole job; see the class."""

    def limit_processes(self, number: int) -> None:
        """Ignore the bound: it is impossible for a whole job; see the class."""

    def bind(self, cpus: tuple[int, ...], nodes: tuple[int, ...]) -> None:
        """Bind new processes to these; they may choose others."""

    def members(self) -> list[int]:
        return processes.descendants(os.getpid())

    def threads(self) -> int:
        return 0

    def kill(self) -> int:
        return processes.stop_and_kill(os.getpid())

    def allow_forks(self) -> None:
        """No-op: no forks were denied."""

    def _reaped_cpu_s(self) -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    def cpu_s(self) -> float:
        living = sum(entry.cpu_s for entry in self._entries())
        return self._reaped_cpu_s() + living - self._cpu_first

    def user_part(self) -> float:
        user = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - self._user_first
        reaped = self._reaped_cpu_s() - self._cpu_first
        return min(1.0, user / reaped) if reaped > 0 else 1.0

    def memory(self) -> Memory:
        return Memory(sum(entry.resident for entry in self._entries()), 0)

    def _entries(self) -> list[processes.Stat]:
        if not processes.have_children():  # the usual case at a job's end: spares a look at all of /proc
            return []
        everyone = processes.everyone()
        return [everyone[pid] for pid in processes.descendants(os.getpid(), everyone)]

    def memory_peak(self) -> int:
        return 0

    def oom_kills(self) -> int:
        return 0

    def leave(self) -> None:
        """No-op: there is no group to leave."""


PAUSE_S, PAUSE_MAX_S = 0.02, 1.0  # between two tries, growing


class Leftovers:
    """Leftover processes in a slot's group: they cannot fork while they are killed, and survivors are killed again."""

    def __init__(self, confinement: Confinement) -> None:
        self._confinement = confinement
        self._pause_s = PAUSE_S
        self._denied = False

    def kill(self) -> int:
        """Kill all of them; return their number."""
        self._denied = True
        return self._confinement.kill()

    def pause_s(self) -> float:
        """Return the seconds until the next try."""
        pause_s, self._pause_s = self._pause_s, min(PAUSE_MAX_S, 1.5 * self._pause_s)
        return pause_s

    def allow_forks(self) -> None:
        """Permit forks again once all are gone."""
        if self._denied:
            self._confinement.allow_forks()
            self._denied = False
