"""Events: facts in the past tense. ``apply`` puts them into effect, the store writes them, orders follow from them.

Every event has ``at``, the time it happened. Events are small: attributes of a submission are in ``NewJob`` once. Those
of every job are named tuples, which are made in a third of the time.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from lavad.core.activity_events import ActivityEvent, BudgetWarned, JobMessagePosted, JobWarned
from lavad.core.host_events import (
    HostClosed,
    HostDisconnected,
    HostGroupChanged,
    HostHeard,
    HostJoined,
    HostLocked,
    HostOpened,
    HostRemoved,
    HostRevoked,
    HostSilenced,
    HostToldEnd,
    HostTrusted,
    HostUnlocked,
    LockIdAttached,
    LockIdsRemoved,
    UserKeptOff,
)
from lavad.core.job_group_events import JobGroupSet, JobGroupsRemoved
from lavad.core.language.dependency import Expression
from lavad.core.model import AS_STARTED, Allocation, JobState, Key, PostState, QueueWindow, RunChange, Shared
from lavad.core.model.advance_reservation import AdvanceReservation
from lavad.core.model.gpu_use import GpuUse
from lavad.core.model.policy import Policy
from lavad.core.model.priorities.absolute import NOTHING_GIVEN, Given
from lavad.core.model.progress import Progress
from lavad.core.model.ranges import Ranges
from lavad.core.model.task_rules import TaskKey
from lavad.core.model.task_values import RolePart
from lavad.core.model.usage import HostUsage
from lavad.core.task_events import JobForgotten, RestartedInQueue, TaskJobEvent

# Defined in modules of their own, and known by this one.
__all__ = [
    "HostClosed",
    "HostDisconnected",
    "HostGroupChanged",
    "HostHeard",
    "HostJoined",
    "HostLocked",
    "HostOpened",
    "HostRemoved",
    "HostRevoked",
    "HostSilenced",
    "HostToldEnd",
    "HostTrusted",
    "HostUnlocked",
    "LockIdAttached",
    "LockIdsRemoved",
    "UserKeptOff",
]


class NewJob(NamedTuple):
    """All attributes of a submission. ``spec`` is opaque to the core: it goes to the store and the agents; so does
    ``environment``, by its hash, if the store may lack it."""

    id: int
    shared: Shared
    text: bytes
    spec: bytes
    request_id: bytes
    hold: bool = False
    indices: tuple[range, ...] = ()  # empty: no array
    array_limit: int = 0
    priority: int = 0
    dependency: str | None = ""  # -w. None, when a job is modified: as it was
    begin_at: float = 0.0
    ends_orphan: bool = False
    environment: tuple[bytes, bytes] | None = None
    condition: Expression | None = None  # in an event: -w with ids for names
    absolute: Given = NOTHING_GIVEN  # bmod -aps


class JobSubmitted(NamedTuple):
    at: float
    job: NewJob


class AttemptDispatched(NamedTuple):
    """A job was dispatched; ``launch_now``: one order stages and launches. A tuple, because a pass makes many."""

    at: float
    key: Key
    allocation: Allocation
    launch_now: bool
    reason: str = ""
    is_unconstrained: bool = False
    lease_s: float | None = None  # of a recovered attempt: its lease; None: as configured


@dataclass(frozen=True, slots=True)
class HostStaged:
    """A host is ready; of a job of tasks with the ports of its tasks, and its address for the job's other hosts."""

    at: float
    key: Key
    host: str
    tasks: tuple[RolePart, ...] = ()
    address: str = ""


@dataclass(frozen=True, slots=True)
class AttemptLaunched:
    """All hosts have staged; the launch orders are sent."""

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
    """A job ended: its command did, or its attempt failed as a whole. Figures are the lead host's, and ``others``."""

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
    is_lost: bool = False  # its end is unknown: its host or its shepherd was lost
    gpus: tuple[GpuUse, ...] = ()
    post: PostState = PostState.NONE


@dataclass(frozen=True, slots=True)
class PostExecEnded:
    """The post-execution commands of an ended job have ended."""

    at: float
    key: Key
    post: PostState


class HostReleased(NamedTuple):
    """A host has nothing of the attempt any more, by its report, or ``assumed`` because no launch was sent.
    ``usage``: final usage there, if reported."""

    at: float
    key: Key
    host: str
    assumed: bool = False
    usage: HostUsage | None = None


