"""Job groups as values, and their events; ``events`` has them all."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JobGroup:
    """A job group by its path. ``limit``: most jobs of it and of the groups below that hold slots at once."""

    path: str
    owner: str
    uid: int
    created_at: float
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class JobGroupSet:
    """A job group was created, by name or for the first job in it, or has another limit."""

    at: float
    group: JobGroup
    by: str


@dataclass(frozen=True, slots=True)
class JobGroupsRemoved:
    """Job groups without jobs were deleted."""

    at: float
    paths: tuple[str, ...]
    by: str
