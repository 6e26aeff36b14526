"""Records of jobs, arrays, queues and hosts. Only ``apply`` writes to them.

A pending job is one small object that shares all it can with jobs alike; data of dispatched jobs only is in their
``Attempt``, that of ended jobs only in their ``JobEnd``.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from lavad.core.language.dependency import Expression
from lavad.core.model import (
    NO_RETRY,
    Allocation,
    HostFacts,
    HostShare,
    JobState,
    Key,
    PostState,
    Retry,
    Shared,
    unpack_text,
)
from lavad.core.model.priorities.absolute import NOTHING_GIVEN, Given
from lavad.core.model.ranges import Ranges, keys_in
from lavad.core.state.hosts.unentered import UnenteredShares

if TYPE_CHECKING:
    from lavad.core.state.attempts import Attempt, JobEnd
    from lavad.core.state.tasks import JobTasks

ELEMENT_BITS = 40  # of a number that are the job's id; what tells elements of an array apart is above them
_JOB = (1 << ELEMENT_BITS) - 1


def numbered(job: int, index: int) -> int:
    """Number of an element among jobs, or of its spec among theirs; 0 for the job itself."""
    return job | index << ELEMENT_BITS


def place_of(number: int) -> tuple[int, int]:
    """Job id and index of a number; the index is 0 of a plain job, and of an array."""
    return number & _JOB, number >> ELEMENT_BITS


@dataclass(frozen=True, slots=True)
class StartConditions:
    """Conditions that keep a pending job from being started; few jobs have any. Replaced as a whole, never changed.

    ``condition`` is None once (all elements) met it; ``is_early`` until begin time or next try (elements: ``retries``).
    """

    condition: Expression | None = None
    begin_at: float = 0.0
    is_early: bool = False
    ends_orphan: bool = False  # -ti: end the job when its condition can never be met
    excluded_hosts: tuple[str, ...] = ()  # hosts excluded by its exit code
    detached: str = ""  # name of the removed advance reservation that it was submitted to
    queued_at: float = 0.0  # newest return to its queue, where that matters; 0: its submission
    restarts: int = 0  # of a job of tasks by policies while it waited in its queue, and since its last dispatch
    retry: Retry = NO_RETRY
    admin_held: Ranges = field(default_factory=Ranges)  # elements that an administrator holds; 0 of a plain job
    absolute: Given = NOTHING_GIVEN  # bmod -aps

    @property
    def opens_at(self) -> float:
        """Time until which it is early."""
        return max(self.begin_at, self.retry.at)

    @property
    def is_closed(self) -> bool:
        """True if a plain job may not be started yet."""
        return self.condition is not None or self.is_early


class Job:
    """A job, or an element of an array that has started, has ended or differs from the others."""

    __slots__ = (
        "aged_from",
        "array",
        "attempt",
        "attempts",
        "end",
        "id",
        "index",
        "part",
        "position",
        "postponed_reason",
        "priority",
        "shared",
        "start_conditions",
        "state",
        "submitted_at",
        "tasks",
        "text",
    )

    def __init__(
        self, job_id: int, index: int, shared: Shared, text: bytes, submitted_at: float, state: JobState
    ) -> None:
        self.id = job_id
        self.index = index
        self.part = 0  # number of its spec among those of its array; 0: the array's
        self.shared = shared
        self.text = text
        self.submitted_at = submitted_at
        self.state = state
        self.position: float = job_id  # position among jobs of equal priority
        self.aged_from = submitted_at  # start of its priority's growth, if priorities grow
        self.priority = 0
        self.attempts = 0
        self.attempt: Attempt | None = None
        self.end: JobEnd | None = None
        self.array: ArrayRecord | None = None
        self.postponed_reason = ""  # why the last attempt failed to start
        self.start_conditions: StartConditions | None = None
        self.tasks: JobTasks | None = None  # of a job of tasks that was dispatched before

    @property
    def key(self) -> Key:
        """Key of the newest attempt."""
        return Key(self.id, self.index, self.attempts)

    @property
    def number(self) -> int:
        """Number of its entry in a bucket."""
        return numbered(self.id, self.index)

    @property
    def spec_number(self) -> int:
        """Number of its spec in the store."""
        return numbered(self.id, self.part)

    @property
    def conditions(self) -> StartConditions | None:
        """Its start conditions; those of an element are its array's."""
        return self.start_conditions if self.array is None else self.array.start_conditions

    @property
    def retry(self) -> Retry:
        """Failures of its pre-execution commands."""
        if self.array is not None:
            return self.array.retries.get(self.index, NO_RETRY)
        return self.start_conditions.retry if self.start_conditions is not None else NO_RETRY

    @property
    def may_start(self) -> bool:
        """True if the job is pending without a start condition."""
        return self.state is JobState.PEND and (self.start_conditions is None or not self.start_conditions.is_closed)

    @property
    def words(self) -> dict[str, str]:
        """Name, command, directories and files, by field name."""
        return unpack_text(self.text)


