"""An advance reservation: slots of certain hosts that are set apart for some users, or for nobody, in certain times.

The times are one interval, or windows that recur every week; of those some days may be left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from lavad.core.policy import Names, Window

_NOBODY = Names(False)


class Kind(Enum):
    """Whom the slots are for; the words are those of brsvs."""

    USER = "user"
    GROUP = "group"
    SYSTEM = "sys"  # nobody


@dataclass(frozen=True, slots=True)
class Times:
    """When slots are set apart: from ``begins_at`` until ``ends_at``, or in ``windows`` except in ``skipped``."""

    begins_at: float = 0.0
    ends_at: float = 0.0
    windows: tuple[Window, ...] = ()
    text: str = ""  # the windows as they were written
    skipped: tuple[tuple[float, float], ...] = ()

    @property
    def recurs(self) -> bool:
        return bool(self.windows)


@dataclass(frozen=True, slots=True)
class AdvanceReservation:
    """Slots set apart. ``hosts`` names each with its slots; of whole hosts all slots count, however many they are."""

    name: str
    kind: Kind
    holders: tuple[str, ...]  # users and groups that may use it, as written
    hosts: tuple[tuple[str, int], ...]
    times: Times
    by: str = ""  # who made it
    is_open: bool = False  # its jobs go on as any others when its time is over; else they are ended
    is_whole: bool = False  # -unit host, and all that are for the system
    suspends: bool = True  # others are suspended when its jobs need their slots
    queues: tuple[str, ...] = ()  # whose jobs may use the hosts until it begins, however long they run
    description: str = ""

    @property
    def slots(self) -> int:
        return sum(slots for _, slots in self.hosts)

    def admits(self, user: str, groups: Mapping[str, Names]) -> bool:
        """May this user's jobs use it?"""
        return any(user == name or user in groups.get(name, _NOBODY) for name in self.holders)
