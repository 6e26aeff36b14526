"""Index of jobs by name, for dependency conditions that name jobs.

A user's names are collected at the first look-up, and kept current from then on; other users cost nothing.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable

from lavad.core.state.records import ArrayRecord, Job


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
                    known.add(name_of(record.text), record.id)
        return known.find(name, is_prefix, most)

    def add(self, uid: int, text: bytes, job: int) -> None:
        """Add a job, or its new name."""
        if self._users and uid in self._users:
            self._users[uid].add(name_of(text), job)

    def remove(self, uid: int, text: bytes, job: int) -> None:
        """Remove a forgotten job, or its old name."""
        if self._users and uid in self._users:
            self._users[uid].remove(name_of(text), job)


class _OfUser:
    def __init__(self) -> None:
        self.ids: dict[str, list[int]] = {}
        self.names: list[str] = []  # in order

    def add(self, name: str, job: int) -> None:
        if not name:
            return
        if name not in self.ids:
            self.ids[name] = []
            insort(self.names, name)
        insort(self.ids[name], job)

    def remove(self, name: str, job: int) -> None:
        ids = self.ids.get(name, [])
        at = bisect_left(ids, job)
        if at < len(ids) and ids[at] == job:
            del ids[at]
            if not ids:
                del self.ids[name], self.names[bisect_left(self.names, name)]

    def find(self, name: str, is_prefix: bool, most: int | None) -> list[int]:
        first = slice(None if most is None else most + 1)
        if not is_prefix:
            return self.ids.get(name, [])[first]
        found: list[int] = []
        at = bisect_left(self.names, name)
        while at < len(self.names) and self.names[at].startswith(name) and (most is None or len(found) <= most):
            found += self.ids[self.names[at]][first]
            at += 1
        return sorted(found)


def name_of(text: bytes) -> str:
    """Name of a job: the first of its packed words."""
    return text.partition(b"\0")[0].decode(errors="surrogateescape")
