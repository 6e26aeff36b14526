"""Records of jobs, arrays, attempts and hosts. Only ``apply`` writes to them.

A pending job is one small object that shares all it can with jobs alike; data of dispatched jobs only is in their
``Attempt``, that of ended jobs only in their ``JobEnd``.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

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
from lavad.core.model.activity import ACTIVE
from lavad.core.model.allocation import HOST, grown, slots_of
from lavad.core.model.gpu_use import GpusByHost
from lavad.core.model.priorities.absolute import NOTHING_GIVEN, Given
from lavad.core.model.ranges import Ranges, keys_in
from lavad.core.model.usage import NO_ONE, ByHost
from lavad.core.state.hosts.unentered import UnenteredShares
from lavad.core.state.jobs.checkpoints import NO_CHECKPOINTS

if TYPE_CHECKING:
    from lavad.core.model.progress import Progress
    from lavad.core.state.tasks import JobTasks


class JobEnd(NamedTuple):
    """End of a job. ``status`` is the raw wait status; ``reason`` a TERM_ word and its text, or empty."""

    at: float
    status: int
    reason: str = ""
    cpu_s: float = 0.0
    memory_mib_max: int = 0
    started_at: float = 0.0
    hosts: Allocation = ()
    pid: int = 0
    user_s: float = 0.0  # of cpu_s
    system_s: float = 0.0
    memory_mib_mean: float = 0.0
    exec_home: str = ""
    exec_cwd: str = ""
    gpus: GpusByHost = ()
    post: PostState = PostState.NONE
    posted_at: float = 0.0  # end of its post-execution commands


def exit_code(status: int) -> int:
    """Exit code of a raw wait status as shells give it: the code, or 128 plus the signal."""
    signal = status & 0x7F
    return 128 + signal if signal else status >> 8 & 0xFF


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


@dataclass(frozen=True, slots=True)
class Resizing:
    """Present or past change of an attempt's allocation. ``version`` is that of the newest allocation.

    ``growth`` is booked in addition and not used before all its new hosts have staged. ``leaving`` has been given up
    and stays booked: on hosts that the attempt leaves until they release it, on others until its lead host has acted on
    the change. ``due`` is the deadline for that.
    """

    version: int = 1
    growth: Allocation = ()
    leaving: Allocation = ()
    due: float = 0.0  # 0: none
    is_told: bool = True  # the lead host has acted on the newest allocation, or its time is over
    added: Allocation = ()  # by a growth that the lead host has not confirmed yet
    retry_at: float = 0.0  # earliest time of its next growth
    wish: int = 0  # tasks it is to grow to at most; 0: to its maximum
    notify: str = ""  # command to run in place of the job's own notification
    reason: str = ""  # of the growth
    joined: tuple[tuple[str, int], ...] = ()  # hosts that joined later, with the version of that
    since: float = 0.0  # virtual start time: slots x (now - since) equals the slot-seconds used; 0: the dispatch
    wishes: tuple[int, ...] = ()  # of a job of tasks: tasks that each role is to grow to at most; empty: its maximum
    told: tuple[str, ...] = ()  # of a job of tasks: hosts that have the newest allocation
    freed: tuple[str, ...] = ()  # of a job of tasks: hosts that it leaves and on which its tasks have ended
    revocable_slot_s: float = 0.0  # slots times seconds on revocable hosts, until ``revocable_until``
    revocable_until: float = 0.0  # 0: the dispatch


NEVER_RESIZED = Resizing()


_NONE: frozenset[str] = frozenset()
_NOTHING: Mapping[str, Any] = {}


@lru_cache(maxsize=100_000)
def _only(host: str) -> frozenset[str]:
    return frozenset((host,))


class Attempt:
    """One dispatch of a job: its host shares and its progress.

    A host leaves ``unreleased`` only by its own report, or because nothing was ever launched there. There are as many
    attempts as running jobs: their collections are replaced, never changed, so that empty and equal ones are shared.
    """

    __slots__ = (
        "activity",
        "again",
        "allocation",
        "checkpoints",
        "departed",
        "dispatched_at",
        "doomed",
        "excludes",
        "exec_cwd",
        "exec_home",
        "held_again",
        "is_unconstrained",
        "keeps_units",
        "key",
        "kill_reason",
        "last_signal",
        "launch_due",
        "launched",
        "lease_s",
        "leaves_silent",
        "lends",
        "limits_version",
        "over",
        "pid",
        "pre_exec",
        "preemptions",
        "progress",
        "progress_saved_at",
        "resizing",
        "resume_state",
        "staged",
        "start_reason",
        "started_at",
        "suspended",
        "suspended_at",
        "takes_whole_hosts",
        "tasks",
        "told",
        "unreleased",
        "usage",
        "version",
        "warned",
        "warnings",
    )

    def __init__(self, key: Key, allocation: Allocation, at: float, launched: bool, start_reason: str) -> None:
        self.key = key
        self.allocation = allocation
        self.version = 1
        self.dispatched_at = at
        self.launched = launched  # a launch order was sent, so something may run
        self.launch_due = 0.0  # deadline for staging
        self.staged: frozenset[str] = _NONE
        self.started_at = 0.0
        self.pid = 0
        self.exec_home = ""
        self.exec_cwd = ""
        self.start_reason = start_reason
        self.lease_s = 0.0  # time without contact to the master after which its hosts end it, in seconds; 0: none
        self.unreleased = _only(allocation[0][0]) if len(allocation) == 1 else frozenset(map(HOST, allocation))
        self.kill_reason = ""  # TERM_ word of a requested kill
        self.last_signal: tuple[int, str, int] | None = None  # (signal, reason, serial): sent again at each hello
        self.doomed = ""  # why the attempt has failed as a whole; it is ended as soon as its lead host is in contact
        self.again = False  # it has not failed: the job is requeued when it has ended, rerunnable or not
        self.held_again = False  # ... into PSUSP
        self.excludes = ""  # ... and avoids this host
        self.leaves_silent = False  # ... without waiting for hosts that are silent
        self.pre_exec = ""  # ... because of a pre-execution command: of the job, the queue, or the queue on each host
        self.warned = ""  # event of the notice that its hosts give the job before they end it; empty: none
        self.suspended: Mapping[str, str] = _NOTHING  # causes, with a sentence each for users; empty: not suspended
        self.suspended_at = 0.0
        self.lends: tuple[str, ...] = ()  # resources of its shares that others may use while it is suspended
        self.preemptions = 0  # times it was suspended by preemption
        self.is_unconstrained = False  # forced with brun -f: not suspended by windows
        self.over = False  # the job has left this attempt (ended or requeued); only host shares remain
        self.keeps_units: str | None = None  # type of the compute units it has exclusively; None: none
        self.takes_whole_hosts = False  # as of its dispatch: the job may have been changed or forgotten since
        self.resizing = NEVER_RESIZED
        self.resume_state: JobState | None = None  # state to which the job returns from UNKWN
        self.limits_version = 0  # raised with each change of its limits; 0: those it was staged with
        self.usage: ByHost = _NOTHING
        self.departed = NO_ONE  # usage on hosts that it has left
        self.progress: Progress | None = None  # as the job reported it last
        self.progress_saved_at = 0.0
        self.tasks: JobTasks | None = None  # of a job of tasks: the job's
        self.activity, self.checkpoints = ACTIVE, NO_CHECKPOINTS
        self.warnings: tuple[tuple[float, str, str], ...] = ()  # time, what about, text; the newest of each kind
        self.told: dict[str, tuple[float, str]] | None = None  # all warnings since the master began, by what about

    @property
    def lead(self) -> str:
        return self.allocation[0].host

    @property
    def slots(self) -> int:
        return slots_of(self.allocation)

    @property
    def is_ending(self) -> bool:
        """True if the attempt is being ended, for any reason."""
        return bool(self.kill_reason or self.doomed or self.over)

    @property
    def booked(self) -> Allocation:
        """All shares that it holds or is to hold, one a host: the allocation, its growth, shares being released."""
        change = self.resizing
        if not (change.growth or change.leaving):
            return self.allocation
        return grown(grown(self.allocation, change.growth), change.leaving)

    @property
    def charged_since(self) -> float:
        """Start of usage at its present size, so that slots times seconds are what it has used."""
        return self.resizing.since or self.dispatched_at

    def joined_with(self, host: str) -> int:
        """Version with which a host joined the attempt: reports with older ones are from before that."""
        return dict(self.resizing.joined).get(host, 1)

    def share_on(self, host: str) -> HostShare | None:
        """The attempt's share on that host, or None."""
        return next((share for share in self.allocation if share.host == host), None)

    def is_growing_to(self, host: str) -> bool:
        """True if the host is new to the attempt, not in its allocation yet, and the lead host has not released the
        attempt."""
        is_new = any(share.host == host for share in self.resizing.growth) and self.share_on(host) is None
        return is_new and self.lead in self.unreleased

    def is_leaving(self, host: str) -> bool:
        """True if the attempt has given up all of that host."""
        return self.share_on(host) is None and any(share.host == host for share in self.resizing.leaving)


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
    """

    __slots__ = (
        "aged_from",
        "attempts",
        "blocked",
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
        "live",
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
    )

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
    def words(self) -> dict[str, str]:
        """Name, command, directories and files, by field name."""
        return unpack_text(self.text)

    @property
    def is_over(self) -> bool:
        return not self.pending and not self.held and not self.live and not self.blocked

    def state_of(self, index: int) -> JobState | None:
        """State of one element, or None if the array has no such index."""
        if index in self.live:
            return self.live[index].state
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
        """All elements in PEND, as a new set."""
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
        is_closed = self.is_silent or self.closed_by or self.lock or self.is_shut or self.is_busy
        return self.is_connected and not is_closed and self.facts.server
