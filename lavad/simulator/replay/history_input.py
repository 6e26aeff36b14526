"""History of a cluster as a replay's input: submissions, run times and hosts.

Unrecorded facts are assumed: every job was ready when it was submitted, whatever its dependencies, and runs as long as
its last attempt did, wherever it is placed. Jobs that never started, or have not ended, are left out.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby, islice

from lavad.core.commands import Caller, SubmitJob
from lavad.core.events import NewJob
from lavad.core.model import HostFacts, Shared
from lavad.core.model.ranges import Ranges
from lavad.simulator.replay.report import Ran
from lavad.simulator.replay.workload import Submission
from lavad.store.reading import accounting
from lavad.store.reading.accounting import EndedRun


@dataclass(frozen=True, slots=True)
class Past:
    """Submissions in order, the cluster's hosts, and the real schedule."""

    submissions: list[Submission]
    hosts: list[HostFacts]
    ran: list[Ran]

    @property
    def processors(self) -> int:
        return sum(facts.slots for facts in self.hosts)


def read_past(database: str, limit: int | None = None, queue: str | None = None) -> Past:
    """Read the history of the cluster from its database (a value of LAVA_DATABASE).

    Args:
        limit: number of jobs and array elements to take, the first ones submitted.
        queue: submit all of them to this queue; None: each to its own.

    Raises:
        StoreRefused: the database can't be read.
    """
    with accounting.opened(database) as connection:
        runs = list(islice(accounting.ended_runs(connection), limit))
        hosts = accounting.known_hosts(connection)
    ran = [
        Ran(run.job, run.submitted_at, run.started_at, run.ended_at - run.started_at, run.slots, run.index)
        for run in runs
    ]
    return Past(list(_submissions(runs, queue)), hosts, ran)


def _submissions(runs: Iterable[EndedRun], queue: str | None) -> Iterator[Submission]:
    """Yield submissions; elements of an array are submitted together, as they were."""
    for job, group in groupby(runs, key=lambda run: run.job):
        elements = list(group)
        first = elements[0]
        runs_s = {run.index: run.ended_at - run.started_at for run in elements}
        indices = () if 0 in runs_s else Ranges.of(*runs_s).parts()
        limit, priority = first.array_limit, first.priority
        new = NewJob(0, _fresh(first.shared, queue), b"", b"", b"", False, indices, limit, priority)
        caller = Caller(first.shared.user, first.shared.uid)
        yield Submission(job, first.submitted_at, SubmitJob(new, caller), runs_s)


def _fresh(shared: Shared, queue: str | None) -> Shared:
    """Return the shared fields as submitted, without a deadline of that day; the last attempt is replayed (bsub -Q)."""
    special = replace(shared.special, requeue_exit_values="")
    return replace(shared, queue=queue or shared.queue, terminate_at=0.0, special=special)


def with_hosts(hosts: list[HostFacts], wanted: str, slots: int | None) -> list[HostFacts]:
    """Return the cluster with ``wanted`` hosts (``12``), or that many more (``+10``).

    The first ones stay; added ones are like the most common one, with ``slots`` slots if given.
    """
    count = len(hosts) + int(wanted) if wanted.startswith("+") else int(wanted)
    if count <= len(hosts):
        return hosts[:count]
    kinds = Counter(replace(facts, name="", boot_id="", peer_address="") for facts in hosts)
    model = kinds.most_common(1)[0][0] if kinds else HostFacts("", slots or 1)
    model = replace(model, slots=slots or model.slots)
    taken = {facts.name for facts in hosts}
    names = (name for number in range(1, 2 * count + 1) if (name := f"more{number}") not in taken)
    return hosts + [replace(model, name=name) for name in islice(names, count - len(hosts))]
