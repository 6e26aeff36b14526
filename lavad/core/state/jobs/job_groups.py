"""Job groups: a tree of paths, to which jobs are attached. Who is in one is in the jobs' shared facts.

A group exists from its creation, or from its first job, until it is deleted; those above it exist as long. The jobs in
it are counted by ``state.counters``, those of them that hold slots by ``state.limits``.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from lavad.core.job_group_events import JobGroup
from lavad.core.language.job_groups import ROOT, lineage


class JobGroups:
    """All job groups by path; false if there are none."""

    def __init__(self) -> None:
        self._groups: dict[str, JobGroup] = {}
        self._children: dict[str, dict[str, None]] = {}  # paths right below each group
        self._owned: Counter[int] = Counter()  # groups of each user, by uid

    def __bool__(self) -> bool:
        return bool(self._groups)

    def __len__(self) -> int:
        return len(self._groups)

    def __contains__(self, path: str) -> bool:
        return path in self._groups

    def __iter__(self) -> Iterator[JobGroup]:
        return iter(self._groups.values())

    def get(self, path: str) -> JobGroup | None:
        """The group of that path, or None."""
        return self._groups.get(path)

    def put(self, group: JobGroup) -> None:
        """Add a group, or replace it."""
        if (old := self._groups.get(group.path)) is not None:
            self._leave(old.uid)
        self._owned[group.uid] += 1
        self._groups[group.path] = group
        self._children.setdefault(_above(group.path), {})[group.path] = None

    def drop(self, path: str) -> None:
        """Remove a group."""
        self._leave(self._groups.pop(path).uid)
        above = _above(path)
        del self._children[above][path]
        if not self._children[above]:
            del self._children[above]

    def _leave(self, uid: int) -> None:
        self._owned[uid] -= 1
        if not self._owned[uid]:
            del self._owned[uid]

    def owned(self, uid: int) -> int:
        """Number of the groups of a user."""
        return self._owned[uid]

    def missing(self, path: str) -> list[str]:
        """Those of the group and the ones above it that do not exist, the highest first."""
        return [one for one in lineage(path) if one not in self._groups][::-1]

    def children(self, path: str) -> Mapping[str, None]:
        """Paths of the groups right below."""
        return self._children.get(path, {})

    def below(self, path: str) -> Iterator[str]:
        """The group and all groups below it, each after those below it."""
        last: list[str] = []
        left = [path]
        while left:  # not by calls of itself: a path may have hundreds of parts
            last.append(left.pop())
            left.extend(self.children(last[-1]))
        yield from (one for one in reversed(last) if one in self._groups)


def _above(path: str) -> str:
    return path.rpartition(ROOT)[0]
