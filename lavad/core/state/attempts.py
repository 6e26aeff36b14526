"""Attempts of jobs: where one runs, what it has used, how it ended. Only ``apply`` writes to them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from lavad.core.model import (
    Allocation,
    HostShare,
    JobState,
    Key,
    PostState,
    RunChange,
)
from lavad.core.model.activity import ACTIVE
from lavad.core.model.allocation import HOST, grown, slots_of
from lavad.core.model.gpu_use import GpusByHost
from lavad.core.model.usage import NO_ONE, ByHost
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
        "changed",
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
        self.changed: RunChange | None = None  # what a bmod gave it since; its versions are those of the limits
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
