"""Outlook of a pending job: jobs ahead, estimated start, suggestions. Computed in short slices beside other calls.

The core's generators run for a few milliseconds at a time, so a question about one job delays no other caller.
"""

import asyncio
import time
from collections.abc import Generator
from typing import TypeVar

from lavad.core.cluster import Cluster
from lavad.core.model import WAITING, JobState
from lavad.core.queries.backfill_reasons import delayed_by
from lavad.core.queries.start_estimate import forecast
from lavad.core.queries.suggestions import remedies
from lavad.core.scheduling.backfill.reservations import ReservationTable
from lavad.core.scheduling.queueing.ordering import Ranking
from lavad.core.state.records import ArrayRecord, Job
from protos import jobs_pb2

TURN_S = 0.003
OUTLOOKS_MAX = 20  # jobs in one list; each may cost some hundred milliseconds on a large cluster

Answer = TypeVar("Answer")


async def in_turns(work: Generator[None, None, Answer]) -> Answer:
    """Run a generator and return its value, yielding to other calls every ``TURN_S``."""
    began = time.monotonic()
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        if time.monotonic() - began > TURN_S:
            await asyncio.sleep(0)
            began = time.monotonic()


async def add_outlook(
    message: jobs_pb2.JobRecord,
    cluster: Cluster,
    record: Job | ArrayRecord,
    index: int,
    now: float,
    reservation_table: ReservationTable,
) -> None:
    """Add the outlook of a pending job, with the scheduler's reservations; nothing for any other."""
    state = cluster.present_state(record.id, index)
    if state not in WAITING:
        return
    if state is JobState.PEND:
        is_held = delayed_by(cluster, reservation_table, record, index, now) is not None
        seen = await in_turns(forecast(cluster, Ranking(cluster, now), record, index, is_held))
        message.outlook.ahead = seen.ahead
        message.outlook.sureness = seen.confidence.value
        if seen.start_at is not None and seen.start_at > now:
            message.estimated_start = seen.start_at
            for share in seen.promised:
                message.outlook.reserved.add(host=share.host, slots=share.slots)
    found = await in_turns(remedies(cluster, record, index, now, reservation_table))
    name = f"{record.id}[{index}]" if index else str(record.id)
    message.outlook.is_hopeless, message.outlook.is_for_later = found.is_hopeless, found.is_for_later
    message.outlook.remedies.extend(command.replace("{}", name) for command in found.commands)
    message.outlook.costs.extend(found.costs)
