"""Tickets with which the first host of a job copies a file that the job names to or from its submission host (bsub -f).

Invariants: only the owner's own calls from that host get one, and only for the files that the spec had when the job was
submitted or changed.
"""

import time

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lavad.core import commands as c
from lavad.core.cluster import Cluster
from lavad.core.decide.decision import is_owner
from lavad.core.model import Key
from lavad.core.model.reasons import Refused
from protos import file_copies
from protos import jobs_pb2 as pb
from protos.trust import peek_tickets


def copy_reply(
    cluster: Cluster, spec: pb.JobSpec, request: pb.CopyTicketRequest, caller: c.Caller, ticket_key: Ed25519PrivateKey
) -> pb.CopyTicketReply:
    """Issue the ticket, or say in a sentence why there is none."""
    try:
        return _reply(cluster, spec, request, caller, ticket_key)
    except Refused as refusal:
        return pb.CopyTicketReply(error=f"Job <{request.key.job}>: {refusal}")


def _reply(
    cluster: Cluster, spec: pb.JobSpec, request: pb.CopyTicketRequest, caller: c.Caller, ticket_key: Ed25519PrivateKey
) -> pb.CopyTicketReply:
    wanted = request.key
    record, job = cluster.jobs.get(wanted.job), cluster.element(wanted.job, wanted.index)
    if record is None or job is None or not is_owner(record, caller):
        raise Refused("User permission denied")
    attempt = cluster.attempts.get(Key(wanted.job, wanted.index, job.attempts))
    if attempt is None or caller.host != attempt.lead:
        raise Refused("its files are copied by its first host only")
    copy = _copy_of(spec, request)
    host = cluster.hosts.get(record.shared.from_host)
    if host is None:
        raise Refused(f"{record.shared.from_host}, where it was submitted, is no host of the cluster any more")
    is_appended = request.back and copy.operator in file_copies.APPENDING
    mode = "append" if is_appended else "write" if request.back else "read"
    reply = pb.CopyTicketReply(
        host=record.shared.from_host, address=host.facts.peer_address, user=record.shared.user, uid=record.shared.uid,
        gid=record.shared.gid, path=copy.submission, mode=mode,
    )  # fmt: skip
    reply.key.job, reply.key.index, reply.key.attempt = attempt.key
    what = peek_tickets.file_of(reply.host, reply.user, reply.uid, mode, reply.path)
    reply.ticket = peek_tickets.sign(
        ticket_key, attempt.key, what, time.time() + peek_tickets.LIFE_S, peek_tickets.COPY
    )
    return reply


def _copy_of(spec: pb.JobSpec, request: pb.CopyTicketRequest) -> file_copies.FileCopy:
    try:
        found = file_copies.read(spec.file_copies[request.number])
    except (IndexError, ValueError):
        raise Refused("it names no such file") from None
    if found.operator not in (file_copies.BACK if request.back else file_copies.INTO):
        raise Refused("it names no such file")
    return found
