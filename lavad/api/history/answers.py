"""Answers from the store, as messages on the wire: histories, and records of jobs that memory has forgotten.

Made in the reader process, a page at a time; an empty page gives way to other queries. No transaction is open between
two pages.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lavad.api import checks, translate
from lavad.api.details import READ_AT_ONCE, Details, known_spec, shown_spec
from lavad.api.gpu_use import messages_of
from lavad.api.history.accounts import account_pages
from lavad.api.history.question import ACCOUNTS, HISTORIES, USAGE, Question
from lavad.api.history.usage import usage_pages
from lavad.api.jobs import listing
from lavad.api.jobs.tasks import add_tasks
from lavad.api.privacy import Sight
from lavad.core.commands import Caller
from lavad.core.language.job_names import name_shown
from lavad.core.model import JobState
from lavad.core.model.rules.names import NONE, Names
from lavad.core.state.records import Job
from lavad.store.reading import reader
from lavad.store.reading.history import HistoryFilter, JobHistory, JobRange, Read, parts, read_page
from lavad.store.reading.history_text import Note
from lavad.store.reading.restore import SharedTexts, read_job_tasks
from protos import common_pb2
from protos import jobs_pb2 as pb

TEXTS_KEPT = 10_000  # distinct submissions
BRIEF_AT_ONCE = 2000  # brief histories read in one transaction: about what a page holds
BRIEF_BYTES = 100  # of a brief history beside its name, about


class Answers:
    """Maker of answers."""

    def __init__(self, read: Read) -> None:
        self._read = read

    def pages(self, question: Question) -> Iterator[bytes]:
        """Yield the serialised pages of an answer: HistoryPages, JobPages, AccountPages or UsagePages."""
        if question.kind == ACCOUNTS:
            return account_pages(self._read, question)
        if question.kind == USAGE:
            return usage_pages(self._read, question)
        return self._histories(question) if question.kind == HISTORIES else self._records(question)

    def _histories(self, question: Question) -> Iterator[bytes]:
        """Yield all pages of bhist's answer."""
        request = pb.HistoryRequest.FromString(question.request)
        caller, policy = question.caller, question.policy()
        sight = Sight(caller, policy, of_history=True)
        is_visible = sight.has_details if request.details else sight.has_summary
        details = Details(policy, request.shares_details)
        wanted = filter_of(request.filter, caller, policy.user_groups, question.now)
        wanted = replace(_within(wanted, request), factors=question.factors())
        if not request.details:
            wanted = replace(wanted, is_brief=True, limit=BRIEF_AT_ONCE)
        for entries in self._stored(wanted):
            seen = [one for one in entries if is_visible(one.job.shared)]
            yield from _pages(pb.HistoryPage, self._long(seen, details)) if request.details else _brief(seen)

    def _long(self, entries: Sequence[JobHistory], details: Details) -> Iterator[pb.JobHistory]:
        """Yield the whole histories of jobs whose details the caller may see."""
        for start in range(0, len(entries), READ_AT_ONCE):
            part = entries[start : start + READ_AT_ONCE]
            specs = self._specs({one.job.spec_number for one in part})
            for one in part:
                message = _history(one)
                details.add(message.record, one.job, specs.get(one.job.spec_number))
                self._add_tasks(message.record, one.job)
                yield message

    def _records(self, question: Question) -> Iterator[bytes]:
        """Yield the named jobs or elements as far as the caller may see them, and the names that are not found.

        With ``details`` in the request those of each job that the caller may see are added.
        """
        request = pb.ListJobsRequest.FromString(question.request)
        policy = question.policy()
        sight, details = Sight(question.caller, policy), Details(policy, request.shares_details)
        is_visible = sight.has_details if question.needs_details else sight.has_summary
        for ref in request.filter.refs:
            is_found = False
            for entries in self._stored(HistoryFilter(question.now, (_range(ref),))):
                seen = [(one, sight.has_details(one.job.shared)) for one in entries if is_visible(one.job.shared)]
                is_found = is_found or bool(seen)
                yield from _pages(pb.JobPage, self._listed(seen, details if request.details else None))
            if not is_found:
                yield pb.JobPage(missing=[ref]).SerializeToString()

    def _listed(self, seen: Sequence[tuple[JobHistory, bool]], details: Details | None) -> Iterator[pb.JobRecord]:
        """Yield the records of jobs, each with True if the caller may see its details."""
        shown = {one.job.spec_number for one, is_whole in seen if is_whole} if details is not None else set()
        specs = self._specs(shown) if shown else {}
        for one, is_whole in seen:
            message = _record(one, is_whole)
            if details is not None and is_whole:
                details.add(message, one.job, specs.get(one.job.spec_number))
                self._add_tasks(message, one.job)
            elif details is not None:
                details.left_out()
            yield message

    def _add_tasks(self, message: pb.JobRecord, job: Job) -> None:
        if job.shared.tasks is not None:
            tasks = self._read(lambda connection: read_job_tasks(connection, job))
            if tasks is not None:
                add_tasks(message, tasks)

    def _specs(self, jobs: set[int]) -> dict[int, pb.JobSpec]:
        found = self._read(lambda connection: reader.read_specs(connection, jobs))
        return {job: shown_spec(stored) for job, stored in found.items()}

    def _stored(self, wanted: HistoryFilter) -> Iterator[tuple[JobHistory, ...]]:
        """Yield all pages of one store query."""
        texts = SharedTexts()
        for part in parts(self._read, wanted):
            after: tuple[int, int] | None = part.after
            while after is not None:
                asked = replace(part, after=after)
                page = self._read(lambda connection: read_page(connection, asked, texts))  # noqa: B023 - run at once
                yield page.jobs
                after = page.after
                texts = texts if len(texts) < TEXTS_KEPT else SharedTexts()


