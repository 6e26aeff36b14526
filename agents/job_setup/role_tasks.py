"""Starts of tasks of a job of tasks: program, directory and variables of each, from the job's spec and its task table.

Pure. Of variables with one name the job's own give way to the role's, both to its devices, and all to what it is told.
"""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from agents.containers.entry import Entry, entered_by
from agents.containers.settings import ContainerSettings
from agents.job_setup import task_code, task_work
from agents.job_setup.environment import is_resizable, place_variables, submitted
from agents.job_setup.host_context import HostContext
from agents.job_setup.preparation import for_job
from agents.job_setup.programs import command_of, program_of
from agents.job_setup.task_devices import Task, gpus_of_task, share_of, variables_of_task
from agents.job_setup.told.table import Table
from agents.job_setup.told.tell import tell
from agents.job_setup.told.values import TREE, HostFacts, Told
from agents.shepherd.messages import JobSetup, Key, Program, RunOrder
from agents.shepherd.process.start import expand
from protos.agents_pb2 import JobSpecBlob, Stage
from protos.common_pb2 import Role, TaskHost, TaskRun

Run = tuple[int, int, int]  # role, index, run


class NotPlaced(Exception):
    """Start of a task that the table does not place on this host; the text is one sentence."""


class Job(NamedTuple):
    """A job of tasks as this host prepared it."""

    key: Key
    blob: JobSpecBlob
    stage: Stage
    setup: JobSetup
    hosts: Sequence[TaskHost]
    table: Table  # the same
    host: HostContext
    directory: str  # of the attempt's files
    is_private: bool  # they appear at fixed paths
    state: Path  # the agent's state directory
    containers: ContainerSettings = ContainerSettings()
    shared: tuple[str, ...] = ()  # directories of the host that containers show as well

    @property
    def code(self) -> dict[str, str] | None:
        """Options of the code that is copied beside each task; None without it."""
        return task_code.options(self.blob.spec)


class Place(NamedTuple):
    """A task's place on its host: its number among those of its role there, and its ports."""

    here: int
    all_here: int
    ports: tuple[int, ...]


def told_of(job: Job, run: Run) -> Told:
    """Return what a task is told.

    Raises:
        NotPlaced: the table has no such task on this host.
        CannotTell: the job names a convention that this host does not know.
    """
    place = place_of(job, run)
    share = share_of(job.stage, job.host.host)
    facts = HostFacts(
        job.host.host,
        job.directory,
        job.key,
        _directory(job, run),
        job.host.bin_dir,
        tuple(gpus_of_task(Task(run[0], place.here, place.all_here), share, job.stage)),
        job.is_private,
    )
    return tell(job.blob, TaskRun(role=run[0], index=run[1], run=run[2]), job.table, facts)


def run_order(job: Job, run: Run, told: Told) -> RunOrder:
    """Return the start of a run; raises NotPlaced like `told_of`."""
    role = job.blob.spec.roles[run[0]]
    return RunOrder(
        *run,
        role.name,
        _program(job, run, role),
        variables(job, run, told),
        work_directory(job, run) or for_job(role.cwd, job.blob, job.stage),
        role.memory_limit_mib,
        role.run_limit_s,
    )


def held_order(role: Role, run: Run) -> RunOrder:
    """Return the start of a task without a command."""
    return RunOrder(*run, role.name, Program("", ()), {}, "", role.memory_limit_mib, role.run_limit_s)


def work_directory(job: Job, run: Run) -> str:
    """Return the directory of its own in which a task runs; empty if it runs in the job's."""
    if job.code is None:
        return ""
    return str(task_work.path_of(job.state, job.key, job.blob.spec.roles[run[0]].name, run[1]))


def _directory(job: Job, run: Run) -> str:
    if own := work_directory(job, run):
        return own
    cwd = for_job(job.blob.spec.roles[run[0]].cwd, job.blob, job.stage) or job.setup.cwd
    return expand(cwd, job.key) or job.setup.home


def _program(job: Job, run: Run, role: Role) -> Program:
    """Return the program of a task, in its container, behind the copying of its code."""
    program = _own_program(job, role)
    if role.image and job.containers.runtimes:
        program = entered_by(_entry(job, run, role), program)
    return program if job.code is None else task_code.copying(program, job.code, job.host.bin_dir)


def _entry(job: Job, run: Run, role: Role) -> Entry:
    return Entry(
        role.image,
        "-".join(map(str, ("lava", *job.key, *run))),
        _directory(job, run),
        (*job.shared, job.directory),
        f"{job.directory}/{TREE}" if job.is_private else "",
        job.host.gpu_vendor.in_containers if share_of(job.stage, job.host.host).gpus else (),
        job.containers,
    )


def _own_program(job: Job, role: Role) -> Program:
    spec, starter = job.blob.spec, job.stage.job_starter
    if role.argv and starter:
        return program_of(shlex.join(role.argv), spec.shell, "", starter)
    if role.argv:
        return Program(role.argv[0], tuple(role.argv))
    if role.command:
        return program_of(role.command, spec.shell, "", starter)
    script = os.fsdecode(job.setup.environment[b"LSB_JOBFILENAME"]) if spec.is_script else ""
    return program_of(command_of(spec), spec.shell, script, starter)


def variables(job: Job, run: Run, told: Told) -> dict[bytes, bytes]:
    """Return the variables of a task beside the job's; raises NotPlaced like `told_of`."""
    place = place_of(job, run)
    found = submitted([*job.blob.spec.tasks.secrets, *job.blob.spec.roles[run[0]].environment])
    text = variables_of_task(Task(run[0], place.here, place.all_here), job.stage, job.host)
    if is_resizable(job.blob.spec):  # its size when this run starts
        text |= place_variables(job.stage.allocation)
    if place.ports:
        text["LAVA_TASK_PORTS"] = " ".join(map(str, place.ports))
    found |= {os.fsencode(name): os.fsencode(value) for name, value in text.items()}
    if told.path_prefix and b"PATH" not in found and b"PATH" in job.setup.environment:
        found[b"PATH"] = job.setup.environment[b"PATH"]
    return told.laid_over(found)


def place_of(job: Job, run: Run) -> Place:
    """Return the place of a task on this host.

    Raises:
        NotPlaced: it is not here.
    """
    mine = (part for one in job.hosts if one.host == job.host.host for part in one.roles if part.role == run[0])
    found = [part for part in mine if run[1] in part.indices]
    if not found:
        raise NotPlaced("The task has no place on this host.")
    part = found[0]
    at, each = list(part.indices).index(run[1]), len(part.ports) // len(part.indices)
    return Place(at, len(part.indices), tuple(part.ports[at * each : (at + 1) * each]))
