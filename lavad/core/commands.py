"""Wishes, in the imperative. ``step`` turns one into events, or refuses it."""

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from lavad.core.events import NewJob
from lavad.core.model import Allocation, HostFacts, JobState, Key, RoleAsked
from lavad.core.model.advance_reservation import AdvanceReservation, ReservationTimes
from lavad.core.model.policy import Policy
from lavad.core.model.ranges import Ranges
from lavad.core.model.usage import HostUsage
from lavad.core.plan import Plan


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, and from which host, as the channel says."""

    user: str
    uid: int
    is_administrator: bool = False
    gid: int = 0
    host: str = ""
    would_administer: bool = False  # an administrator by name, but not from this host


@dataclass(frozen=True, slots=True)
class Asked:
    """What a submission said beside the job itself. ``limits`` are those of processes, by name, in their own units."""

    queues: tuple[str, ...] = ()  # candidates; the first that takes the job is its queue; empty: the job's own
    is_size_given: bool = True  # -n
    limits: tuple[tuple[str, int], ...] = ()
    roles: tuple[RoleAsked, ...] = ()  # as submitted: what another queue adds makes another request of them


NOTHING_MORE = Asked()


@dataclass(frozen=True, slots=True)
class SubmitJob:
    """``job.id`` is 0: the cluster gives the number."""

    job: NewJob
    caller: Caller
    asked: Asked = NOTHING_MORE


@dataclass(frozen=True, slots=True)
class Target:
    """A job, or some elements of one. ``indices`` None: all of it."""

    job: int
    indices: Ranges | None = None


@dataclass(frozen=True, slots=True)
class KillJob:
    """bkill: the terminate sequence, or with ``remove`` EXIT at once whatever the hosts say.

    ``as_done``: one that runs counts as done when it has ended.
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
    """brequeue: those in one of these states wait again, with ``hold`` in PSUSP."""

    target: Target
    caller: Caller
    states: frozenset[JobState]
    hold: bool = False


@dataclass(frozen=True, slots=True)
class ForceJob:
    """brun: start a waiting job or element now on these hosts, with so many slots each (0: as they come).

    ``is_unconstrained``: it is not suspended by windows either.
    """

    target: Target
    caller: Caller
    hosts: tuple[tuple[str, int], ...]
    is_unconstrained: bool = False


@dataclass(frozen=True, slots=True)
class ModifyJob:
    """New parameters for a waiting job; ``changes`` is the sentence for its history.

    ``fields`` are the parameters that were named: a dependency condition is read anew only if it is among them.
    """

    target: Target
    job: NewJob
    caller: Caller
    changes: str
    fields: frozenset[str] = frozenset()
    is_switch: bool = False  # it was bswitch
    asked: Asked = NOTHING_MORE


@dataclass(frozen=True, slots=True)
class MoveJob:
    """btop, bbot: a place among the caller's own jobs of the queue or, for administrators, among all of them.

    ``place`` counts from 1 at the top, or from -1 at the bottom. An array moves as a whole. The reply is the place that
    was reached, in the same terms: there may be fewer jobs than that.
    """

    target: Target
    place: int
    caller: Caller


@dataclass(frozen=True, slots=True)
class ShrinkJob:
    """bresize release: give up what ``what`` says: all, all but some hosts, or some hosts and slots of them."""

    target: Target
    what: str  # "all", "all ^h1 2*h2", "h1 2*h2"
    caller: Caller
    notify: str = ""


@dataclass(frozen=True, slots=True)
class WishSize:
    """bresize request and cancel: how many tasks the job is to grow to; 0: no more than it has."""

    target: Target
    tasks: int
    caller: Caller


@dataclass(frozen=True, slots=True)
class HeldAttempt:
    """One attempt an agent says it knows: ``last`` is its newest report, or None.

    ``version`` is that of the allocation it has, ``resized`` its newest word on one that changed; ``limits`` is the
    version of the newest limits that it keeps.
    """

    key: Key
    last: "AgentReport | None" = None
    launched: bool = False
    version: int = 1
    resized: "ReportResized | None" = None
    limits: int = 0
    limit_reached: "ReportLimit | None" = None


@dataclass(frozen=True, slots=True)
class RecoverAttempt:
    """An attempt that a host holds or has ended, of which the books may never have heard.

    ``job`` is its submission as its host has it; None where that is not known.
    """

    key: Key
    job: NewJob | None
    allocation: Allocation
    submitted_at: float = 0.0
    started_at: float = 0.0
    lease_s: float = 0.0


