"""Commands to the core. ``step`` turns one into events, or refuses it."""

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from lavad.core.events import NewJob
from lavad.core.model import Allocation, HostFacts, JobState, Key, RoleAsked
from lavad.core.model.advance_reservation import AdvanceReservation, ReservationTimes
from lavad.core.model.gpu_use import GpuUse
from lavad.core.model.policy import Policy
from lavad.core.model.progress import Progress
from lavad.core.model.ranges import Ranges
from lavad.core.model.task_values import RolePart, TaskReport
from lavad.core.model.usage import HostUsage
from lavad.core.plan import Plan


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


NOTHING_MORE = Asked()


@dataclass(frozen=True, slots=True)
class SubmitJob:
    """bsub. ``job.id`` is 0: the cluster assigns the number."""

    job: NewJob
    caller: Caller
    asked: Asked = NOTHING_MORE


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

    ``as_done``: a running job counts as DONE when it has ended.
    """

    target: Target
    caller: Caller
    remove: bool = False
    as_done: bool = False


@dataclass(frozen=True, slots=True)
class SignalJob:
    target: Target
    signal: int
    caller: Caller


@dataclass(frozen=True, slots=True)
class StopJob:
    target: Target
    caller: Caller


@dataclass(frozen=True, slots=True)
class ResumeJob:
    target: Target
    caller: Caller


@dataclass(frozen=True, slots=True)
class RequeueJob:
    """brequeue: requeue the elements in one of these states; with ``hold`` into PSUSP."""

    target: Target
    caller: Caller
    states: frozenset[JobState]
    hold: bool = False


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


@dataclass(frozen=True, slots=True)
class MoveJob:
    """btop, bbot: a place among the caller's own jobs of the queue or, for administrators, among all of them.

    ``place`` counts from 1 at the top, or from -1 at the bottom. An array moves as a whole. The reply is the place
    reached, counted alike: there may be fewer jobs than that.
    """

    target: Target
    place: int
    caller: Caller


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
class HeldAttempt:
    """One attempt that an agent knows: ``last`` is its newest report, or None.

    ``version`` is that of its allocation there, ``resized`` its newest report on a change; ``limits`` is the version of
    its limits there.
    """

    key: Key
    last: "AgentReport | None" = None
    launched: bool = False
    version: int = 1
    resized: "ReportResized | None" = None
    limits: int = 0
    limit_reached: "ReportLimit | None" = None
    tasks: tuple[TaskReport, ...] = ()  # the newest run of each task that was ever ordered there


@dataclass(frozen=True, slots=True)
class RecoverAttempt:
    """An attempt that a host holds or has ended, and that the database may lack.

    ``job`` is its submission as its host has it; None if unknown.
    """

    key: Key
    job: NewJob | None
    allocation: Allocation
    submitted_at: float = 0.0
    started_at: float = 0.0
    lease_s: float = 0.0


@dataclass(frozen=True, slots=True)
class AgentHello:
    """Begin of an agent's session; ``held`` are all attempts that the host knows.

    With ``lacks_later`` attempts that it does not know are left as they are until ``AgentLacks``: the database may be
    older than what other hosts have still to report.
    """

    facts: HostFacts
    incarnation: int
    held: tuple[HeldAttempt, ...] = ()
    lacks_later: bool = False


@dataclass(frozen=True, slots=True)
class AgentLacks:
    """Attempts that a host did not know at its hello, as far as they are still in the books."""

    host: str
    keys: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class AgentGone:
    """End of a session; the host counts as silent only after the silence timeout."""

    host: str
    incarnation: int


@dataclass(frozen=True, slots=True)
class AgentHeard:
    """Message of a silent host within the same session."""

    host: str


@dataclass(frozen=True, slots=True)
class ReportStaged:
    """A host has staged. ``version``, here and below: of the allocation with which the host joined; 0: the newest."""

    host: str
    key: Key
    version: int = 0
    again: bool = False  # the launch order came too late: send another
    tasks: tuple[RolePart, ...] = ()  # of a job of tasks: the ports of the tasks there
    address: str = ""  # and its IP address for the job's other hosts


@dataclass(frozen=True, slots=True)
class ReportRefused:
    """A host refuses an order: nothing of the attempt runs or will run there."""

    host: str
    key: Key
    reason: str
    host_fault: bool = False
    version: int = 0
    user_unknown: bool = False


@dataclass(frozen=True, slots=True)
class ReportStarted:
    host: str
    key: Key
    pid: int
    at: float
    exec_home: str = ""
    exec_cwd: str = ""


class ReportFinished(NamedTuple):
    host: str
    key: Key
    status: int
    at: float
    reason: str = ""
    cpu_s: float = 0.0
    memory_mib_max: int = 0
    pid: int = 0
    started_at: float = 0.0
    detail: str = ""
    exec_home: str = ""
    exec_cwd: str = ""
    also_released: bool = False
    lost: bool = False  # its end is unknown
    version: int = 0
    user_s: float = 0.0
    system_s: float = 0.0
    memory_mib_mean: float = 0.0
    seconds: float = 0.0
    others: tuple[tuple[str, HostUsage], ...] = ()  # as far as other hosts have reported to this one
    gpus: tuple[GpuUse, ...] = ()

    @property
    def usage(self) -> HostUsage:
        """Usage on the reporting host."""
        return HostUsage(
            self.cpu_s, memory_mib_max=self.memory_mib_max, memory_mib_mean=self.memory_mib_mean, user_s=self.user_s,
            system_s=self.system_s, seconds=self.seconds, gpus=self.gpus,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ReportReleased:
    host: str
    key: Key
    version: int = 0
    usage: HostUsage | None = None  # final usage


@dataclass(frozen=True, slots=True)
class ReportLimit:
    """A limit that applies to each host was reached on one that does not run the job's command."""

    host: str
    key: Key
    reason: str
    version: int = 0


