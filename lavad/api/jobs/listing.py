"""Selection of jobs for a caller, and their records on the wire.

Reads only; in pages, so that a long list delays no other caller.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple, cast

from lavad.api import checks, translate
from lavad.api.gpu_use import messages_of
from lavad.api.jobs.tasks import add_tasks
from lavad.api.privacy import Sight
from lavad.api.slices import Slices
from lavad.config.names import minus, union
from lavad.core.cluster import Cluster
from lavad.core.commands import Caller, Target
from lavad.core.language.job_groups import checked
from lavad.core.language.job_names import name_pattern
from lavad.core.model import FINAL, WAITING, Allocation, JobState, Shared
from lavad.core.model.gpu_use import GpusByHost
from lavad.core.model.progress import Progress
from lavad.core.model.ranges import Ranges
from lavad.core.model.reasons import PendingReason
from lavad.core.model.rules.exceptions import EXCEPTIONS
from lavad.core.model.rules.names import NONE, Names
from lavad.core.model.rules.queues import Threshold
from lavad.core.model.usage import NO_ONE, HostUsage, JobUsage, gpus_of_attempt, of_attempt
from lavad.core.queries.pending_reasons import PendingReasons, explain_ending
from lavad.core.state.attempts import Attempt
from lavad.core.state.records import ArrayRecord, Job
from protos import common_pb2, jobs_pb2, names

PAGE_JOBS = 500
# A reader that stalls holds a few pages in its agent, and a page must fit a frame of the local socket.
PAGE_BYTES = 256 << 10
SHARED_MAX = 4096  # attributes that jobs have in common, of which the answer is kept
LOOKED_AT = 4000  # jobs or elements between two yields to other calls, about 2 ms
PORTION = 50  # jobs or elements selected at once
STRETCH = 500  # waiting elements told at once
WHOLE = 500  # jobs told at once that are no elements
FEW = 8  # below so many one by one is as fast
NO_ELEMENTS = range(0)

EVERYBODY = Names()

# One job or element of a list: its record, its index, and the Job object if it has one.
Item = tuple[Job | ArrayRecord, int, Job | None]


class Stretch(NamedTuple):
    """Elements that wait in the same state, without objects of their own: told in a tenth of the time of each."""

    record: ArrayRecord
    state: JobState
    indices: range


class Whole(NamedTuple):
    """Jobs that are no elements: told in half the time of each with its index."""

    jobs: list[Job]


Portion = list[Item] | Stretch | Whole


class ElementStates:
    """States of an array's elements without an object of their own, of neighbours at once: until the array changes."""

    __slots__ = ("_record", "_state", "_waiting")

    def __init__(self, record: ArrayRecord) -> None:
        self._record = record
        self._waiting, self._state = range(0), JobState.PEND  # some that wait, and what they have in common

    def of(self, index: int) -> JobState | None:
        """State of one element; None if the array has no such index."""
        if index in self._waiting and self._record.job_of(index) is None:
            return self._state
        state = self._record.state_of(index)
        if state in WAITING:
            for kind in (self._record.pending, self._record.blocked, self._record.held):
                if index in kind:
                    self._waiting, self._state = kind.part_with(index), state
                    break
        return state

    def alike(self, some: range) -> range:
        """Those at the beginning that wait without objects of their own in the state of the first, which was asked for.

        None of them where they are few.
        """
        waiting = self._waiting
        if some[0] not in waiting or waiting.step not in (1, some.step):
            return some[:0]
        found = some[: (min(some[-1], waiting[-1]) - some[0]) // some.step + 1]
        for others in (self._record.live, self._record.apart):
            if not others.keys().isdisjoint(found):
                found = found[: next(number for number, index in enumerate(found) if index in others)]
        return found if len(found) >= FEW else some[:0]


class Selection:
    """Compiled job filter; Refused when it is out of bounds."""

    def __init__(
        self, request: jobs_pb2.JobFilter, caller: Caller, cluster: Cluster, needs_details: bool = False
    ) -> None:
        checks.check_filter(request)
        self.cluster = cluster
        sight = Sight(caller, cluster.policy)
        self.is_visible = sight.has_details if needs_details else sight.has_summary
        self.users = users_meant(request.user or caller.user, cluster)
        self.queue, self.project = request.queue, request.project
        self.application, self.service_class = request.application, request.service_class
        self.job_group = checked(request.job_group) if request.job_group else None
        self.hosts = hosts_meant(request.host, cluster)
        self.name = name_pattern(request.name) if request.name else None
        self.elements = self.name.elements if self.name is not None else None  # that -J names; None for all
        self.states = checks.states_of(request)
        self.finished_too = request.finished_too
        self.refs = [ref for ref in request.refs if ref.job]
        self.shown = frozenset(filter(self.admits_state, JobState))
        self._is_shared_admitted: dict[int, bool] = {}  # by the ids of the next
        self._shared: list[Shared] = []  # kept, so that their ids stay their own
        if self.refs and not request.user:
            self.users = EVERYBODY  # a job named by its id is shown for any owner

    def admits(self, record: Job | ArrayRecord) -> bool:
        """Apply all criteria but state and host, those that are the same for all elements, and who may see the job."""
        return self._admits_shared(record.shared) and self._is_called_so(record)

    def _admitted(self, records: list[Job | ArrayRecord]) -> list[Job | ArrayRecord]:
        """Return those that `admits` admits; jobs that follow each other often share what it looks at."""
        shared, is_admitted, found = None, False, list[Job | ArrayRecord]()
        for record in records:
            if record.shared is not shared:
                shared, is_admitted = record.shared, self._admits_shared(record.shared)
            if is_admitted or (isinstance(record, ArrayRecord) and record.changed):  # some of its elements, perhaps
                found.append(record)
        return found if self.name is None else [one for one in found if self._is_called_so(one)]

    def _admits_shared(self, shared: Shared) -> bool:
        found = self._is_shared_admitted.get(id(shared))
        if found is None:
            if len(self._shared) >= SHARED_MAX:
                self._is_shared_admitted.clear()
                self._shared.clear()
            self._shared.append(shared)
            found = self._is_shared_admitted[id(shared)] = self._is_shared_meant(shared) and self.is_visible(shared)
        return found

    def _is_meant(self, record: Job | ArrayRecord) -> bool:
        return self._is_called_so(record) and self._is_shared_meant(record.shared)

    def _has_meant(self, record: ArrayRecord) -> bool:
        """Return True if an element that was changed by itself may be meant where its array is not."""
        return bool(record.changed) and self._is_called_so(record)

    def _meant_of(self, record: ArrayRecord) -> Ranges | None:
        """Return the elements that are meant, where some were changed by themselves; None for all."""
        if not record.changed:
            return None
        own = {index: self.cluster.bearer(record.id, index) for index in record.changed}
        if self._is_shared_meant(record.shared):
            meant = record.indices.copy()
            others = sorted(index for index, one in own.items() if not self._is_shared_meant(one.shared))
            meant.difference_update(Ranges.from_sorted(others))
            return meant if others else None
        return Ranges.from_sorted(sorted(index for index, one in own.items() if self._is_shared_meant(one.shared)))

    def _is_called_so(self, record: Job | ArrayRecord) -> bool:
        """Apply -J to the name that lists show: a job without one has its command's."""
        return self.name is None or self.name.admits(display_name(record, 0, record.words))

    def _is_shared_meant(self, shared: Shared) -> bool:
        return (
            shared.user in self.users
            and (not self.queue or shared.queue == self.queue)
            and (not self.project or shared.project == self.project)
            and (not self.application or shared.application == self.application)
            and (not self.service_class or self.cluster.pools.service_class_of(shared) == self.service_class)
            and (self.job_group is None or shared.job_group == self.job_group)
        )

    def admits_state(self, state: JobState) -> bool:
        if self.states:
            return state in self.states
        return self.finished_too or bool(self.refs) or state not in FINAL

    def is_left_out(self, record: ArrayRecord) -> bool:
        """Return True for an array of ended elements where those are not wanted: none of them is looked at."""
        return record.is_over and not self.states and not self.finished_too

    def admits_host(self, job: Job | None) -> bool:
        if self.hosts is None:
            return True
        return job is not None and any(share.host in self.hosts for share in allocation_of(job))

    def elements_of(self, job: int) -> Ranges | None:
        """Return the elements of a selected job that the filter chooses by name, queue or project; None for all."""
        record = self.cluster.jobs.get(job)
        meant = self._meant_of(record) if isinstance(record, ArrayRecord) else None
        if meant is None or self.elements is None:
            return self.elements if meant is None else meant
        return meant.intersection(self.elements)

    def narrowed(self, target: Target) -> Target | None:
        """Return that part of a job named by its id to which all criteria but the state apply; None without any.

        What memory does not know or the caller may not touch is left to the command itself, which says so.
        """
        record = self.cluster.jobs.get(target.job)
        if record is None:
            return target
        if not self._is_meant(record) and (isinstance(record, Job) or not self._has_meant(record)):
            return None
        if isinstance(record, Job):
            return target if self.elements is None and (self.hosts is None or self.admits_host(record)) else None
        indices = target.indices
        for chosen in (self.elements, self._on_hosts(record), self._meant_of(record)):
            if chosen is not None:
                indices = chosen if indices is None else indices.intersection(chosen)
        return replace(target, indices=indices) if indices is None or indices else None

    def _on_hosts(self, record: ArrayRecord) -> Ranges | None:
        """Return the elements that hold hosts of the filter; None without hosts in it."""
        if self.hosts is None:
            return None
        return Ranges.from_sorted(sorted(index for index, job in record.live.items() if self.admits_host(job)))

    async def items(self, missing: list[common_pb2.JobRef]) -> AsyncIterator[Item]:
        """Yield everything selected: oldest job first, pending ones in the order that btop and bbot gave them.

        Append ids that memory does not know to ``missing``. Other calls are served in between, however many jobs there
        are to look at and however few are selected.
        """
        for portion in self.portions(missing):
            if not portion:
                await asyncio.sleep(0)
            if isinstance(portion, Stretch):
                for index in portion.indices:
                    job = portion.record.job_of(index)
                    yield (portion.record if job is None or not job.part else job), index, job
                continue
            for item in [(job, 0, job) for job in portion.jobs] if isinstance(portion, Whole) else portion:
                yield item

    def portions(self, missing: list[common_pb2.JobRef]) -> Iterator[Portion]:
        """Yield as `items` does, some at once, and an empty portion after a number of jobs that were looked at."""
        if self.refs:
            for ref in self.refs:
                yield from self._named(ref, missing)
            return
        for some in self._in_order():
            for part in kinds_apart(some):
                if isinstance(part, list):
                    yield from self._whole(part)
                elif not self.is_left_out(part):
                    yield from self._elements(part, None, missing)
            if not some:
                yield []

    def _in_order(self) -> Iterator[list[Job | ArrayRecord]]:
        """Yield those admitted, some at once, in the order of `items`; none after a number that were looked at.

        Without displaced jobs that is the order in which the cluster has them: each is looked at once, and told before
        the next are, while the processor's caches have them.
        """
        records, admitted = list(self.cluster.jobs.values()), list[Job | ArrayRecord]()
        are_displaced = bool(self.cluster.displaced)
        for first in range(0, len(records), WHOLE):
            if first and not first % LOOKED_AT:
                yield []
            some = self._admitted(records[first : first + WHOLE])
            if are_displaced:
                admitted += some
            elif some:
                yield some
        admitted.sort(key=attrgetter("id"))
        ordered = in_turn(admitted)
        for first in range(0, len(ordered), WHOLE):
            yield ordered[first : first + WHOLE]

    def _whole(self, jobs: list[Job]) -> Iterator[Portion]:
        shown = self.shown
        found = [job for job in jobs if job.state in shown]
        if self.elements is not None or self.hosts is not None:
            found = [job for job in found if self._admits_whole(job)]
        if found:
            yield Whole(found)

    def _admits_whole(self, job: Job) -> bool:
        return self.elements is None and job.state in self.shown and self.admits_host(job)

    def _named(self, ref: common_pb2.JobRef, missing: list[common_pb2.JobRef]) -> Iterator[Portion]:
        record = self.cluster.jobs.get(ref.job)
        if record is None or not self.is_visible(record.shared):
            missing.append(ref)
            return
        if not self.admits(record) and (isinstance(record, Job) or not self._has_meant(record)):
            return
        wanted = {index for part in ref.indices for index in range(part.first, part.last + 1, part.step or 1)}
        if isinstance(record, ArrayRecord):
            yield from self._elements(record, wanted or None, missing)
        elif not wanted and self._admits_whole(record):
            yield [(record, 0, record)]

    def _elements(
        self, record: ArrayRecord, wanted: set[int] | None, missing: list[common_pb2.JobRef]
    ) -> Iterator[Portion]:
        if self.elements is not None:
            named = set(record.indices.intersection(self.elements))
            wanted = named if wanted is None else wanted & named
        portion, states, looked_at = list[Item](), ElementStates(record), 0
        is_admitted = not record.changed or self.admits(record)
        for part in record.indices.parts() if wanted is None else (sorted(wanted),):
            at = 0
            while at < len(part):
                index = part[at]
                job = record.job_of(index)
                state = job.state if job is not None else states.of(index)
                alike = (
                    states.alike(part[at : at + STRETCH]) if job is None and isinstance(part, range) else NO_ELEMENTS
                )
                if alike and portion:
                    yield portion
                    portion, states = [], ElementStates(record)
                    continue
                at += len(alike) or 1
                looked_at += len(alike) or 1
                if state is None:
                    missing.append(
                        common_pb2.JobRef(job=record.id, indices=[common_pb2.IndexRange(first=index, last=index)])
                    )
                elif alike and state in self.shown and self.hosts is None and is_admitted:
                    yield Stretch(record, state, alike)
                    states = ElementStates(record)
                elif not alike and state in self.shown:
                    if job is None and state in FINAL:
                        job = self.cluster.element(record.id, index)
                    own = job if job is not None and job.part else None
                    is_meant = is_admitted if own is None else self.admits(own)
                    if is_meant and (self.hosts is None or self.admits_host(job)):
                        portion.append((own or record, index, job))
                if len(portion) == PORTION or looked_at >= LOOKED_AT:
                    yield portion
                    portion, states = [], ElementStates(record)  # the array may have changed meanwhile
                if looked_at >= LOOKED_AT:
                    looked_at = 0
                    yield portion
        if portion:
            yield portion

    async def arrays(self) -> AsyncIterator[ArrayRecord]:
        """Yield the arrays themselves, for -A."""
        ids = {ref.job for ref in self.refs}
        slices = Slices()
        for record in list(self.cluster.jobs.values()):
            await slices.check()
            if isinstance(record, ArrayRecord) and self.admits(record) and (not ids or record.id in ids):
                yield record


def records_of(portion: Portion) -> Sequence[Job | ArrayRecord]:
    """Return the jobs and arrays of a portion; an array for each of its elements that are told one by one."""
    if isinstance(portion, Stretch):
        return [portion.record]
    return portion.jobs if isinstance(portion, Whole) else [record for record, _, _ in portion]


def in_turn(records: list[Job | ArrayRecord]) -> list[Job | ArrayRecord]:
    """Return the records with the pending ones sorted among themselves by position (btop, bbot)."""
    waiting = iter(sorted(filter(_waits, records), key=lambda record: record.position))
    return [next(waiting) if _waits(record) else record for record in records]


def kinds_apart(records: list[Job | ArrayRecord]) -> Iterator[list[Job] | ArrayRecord]:
    """Yield arrays one by one, and the jobs between them together, all in their order."""
    at = 0
    for number, record in enumerate(records) if ArrayRecord in set(map(type, records)) else ():
        if isinstance(record, ArrayRecord):
            yield cast("list[Job]", records[at:number])
            yield record
            at = number + 1
    yield cast("list[Job]", records[at:])


def _waits(record: Job | ArrayRecord) -> bool:
    if isinstance(record, Job):
        return record.state in WAITING
    return bool(record.pending or record.held or record.blocked or record.apart)


def _meant(words: Iterable[str], groups: Mapping[str, Names]) -> Names:
    """Return the named consumers and the members of named groups."""
    found = NONE
    for word in words:
        found = union(found, groups.get(word.removesuffix("/")) or Names(word == "all", frozenset((word,)) - {"all"}))
    return found


def users_meant(text: str, cluster: Cluster) -> Names:
    """Return the users that a user, a group, ``all`` or an exclusion (``^user ^group``: all others) stands for."""
    words, groups = text.split(), cluster.policy.user_groups
    left_out = [word[1:] for word in words if word.startswith("^")]
    return minus(EVERYBODY, _meant(left_out, groups)) if left_out else _meant(words, groups)


def hosts_meant(text: str, cluster: Cluster) -> Names | None:
    """Return hosts by name or group; None if no host is named, so that jobs without hosts are selected too.

    The name of the cluster stands for all its jobs, unless a host or a group has it.
    """
    words, groups = text.split(), cluster.policy.host_groups
    is_all = any(cluster.is_named(word) for word in words)
    return _meant(words, groups) if words and not is_all else None


def allocation_of(job: Job) -> Allocation:
    """Return the allocation of a job, the last one if it has ended."""
    if job.attempt is not None:
        return job.attempt.allocation
    return job.end.hosts if job.end is not None else ()


def display_name(record: Job | ArrayRecord, index: int, words: dict[str, str]) -> str:
    """Return the job's name, or its command if it has none, with the index of an element."""
    name = words["name"] or names.of_command(words["command"])
    return f"{name}[{index}]" if index else name


def record_message(
    cluster: Cluster, item: Item, now: float, details: bool, reasons: PendingReasons | None, host_names: bool = False
) -> jobs_pb2.JobRecord:
    """Build the list record of a job or element, without its spec; with ``reasons`` also its pending reasons."""
    record, index, job = item
    shared, words = record.shared, record.words
    state = job.state if job is not None else record.state_of(index) if isinstance(record, ArrayRecord) else None
    message = jobs_pb2.JobRecord(
        job=record.id,
        index=index,
        user=shared.user,
        state=translate.state_message(state or JobState.EXIT),
        queue=shared.queue,
        from_host=shared.from_host,
        name=display_name(record, index, words),
        submit_time=record.submitted_at,
        project=shared.project,
        slots_min=shared.request.slots_min,
        slots_max=shared.request.slots_max,
        priority=record.priority,
    )
    if job is not None:
        add_run(message, job)
    if details and job is not None:
        for shown, share in zip(message.hosts, allocation_of(job), strict=True):
            for cpus in share.cpus:
                shown.cpus.add(cpus=cpus)
    if details and job is not None and job.tasks is not None:
        add_tasks(message, job.tasks)
    if details and job is not None and job.attempt is not None:
        _add_activity(message, job.attempt)
    if details and job is not None:
        message.gpus.extend(messages_of(gpus_of_job(job)))
        for at, _, text in job.attempt.warnings if job.attempt is not None else ():
            message.warnings.add(time=at, text=text)
    if details:
        account = cluster.shares.account_of(shared.queue, shared.user, shared.user_group)
        message.share_account = account.path_in_tree if account is not None else ""
        queue = cluster.policy.queue(shared.queue)
        for bound in cluster.load_rules.bounds(cluster.table, queue, _hosts(job)) if queue is not None else ():
            _add_bound(message.load_bounds.add(), bound)
    if reasons is not None and state in (JobState.PEND, JobState.PSUSP):
        add_reasons(message, reasons.of(record, index), host_names)
    elif reasons is not None and job is not None and job.attempt is not None:
        add_reasons(message, explain_ending(job.attempt), host_names)
    return message


def gpus_of_job(job: Job) -> GpusByHost:
    """Return the use of GPUs by the present attempt, or by the one that has ended."""
    if job.attempt is not None:
        return gpus_of_attempt(job.attempt)
    return job.end.gpus if job.end is not None else ()


def _hosts(job: Job | None) -> tuple[str, ...]:
    return tuple(share.host for share in allocation_of(job)) if job is not None else ()


def _add_bound(message: jobs_pb2.LoadBound, bound: Threshold) -> None:
    message.index = bound.index
    if bound.sched is not None:
        message.sched, message.has_sched = bound.sched, True
    if bound.stop is not None:
        message.stop, message.has_stop = bound.stop, True


def add_run(message: jobs_pb2.JobRecord, job: Job) -> None:
    message.attempt = job.attempts
    add_hosts(message, allocation_of(job))
    if job.attempt is not None:
        _add_attempt(message, job.attempt)
    if job.end is not None:
        end = job.end
        message.start_time, message.end_time = end.started_at, end.at
        message.exit_status, message.exit_reason = end.status, end.reason
        message.exec_home, message.exec_cwd = end.exec_home, end.exec_cwd
        message.post, message.posted_at = end.post, end.posted_at
        figures = JobUsage(end.cpu_s, end.memory_mib_max, end.memory_mib_mean, end.user_s, end.system_s)
        _set_figures(message.usage, figures)


def add_hosts(message: jobs_pb2.JobRecord, allocation: Allocation) -> None:
    """Add what a job has of each host."""
    has_devices = any(share.gpus for share in allocation)  # to show which tasks use which devices
    for share in allocation:
        shown = message.hosts.add(host=share.host, slots=share.slots, gpus=share.gpus, memory_mib=share.memory_mib)
        if has_devices:
            shown.tasks_by_role.extend(share.tasks_by_role)
            shown.gpu_memory_mib.extend(share.gpu_memory_mib)
            shown.gpu_roles.extend(share.gpu_roles)


def _add_attempt(message: jobs_pb2.JobRecord, attempt: Attempt) -> None:
    message.start_time = attempt.started_at
    message.suspend_reason = "; ".join(attempt.suspended.values())
    message.start_reason = attempt.start_reason
    message.exec_home, message.exec_cwd = attempt.exec_home, attempt.exec_cwd
    for host, usage in attempt.usage.items():
        _add_usage(message.usage, usage)
        _add_usage(message.usage_by_host.add(host=host), usage)
    if attempt.usage or attempt.departed is not NO_ONE:
        _set_figures(message.usage, of_attempt(attempt))
    if not attempt.usage and attempt.pid:
        message.usage.pids.append(attempt.pid)
    if attempt.progress is not None:
        _set_progress(message.progress, attempt.progress)


def _set_progress(message: common_pb2.Progress, progress: Progress) -> None:
    message.time, message.text, message.host = progress.at, progress.text, progress.host
    message.role, message.index = progress.role, progress.task
    if progress.percent >= 0:
        message.percent, message.has_percent = progress.percent, True
    if progress.seconds_left >= 0:
        message.seconds_left, message.has_seconds_left = progress.seconds_left, True


def _add_activity(message: jobs_pb2.JobRecord, attempt: Attempt) -> None:
    message.exceptions.extend(about for _, about, _ in attempt.warnings if about in EXCEPTIONS)
    hang = attempt.activity.hang
    if hang is not None:
        message.hangs_since, message.inactive_s = hang.since, hang.inactive_s
        message.stacks.extend(f"{host}: {told}" for host, told in hang.stacks)
    for host, since in attempt.activity.unused.items():
        message.unused_hosts.add(host=host, since=since)


def hide_details(message: jobs_pb2.JobRecord) -> None:
    """Leave a summary: for callers who may not know where the job runs in the file system, nor why there and then."""
    for field in ("exec_home", "exec_cwd", "start_reason", "progress", "stacks"):
        message.ClearField(field)


def _set_figures(message: common_pb2.Usage, used: JobUsage) -> None:
    message.cpu_s, message.user_s, message.system_s = used.cpu_s, used.user_s, used.system_s
    message.memory_mib_max, message.memory_mib_mean = used.memory_mib_max, used.memory_mib_mean


def _add_usage(message: common_pb2.Usage, usage: HostUsage) -> None:
    message.cpu_s += usage.cpu_s
    message.memory_mib += usage.memory_mib
    message.memory_mib_max += usage.memory_mib_max
    message.memory_mib_mean += usage.memory_mib_mean
    message.swap_mib += usage.swap_mib
    message.threads += usage.threads
    message.collected_at = max(message.collected_at, usage.at)
    message.pids.extend(usage.pids)
    message.process_groups.extend(usage.process_groups)


def add_reasons(message: jobs_pb2.JobRecord, reasons: Iterable[PendingReason], host_names: bool) -> None:
    """Add pending reasons, computed now."""
    for reason in reasons:
        code, text, rules_out, is_ineligible = reason.reason
        message.pending_reasons.add(
            code=code,
            text=text,
            hosts=len(reason.hosts),
            host_names=reason.hosts if host_names else (),
            advice=reason.advice,
            rules_out=rules_out,
            is_ineligible=is_ineligible,
        )
