"""Commands that agents give: begin and end of their sessions, what they hold, and what they report."""

from dataclasses import dataclass
from typing import NamedTuple

from lavad.core.events import NewJob
from lavad.core.model import Allocation, HostFacts, Key, PostState
from lavad.core.model.gpu_use import GpuUse
from lavad.core.model.progress import Progress
from lavad.core.model.task_values import RolePart, TaskReport
from lavad.core.model.usage import HostUsage


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
    pre_exec: str = ""  # pre-execution command that failed: job, queue, host; empty: another reason
    pre_exec_code: int = 0  # its exit code; 0: it was killed, or was not started
    lacking: str = ""  # what the job needs and the host lacks: a directory, a program of the site
    lacking_status: int = 0  # wait status of the job's end if no host has it; 0: it waits for one that does
    lacking_term: str = ""  # and its reason


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
    post: PostState = PostState.NONE
    posted_at: float = 0.0

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


@dataclass(frozen=True, slots=True)
class ReportCheckpoint:
    """A host has made a checkpoint of an attempt, or has not: ``error`` says why. ``number``: of the request; 0: none.

    ``ends``: the job ends with it. ``action``: that of its queue, or the warning action, if it is one.
    """

    host: str
    key: Key
    number: int
    began: float
    error: str = ""
    ends: bool = False
    action: str = ""


@dataclass(frozen=True, slots=True)
class CheckGpus:
    """A host says that GPUs of an attempt are idle or in trouble."""

    host: str
    key: Key


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
class NoticeTaken:
    """The host has the newest notice, and will end what is left in ``seconds``; negative: it will not."""

    host: str
    seconds: float


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
