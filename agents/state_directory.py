"""State directory of an agent: its lock, the control groups of its slots, and its end if nothing lives there.

Only the standard library and the control groups are imported here: a program that finds nothing to do ends at once.
"""

import fcntl
import os
import zlib
from pathlib import Path

from agents.shepherd.confinement import hierarchy
from agents.shepherd.confinement.hierarchy import Base
from agents.shepherd.spool import SOCKET_SUFFIX

# Passable, not readable: users' processes open host files and their own scripts by name. All else is the agent's alone.
PASSABLE, PRIVATE = 0o711, 0o700
GPU_MODES = "gpu-modes"  # file of the modes to be restored


class StateInUse(Exception):
    """Conflict: another agent uses this state directory; the text is one sentence."""


def lock(state: Path) -> int:
    """Make the directory if needed and lock it; the lock lasts as long as the descriptor returned.

    Raises:
        StateInUse: there is another agent.
        OSError: the directory cannot be used.
    """
    state.mkdir(parents=True, exist_ok=True)
    state.chmod(PASSABLE if os.geteuid() == 0 else PRIVATE)
    descriptor = os.open(state / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise StateInUse(f"Another agent already works in {state}.") from None
    return descriptor


def find_groups(host: str, state: Path) -> Base:
    """Return the base control groups of the slots, made if needed; the same ones as last time as long as they exist."""
    name = f"lava-{host}-{zlib.crc32(os.fsencode(state.resolve())):08x}"
    known = known_groups(state)
    if known.version and all(os.path.isdir(group) for _, group in known.paths):
        return known
    base = hierarchy.prepare(
        hierarchy.discover(name, Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text())
    )
    lines = [str(base.version), *(f"{controller}={group}" for controller, group in base.paths)]
    (state / "groups").write_text("\n".join(lines) + "\n")
    return base


def known_groups(state: Path) -> Base:
    """Return the base control groups of the last agent, which may be gone; version 0 if there were none."""
    try:
        version, *lines = (state / "groups").read_text().splitlines()
    except FileNotFoundError:
        return Base()
    pairs = (line.partition("=") for line in lines)
    return Base(int(version), tuple((controller, group) for controller, _, group in pairs))


def put_away(state: Path) -> bool:
    """Remove the control groups if nothing else is left of the last agent but records; return False if something is.

    Raises:
        StateInUse: an agent is running there.
    """
    if not (state / "shepherds").is_dir():
        return True
    descriptor = lock(state)
    try:
        base = known_groups(state)
        if _is_alive(state, base):
            return False
        hierarchy.remove(base)
        return True
    finally:
        os.close(descriptor)


def _is_alive(state: Path, base: Base) -> bool:
    """Return True if there is a shepherd, a process in a slot, or a GPU whose mode is to be restored."""
    if any((state / "shepherds").glob(f"*{SOCKET_SUFFIX}")) or (state / GPU_MODES).exists():
        return True
    names = {os.path.basename(group) for _, path in base.paths for group in hierarchy.groups_below(path)}
    return any(hierarchy.members(base, int(name)) for name in names if name.isdigit())