@dataclass(frozen=True, slots=True)
class JobRequeued:
    """A job was requeued: its attempt failed to start or is to be repeated; it is pending under the same id."""

    at: float
    key: Key
    reason: str
    hold: bool = False
    avoid_host: str = ""
    avoid_until: float = 0.0
    exclude_host: str = ""  # the job avoids it from now on
    pre_exec: str = ""  # the job waits because this pre-execution command failed: job, queue, host; or for EXIT_VALUE


@dataclass(frozen=True, slots=True)
class JobSuspended:
    """A cause of suspension was added. ``cause`` is empty for a user's; ``lends``: what others may use meanwhile."""

    at: float
    key: Key
    state: JobState  # resulting state: USUSP, SSUSP; STAGING, UNKWN if it takes effect later
    by: str
    cause: str = ""
    reason: str = ""  # sentence for users
    lends: tuple[str, ...] = ()  # slots, mem, gpus


@dataclass(frozen=True, slots=True)
class JobResumed:
    """A cause of suspension was removed; the job runs if it was the last."""

    at: float
    key: Key
    by: str
    reason: str = ""
    cause: str = ""
    state: JobState = JobState.RUN


@dataclass(frozen=True, slots=True)
class JobSignalled:
    """A signal was requested; 0 is the terminate sequence."""

    at: float
    key: Key
    signal: int
    by: str
    reason: str = ""  # TERM_ word of the end
    warns: str = ""  # event of the notice that the job gets before; empty: none


@dataclass(frozen=True, slots=True)
class JobDoomed:
    """An attempt failed as a whole (a host was lost); its parts on hosts in contact are being ended.

    ``again``: it has not failed, but is preempted or to be requeued; the job is pending as soon as it has ended.
    """

    at: float
    key: Key
    reason: str
    again: bool = False
    hold: bool = False  # ... into PSUSP
    exclude_host: str = ""  # ... and the job avoids this host
    by: str = ""
    leaves_silent: bool = False  # silent hosts, which may still run it, are not waited for
    warns: str = ""  # event of the notice that the job gets before; empty: none
    pre_exec: str = ""  # as in JobRequeued


@dataclass(frozen=True, slots=True)
class RoomClaimed:
    """Resources are claimed for a pending job until ``until``: those that the victims release. ``is_partial``: a slot
    reservation of free slots, in place of the job's former one."""

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
    """A claim was dropped: its job is not pending any more, or the resources were not cleared in time."""

    at: float
    job: int
    index: int
    reason: str


@dataclass(frozen=True, slots=True)
class AttemptGrowing:
    """Shares were booked for the growth of a running attempt; its new hosts are being staged."""

    at: float
    key: Key
    additions: Allocation
    version: int
    due: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class GrowthGivenUp:
    """The growth under way was given up: the allocation stays."""

    at: float
    key: Key
    version: int
    retry_at: float
    reason: str


@dataclass(frozen=True, slots=True)
class AttemptResized:
    """The attempt has another allocation. Shares given up stay booked until their hosts have released them."""

    at: float
    key: Key
    allocation: Allocation
    version: int
    due: float  # time at which the change goes on without the lead host's report
    by: str
    reason: str = ""
    notify: str = ""  # command to run in place of the job's own notification
    wish: int = 0  # maximum of tasks to grow to from now on; 0: unchanged
    retry_at: float = 0.0  # no growth before
    wishes: tuple[int, ...] = ()  # of a job of tasks, for each role; empty: unchanged
    gone: tuple[TaskKey, ...] = ()  # of a job of tasks: those whose places are given up


@dataclass(frozen=True, slots=True)
class ResizeNoted:
    """The lead host has acted on the newest allocation, or its time is over: hosts that leave are told now."""

    at: float
    key: Key
    version: int


@dataclass(frozen=True, slots=True)
class ResizeWished:
    """A user set the size that a job is to grow to, in a job of tasks that of each role."""

    at: float
    key: Key
    tasks: int
    by: str
    sizes: tuple[int, ...] = ()
    words: str = ""  # the sizes in the user's words


@dataclass(frozen=True, slots=True)
class ProgressReported:
    """The job's newest progress is to be kept over a restart of the master."""

    at: float
    key: Key
    progress: Progress


@dataclass(frozen=True, slots=True)
class JobLost:
    """A host of the job is silent: its part may have ended or not. Nothing is ended because of it."""

    at: float
    key: Key
    hosts: str = ""  # the silent ones


@dataclass(frozen=True, slots=True)
class JobFound:
    at: float
    key: Key


