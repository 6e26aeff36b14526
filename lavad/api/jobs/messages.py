"""Messages of jobs on the wire: bpost, bread, bstatus, and those that bjobs -l shows."""

from collections.abc import Collection
from typing import Any

from lavad.api import translate
from lavad.api.privacy import Sight
from lavad.core import commands as c
from lavad.core.cluster import Cluster
from lavad.core.decide.decision import denial, is_owner
from lavad.core.decide.jobs.messages import index_of
from lavad.core.model.reasons import Refused
from lavad.store.store import Store
from protos import jobs_pb2 as pb

NUMBERS = 128  # messages of one job or element
TEXT_MAX = 512
DATA_MAX = 256 << 10
LEVELS = ("", "INFO", "WARNING", "ERROR", "CRITICAL")
ByElement = dict[tuple[int, int], list[pb.JobMessage]]


def command_of(request: pb.PostRequest, target: c.Target, caller: c.Caller) -> c.PostMessage:
    """Build the command of a request.

    Raises:
        Refused: a number, text or data beyond the bounds.
    """
    message = request.message
    check_number(message.number)
    if len(message.text) > TEXT_MAX:
        raise Refused(f"The message is longer than {TEXT_MAX} characters")
    if len(message.data) > DATA_MAX:
        raise Refused(f"The attached data is larger than {DATA_MAX >> 10} KiB")
    if message.level not in LEVELS:
        raise Refused(f"{message.level}: Bad level of a message; one of {', '.join(LEVELS[1:])} is expected")
    return c.PostMessage(target, caller, message.number, message.text, message.level, message.data)


def check_number(number: int) -> None:
    """Refuse the number of a message that no job can have."""
    if number >= NUMBERS:
        raise Refused(f"{number}: Bad message index; a number from 0 to {NUMBERS - 1} is expected")


async def read_reply(
    cluster: Cluster, store: Store, request: pb.ReadRequest, target: c.Target, caller: c.Caller
) -> pb.ReadReply:
    """Answer with a message of a job whose details the caller may see; with its data for the owner only."""
    check_number(request.number)
    record = cluster.jobs.get(target.job)
    if record is None or not Sight(caller, cluster.policy).has_details(record.shared):
        raise Refused("No matching job found")
    if request.with_data and not is_owner(record, caller):
        raise Refused(denial(caller))
    reply = pb.ReadReply(job=record.id, index=index_of(record, target.indices))
    row = await store.message(reply.job, reply.index, request.number)
    if row is not None:
        reply.message.CopyFrom(_message(row))
        reply.message.data = row.data if request.with_data else b""
    return reply


async def read_all(store: Store, jobs: Collection[int]) -> ByElement:
    """Return the messages of jobs by job and element, without their data."""
    found: ByElement = {}
    for row in await store.messages(jobs):
        found.setdefault((row.job, row.idx), []).append(_message(row))
    return found


def _message(row: Any) -> pb.JobMessage:
    return pb.JobMessage(
        number=row.number, user=row.user_name, time=row.at, text=row.text, level=row.level, size=row.size
    )


def target_of(request: pb.PostRequest | pb.ReadRequest, chosen: list[c.Target]) -> c.Target:
    """Return the job that a request names or, without one, the one that its filter has chosen.

    Raises:
        Refused: there is none.
    """
    if request.ref.job:
        return translate.target_of(request.ref)
    if not chosen:
        raise Refused("No matching job found")
    return chosen[0]
