"""Control groups of an agent: found from the kernel's files, made if permitted, removed at the end.

Paths are values (`Base`) that tests can point anywhere; nothing here assumes /sys/fs/cgroup. A machine with version 1
controllers and an empty version 2 beside them ("hybrid") counts as version 1. Without groups a `Base` of version 0 is
returned, and jobs are held together by their process trees.
"""

import contextlib
import errno
import os
import signal
from typing import NamedTuple

from agents.shepherd.process import processes

V1_CONTROLLERS = ("cpuacct", "memory", "pids")
V2_CONTROLLERS = ("memory", "pids")
# Used if available: bound jobs are then kept to their CPUs, and all jobs from others' GPUs.
CPUSET, DEVICES = "cpuset", "devices"
# An agent on version 2 moves from its own group to this one: a group with members cannot delegate controllers.
SUPERVISOR = "supervisor"
# Errors of the kernel for a removed group, or for one removed after its file was opened.
REMOVED = (errno.ENOENT, errno.ENODEV)


class Base(NamedTuple):
    """Groups above an agent's slots: by controller (version 1), under the key "" (version 2), none (0)."""

    version: int = 0
    paths: tuple[tuple[str, str], ...] = ()

    def slot(self, number: int) -> dict[str, str]:
        """Return the directories of one slot's group."""
        return {controller: f"{path}/{number}" for controller, path in self.paths}

    def slot_main(self, number: int) -> str:
        """Return the directory of a slot's group that counts and bounds processes; empty without groups."""
        return self.slot(number).get("pids" if self.version == 1 else "", "")


def discover(name: str, memberships: str, mounts: str) -> Base:
    """Find the place where this process may make groups.

    Arguments: the new group's name, /proc/self/cgroup, /proc/self/mountinfo.
    """
    own = _memberships(memberships)
    v1: dict[str, str] = {}
    v2 = ""
    for kind, root, point, options in _mounts(mounts):
        if kind == "cgroup":
            for controller in options & own.keys() & {*V1_CONTROLLERS, CPUSET, DEVICES}:
                v1.setdefault(controller, _below(point, root, own[controller]))
        elif "" in own and not v2:
            v2 = _below(point, root, own[""])
    if set(V1_CONTROLLERS) <= v1.keys():
        return Base(1, tuple((controller, f"{path}/{name}") for controller, path in sorted(v1.items())))
    if v2.endswith("/" + SUPERVISOR):
        v2 = os.path.dirname(v2)
    if v2 and set(V2_CONTROLLERS) <= _available(v2):
        return Base(2, (("", f"{v2}/{name}"),))
    return Base()


def _available(group: str) -> set[str]:
    try:
        return set(read(f"{group}/cgroup.controllers").split())
    except OSError:  # no group, or not visible here
        return set()


def _memberships(text: str) -> dict[str, str]:
    own = {}
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            own[controller] = path
    return own


def _mounts(text: str) -> list[tuple[str, str, str, set[str]]]:
    """Return (type, root, mount point, super options) of control group file systems."""
    found = []
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        if kind in ("cgroup", "cgroup2"):
            root, point = before.split()[3:5]
            found.append((kind, root, point, set(options.split(","))))
    return found


def _below(point: str, root: str, path: str) -> str:
    inner = os.path.relpath(path, root)
    if inner.startswith(".."):
        inner = "."  # the mount shows another part of the hierarchy: its top is all that can be reached
    return os.path.normpath(f"{point}/{inner}")


def prepare(base: Base) -> Base:
    """Make the base groups; return a base without groups if that is not permitted."""
    sets = dict(base.paths).get(CPUSET)
    if sets is not None and not _make_cpuset(sets):
        base = _without(base, CPUSET)
    devices = dict(base.paths).get(DEVICES)
    if devices is not None and not _make(devices):
        base = _without(base, DEVICES)
    try:
        for _, path in base.paths:
            if base.version == 2:
                _hand_down(os.path.dirname(path))
                os.makedirs(path, exist_ok=True)
                _enable(path)
            else:
                os.makedirs(path, exist_ok=True)
    except OSError:
        return Base()
    return base


def _without(base: Base, controller: str) -> Base:
    return base._replace(paths=tuple(pair for pair in base.paths if pair[0] != controller))


def _make(path: str) -> bool:
    try:
        os.makedirs(path, exist_ok=True)
    except OSError:
        return False
    return True


def _make_cpuset(path: str) -> bool:
    """Make the group of the cpuset controller; return True if it exists with CPUs in it."""
    try:
        os.makedirs(path, exist_ok=True)
        inherit_cpuset(path)
    except OSError:
        return False
    return True


def inherit_cpuset(path: str) -> None:
    """Copy CPUs and memory nodes of the parent to a new group of version 1, which starts with none.

    Raises:
        OSError: that fails.
    """
    for name in ("cpuset.cpus", "cpuset.mems"):
        write(f"{path}/{name}", read(f"{os.path.dirname(path)}/{name}").strip())


def _hand_down(group: str) -> None:
    """Move all processes out of the agent's own group, so that its controllers reach the groups below."""
    supervisor = f"{group}/{SUPERVISOR}"
    os.makedirs(supervisor, exist_ok=True)
    for pid in read(f"{group}/cgroup.procs").split():
        write(f"{supervisor}/cgroup.procs", pid)
    _enable(group)


def _enable(group: str) -> None:
    write(f"{group}/cgroup.subtree_control", " ".join(f"+{controller}" for controller in V2_CONTROLLERS))
    if CPUSET in _available(group):
        with contextlib.suppress(OSError):
            write(f"{group}/cgroup.subtree_control", f"+{CPUSET}")


def members(base: Base, slot: int) -> list[int]:
    """Return all processes in a slot's group and in those of tasks below it, its shepherd included; none without
    groups."""
    path = base.slot_main(slot)
    return [pid for one in (path, *groups_below(path)) for pid in members_of(one)] if path else []


def members_of(group: str) -> list[int]:
    """Return the processes in one group; none if it is removed."""
    try:
        return [int(pid) for pid in read(f"{group}/cgroup.procs").split()]
    except OSError as error:
        if error.errno in REMOVED:
            return []
        raise


def groups_below(path: str) -> list[str]:
    """Return the groups directly below one; none if it is removed."""
    try:
        return [entry.path for entry in os.scandir(path) if entry.is_dir()]
    except FileNotFoundError:
        return []


def kill(base: Base, slot: int) -> list[int]:
    """Kill all processes in the group of a slot without a shepherd; return them. Repeated until empty."""
    found = members(base, slot)
    if found:
        try:
            write(f"{base.slot_main(slot)}/pids.max", "0")
        except OSError as error:
            if error.errno not in REMOVED:
                raise
        processes.send(found, signal.SIGKILL)
    return found


def remove(base: Base) -> None:
    """Remove the agent's empty groups; groups in use stay."""
    for _, path in base.paths:
        with contextlib.suppress(OSError):
            for slot in groups_below(path):
                with contextlib.suppress(OSError):
                    for task in groups_below(slot):
                        os.rmdir(task)
                    os.rmdir(slot)
            os.rmdir(path)


def read(path: str) -> str:
    """Return a control file's text."""
    with open(path, encoding="ascii") as file:
        return file.read()


def write(path: str, text: str) -> None:
    """Write a control file in one call, which the kernel accepts whole or refuses."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
