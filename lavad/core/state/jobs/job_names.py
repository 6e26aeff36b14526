"""Index of jobs by name, for dependency conditions that name jobs. A job without a name has that of its command.

A user's names are collected at the first look-up, and kept current from then on; other users cost nothing.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable

from lavad.core.language.job_names import name_shown
from lavad.core.state.records import ArrayRecord, Job

FEW = 20  # inserting one moves half of the names; sorting compares each


class Names:
    """Job ids by job name, for users that have looked one up."""

    def __init__(self) -> None:
        self._users: dict[int, _OfUser] = {}

    def find(
        self, uid: int, name: str, is_prefix: bool, jobs: Iterable[Job | ArrayRecord], most: int | None = None
    ) -> list[int]:
        """Ids of the user's jobs with that name or prefix, ascending; ``jobs``: all jobs.

        Of more than ``most`` only some are found, but more than that.
        """
        known = self._users.get(uid)
        if known is None:
            known = self._users[uid] = _OfUser()
            for record in jobs:
                if record.shared.uid == uid:
                    known.add(name_shown(record.text), record.id)
        return known.find(name, is_prefix, most)

    def add(self, uid: int, text: bytes, job: int) -> None:
        """Add a job, or its new name."""
        if self._users and uid in self._users:
            self._users[uid].add(name_shown(text), job)

    def remove(self, uid: int, text: bytes, job: int) -> None:
        """Remove a forgotten job, or its old name."""
        if self._users and uid in self._users:
            self._users[uid].remove(name_shown(text), job)


class _OfUser:
    """Jobs of one user by name; names are put in order at look-ups of a prefix, all new ones at once."""

    def __init__(self) -> None:
        self.ids: dict[str, list[int]] = {}
        self._in_order: list[str] = []
        self._new: set[str] = set()

    def add(self, name: str, job: int) -> None:
        if not name:
            return
        if name not in self.ids:
            self.ids[name] = []
            self._new.add(name)
        insort(self.ids[name], job)

    def remove(self, name: str, job: int) -> None:
        ids = self.ids.get(name, [])
        at = bisect_left(ids, job)
        if at < len(ids) and ids[at] == job:
            del ids[at]
            if not ids:
                del self.ids[name]
                if name in self._new:
                    self._new.remove(name)
                else:
                    del self._in_order[bisect_left(self._in_order, name)]

    def find(self, name: str, is_prefix: bool, most: int | None) -> list[int]:
        first = slice(None if most is None else most + 1)
        if not is_prefix:
            return self.ids.get(name, [])[first]
        found: list[int] = []
        names = self._names()
        at = bisect_left(names, name)
        while at < len(names) and names[at].startswith(name) and (most is None or len(found) <= most):
            found += self.ids[names[at]][first]
            at += 1
        return sorted(found)

    def _names(self) -> list[str]:
        """All names in order. Single new ones are cheaper to insert; a million distinct commands to sort."""
        if len(self._new) > FEW:
            self._in_order += self._new
            self._in_order.sort()
        else:
            for name in self._new:
                insort(self._in_order, name)
        self._new.clear()
        return self._in_order


def name_of(text: bytes) -> str:
    """Name that a job was given: the first of its packed words."""
    return text.partition(b"\0")[0].decode(errors="surrogateescape")
