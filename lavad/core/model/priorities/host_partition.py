"""Host partitions (lsb.hosts): fairshare among all jobs that may run on the same hosts, whatever their queues.

As in LSF, the hosts of a queue should all belong to one partition. A queue that also uses others belongs to the first
partition of which it uses a host, with all its jobs.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from lavad.core.model.rules.names import Names
from lavad.core.model.rules.queues import Queue
from lavad.core.model.rules.users import Fairshare


@dataclass(frozen=True, slots=True)
class HostPartition:
    """A HostPartition section. ``written`` are its hosts as written, groups with a slash behind them."""

    name: str
    hosts: Names
    fairshare: Fairshare
    written: tuple[str, ...] = ()

    @property
    def tree_name(self) -> str:
        """Name of its share tree, which no queue can have."""
        return f"@{self.name}"

    def serves(self, queue: Queue) -> bool:
        """True if the queue uses a host of the partition."""
        one, other = self.hosts, queue.hosts
        if one.is_all and other.is_all:
            return True
        finite, rest = (other, one) if one.is_all else (one, other)
        return any(name in rest for name in finite.names)

    def holds(self, queue: Queue) -> bool:
        """True if all hosts of the queue belong to the partition."""
        one, other = self.hosts, queue.hosts
        if other.is_all:
            return one.is_all and one.names <= other.names
        return all(name in one for name in other.names)


def partition_of(queue: Queue, partitions: Iterable[HostPartition]) -> HostPartition | None:
    """The partition whose shares order the queue's jobs, or None."""
    return next((one for one in partitions if one.serves(queue)), None)
