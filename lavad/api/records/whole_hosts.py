"""Slots of whole hosts: what exclusive jobs hold beyond the slots that they asked for, as -alloc counts them."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

import numpy as np

from lavad.core.cluster import Cluster
from lavad.core.model import HostShare, JobState, Shared
from lavad.core.state.records import Host, Job

S = JobState


class Beyond(NamedTuple):
    """Slots of one host that an exclusive job keeps from others without having asked for them."""

    shared: Shared
    state: JobState
    slots: int


class Counts(Protocol):
    """Part of a record that counts slots in use by state."""

    run: int
    ssusp: int
    ususp: int


def beyond(cluster: Cluster) -> Iterator[Beyond]:
    """Yield what all exclusive jobs hold so: only their hosts are looked at."""
    table = cluster.table
    for row in np.flatnonzero(table.taken_whole):
        host = cluster.hosts.get(table.names[row])
        for key, share in host.attempts.items() if host is not None else ():
            job = cluster.holder(key)
            if host is not None and job is not None and (more := slots_beyond(host, job, share)):
                yield Beyond(job.shared, job.state, more)


def slots_beyond(host: Host, job: Job, share: HostShare) -> int:
    """Return how many slots of a host a job holds beyond those of its share there."""
    return max(0, host.facts.slots - share.slots) if job.shared.request.exclusive else 0


def add(counts: Counts, some: Iterable[Beyond]) -> None:
    """Add such slots to the counts of a record."""
    for one in some:
        if one.state is S.SSUSP:
            counts.ssusp += one.slots
        elif one.state is S.USUSP:
            counts.ususp += one.slots
        else:
            counts.run += one.slots