@dataclass(frozen=True, slots=True)
class ReportProgress:
    """A job's newest progress is to be kept over a restart of the master."""

    host: str
    key: Key
    progress: Progress
    version: int = 0


@dataclass(frozen=True, slots=True)
class ReportResized:
    """The lead host has the allocation of that version and has notified the job. ``failed``: the job refuses it.

    Of a job of tasks each host says that it has it.
    """

    host: str
    key: Key
    version: int
    failed: bool = False
    detail: str = ""
    tasks: tuple[RolePart, ...] = ()  # of a job of tasks: the ports of the tasks there


@dataclass(frozen=True, slots=True)
class ReportTasks:
    """States of tasks on a host that have changed."""

    host: str
    key: Key
    states: tuple[TaskReport, ...]


@dataclass(frozen=True, slots=True)
class ReportActivity:
    """Activity of an attempt on a host: inactive for that long, as the job's rule names it, or without any process."""

    host: str
    key: Key
    inactive_s: float = 0.0  # 0: active
    unused_s: float = 0.0  # 0: used


@dataclass(frozen=True, slots=True)
class ReportStacks:
    """A host has saved the stacks of an attempt's processes, or has not: ``words`` says why, or what they lack."""

    host: str
    key: Key
    number: int
    path: str
    words: str = ""


AgentReport = (
    ReportStaged
    | ReportRefused
    | ReportStarted
    | ReportFinished
    | ReportReleased
    | ReportResized
    | ReportLimit
    | ReportProgress
    | ReportTasks
)


@dataclass(frozen=True, slots=True)
class CheckGpus:
    """A host says that GPUs of an attempt are idle or in trouble."""

    key: Key


@dataclass(frozen=True, slots=True)
class ApplyPlan:
    plan: Plan


@dataclass(frozen=True, slots=True)
class CloseHost:
    host: str
    caller: Caller
    comment: str = ""


@dataclass(frozen=True, slots=True)
class OpenHost:
    host: str
    caller: Caller
    comment: str = ""


@dataclass(frozen=True, slots=True)
class RevokeHost:
    """badmin hclose -revoke: the host will be taken away in ``notice_s`` seconds."""

    host: str
    caller: Caller
    notice_s: float
    comment: str = ""


@dataclass(frozen=True, slots=True)
class ReportWanted:
    """Number of tasks that a job's metric script asks for, or why it does not say."""

    host: str
    key: Key
    tasks: int
    error: str = ""


@dataclass(frozen=True, slots=True)
class HostNoticed:
    """The host says itself that it will be taken away in ``notice_s`` seconds; negative: it will not after all."""

    host: str
    notice_s: float
    text: str = ""


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
class Reconfigure:
    """badmin reconfig, after the files were read; the driver has checked the caller."""

    policy: Policy = field(repr=False)


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
    | ForceJob
    | MoveJob
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
    | ApplyPlan
    | CloseHost
    | OpenHost
    | HostChecked
    | HostNoticed
    | ReportWanted
    | RevokeHost
    | RemoveHost
    | Reconfigure
    | RuleQueue
    | AddReservation
    | ChangeReservation
    | RemoveReservation
    | Tick
    | EndLeases
)
