"""Settings of hosts."""

from dataclasses import dataclass

from lavad.core.model.rules.queues import Threshold
from lavad.core.model.windows import Window


@dataclass(frozen=True, slots=True)
class HostRule:
    """Row of a host in lsb.hosts and lsf.cluster. ``slots`` None, an empty model or type: as reported by the agent."""

    slots: int | None = None  # MXJ
    user_slots: int | None = None  # JL/U
    thresholds: tuple[Threshold, ...] = ()
    dispatch_windows: tuple[Window, ...] = ()
    model: str = ""
    type: str = ""
    is_server: bool = True
    resources: frozenset[str] = frozenset()  # boolean ones, besides those found by the agent
    exclusive_resources: frozenset[str] = frozenset()  # of those: only for jobs that name them
    window_text: str = ""  # DISPATCH_WINDOW as written
    exit_rate: int | None = None  # EXIT_RATE
    migration_s: float | None = None  # MIG: of suspended jobs, if theirs is longer or if they have none
