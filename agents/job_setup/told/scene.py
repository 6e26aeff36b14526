"""Scene: all that a convention looks at when it tells one task."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar, cast

from agents.job_setup.told.table import RoleTable, Table, Task
from agents.job_setup.told.values import TREE, HostFacts
from protos.agents_pb2 import JobSpecBlob

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Scene:
    """A task among the tasks of its job, on its host."""

    blob: JobSpecBlob
    table: Table
    role: RoleTable
    task: Task
    run: int
    host: HostFacts
    options: Mapping[str, str]  # of the convention

    def once(self, what: str, make: Callable[[], Value]) -> Value:
        """Return what is the same for all tasks that a host tells by one table: made for the first of them."""
        key = (what, self.host.is_private, self.host.directory, tuple(sorted(self.options.items())))
        made = self.table.made
        if key not in made:
            made[key] = make()
        return cast("Value", made[key])

    def option(self, name: str, default: str) -> str:
        """Return an option of the convention; an empty one counts as not given."""
        return self.options.get(name) or default

    def number(self, name: str, default: int) -> int:
        """Return an option that is a number; the default if it is not one."""
        text = self.options.get(name, "")
        return int(text) if text.isascii() and text.isdigit() else default

    def has(self, name: str, default: bool = False) -> bool:
        """Return an option that is true or false; one without a value is true."""
        return self.options.get(name, str(default)).lower() in ("", "true", "1", "yes")

    def path(self, fixed: str) -> str:
        """Return the path at which the task can read a file at a fixed path."""
        return fixed if self.host.is_private else f"{self.host.directory}/{TREE}{fixed}"

    def in_job(self, task: Task) -> str:
        """Return the host name of a task within the job; its host's where tasks have no names of their own."""
        return f"{self.pod(task)}.{self.table.domain}" if self.host.is_private else task.host

    def reach(self, task: Task) -> str:
        """Return the name by which the task's ports are reached; its address where tasks have no names."""
        return self.in_job(task) if self.host.is_private else task.address

    def pod(self, task: Task) -> str:
        """Return the name JOB-ROLE-INDEX."""
        return f"{self.table.domain}-{task.role}-{task.index}"

    def names(self, task: Task) -> tuple[str, ...]:
        """Return the names of a task: JOB-ROLE-INDEX, the same below the job, and ROLE-INDEX."""
        pod = self.pod(task)
        return (pod, f"{pod}.{self.table.domain}", f"{task.role}-{task.index}")

    def full_names(self, task: Task) -> tuple[str, ...]:
        """Return the names that MPIJobs give: of the only task of a role also without an index, each as a service."""
        pod, domain = self.pod(task), self.table.domain
        pods = (pod, f"{domain}-{task.role}") if len(self.table.tasks_of(task.role)) == 1 else (pod,)
        return tuple(name for one in pods for name in (one, f"{one}.{domain}", f"{one}.{domain}.default.svc"))


# Names of options in files of the origin, beside those here.
SYNONYMS = {
    "slots-per-worker": "slots",
    "version": "style",
    "vc": "virtual-cluster",
    "dashboard-port": "dashboardPort",
    "client-port": "clientPort",
}


def options_of(words: Iterable[str]) -> dict[str, str]:
    """Parse NAME=VALUE, as a flag of the origin, too: --NAME=VALUE."""
    parted = (word.lstrip("-").partition("=") for word in words)
    return {SYNONYMS.get(name, name): value for name, _, value in parted if name}
