"""Allowance: what a job may have of what is free, by all constraints of the cluster together.

Each is asked in the order of ``constraints.CONSTRAINTS``, and the first obstacle is the one a job waits for.
"""

from collections.abc import Hashable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from lavad.core.model import Allocation
from lavad.core.model.demand import Demand
from lavad.core.model.reasons import PendingReason
from lavad.core.scheduling.capacity.constraint import NO_LIMIT, Ceilings, Constraint, Limit, Obstacle
from lavad.core.scheduling.capacity.free_resources import FreeResources
from lavad.core.state.limits import DEVICES, MEMORY

C = TypeVar("C", bound=Constraint)


class Allowance:
    """Constraints at one moment. False if there are none: then every job may have all that is free."""

    def __init__(self, constraints: Sequence[Constraint]) -> None:
        self.constraints = tuple(constraints)

    def __bool__(self) -> bool:
        return bool(self.constraints)

    @property
    def simulated(self) -> "Allowance":
        """Allowance of the constraints that simulated futures ask."""
        return Allowance([one for one in self.constraints if one.is_simulated]) if self.constraints else self

    @property
    def changes_with_time(self) -> bool:
        """True if a constraint may change although the cluster does not."""
        return any([one.changes_with_time for one in self.constraints])

    def part(self, kind: type[C]) -> C | None:
        """Return the constraint of this class; None if there is none."""
        for one in self.constraints:
            if isinstance(one, kind):
                return one
        return None

    @property
    def withholds_later(self) -> bool:
        """True if a constraint withholds slots of certain hosts from some time on."""
        return any([one.withholds_later for one in self.constraints])

    def limit(self, demand: Demand) -> Limit:
        """Return the most that the job may have."""
        if not self.constraints:
            return NO_LIMIT
        if len(self.constraints) == 1:
            return self.constraints[0].limit(demand)
        return _least([one.limit(demand) for one in self.constraints])

    def concerns(self, demand: Demand) -> bool:
        """True if a constraint may ever forbid such a job anything."""
        return any([one.concerns(demand) for one in self.constraints])

    def kind_of(self, demand: Demand) -> Hashable:
        """Return a key that is equal for demands that all constraints treat alike."""
        kinds = [one.kind_of(demand) for one in self.constraints]
        return demand.request, demand.queue, demand.run_limit_s, *kinds

    def is_checked(self, demand: Demand) -> bool:
        """True if an allocation within the limit may be forbidden all the same."""
        return any([one.is_checked(demand) for one in self.constraints])

    def why(self, demand: Demand, allocation: Allocation | None = None) -> Obstacle | None:
        """Return the first obstacle to the allocation or, without one, to every allocation; None if there is none."""
        for constraint in self.constraints:
            obstacle = constraint.why(demand, allocation)
            if obstacle is not None:
                return obstacle
        return None

    def take(self, demand: Demand, allocation: Allocation, sign: int = 1) -> None:
        """Deduct the allocation of a job that starts or, with ``sign`` -1, give it back."""
        for constraint in self.constraints:
            constraint.take(demand, allocation, sign)

    def take_claim(self, demand: Demand, allocation: Allocation) -> None:
        """Deduct the claim of another job, where it does not count yet."""
        for constraint in self.constraints:
            if not constraint.counts_claims:
                constraint.take(demand, allocation)

    def share_out(self, demand: Demand, obstacle: Obstacle, ceilings: Ceilings, room: FreeResources) -> bool:
        """Lower the ceilings so that placements within them have not this obstacle; True if that is possible."""
        return any([one.share_out(demand, obstacle, ceilings, room) for one in self.constraints])

    def move_to(self, now: float) -> None:
        """Set the present time."""
        for constraint in self.constraints:
            constraint.move_to(now)

    def spans(self) -> Iterator[tuple[float, float, int]]:
        """Yield intervals of the coming week, with the slots of all hosts that are withheld from other jobs."""
        for constraint in self.constraints:
            yield from constraint.spans()

    def reasons(self, demand: Demand) -> Iterator[PendingReason]:
        """Yield the reasons of all constraints for which no allocation is allowed."""
        for constraint in self.constraints:
            yield from constraint.reasons(demand)


NO_CONSTRAINTS = Allowance(())


def _least(limits: list[Limit]) -> Limit:
    """Return the minimum of several limits."""
    ceilings = [one.on_hosts for one in limits if one.on_hosts is not None]
    return Limit(min(one.slots for one in limits), combined(ceilings) if ceilings else None)


def combined(every: Sequence[Ceilings]) -> Ceilings:
    """Return the minimum of several ceilings, as an object of its own."""
    found = Ceilings(np.minimum.reduce([one.slots for one in every]))
    for one in every:
        if one.memory_mib is not None:
            found.lower(MEMORY, one.memory_mib)
        if one.gpus is not None:
            found.lower(DEVICES[0], one.gpus)
    return found
