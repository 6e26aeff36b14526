"""GPUs that several jobs use at the same time: what is promised of each, and to how many."""

from typing import NamedTuple


class SharedGpus(NamedTuple):
    """One device: memory that nobody was promised, and how many jobs use it."""

    left_mib: int
    jobs: int

    def can_take(self, memory_mib: int) -> bool:
        """Is there so much left? One whose memory is all promised takes nobody, not even who asks for none."""
        return self.left_mib >= max(memory_mib, 1)


def joined(before: SharedGpus | None, size_mib: int, memory_mib: int) -> SharedGpus:
    """The device with one job more, which gets so much of its memory."""
    left, jobs = before or SharedGpus(size_mib, 0)
    return SharedGpus(left - memory_mib, jobs + 1)


def left_by(before: SharedGpus, memory_mib: int) -> SharedGpus | None:
    """The device with one job fewer; None when nobody uses it any more."""
    return SharedGpus(before.left_mib + memory_mib, before.jobs - 1) if before.jobs > 1 else None
