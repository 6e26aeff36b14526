"""Resources of hosts in use by no running job: free ones, plus those lent by suspended jobs, less claimed ones.

The host table books the shares of suspended jobs and of claims as if they were in use, so that ordinary placement
cannot take them. Here they are told apart: lent resources are available to jobs that may preempt the lender, and to the
lender itself when it resumes.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from lavad.core.cluster_view import ClusterView
from lavad.core.model import Allocation, HostShare, Key
from lavad.core.state.attempts import Attempt
from lavad.core.state.records import Claim, Host


@dataclass(slots=True)
class LentResources:
    """Slots, memory and devices of one host that no running job holds and no claim keeps."""

    slots: int
    memory_mib: int
    gpus: int  # a bit for each device

    def holds(self, share: HostShare) -> bool:
        """True if the share fits."""
        wanted = bits(share)
        return self.slots >= share.slots and self.memory_mib >= share.memory_mib and self.gpus & wanted == wanted

    def take(self, share: HostShare) -> None:
        """Take the share."""
        self.slots -= share.slots
        self.memory_mib -= share.memory_mib
        self.gpus &= ~bits(share)

    def give(self, share: HostShare, what: tuple[str, ...] | None = None) -> None:
        """Add the share; ``what`` names the part that is lent, None is all of it."""
        if what is None or "slots" in what:
            self.slots += share.slots
        if what is None or "mem" in what:
            self.memory_mib += share.memory_mib
        if what is None or "gpus" in what:
            self.gpus |= bits(share)


def bits(share: HostShare) -> int:
    """Devices of a share as bits; none if it holds only parts of devices, which other jobs may share."""
    return 0 if share.gpu_memory_mib else sum(1 << gpu for gpu in share.gpus)


class UnclaimedResources:
    """Lent and free resources by host, computed on demand, with what has been decided since.

    Args:
        before: count only claims made before this one.
        gone: attempts to treat as if they had released everything.
    """

    def __init__(self, cluster: ClusterView, before: Claim | None = None, gone: Collection[Key] = ()) -> None:
        self._cluster = cluster
        self._before = before
        self._gone = gone
        self._found: dict[str, LentResources] = {}

    def on(self, name: str) -> LentResources:
        """Resources of one host."""
        found = self._found.get(name)
        if found is None:
            found = self._found[name] = _standing(self._cluster, self._cluster.hosts[name], self._before, self._gone)
        return found

    def holds(self, allocation: Allocation) -> bool:
        """True if every share fits."""
        return all(self.on(share.host).holds(share) for share in allocation)

    def take(self, allocation: Allocation) -> None:
        """Take every share."""
        for share in allocation:
            self.on(share.host).take(share)

    def give(self, shares: Iterable[HostShare], what: tuple[str, ...] | None = None) -> None:
        """Add the shares."""
        for share in shares:
            self.on(share.host).give(share, what)


def _standing(cluster: ClusterView, host: Host, before: Claim | None, gone: Collection[Key]) -> LentResources:
    facts, gpus_held = host.facts, 0
    found = LentResources(facts.slots, facts.memory_mib, (1 << facts.gpus) - 1)
    for job, share in host.claims.items():
        if before is not None and job == (before.job, before.index):
            break
        found.take(share)
    for key, share in host.attempts.items():
        if key in gone:
            continue
        lends = cluster.attempts[key].lends
        found.slots -= 0 if "slots" in lends else share.slots
        found.memory_mib -= 0 if "mem" in lends else share.memory_mib
        gpus_held |= 0 if "gpus" in lends else bits(share)
    found.gpus &= ~gpus_held
    return found


def shares_of(cluster: ClusterView, key: Key) -> Allocation:
    """Shares that an attempt still holds."""
    attempt = cluster.attempts[key]
    return tuple(share for share in attempt.booked if share.host in attempt.unreleased)


def on_their_way_out(cluster: ClusterView) -> set[Key]:
    """Victims of claims that have not released everything yet."""
    asked = {key for claim in cluster.claims.values() for key in claim.victims}
    return {key for key in asked if key in cluster.attempts}


def leaving(cluster: ClusterView) -> Iterator[tuple[Key, HostShare]]:
    """Shares about to be released by requeued victims and shrunk jobs; some of them are claimed already."""
    gone = on_their_way_out(cluster)
    for key in gone:
        for share in shares_of(cluster, key):
            yield key, share
    for key, attempt in cluster.resizable.items():
        for share in attempt.resizing.leaving if key not in gone else ():
            if share.host in attempt.unreleased:
                yield key, share


def is_within_reach(cluster: ClusterView, attempt: Attempt) -> bool:
    """True if all hosts of the attempt are connected and still hold their shares."""
    for share in attempt.booked:
        host = cluster.hosts[share.host]
        if not host.is_connected or host.is_silent or share.host not in attempt.unreleased:
            return False
    return True
