"""Constraint: one rule about what a job may have of what is free, such as a limit or an advance reservation.

A new ceiling is one subclass with ``limit`` and ``why``, and one line in ``constraints.CONSTRAINTS``. The scheduler,
the verification of plans, elastic growth, preemption, estimates and explanations ask all constraints of that list.
"""

import abc
from collections.abc import Hashable, Iterator
from enum import Enum
from math import floor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lavad.core.model import Allocation, RoleRequest
from lavad.core.model.demand import Demand
from lavad.core.model.reasons import PendingReason, Reason
from lavad.core.scheduling.capacity.free_resources import FreeResources, smallest_share
from lavad.core.state.limits import DEVICES, JOBS, MEMORY, SLOTS, Counter

_TINY = 1e-9  # amounts are sums of floats
UNBOUNDED = float("inf")


class Refusal(Enum):
    """Kind of a candidate's refusal; it determines the change for which the candidate waits."""

    NO_ROOM = "no room"
    RESERVED = "there is room, but it is promised to jobs that go before it"
    RESERVED_THERE = "there is room, but only where it is promised to jobs that go before it"
    FORBIDDEN = "a rule without a counter forbids it for now, such as the maximum of its capacity pool"
    OUT_OF_TURN = "a job ahead of it in its queue has to start first"
    LIMITED = "a limit on what some users, queues or projects may use leaves too little"
    LIMITED_THERE = "it would exceed such a limit on the hosts that have room"


class Obstacle(NamedTuple):
    """Objection of a constraint to a job: the reason, and the limit whose fall is awaited, if it is one."""

    refusal: Refusal
    reason: Reason
    counter: Counter | None = None


class Ceilings:
    """Most slots, memory (MiB) and GPUs that one job may have on each host (by row)."""

    def __init__(self, slots: NDArray[Any]) -> None:
        self.slots = slots
        self.memory_mib: NDArray[np.float64] | None = None
        self.gpus: NDArray[np.float64] | None = None

    def lower(self, what: str, left: NDArray[Any]) -> None:
        """Lower the ceiling of one resource; limits on cluster-wide resources are checked after placement instead."""
        if what == SLOTS:
            self.slots = np.minimum(self.slots, left)
        elif what == JOBS:
            self.slots = np.where(left < 1 - _TINY, 0.0, self.slots)
        elif what == MEMORY:
            self.memory_mib = _lower(self.memory_mib, left)
        elif what in DEVICES:
            self.gpus = _lower(self.gpus, left)

    def slots_on(self, row: int, free: int) -> int:
        """Slots the job may have on a host with ``free`` free slots."""
        most = float(self.slots[row])
        return free if most >= free else max(0, floor(most + _TINY))

    def is_below(self, row: int, role: RoleRequest) -> bool:
        """True if not even one part of the role may be on the host."""
        slots, memory_mib, gpus = smallest_share(role)
        return (
            self.slots[row] + _TINY < slots
            or (self.memory_mib is not None and self.memory_mib[row] + _TINY < memory_mib)
            or (self.gpus is not None and self.gpus[row] + _TINY < gpus)
        )


def _lower(most: NDArray[np.float64] | None, left: NDArray[Any]) -> NDArray[np.float64]:
    """Minimum of ceiling and amount left; at least 0, so that jobs without need of it pass."""
    some: NDArray[np.float64] = np.maximum(left, 0.0)
    return np.minimum(some, np.inf if most is None else most)


def no_ceilings(hosts: int) -> Ceilings:
    """Ceilings that lower nothing."""
    return Ceilings(np.full(hosts, np.inf))


class Limit(NamedTuple):
    """Most that one job may have: slots in all, and ceilings on each host, if there are any."""

    slots: float = UNBOUNDED
    on_hosts: Ceilings | None = None


NO_LIMIT = Limit()


class Constraint(abc.ABC):
    """Rule about what jobs may have at one moment, less what this slice has taken; the cluster is not changed."""

    changes_with_time = True  # False: it holds as long as the cluster does not change
    is_simulated = False  # True: ``take`` can give back, so that simulated futures may ask it
    counts_claims = False  # True: resources claimed by other jobs count from the start; ``take_claim`` spares it
    has_reason_on_full_hosts = False  # True: its reason is given also for hosts without free slots
    # True: it withholds slots of certain hosts from some time on, as ``spans`` says; demands then have run limits.
    withholds_later = False

    @abc.abstractmethod
    def limit(self, demand: Demand) -> Limit:
        """Return the most that the job may have."""

    def is_checked(self, demand: Demand) -> bool:
        """True if an allocation within the limit may be forbidden all the same, so that ``why`` has to be asked."""
        return True

    def concerns(self, demand: Demand) -> bool:
        """True if the constraint may ever forbid such a job anything."""
        return True

    def kind_of(self, demand: Demand) -> Hashable:
        """Return a key that is equal for jobs of one queue, request and run limit that are treated alike."""
        return demand.user, demand.project

    @abc.abstractmethod
    def why(self, demand: Demand, allocation: Allocation | None = None) -> Obstacle | None:
        """Return what forbids the allocation or, without one, every allocation; None if nothing does."""

    @abc.abstractmethod
    def take(self, demand: Demand, allocation: Allocation, sign: int = 1) -> None:
        """Deduct the allocation of a job that starts or, with ``sign`` -1, give it back."""

    def share_out(self, demand: Demand, obstacle: Obstacle, ceilings: Ceilings, room: FreeResources) -> bool:
        """Lower the ceilings so that placements within them have not this obstacle; True if that is possible."""
        return False

    def move_to(self, now: float) -> None:
        """Set the present time; most constraints do not depend on it."""
        return

    def spans(self) -> Iterator[tuple[float, float, int]]:
        """Yield intervals of the coming week, with the slots of all hosts that are withheld from other jobs."""
        return iter(())

    # -- explanations ------------------------------------------------------------------------------------------------

    def reasons(self, demand: Demand) -> Iterator[PendingReason]:
        """Yield the reasons why no allocation is allowed."""
        obstacle = self.why(demand)
        if obstacle is not None:
            yield PendingReason(obstacle.reason)

    def reason_on(self, demand: Demand, role: RoleRequest, row: int) -> Reason | None:
        """Return the reason for which no part of the role may be on the host; None if there is none."""
        return None
