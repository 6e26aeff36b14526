"""The room that one slice leaves to the next, if nothing has happened between them but the starts of the first one.

To find the first hosts with room again costs a slice as much as dozens of starts.
"""

from collections.abc import Sequence

from lavad.core.cluster import Cluster
from lavad.core.plan import Start
from lavad.core.records import ArrayRecord
from lavad.core.scheduling.room import Room


class Carried:
    """The room of the last slice, what it started there, and the version of the cluster that it began with."""

    __slots__ = ("_room", "_starts", "_version")

    def __init__(self) -> None:
        self._room: Room | None = None
        self._starts: Sequence[Start] = ()
        self._version = 0

    def leave(self, room: Room, starts: Sequence[Start], version: int) -> None:
        """The next slice may go on with this room, of which these starts have taken their parts and nobody else."""
        self._room, self._starts, self._version = room, starts, version

    def forget(self) -> None:
        """The pass has come to its end."""
        self._room, self._starts = None, ()

    def take(self, cluster: Cluster) -> Room:
        """For a slice: the room of the last one if it still says what there is, else a new one. No one else gets it."""
        room, starts = self._room, self._starts
        self.forget()
        is_all = cluster.version == self._version + len(starts)  # there were as many events as starts
        if room is None or not is_all or room.table is not cluster.table or not _have_begun(cluster, starts):
            return Room(cluster.table)
        room.begin_slice()
        return room


def _have_begun(cluster: Cluster, starts: Sequence[Start]) -> bool:
    """Do these jobs hold what they were to start with, and not just something that looks like it?"""
    jobs = cluster.jobs
    for job, index, allocation, _ in starts:
        record = cluster.element(job, index) if index else jobs.get(job)
        if record is None or isinstance(record, ArrayRecord):
            return False
        if record.attempt is None or record.attempt.allocation is not allocation:
            return False
    return True
