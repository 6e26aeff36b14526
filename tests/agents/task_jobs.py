"""Jobs of tasks for tests of agents: specs, stage orders, and orders on tasks as the master gives them."""

from collections.abc import Callable

from protos.agents_pb2 import JobSpecBlob, Order, Report, Stage, TasksOrder
from protos.common_pb2 import (
    LAUNCH_EACH,
    TASK_RUNNING,
    HostShare,
    Role,
    RoleTasks,
    TaskHost,
    TaskRun,
    TaskState,
)
from protos.jobs_pb2 import TaskRules
from tests.agents.hosts import NAME, Host, Key, Place, blob, key_message, key_of, stage

KEY = (1, 0, 1)
Run = tuple[int, int, int]


def role(name: str, command: str = "", tasks: int = 1, **fields: object) -> Role:
    """A role whose command runs in each task."""
    given: dict[str, object] = {"name": name, "tasks_min": tasks, "tasks_max": tasks, "launch": LAUNCH_EACH}
    return Role(**{**given, "command": command, **fields})  # type: ignore[arg-type]


def job(place: Place, *roles: Role, number: int = 1, **fields: object) -> JobSpecBlob:
    """A job of tasks, whose output is kept by the agent unless given."""
    given: dict[str, object] = {"output": "", "roles": roles, "tasks": TaskRules(format=1)}
    return blob(place, number, "", **{**given, **fields})


def staging(roles: list[Role], **fields: object) -> Stage:
    """A stage order with all tasks on this host."""
    tasks = [RoleTasks(role=at, indices=range(one.tasks_max)) for at, one in enumerate(roles)]
    slots = sum(one.tasks_max for one in roles)
    share = HostShare(host=NAME, slots=slots, tasks_by_role=[one.tasks_max for one in roles])
    return stage(share, **{"launch_now": False, "tasks": tasks, **fields})


def message(run: Run) -> TaskRun:
    """As on the wire."""
    return TaskRun(role=run[0], index=run[1], run=run[2])


class TaskJob:
    """A job of tasks on one host, as its master sees it."""

    def __init__(self, host: Host, spec: JobSpecBlob, key: Key = KEY) -> None:
        self.host = host
        self.spec = spec
        self.key = key
        self.table: list[TaskHost] = []
        self.address = ""

    async def stage(self, **fields: object) -> None:
        """Stage the attempt, and make the table of what the host answers."""
        await self.host.run(self.spec, staging(list(self.spec.spec.roles), **fields), attempt=self.key[2])
        staged = (await self.host.report(self.key, "staged")).staged
        self.address = staged.address
        self.table = [TaskHost(host=NAME, address=staged.address, roles=staged.tasks)]

    def order(self, **fields: object) -> Order:
        """An order on tasks, with the table."""
        tasks = TasksOrder(version=1, table=self.table, **fields)  # type: ignore[arg-type]
        return Order(key=key_message(self.key), allocation_version=0, tasks=tasks)

    async def start(self, *runs: Run, age_s: float = 0.0) -> None:
        """Start runs."""
        await self.host.order(self.order(start=map(message, runs)), age_s=age_s)

    async def hold(self, *runs: Run) -> None:
        """Begin runs of tasks without a command."""
        await self.host.order(self.order(hold=map(message, runs)))

    async def stop(self, *runs: Run, reason: str = "") -> None:
        """End runs."""
        await self.host.order(self.order(stop=map(message, runs), reason=reason))

    def states(self, run: Run) -> list[TaskState]:
        """All reports on a run."""
        reports = [one for one in self.host.said(self.key, "tasks") if key_of(one.key) == self.key]
        return [state for report in reports for state in report.tasks.tasks if state.task == message(run)]

    async def until(self, run: Run, condition: Callable[[TaskState], bool]) -> TaskState:
        """Wait for a report on a run."""
        await self.host.until(lambda: any(map(condition, self.states(run))))
        return next(filter(condition, self.states(run)))

    async def running(self, run: Run) -> TaskState:
        """Wait for its start."""
        return await self.until(run, lambda state: state.phase == TASK_RUNNING)

    async def ended(self, run: Run) -> TaskState:
        """Wait for its end."""
        return await self.until(run, lambda state: state.phase > TASK_RUNNING)

    def held(self) -> dict[Run, TaskState]:
        """States in the next hello."""
        held = next(one for one in self.host.local.ledger.held() if key_of(one.key) == self.key)
        return {(one.task.role, one.task.index, one.task.run): one for one in held.tasks}

    def output(self, run: Run) -> str:
        """Kept output of a run."""
        return (self.host.local.outputs / ".".join(map(str, (*self.key, *run)))).read_text()


async def a_job(host: Host, *roles: Role, number: int = 1, **fields: object) -> TaskJob:
    """A staged job of tasks."""
    found = TaskJob(host, job(host.place, *roles, number=number, **fields), (number, 0, 1))
    await found.stage()
    return found


def reports_of(host: Host, key: Key) -> list[Report]:
    """All reports on an attempt."""
    return [one for one in host.reports if key_of(one.key) == key]
