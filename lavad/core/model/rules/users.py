"""Shares, groups and bounds of users."""

from dataclasses import dataclass

from lavad.core.model.rules.names import NONE, Names


@dataclass(frozen=True, slots=True)
class Share:
    """Share of one account in a share tree: a user, a group, or one of the words ``default`` and ``others``.

    ``each`` is the form ``group@``: every user of the group has an account of its own with that number of shares.
    ``below`` are the shares inside a group; without them its users are served in order.
    """

    name: str
    shares: int
    users: Names = NONE  # users of the account, at any depth
    each: bool = False
    below: tuple["Share", ...] = ()


@dataclass(frozen=True, slots=True)
class Fairshare:
    """Fairshare of a queue. ``queues`` share one tree with this one, the owner first."""

    shares: tuple[Share, ...]
    cpu_time_factor: float = 0.7
    run_time_factor: float = 0.7
    run_job_factor: float = 3.0
    committed_run_time_factor: float = 0.0
    gpu_run_time_factor: float = 0.0
    hist_hours: float = 5.0
    is_run_time_historic: bool = False  # ENABLE_HIST_RUN_TIME: count run time of ended jobs
    does_run_time_decay: bool = False  # RUN_TIME_DECAY
    queues: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group as written, for display: inner groups have a slash behind them."""

    name: str
    members: tuple[str, ...]
    shares: tuple[tuple[str, int], ...] = ()  # USER_SHARES
    administrators: frozenset[str] = frozenset()
    is_external: bool = False  # members that egroup names


@dataclass(frozen=True, slots=True)
class UserRule:
    """Row of lsb.users: limits of a user, of a group, or of each user of a group."""

    slots: int | None = None  # MAX_JOBS
    slots_per_processor: float | None = None  # JL/P
    pending_jobs: int | None = None  # MAX_PEND_JOBS
    pending_slots: int | None = None  # MAX_PEND_SLOTS
    priority: int = 0
