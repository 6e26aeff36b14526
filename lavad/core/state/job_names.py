"""Jobs by name, for users whose conditions name jobs; nobody else pays for it.

The names of a user are collected when they are first asked for, and kept current from then on.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable

from lavad.core.state.records import ArrayRecord, Job


class Names:
    """Ids by job name, of the users that have ever asked."""

    def __init__(self) -> None:
        self._users: dict[int, _OfUser] = {}

    def find(self, uid: int, name: str, is_prefix: bool, jobs: Iterable[Job | ArrayRecord]) -> list[int]:
        """Ids of the user's jobs of that name (or whose name begins so), ascending; ``jobs``: all there are."""
        known = self._users.get(uid)
        if known is None:
            known = self._users[uid] = _OfUser()
            for record in jobs:
                if record.shared.uid == uid:
                    known.add(name_of(record.text), record.id)
        return known.find(name, is_prefix)

    def add(self, uid: int, text: bytes, job: int) -> None:
        """A job came, or got a name."""
        if self._users and uid in self._users:
            self._users[uid].add(name_of(text), job)

    def remove(self, uid: int, text: bytes, job: int) -> None:
        """A job is forgotten, or loses its name."""
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

    def find(self, name: str, is_prefix: bool) -> list[int]:
        if not is_prefix:
            return list(self.ids.get(name, ()))
        found: list[int] = []
        at = bisect_left(self.names, name)
        while at < len(self.names) and self.names[at].startswith(name):
            found += self.ids[self.names[at]]
            at += 1
        return sorted(found)


def name_of(text: bytes) -> str:
    """A job's name: the first of its packed words."""
    return text.partition(b"\0")[0].decode(errors="surrogateescape")
