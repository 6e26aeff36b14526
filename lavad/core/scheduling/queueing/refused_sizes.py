"""Simple tasks that no host has room for: whoever asks for no less need not ask again before some host's room grows."""

Chunk = tuple[int, int, int]  # slots, memory in MiB, GPUs of one task


class RefusedSizes:
    """The least of what was refused. It holds until a host gives something back or opens."""

    __slots__ = ("_least",)

    def __init__(self) -> None:
        self._least: list[Chunk] = []

    def add(self, chunk: Chunk) -> None:
        """Nothing was found for a task that may go to any host."""
        if chunk not in self:
            self._least = [one for one in self._least if not _covers(chunk, one)]
            self._least.append(chunk)

    def __bool__(self) -> bool:
        return bool(self._least)

    def __contains__(self, chunk: Chunk) -> bool:
        slots, memory_mib, gpus = chunk
        for less_slots, less_memory_mib, less_gpus in self._least:
            if less_slots <= slots and less_memory_mib <= memory_mib and less_gpus <= gpus:
                return True
        return False

    def clear(self) -> None:
        """Some host has more room than before."""
        if self._least:
            self._least = []


def _covers(less: Chunk, more: Chunk) -> bool:
    return less[0] <= more[0] and less[1] <= more[1] and less[2] <= more[2]
