"""Load thresholds: beyond loadSched a host takes no new jobs, beyond loadStop its jobs are suspended one at a time.

Thresholds of a queue and of a host hold together, the stricter wins. Between the two thresholds nothing changes: a
suspended job is resumed only below loadSched, so that a load that swings does not suspend and resume it each time.
"""

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from lavad.core.language.requirements import select
from lavad.core.language.requirements.rusage import SIZES
from lavad.core.language.requirements.vocabulary import Vocabulary
from lavad.core.model.policy import Policy
from lavad.core.model.rules.hosts import HostRule
from lavad.core.model.rules.queues import Queue, Threshold
from lavad.core.state.hosts.table import HostTable


class LoadThresholds:
    """Load thresholds of one policy. False if there are none, so that load reports cost nothing."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        rules = policy.host_rules.values()
        self.has_host_rules = any(rule.thresholds for rule in rules)
        self._stopping = [queue for queue in policy.queues if queue.stop_condition or _has_stop(queue.thresholds)]
        self.stops = bool(self._stopping) or any(_has_stop(rule.thresholds) for rule in rules)

    def __bool__(self) -> bool:
        return self.has_host_rules or self.stops

    def is_busy(self, table: HostTable, row: int) -> bool:
        """True if the host is beyond one of its own loadSched thresholds."""
        return bool(exceeded(table, row, self._rule(table, row).thresholds, stop=False))

    def is_beyond(self, table: HostTable, row: int) -> bool:
        """True if jobs of some queue may have to be suspended there."""
        return any(self.why_stop(table, row, queue) for queue in self._stopping) or bool(
            exceeded(table, row, self._rule(table, row).thresholds, stop=True)
        )

    def bounds(self, table: HostTable, queue: Queue, hosts: Iterable[str]) -> tuple[Threshold, ...]:
        """The stricter threshold of each load index for jobs of that queue on these hosts."""
        rows = [table.rows[host] for host in hosts if host in table.rows]
        found: dict[str, Threshold] = {}
        for bound in (*queue.thresholds, *(bound for row in rows for bound in self._rule(table, row).thresholds)):
            known = found.get(bound.index, bound)
            pick = min if table.is_increasing(bound.index) else max
            sched, stop = _of_both(pick, known.sched, bound.sched), _of_both(pick, known.stop, bound.stop)
            found[bound.index] = Threshold(bound.index, sched, stop)
        return tuple(found.values())

    def _rule(self, table: HostTable, row: int) -> HostRule:
        facts = table.facts[row]
        return self._policy.host_rule(facts.name, facts.model, facts.type)

    def why_stop(self, table: HostTable, row: int, queue: Queue) -> str:
        """Reason why jobs of the queue are to be suspended on that host now; empty if there is none."""
        found = exceeded(table, row, (*self._rule(table, row).thresholds, *queue.thresholds), stop=True)
        if found:
            return f"Host load exceeded threshold: {' '.join(found)}"
        if queue.stop_condition and _holds(queue.stop_condition, table, row):
            return "STOP_COND is true"
        return ""

    def may_resume(self, table: HostTable, row: int, queue: Queue) -> bool:
        """True if suspended jobs of the queue may be resumed there."""
        if self.why_stop(table, row, queue):
            return False
        if queue.resume_condition:
            return _holds(queue.resume_condition, table, row)
        return not exceeded(table, row, (*self._rule(table, row).thresholds, *queue.thresholds), stop=False)


def _of_both(pick: Callable[[float, float], float], one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else pick(one, other)


def _has_stop(bounds: Iterable[Threshold]) -> bool:
    return any(bound.stop is not None for bound in bounds)


def exceeded(table: HostTable, row: int, bounds: Iterable[Threshold], stop: bool) -> list[str]:
    """Load indices beyond their thresholds on a host, in the order of the thresholds."""
    found: dict[str, None] = {}
    for bound in bounds:
        limit = bound.stop if stop else bound.sched
        if limit is None:
            continue
        value = float(table.values(bound.index)[row])
        if value > limit if table.is_increasing(bound.index) else value < limit:
            found[bound.index] = None
    return list(found)


def _holds(condition: str, table: HostTable, row: int) -> bool:
    return bool(select_mask(condition, table)[row])


def start_condition(queue: Queue, table: HostTable) -> str:
    """The queue's loadSched thresholds as a requirement on its jobs' hosts; empty if it has none."""
    units = dict.fromkeys(SIZES, "MB")
    parts = [
        f"{bound.index}{'<=' if table.is_increasing(bound.index) else '>='}{_plain(bound.sched)}"
        f"{units.get(bound.index, '')}"
        for bound in queue.thresholds
        if bound.sched is not None
    ]
    return f"select[{' && '.join(parts)}]" if parts else ""


def _plain(number: float) -> str:
    """Decimal text without an exponent, which the requirement language lacks."""
    return f"{number:.6f}".rstrip("0").rstrip(".")


def select_mask(text: str, table: HostTable) -> NDArray[np.bool_]:
    """True for hosts that satisfy a select expression now."""
    if not text.strip():
        return np.ones(len(table), dtype=bool)
    return select.Selection(text, vocabulary=Vocabulary(table.site.resources, is_open=True)).truth(table)
