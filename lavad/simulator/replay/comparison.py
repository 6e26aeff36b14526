"""Effect of a change on each user, group and queue: jobs, waits and slot hours before, after, and the difference.

Before is the real schedule, or the replay under the cluster's own rules where others are asked for: what a replay does
not know, such as a host that failed, is then the same on both sides.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from lavad.core.model import Shared
from lavad.core.model.policy import Policy
from lavad.simulator.replay.report import Ran
from lavad.simulator.replay.workload import Submission

HOUR_S = 3600
FIGURES = ("jobs", "mean_wait_s", "p95_wait_s", "slot_hours")
KEYS = ("user", "group", "queue")


class Sums(NamedTuple):
    """Figures of the jobs of one user, group or queue, in the order of FIGURES."""

    jobs: int
    mean_wait_s: float
    p95_wait_s: float
    slot_hours: float


NOTHING = Sums(0, 0.0, 0.0, 0.0)
Table = dict[str, tuple[Sums, Sums]]


def group_of(shared: Shared, policy: Policy) -> str:
    """Return the group that a job is for: the one it names, else the first that has its user; - for none."""
    if shared.user_group:
        return shared.user_group
    return next((name for name, members in policy.user_groups.items() if shared.user in members), "-")


def compared(
    before: Sequence[Ran], after: Sequence[Ran], submissions: Iterable[Submission], policy: Policy
) -> dict[str, Table]:
    """Return the figures before and after by key, and by user, group or queue.

    Args:
        policy: that of before, whose groups count.
    """
    owners = {one.number: one.command.job.shared for one in submissions}
    names: tuple[Callable[[Shared], str], ...] = (
        lambda shared: shared.user,
        lambda shared: group_of(shared, policy),
        lambda shared: shared.queue,
    )
    return {key: _table(before, after, owners, name) for key, name in zip(KEYS, names, strict=True)}


def _table(
    before: Sequence[Ran], after: Sequence[Ran], owners: Mapping[int, Shared], name: Callable[[Shared], str]
) -> Table:
    first, second = _by(before, owners, name), _by(after, owners, name)
    return {one: (first.get(one, NOTHING), second.get(one, NOTHING)) for one in sorted(first.keys() | second.keys())}


def _by(jobs: Sequence[Ran], owners: Mapping[int, Shared], name: Callable[[Shared], str]) -> dict[str, Sums]:
    known: dict[int, str] = {}
    found: dict[str, list[Ran]] = {}
    for job in jobs:
        one = known.get(job.number)
        if one is None:
            one = known[job.number] = name(owners[job.number]) if job.number in owners else "-"
        found.setdefault(one, []).append(job)
    return {one: _sums(some) for one, some in found.items()}


def _sums(jobs: Sequence[Ran]) -> Sums:
    waits = sorted(job.wait_s for job in jobs)
    slot_s = sum(job.work or job.run_s * job.processors for job in jobs)
    return Sums(len(jobs), sum(waits) / len(waits), waits[-(-len(waits) * 95 // 100) - 1], slot_s / HOUR_S)


def as_values(tables: Mapping[str, Table]) -> dict[str, dict[str, dict[str, dict[str, float]]]]:
    """Return the tables as JSON has them: by_KEY, name, figure, then before, after and difference."""
    return {
        f"by_{key}": {
            name: {
                figure: {"before": old, "after": new, "difference": new - old}
                for figure, old, new in zip(FIGURES, before, after, strict=True)
            }
            for name, (before, after) in table.items()
        }
        for key, table in tables.items()
    }


def as_text(tables: Mapping[str, Table]) -> str:
    """Return the tables as text: a paragraph for each key, with three columns for each figure."""
    return "".join(f"\n{_text(key, table)}\n" for key, table in tables.items())


def _text(key: str, table: Table) -> str:
    marks = ("JOBS", "WAIT_S", "P95_WAIT_S", "SLOT_H")
    header = [key.upper(), *(f"{mark}{part}" for mark in marks for part in ("", "_AFTER", "_DIFF"))]
    rows = [header]
    for name, (before, after) in table.items():
        pairs = zip(before, after, strict=True)
        rows.append([name, *(word for old, new in pairs for word in (_plain(old), _plain(new), _signed(new - old)))])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            [row[0].ljust(widths[0]), *(word.rjust(width) for word, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    )


def _plain(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.1f}"


def _signed(value: float) -> str:
    return f"{value:+d}" if isinstance(value, int) else f"{value:+.1f}"