@dataclass(frozen=True, slots=True)
class JobAbandoned:
    """A job was killed while its host was silent: it ends when the host is back."""

    at: float
    key: Key
    by: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PendingEnded:
    """Pending elements (or a pending plain job, indices (0,)) were killed; ``is_done``: completed, they are DONE."""

    at: float
    job: int
    indices: Ranges
    by: str
    reason: str = ""
    is_done: bool = False


@dataclass(frozen=True, slots=True)
class JobRevived:
    """Ended elements (or an ended plain job, indices (0,)) are to run again."""

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
    is_admins: bool = False  # an administrator who is not the owner


@dataclass(frozen=True, slots=True)
class PendingFreed:
    at: float
    job: int
    indices: Ranges
    by: str


@dataclass(frozen=True, slots=True)
class JobModified:
    """Parameters of a job, or of elements of an array, were changed; ``changes`` is the text for users."""

    at: float
    job: NewJob
    by: str
    changes: str
    switched_to: str = ""  # the queue, if issued by bswitch
    indices: Ranges = field(default_factory=Ranges)  # of elements changed by themselves; none: the job, with all others
    part: int = 0  # their number of a spec
    run: RunChange = AS_STARTED  # of a running job


@dataclass(frozen=True, slots=True)
class JobMoved:
    """A pending job or array got another position among jobs of its priority (btop, bbot)."""

    at: float
    job: int
    position: float
    aged_from: float
    by: str
    place: int  # from the top or, negative, from the bottom; 0: shifted for another job


@dataclass(frozen=True, slots=True)
class DependencyMet:
    """The condition was true for these elements (a plain job: indices (0,)): it does not matter any more."""

    at: float
    job: int
    indices: Ranges


@dataclass(frozen=True, slots=True)
class BeginTimeReached:
    """The begin time of a job has come, or the pause after a failed pre-execution command of it, or of elements of an
    array, is over."""

    at: float
    job: int
    elements: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class QueueWindowChanged:
    """Windows of a queue opened or closed. Not stored: a restarted master looks at the clock."""

    at: float
    queue: str
    state: QueueWindow


@dataclass(frozen=True, slots=True)
class HostWindowChanged:
    """Dispatch windows of a host opened or closed; not stored either."""

    at: float
    host: str
    is_open: bool


@dataclass(frozen=True, slots=True)
class PolicyChanged:
    """Another configuration is in effect. The files are durable: a restarted master reads them again."""

    at: float
    policy: Policy = field(repr=False)


@dataclass(frozen=True, slots=True)
class QueueRuled:
    """An administrator opened, closed, activated or inactivated a queue; its present state."""

    at: float
    queue: str
    is_open: bool
    is_active: bool
    by: str
    comment: str = ""


@dataclass(frozen=True, slots=True)
class ReservationSet:
    """An advance reservation was created or changed; ``number`` counts those of its first holder from 0."""

    at: float
    reservation: AdvanceReservation
    holder: str
    number: int
    by: str


@dataclass(frozen=True, slots=True)
class ReservationRemoved:
    """An advance reservation was deleted, or has ended for good."""

    at: float
    name: str
    by: str


@dataclass(frozen=True, slots=True)
class ReservationsTurned:
    """Set of the active advance reservations. Not stored: a restarted master looks at the clock."""

    at: float
    holding: frozenset[str]


@dataclass(frozen=True, slots=True)
class JobDetached:
    """A job was detached from its removed advance reservation."""

    at: float
    job: int
    reservation: str
    by: str


@dataclass(frozen=True, slots=True)
class FinishedForgotten:
    """Ended jobs older than the clean period were removed from memory; the store has them."""

    at: float
    before: float


Event = (
    JobSubmitted
    | AttemptDispatched
    | HostStaged
    | AttemptLaunched
    | JobStarted
    | JobFinished
    | PostExecEnded
    | JobWarned
    | JobMessagePosted
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
    | ProgressReported
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
    | HostRevoked
    | HostToldEnd
    | HostRemoved
    | HostLocked
    | HostUnlocked
    | LockIdAttached
    | LockIdsRemoved
    | HostGroupChanged
    | PolicyChanged
    | QueueRuled
    | ReservationSet
    | ReservationRemoved
    | ReservationsTurned
    | JobDetached
    | BudgetWarned
    | JobGroupSet
    | JobGroupsRemoved
    | FinishedForgotten
    | JobForgotten
    | RestartedInQueue
    | TaskJobEvent
    | ActivityEvent
)
