"""Service classes as bsla shows them: what lsb.serviceclasses says, and the jobs and slots of each by state."""

from collections import Counter
from collections.abc import Iterator

from lavad.core.cluster import Cluster
from lavad.core.model import JobState
from lavad.core.state.counters import Kind
from protos import cluster_pb2 as pb

S = JobState
# Columns of bsla; a job that starts, or whose host is silent, counts as running.
_COLUMNS = {
    "pend": (S.PEND, S.PSUSP),
    "run": (S.STAGING, S.RUN, S.UNKWN, S.ZOMBI),
    "ssusp": (S.SSUSP,),
    "ususp": (S.USUSP,),
    "finish": (S.DONE, S.EXIT),
}


def service_class_records(cluster: Cluster) -> Iterator[pb.ServiceClassRecord]:
    """Yield all classes, in the order of the file; the cost grows with the kinds of jobs, not with their number."""
    jobs = _by_class(cluster, cluster.counters.jobs_by_kind)
    slots = _by_class(cluster, cluster.counters.slots_by_kind)
    reserved: Counter[str] = Counter()
    for shared, number in cluster.kept_slots():
        reserved[cluster.pools.service_class_of(shared)] += number
    for name, one in cluster.policy.service_classes.items():
        yield pb.ServiceClassRecord(
            name=name,
            description=one.description,
            access=one.access,
            attaches=one.attaches,
            jobs=_counts(jobs, name, 0),
            slots=_counts(slots, name, reserved[name]),
        )


def _by_class(cluster: Cluster, by_kind: Counter[tuple[Kind, JobState]]) -> Counter[tuple[str, JobState]]:
    found: Counter[tuple[str, JobState]] = Counter()
    for (kind, state), number in by_kind.items():
        found[cluster.pools.service_class_of_kind(kind), state] += number
    return found


def _counts(numbers: Counter[tuple[str, JobState]], name: str, reserved: int) -> pb.StateCounts:
    columns = {column: sum(numbers[name, state] for state in states) for column, states in _COLUMNS.items()}
    return pb.StateCounts(reserved=reserved, **columns)
