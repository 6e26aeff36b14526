"""Tickets with which the owner of a running job, or an administrator, has a process within it on one of its hosts."""

import time

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lavad.core import commands as c
from lavad.core.cluster import Cluster
from lavad.core.decide.decision import is_owner
from lavad.core.model import HOLDING
from lavad.core.model.reasons import Refused
from lavad.core.state.records import ArrayRecord, Job
from protos import jobs_pb2 as pb
from protos import names
from protos.trust import peek_tickets


def attach_reply(
    cluster: Cluster, request: pb.AttachTicketRequest, caller: c.Caller, ticket_key: Ed25519PrivateKey
) -> pb.AttachTicketReply:
    """Issue the ticket, or say in a sentence why there is none."""
    try:
        job, host = _place(cluster, request, caller)
    except Refused as refusal:
        return pb.AttachTicketReply(error=str(refusal))
    known = cluster.hosts.get(host)
    reply = pb.AttachTicketReply(host=host, address=known.facts.peer_address if known is not None else "")
    reply.key.job, reply.key.index, reply.key.attempt = job.key
    expires = time.time() + peek_tickets.LIFE_S
    reply.ticket = peek_tickets.sign(ticket_key, job.key, host, expires, peek_tickets.ATTACH)
    return reply


def _place(cluster: Cluster, request: pb.AttachTicketRequest, caller: c.Caller) -> tuple[Job, str]:
    """Return the running job and its host that the request is about; Refused if there is none for this caller."""
    wanted = request.key
    label = f"Job <{wanted.job}[{wanted.index}]>" if wanted.index else f"Job <{wanted.job}>"
    record = cluster.jobs.get(wanted.job)
    if record is None:
        raise Refused(f"{label} is not found")
    if not caller.is_administrator and not is_owner(record, caller):
        raise Refused(f"{label}: User permission denied")
    if isinstance(record, ArrayRecord) and not wanted.index:
        raise Refused(f"{label} is a job array: name one of its elements, as in {wanted.job}[1]")
    job = cluster.element(wanted.job, wanted.index)
    if job is None or job.state not in HOLDING or job.attempt is None:
        raise Refused(f"{label} : " + ("Already finished." if job is not None and job.end else "Not yet started."))
    if wanted.attempt not in (0, job.key.attempt):
        raise Refused(f"{label}: that attempt of it is over")
    host: str | None = job.attempt.lead
    if request.host:
        host = names.host_meant(request.host, [share.host for share in job.attempt.allocation])
    if host is None:
        raise Refused(f"{label} does not run on {request.host}")
    return job, host
