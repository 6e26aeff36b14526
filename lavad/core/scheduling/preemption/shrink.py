"""Shrinking of running elastic jobs for a pending job, before any job is suspended or requeued.

A job releases tasks where the pending job could run, newest hosts first, and never falls below its minimum. The
functions find all that each job could release, then by trial how little of it suffices.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import islice

from lavad.core.apply.resize import resizable_role
from lavad.core.cluster_view import ClusterView
from lavad.core.language.requirements.parts import could_release, first_released, is_divisible_of
from lavad.core.model import Allocation, HostShare, JobState, Key
from lavad.core.model.allocation import could_give, is_divisible, part_of, tasks_of
from lavad.core.scheduling.preemption.lent_resources import bits
from lavad.core.scheduling.preemption.victim import PreemptionMode, Together, Victim
from lavad.core.state.hosts.table import HostTable

GIVERS_MAX = 256  # elastic jobs considered, in order of preference

Fits = Callable[[Victim], bool]


def all_but_one(cluster: ClusterView, keys: Iterable[Key]) -> list[Victim]:
    """Shares of these jobs except one task each, of jobs of tasks all: an upper bound on what they can release."""
    found = []
    for key in islice(keys, GIVERS_MAX):
        attempt, request = cluster.resizable[key], cluster.jobs[key.job].shared.request
        if request.is_of_tasks:
            found.append(Victim(key, PreemptionMode.SHRINK, tuple(attempt.allocation)))
            continue
        role, (lead, *rest) = resizable_role(request), attempt.allocation
        more = tasks_of((lead,)) - 1 if is_divisible(role) else 0
        found.append(Victim(key, PreemptionMode.SHRINK, (*((part_of(lead, more, role),) if more else ()), *rest)))
    return found


def lacking(table: HostTable, allocation: Allocation) -> dict[str, int]:
    """Slots the allocation needs on each host beyond the free ones; 1 if only other resources are short."""
    found: dict[str, int] = {}
    for share in allocation:
        row = table.rows[share.host]
        slots = share.slots - int(table.slots_free[row])
        others = share.memory_mib > table.memory_free_mib[row] or bits(share) & ~table.gpu_free[row]
        if slots > 0 or others:
            found[share.host] = max(1, slots)
    return found


def givers(
    cluster: ClusterView, keys: Iterable[Key], wanted: Mapping[str, int], may_give_together: Together
) -> list[Victim]:
    """Victims that release up to ``wanted`` slots of these hosts, in order, as long as all may be taken together."""
    left, found = dict(wanted), list[Victim]()
    for key in islice(keys, GIVERS_MAX):
        one = _giver(cluster, key, left, lambda one: may_give_together([*found, one]))
        if one.gives:
            found.append(one)
        for share in one.gives:
            left[share.host] -= share.slots
    return found


def _giver(cluster: ClusterView, key: Key, wanted: Mapping[str, int], may_give: Fits) -> Victim:
    """Victim that releases as many tasks as it can and may."""

    def giving(tasks: int) -> Victim:
        return Victim(key, PreemptionMode.SHRINK, spare(cluster, key, tasks, wanted) if tasks else ())

    return giving(_most(tasks_of(spare(cluster, key, 0, wanted)), lambda tasks: may_give(giving(tasks))))


def in_part(cluster: ClusterView, victim: Victim, fits: Fits) -> Victim:
    """Reduce what a victim releases to the minimum, host by host, for which ``fits`` holds."""
    for share in victim.gives:
        victim = _less_of(cluster, share, victim, fits)
    return victim


def _less_of(cluster: ClusterView, share: HostShare, victim: Victim, fits: Fits) -> Victim:
    request, here = cluster.jobs[victim.key.job].shared.request, tasks_of((share,))
    own = cluster.resizable[victim.key].share_on(share.host) if request.is_of_tasks else None
    is_divisible_here = is_divisible_of(own) if own is not None else is_divisible(resizable_role(request))
    step = 1 if is_divisible_here else here

    def part(tasks: int) -> HostShare:
        if own is not None:
            return first_released(own, share, tasks, request)
        return part_of(share, tasks, resizable_role(request))

    def without(steps: int) -> Victim:
        left = part(here - steps * step)
        parts = [left if one.host == share.host else one for one in victim.gives]
        return Victim(victim.key, victim.way, tuple([one for one in parts if one.slots]))

    return without(_most(here // step, lambda steps: fits(without(steps))))


def _most(high: int, holds: Callable[[int], bool]) -> int:
    """Largest number up to ``high`` for which ``holds`` is true; it must be true for 0 and for all smaller numbers."""
    low = 0
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low


def spare(cluster: ClusterView, key: Key, tasks: int = 0, wanted: Mapping[str, int] | None = None) -> Allocation:
    """Shares that an attempt could release to shrink by ``tasks`` (0: as far as it can); empty if none.

    The shares are those of a ``Shrink`` in a plan. Slots on hosts that it keeps are free as soon as the job has been
    told; whole hosts when nothing of the job is left there. ``wanted`` restricts them to about that many slots on these
    hosts. A shrink under way does not prevent another; a growth is cancelled for it.
    """
    attempt, job = cluster.resizable.get(key), cluster.holder(key)
    if attempt is None or job is None or job.state is not JobState.RUN or attempt.is_ending:
        return ()
    request, tasks = job.shared.request, tasks or tasks_of(attempt.allocation)
    if request.is_of_tasks:
        return could_release(attempt.allocation, request, tasks, wanted)
    return could_give(attempt.allocation, resizable_role(request), tasks, wanted)
