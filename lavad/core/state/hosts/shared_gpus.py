"""GPUs shared by several jobs: the memory left on each, and the number of its jobs."""

from typing import NamedTuple


class SharedGpus(NamedTuple):
    """One GPU: its unreserved memory in MiB, and the number of jobs that use it."""

    left_mib: int
    jobs: int

    def can_take(self, memory_mib: int) -> bool:
        """True if that much memory is left. A GPU without any takes no job, not even one that asks for none."""
        return self.left_mib >= max(memory_mib, 1)


def joined(before: SharedGpus | None, size_mib: int, memory_mib: int) -> SharedGpus:
    """The GPU with one job more, which reserves that much of its memory."""
    left, jobs = before or SharedGpus(size_mib, 0)
    return SharedGpus(left - memory_mib, jobs + 1)


def left_by(before: SharedGpus, memory_mib: int) -> SharedGpus | None:
    """The GPU with one job fewer; None if no job is left."""
    return SharedGpus(before.left_mib + memory_mib, before.jobs - 1) if before.jobs > 1 else None