@dataclass(frozen=True, slots=True)
class Claim:
    """Resources claimed for a pending job until its victims have released them. They are booked, so no other job gets
    them."""

    job: int
    index: int
    allocation: Allocation
    victims: tuple[Key, ...]
    until: float
    reason: str = ""
    is_partial: bool = False  # a slot reservation of a blocked job, not all that it needs


class ArrayRecord:
    """A job array: sets of indices; an element becomes a Job only when it starts.

    ``pending`` are the elements that may start, ``blocked`` those kept back by start conditions, ``held`` the suspended
    ones; ``unmet`` those of all these for which the dependency condition has not been true yet. ``post_awaited`` and
    ``post_failed`` are the ended elements whose post-execution commands have not ended, or have failed.

    An element that was changed by itself (bmod) is a job of its own from then on, with the spec of its part. While it
    waits it is in ``apart`` and in none of the sets but ``unmet``; when it may start is up to the array's conditions.
    """

    __slots__ = (
        "aged_from",
        "apart",
        "attempts",
        "blocked",
        "changed",
        "codes",
        "counts",
        "done",
        "ended",
        "exited",
        "held",
        "id",
        "indices",
        "killed",
        "limit",
        "listed",
        "live",
        "newest_part",
        "over_at",
        "pending",
        "position",
        "post_awaited",
        "post_failed",
        "postponed",
        "priority",
        "retries",
        "shared",
        "start_conditions",
        "submitted_at",
        "tasks",
        "text",
        "unmet",
        "was_full",
    )

    index = part = 0  # as of a plain job

    def __init__(
        self, job_id: int, shared: Shared, text: bytes, submitted_at: float, indices: Ranges, limit: int, held: bool
    ) -> None:
        self.id = job_id
        self.shared = shared
        self.text = text
        self.submitted_at = submitted_at
        self.indices = indices
        self.limit = limit  # maximum of elements that hold slots at once; 0: none
        self.pending = Ranges() if held else indices.copy()
        self.held = indices.copy() if held else Ranges()
        self.blocked = Ranges()
        self.unmet = Ranges()
        self.start_conditions: StartConditions | None = None
        self.live: dict[int, Job] = {}
        self.apart: dict[int, Job] = {}  # elements changed by themselves that wait
        self.listed: set[int] = set()  # those of ``apart`` that are in their buckets
        self.was_full = False  # when these were listed last
        self.changed: set[int] = set()  # all elements changed by themselves, ended ones included
        self.newest_part = 0  # of these elements: the largest number of a spec
        self.counts: Counter[JobState] = Counter()  # live elements by state
        self.ended = bytearray()  # final state of each element by index; 0 if it has not ended
        self.codes = bytearray()  # exit codes, parallel to ``ended``
        self.killed = Ranges()  # elements that ended while pending: killed, or completed by a policy
        self.done = 0
        self.exited = 0
        self.over_at = 0.0  # when the last element ended
        self.attempts: dict[int, int] = {}  # of pending elements that were dispatched before
        self.postponed: dict[int, str] = {}
        self.retries: dict[int, Retry] = {}
        self.post_awaited = Ranges()
        self.post_failed = Ranges()
        self.tasks: dict[int, JobTasks] = {}  # of pending elements of a job of tasks that were dispatched before
        self.position: float = job_id
        self.aged_from = submitted_at
        self.priority = 0

    @property
    def number(self) -> int:
        """Number of its entry in a bucket."""
        return self.id

    @property
    def spec_number(self) -> int:
        """Number of its spec in the store: that of all elements that were not changed by themselves."""
        return self.id

    @property
    def conditions(self) -> StartConditions | None:
        """The start conditions of all its elements."""
        return self.start_conditions

    @property
    def words(self) -> dict[str, str]:
        """Name, command, directories and files, by field name."""
        return unpack_text(self.text)

    @property
    def is_over(self) -> bool:
        return not self.pending and not self.held and not self.live and not self.blocked and not self.apart

    @property
    def is_full(self) -> bool:
        """True if as many elements hold slots as the array's job limit allows."""
        return 0 < self.limit <= len(self.live)

    def job_of(self, index: int) -> Job | None:
        """The job that the element is while it waits changed by itself, or holds slots; None for any other."""
        return self.live.get(index) or self.apart.get(index)

    def shared_of(self, index: int) -> Shared:
        """Shared facts of an element that has not ended."""
        job = self.job_of(index) if index in self.changed else None
        return self.shared if job is None else job.shared

    def is_shut(self, index: int) -> bool:
        """True if the array's start conditions, or the pause before its next try, keep an element back."""
        is_early = self.start_conditions is not None and self.start_conditions.is_early
        return is_early or index in self.unmet or (index in self.retries and self.retries[index].at > 0)

    def may_start(self, job: Job) -> bool:
        """True if an element changed by itself may start."""
        return job.state is JobState.PEND and not self.is_full and not self.is_shut(job.index)

    def has_startable(self, index: int, more: int = 0) -> bool:
        """True if an element may start now, also beside so many others that start with it."""
        if self.limit and self.limit - len(self.live) <= more:
            return False
        job = self.apart.get(index)
        return index in self.pending if job is None else self.may_start(job)

    def waiting_apart(self, state: JobState) -> Ranges:
        """Elements changed by themselves that wait in this state, as a new set."""
        return Ranges.from_sorted(sorted(index for index, job in self.apart.items() if job.state is state))

    def count_waiting(self, state: JobState) -> int:
        """Number of elements that wait in this state."""
        alike = len(self.pending) + len(self.blocked) if state is JobState.PEND else len(self.held)
        return alike + sum(job.state is state for job in self.apart.values())

    def all_waiting(self, state: JobState) -> Ranges:
        """All elements that wait in this state, as a new set."""
        found = self.waiting() if state is JobState.PEND else self.held.copy()
        if self.apart:
            found.update(self.waiting_apart(state))
        return found

    def state_of(self, index: int) -> JobState | None:
        """State of one element, or None if the array has no such index."""
        job = self.job_of(index)
        if job is not None:
            return job.state
        if index in self.pending or index in self.blocked:
            return JobState.PEND
        if index in self.held:
            return JobState.PSUSP
        code = self.ended[index] if index < len(self.ended) else 0
        return JobState(code) if code else None

    def code_of(self, index: int) -> int:
        """Exit code of an ended element."""
        return self.codes[index] if index < len(self.codes) else 0

    def post_of(self, index: int) -> PostState:
        """State of the post-execution commands of an element; DONE also if there are none."""
        if index in self.post_awaited:
            return PostState.AWAITED
        return PostState.ERR if index in self.post_failed else PostState.DONE

    def note_post(self, index: int, post: PostState) -> None:
        """Set what is known of the post-execution commands of an ended element."""
        (self.post_awaited.add if post is PostState.AWAITED else self.post_awaited.discard)(index)
        (self.post_failed.add if post is PostState.ERR else self.post_failed.discard)(index)

    def note_end(self, index: int, state: JobState, code: int = 0) -> None:
        """Set an element's final state and exit code."""
        if index >= len(self.ended):
            grown = bytes(index + 1 - len(self.ended))
            self.ended.extend(grown)
            self.codes.extend(grown)
        self.ended[index], self.codes[index] = state, code
        if state is JobState.DONE:
            self.done += 1
        else:
            self.exited += 1

    def forget_end(self, index: int) -> None:
        """Reset an ended element that is to run again."""
        if self.ended[index] == JobState.DONE:
            self.done -= 1
        else:
            self.exited -= 1
        self.ended[index] = self.codes[index] = 0
        self.killed.discard(index)
        self.note_post(index, PostState.NONE)

    def admit(self, indices: Ranges) -> None:
        """Make elements pending: eligible, or blocked by the job's start conditions."""
        if self.start_conditions is not None and self.start_conditions.is_early:
            self.blocked.update(indices)
            return
        shut = self.unmet.intersection(indices) if self.unmet else Ranges()
        if self.retries:
            paused = (index for index in keys_in(self.retries, indices) if self.retries[index].at > 0)
            shut.update(Ranges.from_sorted(paused))
        self.blocked.update(shut)
        opened = indices.copy()
        opened.difference_update(shut)
        self.pending.update(opened)

    def divide(self) -> None:
        """Divide the pending elements again after a change of the start conditions."""
        waiting, self.pending, self.blocked = self.waiting(), Ranges(), Ranges()
        self.admit(waiting)

    def waiting(self) -> Ranges:
        """All elements in PEND that have the array's own parameters, as a new set."""
        if not self.blocked:
            return self.pending.copy()
        both = self.blocked.copy()
        both.update(self.pending)
        return both

    def room(self) -> int:
        """Number of elements that may start now under the array's job limit."""
        return len(self.pending) if not self.limit else min(len(self.pending), self.limit - len(self.live))