def _within(wanted: HistoryFilter, request: pb.HistoryRequest) -> HistoryFilter:
    """Return the filter with the times of a request."""
    submitted, dispatched, completed = (
        (times.first, times.last) for times in (request.submitted, request.dispatched, request.completed)
    )
    since, until = request.between.first, request.between.last
    return replace(wanted, since=since, until=until, submitted=submitted, dispatched=dispatched, completed=completed)


def _pages(kind: type[pb.HistoryPage] | type[pb.JobPage], messages: Iterable[Any]) -> Iterator[bytes]:
    """Yield messages in pages; the last one may be empty."""
    page, size = kind(), 0
    for message in messages:
        page.jobs.append(message)
        size += message.ByteSize()
        if size >= listing.PAGE_BYTES:
            yield page.SerializeToString()
            page, size = kind(), 0
    yield page.SerializeToString()


def _brief(entries: Iterable[JobHistory]) -> Iterator[bytes]:
    """Yield the seconds in each state of some jobs, in pages."""
    page, size = pb.HistoryPage(), 0
    for job, _, seconds in entries:
        name = name_shown(job.text)
        spent = page.jobs.add(job=job.id, index=job.index, user=job.shared.user, name=name).seconds_by_state
        for column, some in seconds.items():
            if some:
                spent[column] = some
        size += BRIEF_BYTES + len(name)
        if size >= listing.PAGE_BYTES:
            yield page.SerializeToString()
            page, size = pb.HistoryPage(), 0
    yield page.SerializeToString()


def _range(ref: common_pb2.JobRef) -> JobRange:
    return JobRange(ref.job, checks.indices_of(ref))


def filter_of(request: pb.JobFilter, caller: Caller, groups: Mapping[str, Names], now: float) -> HistoryFilter:
    """Build the store's filter for a request that has been checked."""
    refs = [ref for ref in request.refs if ref.job]
    user = "" if request.user == "all" else request.user or ("" if refs else caller.user)
    states = checks.states_of(request)
    if not states and not refs and not request.finished_too:
        states = frozenset(JobState) - {JobState.DONE, JobState.EXIT}
    return HistoryFilter(
        now,
        jobs=tuple(_range(ref) for ref in refs),
        user=user,
        group=groups.get(user, NONE),
        queue=request.queue,
        project=request.project,
        application=request.application,
        name=request.name,
        host=request.host,
        states=states,
    )


def _record(one: JobHistory, has_details: bool = True) -> pb.JobRecord:
    """Build the list record of a stored job."""
    job, shared = one.job, one.job.shared
    message = pb.JobRecord(
        job=job.id,
        index=job.index,
        user=shared.user,
        state=translate.state_message(job.state),
        queue=shared.queue,
        from_host=shared.from_host,
        name=name_shown(job.text) + (f"[{job.index}]" if job.index else ""),
        submit_time=job.submitted_at,
        project=shared.project,
        slots_min=shared.request.slots_min,
        slots_max=shared.request.slots_max,
        priority=job.priority,
    )
    listing.add_run(message, job)
    if has_details:
        message.spec.CopyFrom(known_spec(job))
        message.gpus.extend(messages_of(listing.gpus_of_job(job)))
    else:
        listing.hide_details(message)
    return message


def _history(one: JobHistory) -> pb.JobHistory:
    """Build a whole history."""
    job = one.job
    return pb.JobHistory(
        job=job.id,
        index=job.index,
        user=job.shared.user,
        name=name_shown(job.text),
        record=_record(one),
        seconds_by_state=one.seconds_by_state,
        notes=map(_note, one.notes),
    )


def _note(note: Note) -> pb.JobNote:
    return pb.JobNote(time=note.at, text=note.text, state=translate.state_message(note.state))
