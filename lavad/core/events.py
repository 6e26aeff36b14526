"""Facts, in the past tense. ``Cluster.apply`` is the only thing they are for, besides the store and the orders.

Every event carries ``at``, the time it happened. Events are small: what a job was submitted with is in ``NewJob`` once.
Those that every job has are named tuples, which are made in a third of the time.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from lavad.core.language.dependency import Expression
from lavad.core.model import Allocation, HostFacts, JobState, Key, QueueWindow, Shared
from lavad.core.model.advance_reservation import AdvanceReservation
from lavad.core.model.policy import Policy
from lavad.core.model.ranges import Ranges
from lavad.core.model.usage import HostUsage


class NewJob(NamedTuple):
    """All that a submit brings. ``spec`` is opaque to the core: it goes to the store and to the agents; so does
    ``environment``, by its hash, where the store may not have it yet."""

    id: int
    shared: Shared
    text: bytes
    spec: bytes
    request_id: bytes
    hold: bool = False
    indices: tuple[range, ...] = ()  # empty: not an array
    array_limit: int = 0
    priority: int = 0
    dependency: str | None = ""  # -w. None, when a job is modified: as it was
    begin_at: float = 0.0
    ends_orphan: bool = False
    environment: tuple[bytes, bytes] | None = None
    condition: Expression | None = None  # in an event: -w with ids for names


class JobSubmitted(NamedTuple):
    at: float
    job: NewJob


class AttemptDispatched(NamedTuple):
    """An allocation was made; ``launch_now``: one order stages and launches. A tuple, because a pass makes many."""

    at: float
    key: Key
    allocation: Allocation
    launch_now: bool
    reason: str = ""
    is_unconstrained: bool = False
    lease_s: float | None = None  # of an attempt that was found: the one it was begun with; None: as the site has set


@dataclass(frozen=True, slots=True)
class HostStaged:
    at: float
    key: Key
    host: str


@dataclass(frozen=True, slots=True)
class AttemptLaunched:
    """Every host had staged, so the launch orders go out."""

    at: float
    key: Key


@dataclass(frozen=True, slots=True)
class JobStarted:
    at: float
    key: Key
    pid: int
    exec_home: str = ""
    exec_cwd: str = ""


class JobFinished(NamedTuple):
    """The job is over: its attempt's command ended, or the attempt failed as a whole.

    Figures are those of the first host; ``others`` has what other hosts have told it.
    """

    at: float
    key: Key
    status: int
    reason: str = ""
    cpu_s: float = 0.0
    memory_mib_max: int = 0
    pid: int = 0
    started_at: float = 0.0
    detail: str = ""
    user_s: float = 0.0
    system_s: float = 0.0
    memory_mib_mean: float = 0.0
    seconds: float = 0.0
    exec_home: str = ""
    exec_cwd: str = ""
    others: tuple[tuple[str, HostUsage], ...] = ()
    is_lost: bool = False  # how it ended is not known: its host or what kept it there was lost


class HostReleased(NamedTuple):
    """Nothing of the attempt is left on that host: by its own word, or ``assumed`` because no launch was ever sent.

    ``usage``: what was used there in all, if the host told.
    """

    at: float
    key: Key
    host: str
    assumed: bool = False
    usage: HostUsage | None = None


@dataclass(frozen=True, slots=True)
class JobRequeued:
    """The attempt came to nothing or is to be repeated; the job waits again under the same id."""

    at: float
    key: Key
    reason: str
    hold: bool = False
    avoid_host: str = ""
    avoid_until: float = 0.0
    exclude_host: str = ""  # the job does not come back to it


@dataclass(frozen=True, slots=True)
class JobSuspended:
    """``cause`` is empty when a person did it; ``lends`` names what others may use meanwhile (``slots``, ``mem``,
    ``gpus``)."""

    at: float
    key: Key
    state: JobState  # that this leads to: USUSP, SSUSP; STAGING, UNKWN where it takes effect later
    by: str
    cause: str = ""
    reason: str = ""  # the sentence that people read
    lends: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JobResumed:
    """A cause of suspension is gone; the job runs if it was the last."""

    at: float
    key: Key
    by: str
    reason: str = ""
    cause: str = ""
    state: JobState = JobState.RUN


@dataclass(frozen=True, slots=True)
class JobSignalled:
    """A signal was asked for; 0 is the terminate sequence."""

    at: float
    key: Key
    signal: int
    by: str
    reason: str = ""  # TERM_ word the end will carry


@dataclass(frozen=True, slots=True)
class JobDoomed:
    """The attempt has failed as a whole (a host was lost); what can be reached of it is being ended.

    ``again``: nothing is wrong with it, its room is wanted for another; the job waits again as soon as it has ended.
    """

    at: float
    key: Key
    reason: str
    again: bool = False
    hold: bool = False  # ... in PSUSP
    exclude_host: str = ""  # ... and not on this host
    by: str = ""
    leaves_silent: bool = False  # what silent hosts may still run of it is not waited for


@dataclass(frozen=True, slots=True)
class RoomClaimed:
    """Room is being cleared for a waiting job: what the victims give back is for it, until then. ``is_partial``: free
    slots are saved up for it, in place of those saved before."""

    at: float
    job: int
    index: int
    allocation: Allocation
    victims: tuple[Key, ...]
    until: float
    reason: str = ""
    is_partial: bool = False


@dataclass(frozen=True, slots=True)
class ClaimDropped:
    """The job no longer waits, or its room was not cleared in time."""

    at: float
    job: int
    index: int
    reason: str


@dataclass(frozen=True, slots=True)
class AttemptGrowing:
    """Room was booked for a running attempt to grow into; hosts that are new to it are being made ready."""

    at: float
    key: Key
    additions: Allocation
    version: int
    due: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class GrowthGivenUp:
    """The growth under way comes to nothing: the allocation stays what it is."""

    at: float
    key: Key
    version: int
    retry_at: float
    reason: str


@dataclass(frozen=True, slots=True)
class AttemptResized:
    """The attempt has another allocation from now on. What it gave up stays booked until hosts have let go of it."""

    at: float
    key: Key
    allocation: Allocation
    version: int
    due: float  # then the change goes on without the lead host's word
    by: str
    reason: str = ""
    notify: str = ""  # a command to run in place of the job's own notification
    wish: int = 0  # tasks it is to grow to at most from now on; 0: as before
    retry_at: float = 0.0  # it does not grow before


@dataclass(frozen=True, slots=True)
class ResizeNoted:
    """The lead host has acted on the newest allocation, or has had its time: hosts that leave may be told to."""

    at: float
    key: Key
    version: int


@dataclass(frozen=True, slots=True)
class ResizeWished:
    """How far an attempt is to grow from now on was asked for."""

    at: float
    key: Key
    tasks: int
    by: str


@dataclass(frozen=True, slots=True)
class JobLost:
    """A host of the job is silent: what runs there may have ended or not. Nothing is ended because of it."""

    at: float
    key: Key
    hosts: str = ""  # those that are silent


@dataclass(frozen=True, slots=True)
class JobFound:
    at: float
    key: Key


@dataclass(frozen=True, slots=True)
class JobAbandoned:
    """Killed while its host was silent: ends as soon as the host returns."""

    at: float
    key: Key
    by: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PendingEnded:
    """Waiting elements (or a waiting plain job, indices (0,)) were killed."""

    at: float
    job: int
    indices: Ranges
    by: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class JobRevived:
    """An ended job (indices (0,)), or ended elements, are to run again."""

    at: float
    job: int
    indices: Ranges
    by: str
    hold: bool = False


@dataclass(frozen=True, slots=True)
class PendingHeld:
    at: float
    job: int
    indices: Ranges
    by: str


@dataclass(frozen=True, slots=True)
class PendingFreed:
    at: float
    job: int
    indices: Ranges
    by: str


@dataclass(frozen=True, slots=True)
class JobModified:
    """New submission parameters of a waiting job; ``changes`` tells people what changed."""

    at: float
    job: NewJob
    by: str
    changes: str
    switched_to: str = ""  # the queue, if it was bswitch


@dataclass(frozen=True, slots=True)
class JobMoved:
    """A waiting job or array got another place among its like (btop, bbot)."""

    at: float
    job: int
    position: float
    aged_from: float
    by: str
    place: int  # from the top or, negative, from the bottom; 0: it only made room for another


@dataclass(frozen=True, slots=True)
class DependencyMet:
    """The condition has been true for these elements (a plain job: indices (0,)): from now on it does not matter."""

    at: float
    job: int
    indices: Ranges


@dataclass(frozen=True, slots=True)
class BeginTimeReached:
    at: float
    job: int


@dataclass(frozen=True, slots=True)
class QueueWindowChanged:
    """Windows of a queue opened or closed. Not kept: a master that starts again looks at the clock."""

    at: float
    queue: str
    state: QueueWindow


@dataclass(frozen=True, slots=True)
class HostWindowChanged:
    """Dispatch windows of a host opened or closed; not kept either."""

    at: float
    host: str
    is_open: bool


@dataclass(frozen=True, slots=True)
class HostJoined:
    """An agent said hello. A changed boot id or incarnation is seen in ``facts`` and ``incarnation``."""

    at: float
    facts: HostFacts
    incarnation: int


@dataclass(frozen=True, slots=True)
class HostSilenced:
    at: float
    host: str


@dataclass(frozen=True, slots=True)
class HostHeard:
    at: float
    host: str


@dataclass(frozen=True, slots=True)
class HostDisconnected:
    """The session ended; whether the host is silent, time will tell."""

    at: float
    host: str


@dataclass(frozen=True, slots=True)
class HostTrusted:
    """A host that was avoided after a failed start may be tried again."""

    at: float
    host: str


@dataclass(frozen=True, slots=True)
class UserKeptOff:
    """The host does not know this user: jobs of his are not dispatched to it for a while. Found out anew later."""

    at: float
    user: str
    host: str
    until: float


@dataclass(frozen=True, slots=True)
class HostClosed:
    at: float
    host: str
    by: str
    comment: str = ""


@dataclass(frozen=True, slots=True)
class HostOpened:
    at: float
    host: str
    by: str
    comment: str = ""


@dataclass(frozen=True, slots=True)
class HostRemoved:
    """The host is none of the cluster any more, until it joins again. Nothing is held on it."""

    at: float
    host: str
    by: str
    comment: str = ""


@dataclass(frozen=True, slots=True)
class PolicyChanged:
    """Other rules hold from now on. The files are what is durable: a master that starts again reads them again."""

    at: float
    policy: Policy = field(repr=False)


@dataclass(frozen=True, slots=True)
class QueueRuled:
    """An administrator opened, closed, activated or inactivated a queue; this is what it is now."""

    at: float
    queue: str
    is_open: bool
    is_active: bool
    by: str
    comment: str = ""


@dataclass(frozen=True, slots=True)
class ReservationSet:
    """Slots are set apart from now on as this says; ``number`` counts those of its first holder from 0."""

    at: float
    reservation: AdvanceReservation
    holder: str
    number: int
    by: str


@dataclass(frozen=True, slots=True)
class ReservationRemoved:
    """An advance reservation was deleted, or its time is over."""

    at: float
    name: str
    by: str


@dataclass(frozen=True, slots=True)
class ReservationsTurned:
    """These hold from now on, and no others. Not kept: a master that starts again looks at the clock."""

    at: float
    holding: frozenset[str]


@dataclass(frozen=True, slots=True)
class JobDetached:
    """The job is like any other from now on: its advance reservation is no more."""

    at: float
    job: int
    reservation: str
    by: str


@dataclass(frozen=True, slots=True)
class FinishedForgotten:
    """Ended jobs older than the clean period left memory; the store still has them."""

    at: float
    before: float


Event = (
    JobSubmitted
    | AttemptDispatched
    | HostStaged
    | AttemptLaunched
    | JobStarted
    | JobFinished
    | HostReleased
    | JobRequeued
    | JobSuspended
    | JobResumed
    | JobSignalled
    | JobDoomed
    | RoomClaimed
    | ClaimDropped
    | AttemptGrowing
    | GrowthGivenUp
    | AttemptResized
    | ResizeNoted
    | ResizeWished
    | JobLost
    | JobFound
    | JobAbandoned
    | PendingEnded
    | JobRevived
    | PendingHeld
    | PendingFreed
    | JobModified
    | JobMoved
    | DependencyMet
    | BeginTimeReached
    | QueueWindowChanged
    | HostWindowChanged
    | HostJoined
    | HostSilenced
    | HostHeard
    | HostDisconnected
    | HostTrusted
    | UserKeptOff
    | HostClosed
    | HostOpened
    | HostRemoved
    | PolicyChanged
    | QueueRuled
    | ReservationSet
    | ReservationRemoved
    | ReservationsTurned
    | JobDetached
    | FinishedForgotten
)
