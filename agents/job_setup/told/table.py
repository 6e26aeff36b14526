"""Table of all tasks of a job: where each is, and its ports; roles in the job's order, tasks by index."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from protos.agents_pb2 import JobSpecBlob
from protos.common_pb2 import PortRequest, Role, TaskHost


@dataclass(frozen=True, slots=True, eq=False)  # one of a table is no other: to find it costs no comparison
class Task:
    """One task with a place."""

    role: str
    index: int
    number: int  # among all tasks of the job; where not all have a place yet, among those that it will have
    host: str
    address: str  # of its host; the host's name if that is not known
    ports: Mapping[str, tuple[int, ...]]  # by the name of the port request


@dataclass(frozen=True, slots=True)
class RoleTable:
    """One role and its tasks that have a place."""

    at: int
    spec: Role
    tasks: tuple[Task, ...]

    @property
    def name(self) -> str:
        """Name of the role."""
        return self.spec.name

    @property
    def size(self) -> int:
        """Number of its tasks: those with a place, or all that are to run in turn."""
        return self.spec.completions or len(self.tasks)

    def place_of(self, task: Task) -> int:
        """Return the number of one of its tasks among them, from 0."""
        return task.index if self.spec.completions else self.tasks.index(task)

    @property
    def slots(self) -> int:
        """Slots of each task."""
        return self.spec.slots_per_task or 1

    @property
    def gpus(self) -> int:
        """GPUs of each task; 0 if they are not counted for each."""
        return self.spec.gpu.num if self.spec.gpu.per_task else 0


class Table:
    """All tasks of a job."""

    def __init__(self, job: str, roles: Sequence[RoleTable]) -> None:
        self.job = job
        self.roles = tuple(roles)
        self.made: dict[object, object] = {}  # what conventions have made of this table, for the next task
        self._by_index: dict[tuple[int, int], Task] = {}

    @staticmethod
    def of(blob: JobSpecBlob, hosts: Iterable[TaskHost]) -> "Table":
        """Build the table from the hosts of an order, in any order of hosts."""
        found: list[list[tuple[int, TaskHost, tuple[int, ...]]]] = [[] for _ in blob.spec.roles]
        for host in hosts:
            for part in host.roles:
                width = sum(port.count or 1 for port in blob.spec.roles[part.role].ports)
                for place, index in enumerate(part.indices):
                    ports = tuple(part.ports[place * width : (place + 1) * width])
                    found[part.role].append((index, host, ports))
        roles, number = [], 0
        for at, (spec, places) in enumerate(zip(blob.spec.roles, found, strict=True)):
            places.sort(key=lambda place: place[0])
            tasks = tuple(
                Task(
                    spec.name,
                    index,
                    number + (index if spec.completions else count),
                    host.host,
                    host.address or host.host,
                    _ports(spec.ports, numbers),
                )
                for count, (index, host, numbers) in enumerate(places)
            )
            roles.append(RoleTable(at, spec, tasks))
            number += roles[-1].size
        return Table(job_name(blob), roles)

    def task(self, role: int, index: int) -> Task | None:
        """Return a task by the number of its role and its index there."""
        if not self._by_index:
            self._by_index = {(role.at, task.index): task for role in self.roles for task in role.tasks}
        return self._by_index.get((role, index))

    @cached_property
    def domain(self) -> str:
        """Name of the job as a part of host names."""
        return re.sub(r"[^A-Za-z0-9._-]", "-", self.job)

    @property
    def size(self) -> int:
        """Number of tasks of all roles."""
        return sum(role.size for role in self.roles)

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """All tasks with a place, role by role."""
        return tuple(task for role in self.roles for task in role.tasks)

    def tasks_of(self, role: str) -> tuple[Task, ...]:
        """Return the tasks of a role; none if the job has no such role."""
        return self._by_name[role].tasks if role in self._by_name else ()

    def role(self, name: str) -> RoleTable | None:
        """Return a role by its name."""
        return self._by_name.get(name)

    def hosts(self) -> dict[str, list[Task]]:
        """Return the tasks by host, hosts in the order of their first tasks."""
        found: dict[str, list[Task]] = {}
        for task in self.tasks:
            found.setdefault(task.host, []).append(task)
        return found

    @cached_property
    def _by_name(self) -> dict[str, RoleTable]:
        return {role.name: role for role in self.roles}


def job_name(blob: JobSpecBlob) -> str:
    """Return the name of the job as its tasks know it."""
    return blob.spec.tasks.owner_name or blob.spec.name or str(blob.job)


def _ports(requests: Iterable[PortRequest], numbers: Iterable[int]) -> dict[str, tuple[int, ...]]:
    rest = iter(numbers)
    return {request.name: tuple(islice(rest, request.count or 1)) for request in requests}


def port_of(task: Task, wanted: Sequence[str], default: int) -> int:
    """Return the task's port reserved under the first of these names that it has; else the default."""
    for name in wanted:
        if task.ports.get(name):
            return task.ports[name][0]
    return default
