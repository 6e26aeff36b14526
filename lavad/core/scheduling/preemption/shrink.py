"""What elastic jobs could give a waiting job before anybody is suspended or ended, and how little of it is enough.

A job gives up tasks where the waiting job could run, those that came last first, and never so many that less than its
minimum is left. Found here is all that each could give; how much of it is really asked for is found by trying.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import islice

from lavad.core.cluster import Cluster
from lavad.core.model import Allocation, HostShare, JobState, Key, RoleRequest
from lavad.core.model.allocation import could_give, is_divisible, part_of, tasks_of
from lavad.core.scheduling.preemption.lent_resources import bits
from lavad.core.scheduling.preemption.victims import PreemptionMode, Together, Victim
from lavad.core.state.hosts.table import HostTable

GIVERS_MAX = 256  # so many elastic jobs are considered, those first that should give first

Fits = Callable[[Victim], bool]


def all_but_one(cluster: Cluster, keys: Iterable[Key]) -> list[Victim]:
    """What these jobs hold but for one task: more than they can spare together, less they could not do with at all."""
    found = []
    for key in islice(keys, GIVERS_MAX):
        attempt, role = cluster.resizable[key], cluster.jobs[key.job].shared.request.roles[0]
        lead, *rest = attempt.allocation
        more = tasks_of((lead,)) - 1 if is_divisible(role) else 0
        found.append(Victim(key, PreemptionMode.SHRINK, (*((part_of(lead, more, role),) if more else ()), *rest)))
    return found


def lacking(table: HostTable, allocation: Allocation) -> dict[str, int]:
    """How many slots an allocation needs on each host beyond what is free; 1 where it lacks other things only."""
    found: dict[str, int] = {}
    for share in allocation:
        row = table.rows[share.host]
        slots = share.slots - int(table.slots_free[row])
        others = share.memory_mib > table.memory_free_mib[row] or bits(share) & ~table.gpu_free[row]
        if slots > 0 or others:
            found[share.host] = max(1, slots)
    return found


def givers(
    cluster: Cluster, keys: Iterable[Key], wanted: Mapping[str, int], may_give_together: Together
) -> list[Victim]:
    """What these jobs could give of so many slots on these hosts, in their order, as long as all of it may be taken."""
    left, found = dict(wanted), list[Victim]()
    for key in islice(keys, GIVERS_MAX):
        one = _giver(cluster, key, left, lambda one: may_give_together([*found, one]))
        if one.gives:
            found.append(one)
        for share in one.gives:
            left[share.host] -= share.slots
    return found


def _giver(cluster: Cluster, key: Key, wanted: Mapping[str, int], may_give: Fits) -> Victim:
    """As much as it has and may give."""

    def giving(tasks: int) -> Victim:
        return Victim(key, PreemptionMode.SHRINK, spare(cluster, key, tasks, wanted) if tasks else ())

    return giving(_most(tasks_of(spare(cluster, key, 0, wanted)), lambda tasks: may_give(giving(tasks))))


def in_part(cluster: Cluster, victim: Victim, fits: Fits) -> Victim:
    """As little of what it gives as is still enough, host by host; ``fits`` says whether so much is."""
    role = cluster.jobs[victim.key.job].shared.request.roles[0]
    for share in victim.gives:
        victim = _less_of(share, victim, role, fits)
    return victim


def _less_of(share: HostShare, victim: Victim, role: RoleRequest, fits: Fits) -> Victim:
    here = tasks_of((share,))
    step = 1 if is_divisible(role) else here

    def without(steps: int) -> Victim:
        left = part_of(share, here - steps * step, role)
        parts = [left if one.host == share.host else one for one in victim.gives]
        return Victim(victim.key, victim.way, tuple([one for one in parts if one.slots]))

    return without(_most(here // step, lambda steps: fits(without(steps))))


def _most(high: int, holds: Callable[[int], bool]) -> int:
    """The largest number up to ``high`` for which it holds, given that it holds for all that are smaller, and for 0."""
    low = 0
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low


def spare(cluster: Cluster, key: Key, tasks: int = 0, wanted: Mapping[str, int] | None = None) -> Allocation:
    """What an attempt could give back to have so many tasks less (0: as many as it can spare); empty: nothing.

    The shares are those of a ``Shrink`` in a plan. Slots on hosts that it keeps are free as soon as the job has been
    told; whole hosts when nothing of the job is left there. ``wanted``: about so many slots on these hosts, nothing on
    others. A shrink that is under way does not stand in the way of another; a growth is given up for it.
    """
    attempt, job = cluster.resizable.get(key), cluster.holder(key)
    if attempt is None or job is None or job.state is not JobState.RUN or attempt.is_ending:
        return ()
    role = job.shared.request.roles[0]
    return could_give(attempt.allocation, role, tasks or tasks_of(attempt.allocation), wanted)
