"""The records that change: jobs, arrays, attempts, hosts. Only ``apply`` writes to them.

A pending job is one small object that shares all it can with its kind; what only a dispatched job needs hangs on its
``Attempt``; what only an ended job needs on its ``JobEnd``. ``UnenteredShares`` buffers new host shares, in the order
of booking, until ``Host.attempts`` is next read: most attempts of a replay come and go before that.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from lavad.core.language.dependency import Expression
from lavad.core.model import Allocation, HostFacts, HostShare, JobState, Key, Shared, unpack_text
from lavad.core.model.allocation import HOST, grown, slots_of
from lavad.core.model.ranges import Ranges
from lavad.core.model.usage import NO_ONE, ByHost

_SHARES_MAX = 4096  # entered within a millisecond


class UnenteredShares:
    """Shares by attempt. ``hosts`` is the cluster's."""

    __slots__ = ("_count", "_hosts", "by_attempt")

    def __init__(self, hosts: "Mapping[str, Host]") -> None:
        self._hosts = hosts
        self._count = 0
        self.by_attempt: dict[Key, Allocation] = {}

    def note(self, key: Key, shares: Allocation) -> None:
        """The attempt has these shares besides what it had."""
        if key in self.by_attempt or self._count > _SHARES_MAX:
            self.enter()
        self._count += len(shares)
        self.by_attempt[key] = shares

    def drop(self, key: Key, shares: Allocation) -> bool:
        """The attempt has none of these any more; False, and nothing is done, where they are entered, or some are."""
        if self.by_attempt.get(key) is not shares:
            return False
        del self.by_attempt[key]
        self._count -= len(shares)
        return True

    def enter(self) -> None:
        """Let all hosts know what they hold."""
        noted, self.by_attempt, self._count = self.by_attempt, {}, 0
        for key, shares in noted.items():
            for share in shares:
                self._hosts[share.host].entered[key] = share


class JobEnd(NamedTuple):
    """How a job ended. ``status`` is the raw wait status; ``reason`` a TERM_ word and its text, or empty."""

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


def exit_code(status: int) -> int:
    """What a shell would say of a raw wait status: the exit code, or 128 and the signal."""
    signal = status & 0x7F
    return 128 + signal if signal else status >> 8 & 0xFF


@dataclass(frozen=True, slots=True)
class StartConditions:
    """What few jobs have: conditions that keep a waiting one from being started. Replaced as a whole, never changed.

    ``condition`` is None as soon as it was met (for an array: by all elements); ``is_early`` until the begin time.
    """

    condition: Expression | None = None
    begin_at: float = 0.0
    is_early: bool = False
    ends_orphan: bool = False  # -ti: end the job when its condition can't be met any more
    barred: tuple[str, ...] = ()  # hosts it was sent away from by its exit code
    detached: str = ""  # an advance reservation that it was submitted to and that is no more

    @property
    def is_closed(self) -> bool:
        """May a plain job with these terms not be started yet?"""
        return self.condition is not None or self.is_early


@dataclass(frozen=True, slots=True)
class Resizing:
    """How an attempt's allocation is changing, or has changed. ``version`` is that of the newest allocation.

    ``growth`` is booked in addition and not used before every new host of it has staged. ``leaving`` has been given up
    and stays booked: on hosts that the attempt leaves until they say that nothing is left, on others until its lead
    host has acted on the change. ``due`` is when that is no longer waited for.
    """

    version: int = 1
    growth: Allocation = ()
    leaving: Allocation = ()
    due: float = 0.0  # 0: nothing is waited for
    is_told: bool = True  # the lead host has acted on the newest allocation, or has had its time
    added: Allocation = ()  # by a growth that the lead host has not accepted yet
    retry_at: float = 0.0  # it does not grow again before
    wish: int = 0  # tasks it is to grow to at most; 0: to its maximum
    notify: str = ""  # a command to run in place of the job's own notification
    reason: str = ""  # of the growth
    joined: tuple[tuple[str, int], ...] = ()  # hosts that came later, with the version they came with
    since: float = 0.0  # as if it had held what it holds from then on: the same slots times seconds; 0: the dispatch


NEVER_RESIZED = Resizing()


_NONE: frozenset[str] = frozenset()
_NOTHING: Mapping[str, Any] = {}


@lru_cache(maxsize=100_000)
def _only(host: str) -> frozenset[str]:
    return frozenset((host,))


def _hosts_of(allocation: Allocation) -> frozenset[str]:
    return _only(allocation[0].host) if len(allocation) == 1 else frozenset(map(HOST, allocation))