@dataclass(frozen=True, slots=True)
class QueueState:
    """Administrators' state of a queue; it outlives restarts and reconfigurations."""

    is_open: bool = True
    is_active: bool = True
    by: str = ""
    at: float = 0.0
    comment: str = ""


class LockId(NamedTuple):
    """The administrator who closed a host with a lock ID, the time and the comment."""

    by: str
    at: float
    comment: str


class Host:
    """A host that has joined, and its shares. ``offered`` are the facts from its agent, ``facts`` those in effect: the
    configuration may override them."""

    __slots__ = (
        "_unentered",
        "avoid_until",
        "claims",
        "closed_by",
        "comment",
        "entered",
        "facts",
        "incarnation",
        "is_busy",
        "is_connected",
        "is_shut",
        "is_silent",
        "lock",
        "lock_ids",
        "noticed_at",
        "offered",
        "revoked_at",
        "row",
        "seen_at",
        "told_end",
    )

    def __init__(
        self, facts: HostFacts, row: int, unentered: UnenteredShares, offered: HostFacts | None = None
    ) -> None:
        self.facts = facts
        self.offered = offered or facts
        self.row = row  # in the host table
        self.entered: dict[Key, HostShare] = {}  # shares of attempts, without those buffered
        self._unentered = unentered
        self.claims: dict[tuple[int, int], HostShare] = {}  # shares claimed for pending jobs
        self.is_connected = False  # it has an open session
        self.is_silent = False  # it has exceeded the silence timeout
        self.is_busy = False  # beyond one of its own loadSched thresholds
        self.is_shut = False  # its dispatch windows are closed
        self.seen_at = 0.0
        self.avoid_until = 0.0
        self.closed_by = ""  # the administrator who closed it
        self.comment = ""
        self.lock: tuple[str, float] | None = None  # the administrator who locked it, and until when; 0: no end
        self.lock_ids: dict[str, LockId] = {}  # those it is closed with, the oldest first
        self.revoked_at = 0.0  # end of an administrator's notice: all that runs there is killed then; 0: none
        self.noticed_at = 0.0  # end of the host's own notice
        self.told_end = 0.0  # end of the notice that the host has taken; 0: it has not said so
        self.incarnation = 0

    @property
    def attempts(self) -> dict[Key, HostShare]:
        """Shares of attempts on this host, in the order of allocation."""
        if self._unentered.by_attempt:
            self._unentered.enter()
        return self.entered

    @property
    def leaves_at(self) -> float:
        """Time at which it will be taken away; 0: it will not."""
        return min(filter(None, (self.revoked_at, self.noticed_at)), default=0.0)

    @property
    def is_in_contact(self) -> bool:
        """True if the host has a session and is not silent."""
        return self.is_connected and not self.is_silent

    @property
    def is_usable(self) -> bool:
        """True if the host takes jobs, as far as its own state goes."""
        is_closed = self.is_silent or self.is_closed or self.lock or self.is_shut or self.is_busy
        return self.is_connected and not is_closed and self.facts.server

    @property
    def is_closed(self) -> bool:
        """True if an administrator, or what acts for one, has closed it."""
        return bool(self.closed_by or self.lock_ids)
