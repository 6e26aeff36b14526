"""Answers to bacct: sums over ended attempts, and a record for each in the longer forms.

Made in the reader process, a page at a time. Each page has the sums of its own attempts; the command joins them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lavad.api import checks
from lavad.api.details import READ_AT_ONCE, Details, shown_spec
from lavad.api.gpu_use import messages_of
from lavad.api.history.question import Question
from lavad.api.jobs import listing
from lavad.api.privacy import Sight
from lavad.core.language.job_names import name_pattern, name_shown
from lavad.core.model import JobState, Shared
from lavad.core.model.rules.names import Names
from lavad.core.state.pools import Pools
from lavad.core.state.records import Job, numbered
from lavad.store.reading import reader
from lavad.store.reading.accounts import (
    PAGE,
    AccountFilter,
    Ended,
    counts_waiting,
    elements_ended_waiting,
    ended,
)
from lavad.store.reading.history import JobRange, Read
from lavad.store.reading.restore import SharedTexts
from lavad.store.reading.usage import can_sum, read_tallies
from lavad.store.rows import values as v
from protos import common_pb2
from protos import jobs_pb2 as pb
from protos.accounts import Tally

TEXTS_KEPT = 10_000  # distinct submissions


def account_pages(read: Read, question: Question) -> Iterator[bytes]:
    """Yield the serialised AccountPages of an answer."""
    request = pb.AccountsRequest.FromString(question.request)
    return _Answer(read, question, request).pages()


def filter_of(request: pb.AccountsRequest, question: Question) -> AccountFilter:
    """Build the store's filter for a request that has been checked."""
    return AccountFilter(
        jobs=tuple(JobRange(ref.job, checks.indices_of(ref)) for ref in request.refs if ref.job),
        users=_names(question.owners),
        queues=tuple(request.queues),
        projects=tuple(request.projects),
        hosts=_names(question.places),
        name=name_pattern(request.name) if request.name else None,
        states=frozenset(JobState(state) for state in request.states),
        submitted=_times(request.submitted),
        dispatched=_times(request.dispatched),
        completed=_times(request.completed),
        hung=request.hung,
    )


def _names(plain: tuple[bool, list[str]] | None) -> Names | None:
    return None if plain is None else Names(plain[0], frozenset(plain[1]))


def _times(one: pb.TimeRange) -> tuple[float, float]:
    return one.first, one.last


@dataclass(slots=True)
class _Page:
    """One page in progress."""

    tally: Tally = field(default_factory=Tally)
    shown: list[tuple[Ended, Shared]] = field(default_factory=list)
    is_empty: bool = True