class Attempt:
    """One dispatch: who holds what where, and how far it has come.

    A host leaves ``unreleased`` only by its own word, or because nothing was ever launched there. There are as many
    attempts as jobs that run: their collections are replaced, never changed, so that empty and equal ones are shared.
    """

    __slots__ = (
        "again",
        "allocation",
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
        "preemptions",
        "resizing",
        "staged",
        "start_reason",
        "started_at",
        "suspended",
        "suspended_at",
        "takes_whole_hosts",
        "unreleased",
        "usage",
        "version",
    )

    def __init__(self, key: Key, allocation: Allocation, at: float, launched: bool, start_reason: str) -> None:
        self.key = key
        self.allocation = allocation
        self.version = 1
        self.dispatched_at = at
        self.launched = launched  # a launch order has gone out, so something may run
        self.launch_due = 0.0  # staging must be answered by then
        self.staged: frozenset[str] = _NONE
        self.started_at = 0.0
        self.pid = 0
        self.exec_home = ""
        self.exec_cwd = ""
        self.start_reason = start_reason
        self.lease_s = 0.0  # its hosts end their parts after so long without a word of the master; 0: they do not
        self.unreleased = _hosts_of(allocation)
        self.kill_reason = ""  # a kill was asked for: TERM_ word
        self.last_signal: tuple[int, str, int] | None = None  # (signal, reason, serial): sent again at each hello
        self.doomed = ""  # the attempt has failed as a whole: why; it is ended as soon as its lead host can be reached
        self.again = False  # nothing is wrong with it: as soon as it has ended the job waits again, rerunnable or not
        self.held_again = False  # ... in PSUSP
        self.excludes = ""  # ... and does not come back to this host
        self.leaves_silent = False  # ... without waiting for hosts that are silent
        self.suspended: Mapping[str, str] = _NOTHING  # causes, and what people read of each; empty: it may run
        self.suspended_at = 0.0
        self.lends: tuple[str, ...] = ()  # what of its shares others may use while it is suspended
        self.preemptions = 0  # how often it was suspended for others
        self.is_unconstrained = False  # forced with brun -f: windows do not suspend it
        self.over = False  # the job has left this attempt (ended or requeued); only host shares remain
        self.keeps_units: str | None = None  # the type of the compute units that are kept from others; None: none
        self.takes_whole_hosts = False  # as when the shares were taken: the job may have changed or been forgotten
        self.resizing = NEVER_RESIZED
        self.limits_version = 0  # raised whenever its limits are changed; 0: those that it was staged with
        self.usage: ByHost = _NOTHING
        self.departed = NO_ONE  # what was used on hosts that it has left

    @property
    def lead(self) -> str:
        return self.allocation[0].host

    @property
    def slots(self) -> int:
        return slots_of(self.allocation)

    @property
    def is_ending(self) -> bool:
        """Is it being ended, for whatever reason?"""
        return bool(self.kill_reason or self.doomed or self.over)

    @property
    def booked(self) -> Allocation:
        """All that it holds or is to hold on hosts, one share a host: the allocation, its growth, what is leaving."""
        change = self.resizing
        if not (change.growth or change.leaving):
            return self.allocation
        return grown(grown(self.allocation, change.growth), change.leaving)

    @property
    def charged_since(self) -> float:
        """From when on it counts with what it holds now; with that, slots times seconds are what they were."""
        return self.resizing.since or self.dispatched_at

    def joined_with(self, host: str) -> int:
        """The version with which a host became part of the attempt: older words of it are of an earlier stay."""
        return dict(self.resizing.joined).get(host, 1)

    def share_on(self, host: str) -> HostShare | None:
        """This attempt's part on that host, or None."""
        return next((share for share in self.allocation if share.host == host), None)


class Job:
    """A job, or one element of an array that has started, ended or differs from its siblings."""

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
        "resume_state",
        "shared",
        "state",
        "submitted_at",
        "terms",
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
        self.position: float = job_id  # place among jobs of equal priority
        self.aged_from = submitted_at  # since when its priority has grown, where priorities grow
        self.priority = 0
        self.attempts = 0
        self.attempt: Attempt | None = None
        self.end: JobEnd | None = None
        self.array: ArrayRecord | None = None
        self.postponed_reason = ""  # why the last attempt came to nothing
        self.resume_state: JobState | None = None  # what UNKWN goes back to
        self.terms: StartConditions | None = None

    @property
    def key(self) -> Key:
        """Key of the newest attempt."""
        return Key(self.id, self.index, self.attempts)

    @property
    def may_start(self) -> bool:
        """Does it wait for nothing but its turn?"""
        return self.state is JobState.PEND and (self.terms is None or not self.terms.is_closed)

    @property
    def words(self) -> dict[str, str]:
        """Name, command, directories and files, by field name."""
        return unpack_text(self.text)


