"""Queries of the job service to the store: ended jobs that memory has forgotten, and job histories.

The reader process answers them with whole messages; the master says who asks, and passes them on.
"""

import time
from collections.abc import AsyncGenerator, Callable, Sequence

from lavad.api import checks
from lavad.api.history.question import HISTORIES, RECORDS, question_of
from lavad.api.history.reader import HistoryReader
from lavad.core.commands import Caller
from lavad.core.model.policy import Policy
from lavad.store.store import Store
from protos import common_pb2
from protos import jobs_pb2 as pb

Clock = Callable[[], float]


class Stored:
    """Queries of the job service to the store."""

    def __init__(self, store: Store, reader: HistoryReader, clock: Clock = time.time) -> None:
        self.store = store
        self._reader = reader
        self._clock = clock

    async def job_of_request(self, request_id: bytes, user: str) -> tuple[int, str] | None:
        """Return the job and queue that a submission with this request id made, or None."""
        jobs = await self.store.find_request(request_id, user)
        if not jobs:
            return None
        spec = pb.JobSpec.FromString(await self.store.spec(jobs[0]))
        return jobs[0], spec.queues[0] if spec.queues else ""

    def records(
        self,
        refs: Sequence[common_pb2.JobRef],
        caller: Caller,
        policy: Policy,
        request: pb.ListJobsRequest | None = None,
        needs_details: bool = False,
    ) -> AsyncGenerator[bytes, None]:
        """Return the JobPages of jobs that memory has forgotten, or named elements, as far as the caller may see them.

        Args:
            request: a listing that says which details are added.
            needs_details: leave out jobs whose details the caller may not see.
        """
        wanted = pb.ListJobsRequest(filter=pb.JobFilter(refs=refs))
        if request is not None:
            wanted.details, wanted.shares_details = request.details, request.shares_details
        question = question_of(RECORDS, wanted, self._clock(), caller, policy, needs_details=needs_details)
        return self._reader.pages(question)

    def history(self, request: pb.HistoryRequest, caller: Caller, policy: Policy) -> AsyncGenerator[bytes, None]:
        """Return the HistoryPages of bhist's answer.

        Raises:
            Refused: the filter is out of bounds.
        """
        checks.check_filter(request.filter)
        named = request.filter.user
        return self._reader.pages(question_of(HISTORIES, request, self._clock(), caller, policy, named))