@dataclass(frozen=True, slots=True)
class AgentHello:
    """A session begins; ``held`` is everything the host still knows."""

    facts: HostFacts
    incarnation: int
    held: tuple[HeldAttempt, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentGone:
    """A session ended; the host counts as silent only after the silence time."""

    host: str
    incarnation: int


@dataclass(frozen=True, slots=True)
class AgentHeard:
    """A silent host spoke again within the same session."""

    host: str


@dataclass(frozen=True, slots=True)
class ReportStaged:
    """``version``, here and below: of the allocation with which the host took the attempt on; 0: the newest."""

    host: str
    key: Key
    version: int = 0
    again: bool = False  # the launch order came too late: it is to be given anew


@dataclass(frozen=True, slots=True)
class ReportRefused:
    """Nothing of the order runs or will run on that host."""

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
    lost: bool = False  # how it ended is not known
    version: int = 0
    user_s: float = 0.0
    system_s: float = 0.0
    memory_mib_mean: float = 0.0
    seconds: float = 0.0
    others: tuple[tuple[str, HostUsage], ...] = ()  # as far as the attempt's other hosts have told this one

    @property
    def usage(self) -> HostUsage:
        """What was used on the host that says this."""
        return HostUsage(
            self.cpu_s, memory_mib_max=self.memory_mib_max, memory_mib_mean=self.memory_mib_mean, user_s=self.user_s,
            system_s=self.system_s, seconds=self.seconds,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ReportReleased:
    host: str
    key: Key
    version: int = 0
    usage: HostUsage | None = None  # in all


@dataclass(frozen=True, slots=True)
class ReportLimit:
    """A limit that holds for each host by itself was reached on this one, where the job's command does not run."""

    host: str
    key: Key
    reason: str
    version: int = 0


@dataclass(frozen=True, slots=True)
class ReportResized:
    """The lead host has the allocation of that version, and the job has been told. ``failed``: it will not have it."""

    host: str
    key: Key
    version: int
    failed: bool = False
    detail: str = ""


AgentReport = (
    ReportStaged | ReportRefused | ReportStarted | ReportFinished | ReportReleased | ReportResized | ReportLimit
)


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
class RemoveHost:
    """badmin hremove. What ran there counts as lost: the administrator vouches for it that nothing runs any more."""

    host: str
    caller: Caller
    comment: str = ""


@dataclass(frozen=True, slots=True)
class AddReservation:
    """brsvadd. ``wanted`` has no hosts yet, and no name where none was given; they are found here.

    Of the hosts in ``named`` (host names and groups, in order; none: all servers) that satisfy ``select``, so many
    ``units``: slots or, with ``wanted.is_whole``, hosts; 0: all of them.
    """

    wanted: AdvanceReservation
    units: int
    named: tuple[str, ...]
    select: str
    caller: Caller


@dataclass(frozen=True, slots=True)
class ChangeReservation:
    """brsvmod: what is None stays. Of hosts some are added, or taken away, as for a new reservation."""

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
    skips: tuple[float, float] | None = None  # a recurring one does not hold from then until then


@dataclass(frozen=True, slots=True)
class RemoveReservation:
    """brsvdel. ``is_forced``: even while jobs run in it; they go on as any others."""

    name: str
    caller: Caller
    is_forced: bool = False


@dataclass(frozen=True, slots=True)
class Reconfigure:
    """badmin reconfig, after the files were read: the driver vouches for who asked."""

    policy: Policy = field(repr=False)


class QueueAction(Enum):
    """What badmin does to a queue."""

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
    """Look at what is due: staging deadlines, silent hosts, old finished jobs."""


@dataclass(frozen=True, slots=True)
class EndLeases:
    """Look for leases of silent hosts that have ended; after each tick, in the state that it has left."""


Command = (
    SubmitJob
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
    | RecoverAttempt
    | AgentHello
    | AgentGone
    | AgentHeard
    | AgentReport
    | ApplyPlan
    | CloseHost
    | OpenHost
    | RemoveHost
    | Reconfigure
    | RuleQueue
    | AddReservation
    | ChangeReservation
    | RemoveReservation
    | Tick
    | EndLeases
)
