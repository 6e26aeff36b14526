"""Commands to the core. ``step`` turns one into events, or refuses it."""

from dataclasses import dataclass, field
from enum import Enum

from lavad.core.commands.of_agents import (
    AgentGone,
    AgentHeard,
    AgentHello,
    AgentLacks,
    AgentReport,
    CheckGpus,
    HeldAttempt,
    HostNoticed,
    NoticeTaken,
    RecoverAttempt,
    ReportActivity,
    ReportCheckpoint,
    ReportFinished,
    ReportLimit,
    ReportProgress,
    ReportRefused,
    ReportReleased,
    ReportResized,
    ReportStacks,
    ReportStaged,
    ReportStarted,
    ReportTasks,
    ReportWanted,
)
from lavad.core.events import NewJob
from lavad.core.model import AS_STARTED, JobState, RoleAsked, RunChange
from lavad.core.model.advance_reservation import AdvanceReservation, ReservationTimes
from lavad.core.model.policy import Policy
from lavad.core.model.ranges import Ranges
from lavad.core.plan import Plan

# Defined in modules of their own, and known by this one.
__all__ = [
    "AgentGone",
    "AgentHeard",
    "AgentHello",
    "AgentLacks",
    "AgentReport",
    "CheckGpus",
    "HeldAttempt",
    "HostNoticed",
    "NoticeTaken",
    "RecoverAttempt",
    "ReportActivity",
    "ReportCheckpoint",
    "ReportFinished",
    "ReportLimit",
    "ReportProgress",
    "ReportRefused",
    "ReportReleased",
    "ReportResized",
    "ReportStacks",
    "ReportStaged",
    "ReportStarted",
    "ReportTasks",
    "ReportWanted",
]


@dataclass(frozen=True, slots=True)
class Caller:
    """User who issues a command, and the host, as vouched for by the channel."""

    user: str
    uid: int
    is_administrator: bool = False
    gid: int = 0
    host: str = ""
    would_administer: bool = False  # an administrator by name, but not on this host


@dataclass(frozen=True, slots=True)
class Asked:
    """Options of a submission that the rules of a queue are combined with.

    ``limits`` are those of processes, by name, in their own units. Without ``roles`` the job's request is complete.
    """

    queues: tuple[str, ...] = ()  # candidates; the first that accepts the job; empty: the job's own
    is_size_given: bool = True  # -n
    limits: tuple[tuple[str, int], ...] = ()
    roles: tuple[RoleAsked, ...] = ()
    has_warning_action: bool = False  # -wa
    warns_by_checkpoint: bool = False  # -wa CHKPNT


NOTHING_MORE = Asked()


@dataclass(frozen=True, slots=True)
class SubmitJob:
    """bsub. ``job.id`` is 0: the cluster assigns the number.

    ``has_unique_name``: refused while another job of the user and of this name has not ended.
    """

    job: NewJob
    caller: Caller
    asked: Asked = NOTHING_MORE
    has_unique_name: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """A job, or some elements of an array. ``indices`` None: all of it.

    With ``role`` the tasks of that role of a job of tasks, or the one with the index ``task``.
    """

    job: int
    indices: Ranges | None = None
    role: str = ""
    task: int = -1


@dataclass(frozen=True, slots=True)
class KillJob:
    """bkill: the terminate sequence or, with ``remove``, EXIT at once in any case.

    ``as_done``: a running job counts as DONE when it has ended. ``states``: only of elements in one of these; empty: in
    any. ``reason``, here and below: the user's own, for the history.
    """

    target: Target
    caller: Caller
    remove: bool = False
    as_done: bool = False
    states: frozenset[JobState] = frozenset()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SignalJob:
    target: Target
    signal: int
    caller: Caller


@dataclass(frozen=True, slots=True)
class StopJob:
    target: Target
    caller: Caller
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ResumeJob:
    target: Target
    caller: Caller
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RequeueJob:
    """brequeue: requeue the elements in one of these states; with ``hold`` into PSUSP.

    ``migrates`` (bmig): those of a rerunnable or checkpointable job, which then avoid their first hosts. ``force``: of
    their checkpoints. ``may_stay``: they do not avoid their first hosts.
    """

    target: Target
    caller: Caller
    states: frozenset[JobState]
    hold: bool = False
    migrates: bool = False
    force: bool = False
    may_stay: bool = False


