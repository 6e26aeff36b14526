"""Hosts closed to all but one job: compute units of jobs with cu[excl]."""

from collections import Counter
from collections.abc import Iterable

from lavad.core.model import Key


class ExclusiveUnits:
    """Closed hosts by row. One may be closed by several shares of an attempt, and is open when the last is released."""

    def __init__(self) -> None:
        self._by_key: dict[Key, dict[int, list[int]]] = {}
        self._rows: Counter[int] = Counter()

    def __bool__(self) -> bool:
        return bool(self._rows)

    def __contains__(self, row: int) -> bool:
        return row in self._rows

    def copy(self) -> "ExclusiveUnits":
        """An independent copy."""
        twin = ExclusiveUnits()
        twin._by_key = {key: held.copy() for key, held in self._by_key.items()}
        twin._rows = self._rows.copy()
        return twin

    def keep(self, key: Key, row: int, members: list[int]) -> Iterable[int]:
        """Close these hosts as long as the attempt has a share on ``row``; return the hosts newly counted."""
        held = self._by_key.setdefault(key, {})
        if row in held:
            return ()
        held[row] = members
        self._rows.update(members)
        return members

    def let_go(self, key: Key, row: int) -> list[int]:
        """Note that the share on ``row`` is released; return the hosts that are open now."""
        held = self._by_key.get(key, {})
        members = held.pop(row, [])
        if not held:
            self._by_key.pop(key, None)
        self._rows.subtract(members)
        free = [one for one in members if not self._rows[one]]
        for one in free:
            del self._rows[one]
        return free
