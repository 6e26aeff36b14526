"""Dependencies of a job with names and states: bjdepinfo."""

from lavad.api import translate
from lavad.api.jobs.listing import display_name
from lavad.api.privacy import Sight
from lavad.core.cluster import Cluster
from lavad.core.commands import Caller
from lavad.core.language.dependency import text_of
from lavad.core.model import FINAL, JobState
from lavad.core.queries import dependency_links
from lavad.core.state.records import ArrayRecord, Job
from protos import common_pb2
from protos import jobs_pb2 as pb

DEPTH_MAX = 100


def dependencies_reply(cluster: Cluster, request: pb.DependenciesRequest, caller: Caller) -> pb.DependenciesReply:
    """List the parents of a job, or its children, as far as the caller may see their details."""
    job, sight = request.ref.job, Sight(caller, cluster.policy)
    asked = cluster.jobs.get(job)
    if asked is None or not sight.has_details(asked.shared):
        return pb.DependenciesReply(error="No matching job found")
    condition = cluster.dependants.conditions.get(job)
    reply = pb.DependenciesReply(condition="" if condition is None else text_of(condition))
    for link in dependency_links.links(cluster, job, request.children, min(request.depth or 1, DEPTH_MAX)):
        one = reply.links.add(job=link.job, relative=link.relative, index=link.index, level=link.level)
        record = cluster.jobs.get(link.relative)
        if record is not None and sight.has_details(record.shared):
            one.name = display_name(record, link.index, record.words)
            state = translate.state_message(_state_of(record, link.index))
            one.status = "RUN" if state == common_pb2.STAGING else common_pb2.JobState.Name(state)
    return reply


def _state_of(record: Job | ArrayRecord, index: int) -> JobState:
    """Return the state of a job or element; of a whole array RUN if any runs, else PEND if any waits, else its end."""
    if isinstance(record, Job):
        return record.state
    if index:
        return record.state_of(index) or JobState.EXIT
    if any(job.state not in FINAL for job in record.live.values()):
        return JobState.RUN
    if record.pending or record.blocked or record.held or record.apart:
        return JobState.PEND
    return JobState.EXIT if record.exited else JobState.DONE