@dataclass(frozen=True, slots=True)
class Claim:
    """Room that is being cleared for a waiting job. It is booked as if the job held it, so nobody else gets it."""

    job: int
    index: int
    allocation: Allocation
    victims: tuple[Key, ...]
    until: float
    reason: str = ""
    is_partial: bool = False  # slots that a blocked job saves up, not all that it needs


class ArrayRecord:
    """A job array: sets of indices; an element becomes a Job only when it starts.

    ``pending`` are the elements that may start, ``blocked`` those that would but for the job's terms, ``held`` the
    suspended ones; ``unmet`` those of all these for which the dependency condition has not yet been true.
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
        "postponed",
        "priority",
        "shared",
        "submitted_at",
        "terms",
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
        self.limit = limit  # most elements holding slots at once; 0 none
        self.pending = Ranges() if held else indices.copy()
        self.held = indices.copy() if held else Ranges()
        self.blocked = Ranges()
        self.unmet = Ranges()
        self.terms: StartConditions | None = None
        self.live: dict[int, Job] = {}
        self.counts: Counter[JobState] = Counter()  # of live elements, by state
        self.ended = bytearray()  # state of each ended element by index; 0 where it has not ended
        self.codes = bytearray()  # exit code of each, in step with ``ended``
        self.killed = Ranges()  # those of them that never started: killed while waiting
        self.done = 0
        self.exited = 0
        self.over_at = 0.0  # when the last element ended
        self.attempts: dict[int, int] = {}  # of pending elements that were dispatched before
        self.postponed: dict[int, str] = {}
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
        """State of one element, or None when the array has no such index."""
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

    def note_end(self, index: int, state: JobState, code: int = 0) -> None:
        """Enter an element's final state and exit code."""
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
        """An ended element is to run again."""
        if self.ended[index] == JobState.DONE:
            self.done -= 1
        else:
            self.exited -= 1
        self.ended[index] = self.codes[index] = 0
        self.killed.discard(index)

    def admit(self, indices: Ranges) -> None:
        """These elements wait: to be started, or for what the job's terms say."""
        if self.terms is not None and self.terms.is_early:
            self.blocked.update(indices)
            return
        shut = self.unmet.intersection(indices) if self.unmet else Ranges()
        self.blocked.update(shut)
        opened = indices.copy()
        opened.difference_update(shut)
        self.pending.update(opened)

    def divide(self) -> None:
        """The terms have changed: which of the waiting elements may start now?"""
        waiting, self.pending, self.blocked = self.waiting(), Ranges(), Ranges()
        self.admit(waiting)

    def waiting(self) -> Ranges:
        """All elements in PEND, as a set of its own."""
        if not self.blocked:
            return self.pending.copy()
        both = self.blocked.copy()
        both.update(self.pending)
        return both

    def room(self) -> int:
        """How many more elements may start now under the array's own limit."""
        return len(self.pending) if not self.limit else min(len(self.pending), self.limit - len(self.live))


@dataclass(frozen=True, slots=True)
class QueueState:
    """What administrators have made of a queue; it outlives restarts and new configurations."""

    is_open: bool = True
    is_active: bool = True
    by: str = ""
    at: float = 0.0
    comment: str = ""


class Host:
    """A host that has joined, and what is on it. ``offered`` is what its agent says, ``facts`` what counts: the files
    may say otherwise."""

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
        "offered",
        "row",
        "seen_at",
    )

    def __init__(
        self, facts: HostFacts, row: int, unentered: UnenteredShares, offered: HostFacts | None = None
    ) -> None:
        self.facts = facts
        self.offered = offered or facts
        self.row = row  # in the host table
        self.entered: dict[Key, HostShare] = {}  # what attempts hold here, but for what was booked last
        self._unentered = unentered
        self.claims: dict[tuple[int, int], HostShare] = {}  # room that is kept for jobs that wait
        self.is_connected = False  # a session is open
        self.is_silent = False  # not heard for too long
        self.is_busy = False  # beyond a loadSched of its own
        self.is_shut = False  # its dispatch windows are closed
        self.seen_at = 0.0
        self.avoid_until = 0.0
        self.closed_by = ""  # the administrator who closed it
        self.comment = ""
        self.incarnation = 0

    @property
    def attempts(self) -> dict[Key, HostShare]:
        """What attempts hold here, in the order in which it was booked."""
        if self._unentered.by_attempt:
            self._unentered.enter()
        return self.entered

    @property
    def _is_closed(self) -> bool:
        return bool(self.is_silent or self.closed_by or self.is_shut or self.is_busy)

    @property
    def is_in_contact(self) -> bool:
        """Is there a session, and was something heard in it lately?"""
        return self.is_connected and not self.is_silent

    @property
    def is_usable(self) -> bool:
        """May jobs be dispatched here, as far as the host itself is concerned?"""
        return self.is_connected and not self._is_closed and self.facts.server
