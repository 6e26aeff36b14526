"""Answers of List and Explain: job records in pages, made in slices, with the details of many jobs read at once.

Invariants: the event loop is held for one slice at most, however many jobs are asked for; what jobs share (a spec, the
pending reasons of one bucket) is read and computed once for all of them; a record shows a job as it is at the moment
the record is made.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from lavad.api.details import READ_AT_ONCE, Details, read_specs
from lavad.api.jobs import listing
from lavad.api.jobs.columns import PlainColumns, Runs
from lavad.api.jobs.history import Stored
from lavad.api.jobs.messages import read_all
from lavad.api.jobs.start_estimate import OUTLOOKS_MAX, add_outlook
from lavad.api.privacy import Sight
from lavad.api.records.absolute_priorities import add_absolute
from lavad.api.records.array_records import array_message
from lavad.api.slices import Slices
from lavad.core.commands import Caller
from lavad.core.model import Shared
from lavad.core.queries.pending_reasons import PendingReasons
from lavad.core.scheduling.worklist import Worklist
from lavad.core.state.records import place_of
from lavad.engine import Engine
from protos import common_pb2
from protos import jobs_pb2 as pb

ITEMS_AT_ONCE = 2000
COLUMNS_JOBS = 2000  # a page: of 10,000 jobs some are printed while others are read
WAITING = (common_pb2.PEND, common_pb2.PSUSP)


class JobLists:
    """List and Explain for one caller at a time."""

    def __init__(self, engine: Engine, stored: Stored, worklist: Worklist) -> None:
        self.engine = engine
        self.stored = stored
        self.worklist = worklist  # the scheduler's, with its reservations

    async def pages(self, request: pb.ListJobsRequest, caller: Caller) -> AsyncGenerator[pb.JobPage | bytes, None]:
        """Yield jobs in memory first, then those that only the store still has, and unknown ids: serialised pages."""
        forgotten: list[common_pb2.JobRef] = []
        wanted = _List(self, request, caller)
        needs_records = request.details or request.reasons or request.arrays or request.absolute
        if request.columns and not needs_records:
            async for plain in wanted.columns(forgotten):
                yield plain
        else:
            page, size = pb.JobPage(), 0
            async for record in wanted.records(forgotten):
                page.jobs.append(record)
                size += record.ByteSize()
                if len(page.jobs) >= listing.PAGE_JOBS or size >= listing.PAGE_BYTES:
                    yield page
                    page, size = pb.JobPage(), 0
            yield page
        if forgotten:
            policy, needs_details = self.engine.cluster.policy, wanted.needs_details
            answers = self.stored.records(forgotten, caller, policy, request, needs_details)
            async with aclosing(answers):
                async for answer in answers:
                    yield answer

    async def explain(self, request: pb.ExplainRequest, caller: Caller) -> pb.ExplainReply:
        """Answer with the pending reasons of jobs, with host names when asked."""
        cluster, reply, slices = self.engine.cluster, pb.ExplainReply(), Slices()
        selection = listing.Selection(pb.JobFilter(refs=request.refs), caller, cluster)
        reasons = self.reasons()
        async for item in selection.items([]):
            if slices.is_over:
                await slices.give_way()
                reasons = self.reasons()
            message = listing.record_message(cluster, item, self.engine.clock(), False, reasons, request.host_names)
            explanation = reply.explanations.add(job=message.job, index=message.index)
            explanation.reasons.extend(message.pending_reasons)
        return reply

    def reasons(self) -> PendingReasons:
        """Return the pending reasons of jobs as of now."""
        return PendingReasons(self.engine.cluster, self.engine.clock(), self.worklist.reservation_table)


class _List:
    """One List request in progress."""

    def __init__(self, lists: JobLists, request: pb.ListJobsRequest, caller: Caller) -> None:
        self._lists = lists
        self._request = request
        self._cluster = lists.engine.cluster
        self._sight = Sight(caller, self._cluster.policy)
        self._selection = listing.Selection(request.filter, caller, self._cluster, self.needs_details)
        self._slices = Slices()
        self._outlooks = OUTLOOKS_MAX if request.details and request.reasons else 0
        self._details = Details(self._cluster.policy, request.shares_details)

    @property
    def needs_details(self) -> bool:
        """True if jobs whose details the caller may not see are left out."""
        return self._request.details and not self._request.basic_too

    async def records(self, forgotten: list[common_pb2.JobRef]) -> AsyncIterator[pb.JobRecord]:
        """Yield the selected records one by one; append ids that memory does not know to ``forgotten``."""
        if self._request.arrays:
            async for array in self._selection.arrays():
                yield array_message(array)
            return
        items: list[listing.Item] = []
        jobs: dict[int, Shared] = {}  # by the numbers of their specs
        async for item in self._selection.items(forgotten):
            items.append(item)
            jobs.setdefault(item[0].spec_number, item[0].shared)
            if len(items) >= ITEMS_AT_ONCE or len(jobs) >= READ_AT_ONCE:
                async for record in self._made(items, jobs):
                    yield record
                items, jobs = [], {}
        async for record in self._made(items, jobs):
            yield record

    async def columns(self, forgotten: list[common_pb2.JobRef]) -> AsyncIterator[bytes]:
        """Yield pages of records without details and reasons, by columns."""
        page = PlainColumns(self._sight, Runs.wanted(self._request), self._request.time_unit_s)
        for portion in self._selection.portions(forgotten):
            if isinstance(portion, listing.Stretch):
                page.extend_alike(portion)
            elif isinstance(portion, listing.Whole):
                page.extend_whole(portion.jobs)
            else:
                page.extend(portion)
            await self._slices.check()
            if len(page) >= COLUMNS_JOBS or page.size >= listing.PAGE_BYTES:
                yield page.taken()
        yield page.taken()

    async def _made(self, items: list[listing.Item], jobs: dict[int, Shared]) -> AsyncIterator[pb.JobRecord]:
        """Yield the records of some jobs, reading their specs together."""
        engine, wants_reasons = self._lists.engine, self._request.reasons
        specs = await self._specs(jobs) if self._request.details else {}
        ids = dict.fromkeys(place_of(number)[0] for number in specs)
        posted = await read_all(self._lists.stored.store, ids) if specs else {}
        reasons = self._lists.reasons() if wants_reasons else None
        for item in items:
            if self._slices.is_over:
                await self._slices.give_way()
                reasons = self._lists.reasons() if wants_reasons else None
            has_details = self._sight.has_details(item[0].shared)
            shown = self._request.details and has_details
            message = listing.record_message(self._cluster, item, engine.clock(), shown, reasons)
            if self._request.absolute and message.state in WAITING:
                add_absolute(message, self._cluster, item[0], engine.clock(), has_details)
            if not has_details:
                listing.hide_details(message)
            if not shown:
                self._details.left_out()
            else:
                self._details.add(message, item[0], specs.get(item[0].spec_number))
                message.messages.extend(posted.get((message.job, message.index), ()))
                if self._outlooks and message.state in WAITING:
                    await self._add_outlook(message, item)
                    reasons = self._lists.reasons() if wants_reasons else None
            yield message

    async def _specs(self, jobs: dict[int, Shared]) -> dict[int, pb.JobSpec]:
        """Return the specs, without environments, of those jobs whose details the caller may see."""
        wanted = [number for number, shared in jobs.items() if self._sight.has_details(shared)]
        return await read_specs(self._lists.stored.store, wanted, self._slices)

    async def _add_outlook(self, message: pb.JobRecord, item: listing.Item) -> None:
        self._outlooks -= 1
        engine, reservation_table = self._lists.engine, self._lists.worklist.reservation_table
        await add_outlook(message, self._cluster, item[0], item[1], engine.clock(), reservation_table)
