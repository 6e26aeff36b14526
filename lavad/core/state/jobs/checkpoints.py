"""Checkpoints of a running job: the request that its first host has not answered yet, and the newest one made."""

from typing import NamedTuple


class CheckpointRequest(NamedTuple):
    """A request. ``ends``: the job ends with the checkpoint; ``migrates``: and is requeued then (bmig)."""

    number: int  # of the attempt
    force: bool = False
    ends: bool = False
    migrates: bool = False
    may_stay: bool = False  # on the same host: bmig -m


class Checkpoints(NamedTuple):
    """Checkpoints of an attempt. ``open``: the request without an answer; one at a time."""

    number: int = 0  # of the newest request
    open: CheckpointRequest | None = None
    known: float = 0.0  # when the newest one began whose end is known, by the clock of its host

    @property
    def migrates(self) -> bool:
        """True if the job is requeued when it ends by the present checkpoint."""
        return self.open is not None and self.open.migrates

    def avoided(self, lead: str) -> str:
        """Host that the job avoids when it has migrated: its first one, or none."""
        return "" if self.open is not None and self.open.may_stay else lead


NO_CHECKPOINTS = Checkpoints()  # shared by all attempts without any