class _Answer:
    """One answer in progress."""

    def __init__(self, read: Read, question: Question, request: pb.AccountsRequest) -> None:
        self._read = read
        self._request = request
        self._wanted = filter_of(request, question)
        self._caller = question.caller
        self._sight = Sight(question.caller, question.policy(), of_history=True)
        self._is_long = request.form == pb.ACCOUNT_LONG
        self._is_visible = self._sight.has_details if self._is_long else self._sight.has_summary
        self._details = Details(question.policy(), shares=False)
        self._pools = Pools(question.policy())
        self._factors, self._other_factor = question.cpu_factors, question.other_factor
        self._page_max = READ_AT_ONCE if self._is_long else PAGE

    def pages(self) -> Iterator[bytes]:
        """Yield the pages; an empty one gives way to other queries."""
        if self._sums_alone():
            yield self._summed()
            return
        texts, page = SharedTexts(), _Page()
        for one in ended(self._read, self._wanted):
            if one is None or len(page.shown) >= self._page_max:
                yield from self._packed(page)
                page = _Page()
                texts = texts if len(texts) < TEXTS_KEPT else SharedTexts()
            if one is not None:
                self._add(page, one, texts.decode(one.shared))
        yield from self._packed(page)

    def _sums_alone(self) -> bool:
        """Return True if only sums are asked for, over attempts that the database can select and the caller may see."""
        request = self._request
        is_plain = not (request.reservation or request.application or request.service_class or request.normalized_to)
        users = self._wanted.users
        is_own = users is not None and users == Names(False, frozenset({self._caller.user}))
        is_seen = self._sight.is_whole or is_own
        return request.form == pb.ACCOUNT_SUMMARY and is_plain and is_seen and can_sum(self._wanted)

    def _summed(self) -> bytes:
        """Return the one page of an answer that has sums only: rows were summed by the database."""
        tally, wanted = Tally(), self._wanted
        for part in self._read(lambda connection: list(read_tallies(connection, wanted))):
            tally.join(part)
        for one in elements_ended_waiting(self._read, wanted) if counts_waiting(wanted) else ():
            tally.add(one.is_done, one.submitted_at, one.dispatched_at, one.ended_at, one.cpu_s)
        message = pb.AccountPage()
        if tally.done + tally.exited:
            tally.fill(message.summary)
        return message.SerializeToString()

    def _add(self, page: _Page, one: Ended, shared: Shared) -> None:
        if self._request.reservation and shared.request.reservation != self._request.reservation:
            return
        if self._request.application and shared.application != self._request.application:
            return
        wanted = self._request.service_class
        if wanted and self._pools.service_class_of(shared) != wanted:
            return
        if not self._is_visible(shared):
            return
        if self._factors is not None:
            one = self._normalized(one, self._factors)
        page.is_empty = False
        page.tally.add(one.is_done, one.submitted_at, one.dispatched_at, one.ended_at, one.cpu_s)
        page.tally.add_slots(one.slot_s, one.revocable_slot_s)
        if self._request.form != pb.ACCOUNT_SUMMARY:
            page.shown.append((one, shared))

    def _normalized(self, one: Ended, factors: Mapping[str, float]) -> Ended:
        """Return an attempt with the CPU time that another host would have taken; that of its first host counts."""
        hosts = v.decode_hosts(one.hosts)
        factor = factors.get(hosts[0].host, self._other_factor) if hosts else 1.0
        return one._replace(cpu_s=one.cpu_s * factor)

    def _packed(self, page: _Page) -> Iterator[bytes]:
        """Yield a page as messages of a bounded size, the sums with the first; at least one, perhaps empty."""
        message = pb.AccountPage()
        if not page.is_empty:
            page.tally.fill(message.summary)
        size = 0
        for record in self._records(page.shown):
            message.jobs.add().record.CopyFrom(record)
            size += record.ByteSize()
            if size >= listing.PAGE_BYTES:
                yield message.SerializeToString()
                message, size = pb.AccountPage(), 0
        yield message.SerializeToString()

    def _records(self, shown: Sequence[tuple[Ended, Shared]]) -> Iterator[pb.JobRecord]:
        specs: dict[int, pb.JobSpec] = {}
        if self._is_long and shown:
            jobs = {numbered(one.job, one.part) for one, _ in shown}
            found = self._read(lambda connection: reader.read_specs(connection, jobs))
            specs = {job: shown_spec(stored) for job, stored in found.items()}
        for one, shared in shown:
            message = _record(one, shared)
            if self._is_long:
                job = Job(one.job, one.index, shared, one.words, one.submitted_at, JobState.EXIT)
                job.part = one.part
                self._details.add(message, job, specs.get(job.spec_number))
                message.gpus.extend(messages_of(v.decode_gpus(one.gpus)))
            yield message


def _record(one: Ended, shared: Shared) -> pb.JobRecord:
    """Build the record of an ended attempt."""
    element = f"[{one.index}]" if one.index else ""
    message = pb.JobRecord(
        job=one.job,
        index=one.index,
        user=shared.user,
        state=common_pb2.DONE if one.is_done else common_pb2.EXIT,
        queue=shared.queue,
        from_host=shared.from_host,
        name=name_shown(one.words) + element,
        submit_time=one.submitted_at,
        start_time=one.dispatched_at,
        end_time=one.ended_at,
        project=shared.project,
        exit_status=one.status,
        exit_reason=one.reason,
        attempt=one.attempt,
        slots_min=shared.request.slots_min,
        slots_max=shared.request.slots_max,
    )
    for share in v.decode_hosts(one.hosts):
        message.hosts.add(host=share.host, slots=share.slots, gpus=share.gpus)
    used = message.usage
    used.cpu_s, used.user_s, used.system_s = one.cpu_s, one.user_s, one.system_s
    used.memory_mib_max, used.memory_mib_mean = one.memory_mib_max, one.memory_mib_mean
    return message
