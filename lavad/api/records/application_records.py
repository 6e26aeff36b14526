"""Application profiles as bapp shows them: slots of their jobs, limits, settings as written."""

from collections import Counter

from lavad.api.records import whole_hosts
from lavad.api.records.queue_records import add_job_limits
from lavad.core.cluster import Cluster
from lavad.core.model import JobState
from protos import cluster_pb2 as pb

S = JobState
_FIELDS_OF_THEIR_OWN = ("NAME", "DESCRIPTION")


def applications_reply(cluster: Cluster, request: pb.ApplicationsRequest) -> pb.ApplicationsReply:
    """The named profiles, or all, in the order of the file."""
    known, wanted = cluster.policy.applications, set(request.names)
    reply = pb.ApplicationsReply(missing=[name for name in request.names if name not in known])
    reserved: Counter[str] = Counter()
    for shared, slots in cluster.kept_slots():
        reserved[shared.application] += slots
    slots_of = cluster.counters.slots_by_application
    more = list(whole_hosts.beyond(cluster)) if request.allocated else []
    for name, profile in known.items():
        if wanted and name not in wanted:
            continue
        counts = {state: slots_of[name, state] for state in JobState}
        record = reply.applications.add(
            name=name,
            description=profile.description,
            pend=counts[S.PEND] + counts[S.PSUSP],
            run=counts[S.STAGING] + counts[S.RUN] + counts[S.UNKWN] + counts[S.ZOMBI],
            ssusp=counts[S.SSUSP],
            ususp=counts[S.USUSP],
            rsv=reserved[name],
            is_default=name == cluster.policy.default_application,
        )
        whole_hosts.add(record, (one for one in more if one.shared.application == name))
        for key, value in profile.written:
            if key not in _FIELDS_OF_THEIR_OWN:
                record.parameters.add(name=key, value=value)
        add_job_limits(profile.run_limit_s, profile.defaults, record.limits, record.default_limits)
    return reply
