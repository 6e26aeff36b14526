"""Starts of tasks of a job of tasks: program, directory and variables of each, from the job's spec and its task table.

Pure. Of variables with one name the job's own give way to the role's, and both to lava's.
"""

import os
import shlex
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from agents.job_setup.environment import submitted
from agents.job_setup.host_context import HostContext
from agents.job_setup.preparation import for_job
from agents.job_setup.programs import program_of
from agents.job_setup.task_devices import Task, variables_of_task
from agents.shepherd.messages import JobSetup, Program, RunOrder
from protos.agents_pb2 import JobSpecBlob, Stage
from protos.common_pb2 import Role, TaskHost

Run = tuple[int, int, int]  # role, index, run


class NotPlaced(Exception):
    """Start of a task that the table does not place on this host; the text is one sentence."""


class Job(NamedTuple):
    """A job of tasks as this host prepared it."""

    blob: JobSpecBlob
    stage: Stage
    setup: JobSetup
    table: Sequence[TaskHost]
    host: HostContext


class Placed(NamedTuple):
    """A task's place in the job: its numbers, and its ports in order of its role's requests."""

    number: int  # among all tasks
    tasks: int
    in_role: int
    here: int  # among the role's tasks on its host
    all_here: int
    ports: tuple[int, ...]


def run_order(job: Job, run: Run) -> RunOrder:
    """Return the start of a run.

    Raises:
        NotPlaced: the table has no such task on this host.
    """
    role = job.blob.spec.roles[run[0]]
    return RunOrder(
        *run,
        role.name,
        _program(job, role),
        _variables(job, run, role),
        for_job(role.cwd, job.blob, job.stage),
        role.memory_limit_mib,
        role.run_limit_s,
    )


def _program(job: Job, role: Role) -> Program:
    spec, starter = job.blob.spec, job.stage.job_starter
    if role.argv and starter:
        return program_of(shlex.join(role.argv), spec.shell, "", starter)
    if role.argv:
        return Program(role.argv[0], tuple(role.argv))
    if role.command:
        return program_of(role.command, spec.shell, "", starter)
    script = os.fsdecode(job.setup.environment[b"LSB_JOBFILENAME"]) if spec.is_script else ""
    return program_of(spec.command, spec.shell, script, starter)


def _variables(job: Job, run: Run, role: Role) -> dict[bytes, bytes]:
    placed = place_of(job.table, job.host.host, run)
    found = submitted([*role.environment, *job.blob.spec.tasks.secrets])
    text = variables_of_task(Task(run[0], placed.here, placed.all_here), job.stage, job.host)
    text |= {
        "LAVA_ROLE": role.name,
        "LAVA_ROLE_INDEX": str(run[1]),
        "LAVA_ROLE_COUNT": str(placed.in_role),
        "LAVA_TASK_INDEX": str(placed.number),
        "LAVA_TASK_COUNT": str(placed.tasks),
        "LAVA_TASK_RUN": str(run[2]),
    }
    if placed.ports:
        text["LAVA_TASK_PORTS"] = " ".join(map(str, placed.ports))
    return found | {os.fsencode(name): os.fsencode(value) for name, value in text.items()}


def place_of(table: Sequence[TaskHost], host: str, run: Run) -> Placed:
    """Return the place of a task that is on this host.

    Raises:
        NotPlaced: it is not.
    """
    sizes: dict[int, int] = {}
    for part in (part for one in table for part in one.roles):
        sizes[part.role] = sizes.get(part.role, 0) + len(part.indices)
    mine = (part for one in table if one.host == host for part in one.roles if part.role == run[0])
    found = [part for part in mine if run[1] in part.indices]
    if not found:
        raise NotPlaced("The task has no place on this host.")
    part = found[0]
    at, each = list(part.indices).index(run[1]), len(part.ports) // len(part.indices)
    return Placed(
        number=_number(table, run),
        tasks=sum(sizes.values()),
        in_role=sizes[run[0]],
        here=at,
        all_here=len(part.indices),
        ports=tuple(part.ports[at * each : (at + 1) * each]),
    )


def _number(table: Iterable[TaskHost], run: Run) -> int:
    """Return a task's number among all of the job: by role, and by index in it."""
    parts = [part for one in table for part in one.roles]
    before = sum(len(part.indices) for part in parts if part.role < run[0])
    return before + sum(index < run[1] for part in parts if part.role == run[0] for index in part.indices)
