"""Tasks of a job on the wire: records, tickets for their output, orders and reports."""

import asyncio
import os
from types import SimpleNamespace

import pytest

from lavad.agent_links.links import AgentLinks
from lavad.agent_links.spec_cache import SpecShelf
from lavad.api import task_reports
from lavad.api.jobs.listing import record_message
from lavad.api.jobs.tasks import output_of
from lavad.core import commands as c
from lavad.core.apply.events import apply_events
from lavad.core.apply.tasks.places import joined, unplace
from lavad.core.model import Key
from lavad.core.model.reasons import Refused
from lavad.core.model.task_rules import TaskKey, TaskPhase
from lavad.core.model.task_values import RolePart
from lavad.core.orders import TasksOrder
from lavad.core.task_events import TasksOrdered
from lavad.store import schema
from lavad.store.rows.task_values import record_of as stored_record
from lavad.store.rows.task_values import task_row
from protos import agents_pb2 as agents
from protos import common_pb2
from protos import jobs_pb2 as pb
from tests.builders import a_host
from tests.task_jobs import HOST, TaskStory, a_task_role


def a_story() -> TaskStory:
    return TaskStory(*(a_host(f"h{number}", 2) for number in (1, 2)))


def record_of(story: TaskStory, key: Key, details: bool = True) -> pb.JobRecord:
    job = story.job(key.job)
    return record_message(story.cluster, (job, 0, job), story.now, details, None)


def test_a_record_with_details_has_all_tasks() -> None:
    """In the order of roles and indices, with run, place and end; a list without details has none."""
    story = a_story()
    key = story.begin(a_task_role("ps"), a_task_role("worker", 2, restart=1, restarts_max=1))
    story.runs(key)
    story.ends(key, 1, 1, code=3)
    message = record_of(story, key)
    phases = [(one.task.role, one.task.index, one.task.run, one.phase, one.host) for one in message.tasks]
    assert phases == [
        (0, 0, 1, common_pb2.TASK_RUNNING, "h1"),
        (1, 0, 1, common_pb2.TASK_RUNNING, "h1"),
        (1, 1, 2, common_pb2.TASK_STARTING, "h2"),
    ]
    assert not record_of(story, key, details=False).tasks


def test_the_output_of_a_task_is_on_its_host() -> None:
    """Its newest run, or an earlier one by its number; what there is not is refused by name."""
    story = a_story()
    key = story.begin(a_task_role("worker", 3, launch=HOST))

    def found(role: str = "worker", task: int = 0, run: int = 0) -> tuple[str, int, int]:
        host, one = output_of(story.tasks(key), pb.PeekTicketRequest(role=role, task=task, run=run))
        return host, one.index, one.run

    assert found(task=1) == ("h1", 0, 1)  # the process of the first task on that host stands for it
    assert found(task=2, run=1) == ("h2", 2, 1)
    with pytest.raises(Refused, match="the job has no role chief"):
        found("chief")
    with pytest.raises(Refused, match=r"the job has no task worker\[3\]"):
        found(task=3)
    with pytest.raises(Refused, match=r"Task worker\[2\] has been started 1 times, not 2"):
        found(task=2, run=2)


def test_the_output_of_a_task_that_left_by_a_shrink_is_on_its_former_host() -> None:
    """Also when it has a place again, until it is started there."""
    story = a_story()
    key = story.begin(a_task_role("worker", 3))
    tasks = story.tasks(key)
    gone = TaskKey(0, 2)

    def host() -> str:
        return output_of(tasks, pb.PeekTicketRequest(role="worker", task=2))[0]

    unplace(tasks, gone)
    assert host() == "h2"
    unplace(tasks, gone)
    tasks.records[gone] = tasks.records[gone]._replace(joins="h1")
    joined(tasks, ["h1"], 2)
    assert (tasks.records[gone].host, host()) == ("h1", "h2")
    row = task_row(1, 0, 1, gone, tasks.records[gone])
    stored = SimpleNamespace(**dict(zip(schema.tasks.columns.keys(), row, strict=True)))
    assert stored_record(stored) == tasks.records[gone]  # type: ignore[arg-type]
    apply_events(story.cluster, [TasksOrdered(story.now, key, (gone,))])
    assert (tasks.records[gone].run, host()) == (2, "h1")


def test_orders_as_messages() -> None:
    """Each host gets its starts and the whole table."""
    story = a_story()
    key = story.begin(a_task_role("worker", 3))
    tasks = story.tasks(key)
    order = TasksOrder("h1", key, tasks.version, tasks.table, tasks.runs([TaskKey(0, 0)]), (), "why")

    async def nothing(_: object) -> bytes:
        return b""

    async def message() -> agents.Orders:
        links = AgentLinks(story.cluster, SpecShelf(nothing, nothing))
        outbox = links.open("h1", 1, 2)
        links.send([order, order])
        return await links.message(outbox)

    first, second = asyncio.run(message()).orders
    assert first == second
    assert (first.key.job, first.tasks.version) == (key.job, tasks.version)
    assert [(one.host, one.address, list(one.roles[0].indices)) for one in first.tasks.table] == [
        ("h1", "10.0.0.1", [0, 1]),
        ("h2", "10.0.0.2", [2]),
    ]
    assert [(one.role, one.index, one.run) for one in first.tasks.start] == [(0, 0, 1)]


def test_reports_are_bounded() -> None:
    """A host says what it likes; what is kept fits the database, and a failure has a status."""
    task = common_pb2.TaskRun(role=1, index=2, run=3)
    states = [
        common_pb2.TaskState(task=task, phase=common_pb2.TASK_EXITED, status=-5, pid=9, detail="No such program."),
        common_pb2.TaskState(task=task, phase=common_pb2.TASK_STOPPING),
        common_pb2.TaskState(task=task, order_again=True),
    ]
    failed, late = task_reports.states_of(states)
    assert (failed.task, failed.run, failed.phase) == (TaskKey(1, 2), 3, TaskPhase.EXITED)
    assert os.WIFSIGNALED(failed.status) or os.WIFEXITED(failed.status) or failed.status
    assert failed.reason == "No such program."
    assert late.order_again


def test_a_staged_report_has_ports_and_an_address() -> None:
    """They are given to all tasks of the job."""
    report = agents.Report(staged=agents.Staged(address="10.0.0.9"))
    report.staged.tasks.add(role=1, indices=[4, 5], ports=[20000, 70000])
    assert task_reports.staged("h1", Key(1, 0, 1), report) == c.ReportStaged(
        "h1", Key(1, 0, 1), 0, False, (RolePart(1, (4, 5), (20000, 65535)),), "10.0.0.9"
    )
