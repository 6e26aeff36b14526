"""Running jobs that may be asked for room, and the ways in which they make it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from lavad.core.cluster import Cluster
from lavad.core.model import HostShare, Key


class PreemptionMode(Enum):
    """How a job makes room."""

    SHRINK = "it runs on with less"
    SUSPEND = "it stands still and lends what it holds"
    REQUEUE = "it is ended and waits again"


@dataclass(frozen=True, slots=True)
class Victim:
    """A running attempt that may be asked, and what it would give: a part, what it lends while suspended, or all."""

    key: Key
    way: PreemptionMode
    gives: tuple[HostShare, ...]


Together = Callable[[Sequence[Victim]], bool]  # may these be taken together? What holds for a set holds for its parts


def lent_part(share: HostShare, what: tuple[str, ...]) -> HostShare:
    """What others may use of a share whose holder is suspended."""
    slots = share.slots if "slots" in what else 0
    memory = share.memory_mib if "mem" in what else 0
    return HostShare(share.host, slots, memory, share.gpus if "gpus" in what else ())


def lends(cluster: Cluster) -> tuple[str, ...]:
    """What suspended jobs lend here: their slots, and what is listed as preemptable."""
    listed = cluster.policy.preemptable_resources
    return ("slots", *(name for name, words in _LENT.items() if listed & words))


_LENT = {"mem": frozenset({"mem"}), "gpus": frozenset({"ngpus_physical", "gpus"})}