@dataclass(frozen=True, slots=True)
class CheckpointJob:
    """bchkpnt: make checkpoints of running elements; ``ends``: they end with it."""

    target: Target
    caller: Caller
    force: bool = False
    ends: bool = False


@dataclass(frozen=True, slots=True)
class ForceJob:
    """brun: start a pending job or element now on these hosts, with so many slots on each (0: as many as it has).

    ``is_unconstrained``: windows do not suspend it either.
    """

    target: Target
    caller: Caller
    hosts: tuple[tuple[str, int], ...]
    is_unconstrained: bool = False


@dataclass(frozen=True, slots=True)
class ModifyJob:
    """bmod: new parameters of a job; ``changes`` is the sentence for its history.

    ``fields`` are the parameters given: a dependency condition is evaluated anew only if it is among them.
    """

    target: Target
    job: NewJob
    caller: Caller
    changes: str
    fields: frozenset[str] = frozenset()
    is_switch: bool = False  # issued by bswitch
    asked: Asked = NOTHING_MORE
    migrates: bool = False  # issued by bmig -m: hosts of running jobs may change, too
    elements: Ranges | None = None  # to change by themselves, alike until now; None: the job, or what the target says
    is_whole: bool = False  # these are part of a change of the whole array
    run: RunChange = AS_STARTED  # what a running job gets; a CPU limit without its queue's


@dataclass(frozen=True, slots=True)
class MigrateJob:
    """bmig -m: a job gets other hosts, and goes to them; both or neither."""

    changed: ModifyJob
    moved: RequeueJob


@dataclass(frozen=True, slots=True)
class PostMessage:
    """bpost: attach a message to a job or to an element. The reply is its index."""

    target: Target
    caller: Caller
    number: int
    text: str
    level: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class MoveJob:
    """btop, bbot: a place among the caller's own jobs of the queue or, for administrators, among all of them.

    ``place`` counts from 1 at the top, or from -1 at the bottom. An array moves as a whole. The reply is the place
    reached, counted alike: there may be fewer jobs than that. ``among_own``: among the owner's jobs in any case.
    """

    target: Target
    place: int
    caller: Caller
    among_own: bool = False


@dataclass(frozen=True, slots=True)
class ShrinkJob:
    """bresize release: give up all slots beyond the minimum, all but some, those of some hosts, or tasks of a role."""

    target: Target
    what: str  # "all", "all ^h1 2*h2", "h1 2*h2"; of a job of tasks also "worker=2"
    caller: Caller
    notify: str = ""
    is_of_hosts: bool = False  # ``what`` has names of hosts alone


@dataclass(frozen=True, slots=True)
class WishSize:
    """bresize request and cancel: number of tasks to grow to; 0: no further growth."""

    target: Target
    tasks: int
    caller: Caller


@dataclass(frozen=True, slots=True)
class ScaleJob:
    """lavactl scale, and bresize request of roles: sizes that roles are to have, by name; no name is the only role.

    ``may_shrink``: a role that has more tasks releases the others, else it is refused.
    """

    target: Target
    sizes: tuple[tuple[str, int], ...]
    caller: Caller
    may_shrink: bool = False
    notify: str = ""


@dataclass(frozen=True, slots=True)
class ApplyPlan:
    plan: Plan


@dataclass(frozen=True, slots=True)
class CloseHost:
    """badmin hclose; with ``lock_id`` (-i) the host stays closed until that one is removed, too."""

    host: str
    caller: Caller
    comment: str = ""
    lock_id: str = ""


@dataclass(frozen=True, slots=True)
class OpenHost:
    """badmin hopen; with ``lock_ids`` (-i) only these are removed, all of them for ``all``."""

    host: str
    caller: Caller
    comment: str = ""
    lock_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LockHost:
    """lsadmin limlock: for ``seconds``, or until it is unlocked if that is 0."""

    host: str
    caller: Caller
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class UnlockHost:
    host: str
    caller: Caller


@dataclass(frozen=True, slots=True)
class RevokeHost:
    """badmin hclose -revoke: the host will be taken away in ``notice_s`` seconds."""

    host: str
    caller: Caller
    notice_s: float
    comment: str = ""


@dataclass(frozen=True, slots=True)
class HostChecked:
    """Result of a host's health check. One that is neither good nor bad changes nothing."""

    host: str
    is_good: bool
    is_bad: bool
    text: str = ""


@dataclass(frozen=True, slots=True)
class RemoveHost:
    """badmin hremove. Attempts there count as lost: the administrator guarantees that nothing runs there."""

    host: str
    caller: Caller
    comment: str = ""


