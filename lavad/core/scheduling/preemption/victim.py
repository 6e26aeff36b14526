"""Victims of preemption: running jobs that may release resources, and the modes of doing so."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from lavad.core.cluster_view import ClusterView
from lavad.core.model import HostShare, Key


class PreemptionMode(Enum):
    """Mode in which a victim releases resources."""

    SHRINK = "it runs on with less"
    SUSPEND = "it stands still and lends what it holds"
    REQUEUE = "it is ended and waits again"


@dataclass(frozen=True, slots=True)
class Victim:
    """Running attempt with the shares it would release: a part, what it lends while suspended, or all."""

    key: Key
    way: PreemptionMode
    gives: tuple[HostShare, ...]


Together = Callable[[Sequence[Victim]], bool]  # true if these may be taken together; then so may each subset


def lent_part(share: HostShare, what: tuple[str, ...]) -> HostShare:
    """Part of a suspended job's share that others may use."""
    slots = share.slots if "slots" in what else 0
    memory = share.memory_mib if "mem" in what else 0
    return HostShare(share.host, slots, memory, share.gpus if "gpus" in what else ())


def lends(cluster: ClusterView) -> tuple[str, ...]:
    """Resources that suspended jobs lend here: slots, and those listed in PREEMPTABLE_RESOURCES."""
    listed = cluster.policy.preemptable_resources
    return ("slots", *(name for name, words in _LENT.items() if listed & words))


_LENT = {"mem": frozenset({"mem"}), "gpus": frozenset({"ngpus_physical", "gpus"})}
