"""Absolute priorities of pending jobs, as messages of bjobs -aps."""

from lavad.core.cluster import Cluster
from lavad.core.model.priorities.absolute import ADMIN, FACTORS
from lavad.core.queries.absolute_priority import absolute_value
from lavad.core.state.records import ArrayRecord, Job
from protos import jobs_pb2 as pb


def add_absolute(message: pb.JobRecord, cluster: Cluster, record: Job | ArrayRecord, now: float, whole: bool) -> None:
    """Add the absolute priority of a pending job, if its queue has any; ``whole``: with its factors."""
    found = absolute_value(cluster, record, now)
    if found is None:
        return
    message.absolute.value, message.absolute.is_system = found.value, found.is_system
    for name, value in found.factors if whole else ():
        message.absolute.factors.add(name=name, value=value, is_part=name not in FACTORS and name != ADMIN)
