"""Words of bresize release for a job of tasks: hosts, or the number of tasks that a role keeps.

``role-index`` (or ``role/index``, ``role[index]``) is one task, unless a host of the job has that name.

``all`` is all tasks beyond the roles' minima, ``all ^host ...`` all but those on some hosts, ``host`` and ``n*host``
tasks on a host, the last role's first, and ``role=n`` a role with n tasks left.
"""

import re

from lavad.core.decide.jobs.sizes import tasks_in
from lavad.core.language.requirements.parts import (
    could_release,
    held_by,
    is_divisible_of,
    keeps_first_host,
    sizes_of,
)
from lavad.core.model import Allocation, HostShare, Request
from lavad.core.model.reasons import Refused
from lavad.core.model.task_rules import TaskKey
from lavad.core.state.attempts import Attempt

EXPECTED = "Bad list: all, all ^host ..., or host, n*host, role=n and role-index ... are expected"
_TASK = re.compile(r"(?P<role>.+?)(?:-|/|\[)(?P<index>[0-9]{1,9})\]?")


def shares_in(attempt: Attempt, request: Request, what: str) -> tuple[Allocation, tuple[TaskKey, ...] | None]:
    """Shares that the words name, and their tasks; None: the last of each share.

    Raises:
        Refused: one of the words names nothing that could be released.
    """
    words = what.split()
    if not words:
        raise Refused(EXPECTED)
    if words == ["all"]:
        every = sum(sizes_of(attempt.allocation, len(request.roles)))
        return could_release(attempt.allocation, request, every), None
    chosen = _Chosen(attempt, request)
    if words[0] == "all":
        chosen.all_but(words[1:])
    else:
        for word in sorted(words, key=chosen.rank):
            chosen.add(word)
    return chosen.gives(), chosen.tasks()


class _Chosen:
    """Tasks chosen so far: on each host, places among the tasks of each role."""

    def __init__(self, attempt: Attempt, request: Request) -> None:
        self.attempt = attempt
        self.request = request
        self.places: dict[str, list[set[int]]] = {}
        self.hosts: set[str] = set()

    def gives(self) -> Allocation:
        """Parts of the shares that the chosen tasks hold."""
        found = []
        for share in self.attempt.allocation:
            places = self.places.get(share.host)
            if places is None or not any(places):
                continue
            part = held_by(share, places, self.request)
            if part != share and not is_divisible_of(share):
                raise Refused(f"{share.host}: where tasks are bound to processors, hosts are released as a whole")
            if part == share and share is self.attempt.allocation[0] and keeps_first_host(self.request):
                raise Refused(f"{share.host}: it holds resources of the job as a whole, so it can't be released")
            found.append(part)
        return tuple(found)

    def tasks(self) -> tuple[TaskKey, ...] | None:
        """Chosen tasks; None if tasks have not been placed one by one."""
        tasks = self.attempt.tasks
        if tasks is None:
            return None
        found = []
        for host, by_role in self.places.items():
            for number, places in enumerate(by_role):
                here = tasks_in.on_host(tasks, host, number)
                found += [here[place] for place in places]
        return tuple(sorted(found))

    def rank(self, word: str) -> int:
        """Order in which words are taken: tasks, then hosts, and sizes of roles when all else is chosen."""
        return 2 if "=" in word else int(self._task(word) is None)

    def _task(self, word: str) -> tuple[HostShare, int, int] | None:
        """Share, role and place of the task that ``worker-3``, ``worker/3`` or ``worker[3]`` names."""
        found = _TASK.fullmatch(word)
        names = [role.name for role in self.request.roles]
        if self.attempt.tasks is None or found is None or found["role"] not in names:
            return None
        if self.attempt.share_on(word) is not None:
            return None
        key = TaskKey(names.index(found["role"]), int(found["index"]))
        for share in self.attempt.allocation:
            here = tasks_in.on_host(self.attempt.tasks, share.host, key.role)
            if key in here:
                return share, key.role, here.index(key)
        raise Refused(f"{word}: the job has no such task now")

    def all_but(self, words: list[str]) -> None:
        """Choose all tasks but those on these hosts."""
        kept: dict[str, int] = {}
        for word in words:
            if not word.startswith("^"):
                raise Refused(f"{word}: after all, ^host or ^n*host is expected")
            count, share = self._host(word[1:])
            kept[share.host] = count
        for share in self.attempt.allocation:
            self._last(share, sum(share.tasks_by_role) - kept.get(share.host, 0))

    def add(self, word: str) -> None:
        """Choose the tasks that one word names."""
        role, equals, count = word.rpartition("=")
        if equals:
            self._role(word, role, count)
            return
        one = self._task(word)
        if one is not None:
            share, number, place = one
            self._on(share)[number].add(place)
            return
        tasks, share = self._host(word)
        if share.host in self.hosts:
            raise Refused(f"{word}: the host is named twice")
        self.hosts.add(share.host)
        self._last(share, tasks)

    def _host(self, word: str) -> tuple[int, HostShare]:
        """Number of tasks and share of the host in ``h1`` or ``2*h1``."""
        count, star, name = word.rpartition("*")
        if star and not (count.isdigit() and int(count) > 0):
            raise Refused(f"{word}: before the * a number of tasks is expected")
        share = self.attempt.share_on(name)
        if share is None:
            raise Refused(f"{name}: the job does not run on that host")
        here = sum(share.tasks_by_role)
        if star and int(count) > here:
            raise Refused(f"{word}: the job has only {here} there")
        return int(count) if star else here, share

    def _last(self, share: HostShare, tasks: int) -> None:
        """Choose the last tasks on a host, of the last role first."""
        places = self._on(share)
        for number in reversed(range(len(places))):
            less = min(tasks, share.tasks_by_role[number] - len(places[number]))
            self._choose(share, number, less)
            tasks -= less

    def _role(self, word: str, name: str, count: str) -> None:
        """Choose the last tasks of a role beyond ``count``, on the hosts that joined last."""
        number = role_number(self.request, name)
        if not count.isdigit():
            raise Refused(f"{word}: after the = a number of tasks is expected")
        present = sizes_of(self.attempt.allocation, len(self.request.roles))[number]
        if present <= int(count):
            raise Refused(f"{word}: the role has {present} tasks, so it would not shrink")
        less = max(0, present - int(count) - sum(len(places[number]) for places in self.places.values()))
        for share in reversed(self.attempt.allocation):
            free = share.tasks_by_role[number] - len(self._on(share)[number])
            self._choose(share, number, min(less, free))
            less -= min(less, free)

    def _on(self, share: HostShare) -> list[set[int]]:
        return self.places.setdefault(share.host, [set() for _ in self.request.roles])

    def _choose(self, share: HostShare, number: int, tasks: int) -> None:
        """Choose further tasks of a role on a host, the last ones."""
        places = self._on(share)[number]
        free = [place for place in reversed(range(share.tasks_by_role[number])) if place not in places]
        places.update(free[:tasks])


def role_number(request: Request, name: str) -> int:
    """Number of the role of that name; without a name of the only one.

    Raises:
        Refused: there is none.
    """
    names = [role.name for role in request.roles]
    if not name and len(names) == 1:
        return 0
    if name not in names:
        raise Refused(f"{name or 'The role is missing'}: the job's roles are {', '.join(names)}")
    return names.index(name)