@dataclass(frozen=True, slots=True)
class AddReservation:
    """brsvadd. ``wanted`` has no hosts yet, and no name if none was given; both are determined by the decision.

    Hosts are chosen from ``named`` (host names and groups, in order; none: all servers) if they satisfy ``select``,
    until ``units`` are found: slots or, with ``wanted.is_whole``, hosts; 0: all of them.
    """

    wanted: AdvanceReservation
    units: int
    named: tuple[str, ...]
    select: str
    caller: Caller


@dataclass(frozen=True, slots=True)
class ChangeReservation:
    """brsvmod: fields of None stay. Hosts are added or removed, chosen as for a new reservation."""

    name: str
    caller: Caller
    times: ReservationTimes | None = None
    holders: tuple[str, ...] | None = None
    is_open: bool | None = None
    description: str | None = None
    queues: tuple[str, ...] | None = None
    adds: bool = False
    takes: bool = False
    units: int = 0
    named: tuple[str, ...] = ()
    select: str = ""
    skips: tuple[float, float] | None = None  # interval in which a recurring one is not active


@dataclass(frozen=True, slots=True)
class RemoveReservation:
    """brsvdel. ``is_forced``: also with running jobs; they go on as any others."""

    name: str
    caller: Caller
    is_forced: bool = False


@dataclass(frozen=True, slots=True)
class SetJobGroup:
    """bgadd or, of a group that exists, bgmod; a ``limit`` of None is none."""

    path: str
    limit: int | None
    caller: Caller
    exists: bool = False


class Removed(Enum):
    """Job groups that bgdel is to delete; of several only those without jobs and groups below."""

    ONE = "the named one"
    BELOW = "the named one and those below it"
    OF_USER = "those that a user has created"
    ALL = "those of all users"


@dataclass(frozen=True, slots=True)
class RemoveJobGroups:
    """bgdel. ``name`` is a path or, for those of a user, the user. The reply are the paths of the deleted groups."""

    what: Removed
    name: str
    caller: Caller


@dataclass(frozen=True, slots=True)
class Reconfigure:
    """badmin reconfig, after the files were read; the driver has checked the caller. ``gone_groups`` are changed host
    groups that the files no longer have."""

    policy: Policy = field(repr=False)
    gone_groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangeHostGroup:
    """badmin hghostadd or, unless ``is_added``, hghostdel. ``policy`` is the configuration with the change.

    ``against_files``: those of the hosts that the files have come to name since they were added, or to lack since they
    were deleted: to undo the earlier change is not enough.
    """

    group: str
    hosts: tuple[str, ...]
    is_added: bool
    caller: Caller
    comment: str
    policy: Policy = field(repr=False)
    against_files: frozenset[str] = frozenset()


class QueueAction(Enum):
    """Action of badmin on a queue."""

    OPEN = "opened"
    CLOSE = "closed"
    ACTIVATE = "activated"
    INACTIVATE = "inactivated"


@dataclass(frozen=True, slots=True)
class RuleQueue:
    """badmin qopen, qclose, qact, qinact."""

    queue: str
    action: QueueAction
    caller: Caller
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Tick:
    """Clock tick: decide all timer events that are due."""


@dataclass(frozen=True, slots=True)
class EndLeases:
    """End attempts of silent hosts whose leases have expired; after each tick, in the state that it leaves."""


Command = (
    SubmitJob
    | CheckGpus
    | KillJob
    | SignalJob
    | StopJob
    | ResumeJob
    | ModifyJob
    | RequeueJob
    | MigrateJob
    | CheckpointJob
    | ForceJob
    | MoveJob
    | PostMessage
    | ShrinkJob
    | WishSize
    | ScaleJob
    | RecoverAttempt
    | AgentHello
    | AgentLacks
    | AgentGone
    | AgentHeard
    | AgentReport
    | ReportActivity
    | ReportStacks
    | ReportCheckpoint
    | ApplyPlan
    | CloseHost
    | OpenHost
    | LockHost
    | UnlockHost
    | HostChecked
    | HostNoticed
    | NoticeTaken
    | ReportWanted
    | RevokeHost
    | RemoveHost
    | Reconfigure
    | ChangeHostGroup
    | RuleQueue
    | AddReservation
    | ChangeReservation
    | RemoveReservation
    | SetJobGroup
    | RemoveJobGroups
    | Tick
    | EndLeases
)
