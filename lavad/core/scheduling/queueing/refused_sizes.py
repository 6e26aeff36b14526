"""Task sizes that fitted nowhere in this pass; requests at least as large are skipped until a host frees resources."""

TaskSize = tuple[int, int, int]  # slots, memory in MiB, GPUs of one task


class RefusedSizes:
    """Minimal refused task sizes, valid until a host frees resources or opens."""

    __slots__ = ("_least",)

    def __init__(self) -> None:
        self._least: list[TaskSize] = []

    def add(self, size: TaskSize) -> None:
        """Add the size of a task that fitted on no host."""
        if size not in self:
            self._least = [one for one in self._least if not _covers(size, one)]
            self._least.append(size)

    def __bool__(self) -> bool:
        return bool(self._least)

    def __contains__(self, size: TaskSize) -> bool:
        slots, memory_mib, gpus = size
        for less_slots, less_memory_mib, less_gpus in self._least:
            if less_slots <= slots and less_memory_mib <= memory_mib and less_gpus <= gpus:
                return True
        return False

    def clear(self) -> None:
        """Discard all sizes, because a host has freed resources."""
        if self._least:
            self._least = []


def _covers(less: TaskSize, more: TaskSize) -> bool:
    return less[0] <= more[0] and less[1] <= more[1] and less[2] <= more[2]
