"""How much of a host nobody is using just now: what is free, what suspended jobs lend, less what is claimed.

The host table books a lender's shares and a claim's as if they were in use, so that nobody gets them by chance. Here
they are told apart: the lender's room is there for whoever may take from it, and for the lender itself when it is to
go on.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from lavad.core.cluster import Cluster
from lavad.core.model import Allocation, HostShare, Key
from lavad.core.state.records import Attempt, Claim, Host


@dataclass(slots=True)
class LentResources:
    """Slots, memory and devices of one host that no running job holds and no claim keeps."""

    slots: int
    memory_mib: int
    gpus: int  # a bit for each device

    def holds(self, share: HostShare) -> bool:
        """Is there room for this share?"""
        wanted = bits(share)
        return self.slots >= share.slots and self.memory_mib >= share.memory_mib and self.gpus & wanted == wanted

    def take(self, share: HostShare) -> None:
        """Use the share's room."""
        self.slots -= share.slots
        self.memory_mib -= share.memory_mib
        self.gpus &= ~bits(share)

    def give(self, share: HostShare, what: tuple[str, ...] | None = None) -> None:
        """The share's room is there; ``what`` names the part that is lent, None is all of it."""
        if what is None or "slots" in what:
            self.slots += share.slots
        if what is None or "mem" in what:
            self.memory_mib += share.memory_mib
        if what is None or "gpus" in what:
            self.gpus |= bits(share)


def bits(share: HostShare) -> int:
    """The share's devices as bits; none where it has only parts of them, which others may have as well."""
    return 0 if share.gpu_memory_mib else sum(1 << gpu for gpu in share.gpus)


class UnclaimedResources:
    """The standing of hosts as of now, asked host by host, with what has been decided since.

    Args:
        before: only claims that were made before this one count.
        gone: attempts that count as if they had released all already.
    """

    def __init__(self, cluster: Cluster, before: Claim | None = None, gone: Collection[Key] = ()) -> None:
        self._cluster = cluster
        self._before = before
        self._gone = gone
        self._found: dict[str, LentResources] = {}

    def on(self, name: str) -> LentResources:
        """What stands free on a host."""
        found = self._found.get(name)
        if found is None:
            found = self._found[name] = _standing(self._cluster, self._cluster.hosts[name], self._before, self._gone)
        return found

    def holds(self, allocation: Allocation) -> bool:
        """Is there room for every share?"""
        return all(self.on(share.host).holds(share) for share in allocation)

    def take(self, allocation: Allocation) -> None:
        """Use the room of every share."""
        for share in allocation:
            self.on(share.host).take(share)

    def give(self, shares: Iterable[HostShare], what: tuple[str, ...] | None = None) -> None:
        """The shares' room is there."""
        for share in shares:
            self.on(share.host).give(share, what)


def _standing(cluster: Cluster, host: Host, before: Claim | None, gone: Collection[Key]) -> LentResources:
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


def shares_of(cluster: Cluster, key: Key) -> Allocation:
    """What an attempt still holds."""
    attempt = cluster.attempts[key]
    return tuple(share for share in attempt.booked if share.host in attempt.unreleased)


def on_their_way_out(cluster: Cluster) -> set[Key]:
    """Attempts that were asked to make room and have not yet given back everything: what they hold is claimed."""
    asked = {key for claim in cluster.claims.values() for key in claim.victims}
    return {key for key in asked if key in cluster.attempts}


def leaving(cluster: Cluster) -> Iterator[tuple[Key, HostShare]]:
    """What will be given back soon: all that jobs hold that were told to end for others, and what shrunk jobs have
    given up. What of it is spoken for is claimed."""
    gone = on_their_way_out(cluster)
    for key in gone:
        for share in shares_of(cluster, key):
            yield key, share
    for key, attempt in cluster.resizable.items():
        for share in attempt.resizing.leaving if key not in gone else ():
            if share.host in attempt.unreleased:
                yield key, share


def is_within_reach(cluster: Cluster, attempt: Attempt) -> bool:
    """Can every host of it be told something now, and does every host still hold its part?"""
    for share in attempt.booked:
        host = cluster.hosts[share.host]
        if not host.is_connected or host.is_silent or share.host not in attempt.unreleased:
            return False
    return True
