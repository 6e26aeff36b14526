"""Store queries on the wire: ended jobs that memory has forgotten, and job histories. Reads only."""

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace

from lavad.api import checks, translate
from lavad.api.details import READ_AT_ONCE, Details, read_specs
from lavad.api.jobs import listing
from lavad.api.privacy import Sight
from lavad.api.slices import Slices
from lavad.core.commands import Caller
from lavad.core.model import JobState
from lavad.core.model.policy import Names, Policy
from lavad.store.reading.history import NOBODY, HistoryFilter, HistoryPage, JobHistory, JobRange
from lavad.store.reading.history_text import Note
from lavad.store.store import Store
from protos import common_pb2, names
from protos import jobs_pb2 as pb

Clock = Callable[[], float]


class Stored:
    """Queries of the job service to the store."""

    def __init__(self, store: Store, clock: Clock = time.time) -> None:
        self.store = store
        self._clock = clock

    async def job_of_request(self, request_id: bytes, user: str) -> tuple[int, str] | None:
        """Return the job and queue that a submission with this request id made, or None."""
        jobs = await self.store.find_request(request_id, user)
        if not jobs:
            return None
        spec = pb.JobSpec.FromString(await self.store.spec(jobs[0]))
        return jobs[0], spec.queues[0] if spec.queues else ""

    async def records(
        self, ref: common_pb2.JobRef, sight: Sight, needs_details: bool = False, details: Details | None = None
    ) -> AsyncIterator[pb.JobRecord]:
        """Yield a job that memory has forgotten, or its named elements, as far as the caller may see them.

        With ``details`` those of each job that the caller may see are added.
        """
        slices, spec = Slices(), None
        async for page in self._pages(HistoryFilter(self._clock(), (_range(ref),))):
            for one in page.jobs:
                await slices.check()
                shared = one.job.shared
                has_details = sight.has_details(shared)
                if not has_details and (needs_details or not sight.has_summary(shared)):
                    continue
                message = _record(one, has_details)
                if details is not None and has_details:
                    spec = spec or (await read_specs(self.store, (ref.job,), slices)).get(ref.job)
                    details.add(message, one.job, spec)
                elif details is not None:
                    details.left_out()
                yield message

    async def history(
        self, request: pb.HistoryRequest, caller: Caller, policy: Policy
    ) -> AsyncIterator[pb.HistoryPage]:
        """Yield all pages of bhist's answer."""
        slices, sight = Slices(), Sight(caller, policy, of_history=True)
        is_visible = sight.has_details if request.details else sight.has_summary
        details = Details(policy, request.shares_details) if request.details else None
        async for page in self._pages(_filter(request.filter, caller, policy.user_groups, self._clock())):
            answer, size = pb.HistoryPage(), 0
            seen = [one for one in page.jobs if is_visible(one.job.shared)]
            async for one, spec in self._with_specs(seen, request.details, slices):
                await slices.check()
                message = _history(one, request.details, sight.has_details(one.job.shared))
                if details is not None:
                    details.add(message.record, one.job, spec)
                answer.jobs.append(message)
                size += message.ByteSize()
                if size >= listing.PAGE_BYTES:
                    yield answer
                    answer, size = pb.HistoryPage(), 0
            if answer.jobs:
                yield answer

    async def _with_specs(
        self, entries: Sequence[JobHistory], wants_specs: bool, slices: Slices
    ) -> AsyncIterator[tuple[JobHistory, pb.JobSpec | None]]:
        """Yield each job with its spec, if specs are wanted: those of some jobs are read together."""
        for start in range(0, len(entries), READ_AT_ONCE):
            part = entries[start : start + READ_AT_ONCE]
            jobs = {one.job.id for one in part} if wants_specs else set()
            specs = await read_specs(self.store, jobs, slices) if jobs else {}
            for one in part:
                yield one, specs.get(one.job.id)

    async def _pages(self, wanted: HistoryFilter) -> AsyncIterator[HistoryPage]:
        """Yield all pages of one store query."""
        while True:
            page = await self.store.history(wanted)
            yield page
            if page.after is None:
                return
            wanted = replace(wanted, after=page.after)


def _range(ref: common_pb2.JobRef) -> JobRange:
    return JobRange(ref.job, checks.indices_of(ref))


def _filter(request: pb.JobFilter, caller: Caller, groups: Mapping[str, Names], now: float) -> HistoryFilter:
    checks.check_filter(request)
    refs = [ref for ref in request.refs if ref.job]
    user = "" if request.user == "all" else request.user or ("" if refs else caller.user)
    states = checks.states_of(request)
    if not states and not refs and not request.finished_too:
        states = frozenset(JobState) - {JobState.DONE, JobState.EXIT}
    return HistoryFilter(
        now,
        jobs=tuple(_range(ref) for ref in refs),
        user=user,
        group=groups.get(user, NOBODY),
        queue=request.queue,
        project=request.project,
        name=request.name,
        host=request.host,
        states=states,
    )


def _record(one: JobHistory, has_details: bool = True) -> pb.JobRecord:
    """Build the list record of a stored job."""
    job = one.job
    words = job.words
    message = pb.JobRecord(
        job=job.id,
        index=job.index,
        user=job.shared.user,
        state=translate.state_message(job.state),
        queue=job.shared.queue,
        from_host=job.shared.from_host,
        name=(words["name"] or names.of_command(words["command"])) + (f"[{job.index}]" if job.index else ""),
        submit_time=job.submitted_at,
        project=job.shared.project,
        slots_min=job.shared.request.slots_min,
        slots_max=job.shared.request.slots_max,
        priority=job.priority,
    )
    listing.add_run(message, job)
    if has_details:
        message.spec.CopyFrom(listing.known_spec(job))
    else:
        listing.hide_details(message)
    return message


def _history(one: JobHistory, details: bool, has_details: bool) -> pb.JobHistory:
    message = pb.JobHistory(
        job=one.job.id,
        index=one.job.index,
        user=one.job.shared.user,
        name=one.job.words["name"] or names.of_command(one.job.words["command"]),
        record=_record(one, has_details),
        seconds_by_state=one.seconds_by_state,
    )
    if details:
        message.notes.extend(_note(note) for note in one.notes)
    return message


def _note(note: Note) -> pb.JobNote:
    return pb.JobNote(time=note.at, text=note.text, state=translate.state_message(note.state))
