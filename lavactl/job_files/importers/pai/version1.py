"""Job JSON of OpenPAI 0.x: ``jobName`` and ``taskRoles``."""

import re

from lavactl.job_files.importers.kinds import Shared
from lavactl.job_files.importers.pai import common
from lavactl.job_files.importers.tables import Anything, Number, Pairs, Parts, Required, Table, Text
from lavactl.job_files.model import JobFile, role
from lavactl.job_files.text.fields import Fields
from lavactl.wire import messages

NAME = re.compile(r"[A-Za-z0-9._~-]{1,255}")
ROLE_NAME = re.compile(r"[A-Za-z0-9._~]{1,255}")
MEMORY_MIB, SHM_MIB = 100, 64
NEVER = 0
CODE_MIB = 200
TOLD_ONLY = "tasks are told of it; lava copies nothing"


class PortRange(Table):
    """One of ``portList`` of a role; http and ssh are always there."""

    label = Required("label", "its name, once")
    first = Number("beginAt", 0, "the first port; 0: any", 0, 65535)
    count = Number("portNumber", 1, "so many", 1, 1000)


class Role(Table):
    """One of ``taskRoles``."""

    name = Text(
        "name", "", "its name", here="its name; role and its number, told, where it is absent", absent="refused"
    )
    tasks = Number("taskNumber", 1, "so many tasks", 1)
    cpu = Number("cpuNumber", 1, "processors of each task", 1, here="slots of each task")
    memory = Number("memoryMB", MEMORY_MIB, "memory of each task", 1)
    shm = Number("shmMB", None, "size of /dev/shm, at most memoryMB", here="tasks are told of it",
                 absent="64, or memoryMB if that is less")  # fmt: skip
    gpu = Number("gpuNumber", 0, "GPUs of each task")
    ports = Parts("portList", PortRange, "ports of each task")
    command = Required("command", "run as a script")
    failed = Number("minFailedTaskCount", 1, "the job fails with so many failed tasks; null: never", 1)
    succeeded = Number("minSucceededTaskCount", None, "the job is done with so many done tasks; null: never", 1,
                       absent="never")  # fmt: skip


class Job(Table):
    """Job of OpenPAI, first form: JSON with jobName and taskRoles."""

    name = Required("jobName", "letters, digits and - . _ ~; one unfinished job of a name for each user")
    image = Text("image", "", "the image of all roles", here="used where the site runs containers; always told")
    auth = Text("authFile", "", "password of the registry", told="images are prepared by the site")
    data = Text("dataDir", "", "a path that tasks are told", here=TOLD_ONLY)
    output = Text("outputDir", "", "a path that tasks are told", here=TOLD_ONLY)
    code = Text("codeDir", "", "copied into each container", here="each task begins in a copy of it; told")
    cluster = Text("virtualCluster", "default", "the virtual cluster",
                   here="the queue; default is the cluster's own if none has that name")  # fmt: skip
    model = Text("gpuType", "", "the type of host", here="the model of the GPUs")
    retries = Number("retryCount", 0, "runs after a failure; -1 without end, -2 after success, too", -2,
                     here="so; -2 as -1, without classes of exit codes")  # fmt: skip
    roles = Parts("taskRoles", Role, "the tasks by role", absent="refused")
    enough = Number("killAllOnCompletedTaskNumber", 0, "the job is done with so many done tasks; later without effect")
    variables = Pairs("jobEnvs", None, "variables of all tasks")
    extras = Anything("extras", None, "settings of other programs", told="lava has nothing like them")


DIRECTORIES = {Job.data: "data-dir", Job.output: "output-dir", Job.code: "code-dir"}


def read_job(fields: Fields, shared: Shared) -> list[JobFile]:
    """Job of a document.

    Raises:
        FileError: a field is wrong, or the server would refuse the job.
    """
    document = Job(fields)
    name = document.name
    if not NAME.fullmatch(name):
        raise document.wrong(Job.name, f"{name[:80]!r} is no job name: it has letters, digits and - . _ ~.")
    queue = document.cluster if document.has(Job.cluster) else ""
    job = common.start(fields, "OpenPAI job (JSON)", "openpai-v1", name, shared.user, fields)
    if document.image:
        document.note(Job.image, f"{document.image} is used only where hosts are configured to run containers.")
    options = ["generation=0", "jobssh=yes", f"user={shared.user}", f"job={name}", f"vc={queue or 'default'}"]
    if not document.roles:
        raise document.wrong(Job.roles, "a job needs a task role.")
    for at, part in enumerate(document.roles):
        options += _read_role(job, part, at, document)
    _read_directories(document, options)
    _read_code(job, document)
    _read_rules(job, document)
    job.tasks_rules.conventions.add(name="pai", options=options)
    return [job]


def _read_role(job: JobFile, part: Role, at: int, document: Job) -> list[str]:
    """Add a role; returns what the convention is told of it."""
    name = part.name
    if not name:
        name = f"role{at}"
        part.note(Role.name, f"missing: the role is called {name}.")
    if not ROLE_NAME.fullmatch(name):
        raise part.wrong(Role.name, f"{name[:80]!r} is no name of a role: it has letters, digits and . _ ~.")
    if any(one.name == name for one in job.roles):
        raise part.wrong(Role.name, f"there are two task roles named {name}.")
    made = role(name, part.tasks)
    made.command = _command(part.fields)
    made.image = document.image
    shm = part.shm if part.shm is not None else min(SHM_MIB, part.memory)
    if shm == min(SHM_MIB, part.memory):
        part.same(Role.shm)
    if shm > part.memory:
        raise part.wrong(Role.shm, f"{shm} is more than the role's memoryMB {part.memory}.")
    common.fill_resources(made, part.cpu, part.memory, part.gpu)
    if document.model and made.gpu.num:
        made.gpu.text += f":gmodel={document.model}"
    _read_ports(made, part)
    made.failed_enough = _count(part.fields, Role.failed.name, made.tasks_max, 1)
    made.succeeded_enough = _count(part.fields, Role.succeeded.name, made.tasks_max, NEVER)
    job.roles.append(made)
    return common.resources_told(made, shm)


def _command(part: Fields) -> str:
    """Command of a role. Line breaks that JSON does not have are those of a page that the file was copied from."""
    text = part.required("command")
    node = part.scalar("command", "a text")
    if node is None or node.joined is None:
        return text
    part.note("command", "its line breaks are taken as blanks; \\n begins a new line.")
    return node.joined


def _count(part: Fields, key: str, tasks: int, default: int) -> int:
    """Number of tasks whose end decides; one that is written as null never does."""
    if key in part.node.entries and not part.has(key):
        part.get(key)
        return NEVER
    return part.number(key, default, 1, tasks)


def _read_ports(made: messages.Role, part: Role) -> None:
    for one in part.ports:
        label = one.label
        if any(port.name == label for port in made.ports):
            raise one.wrong(PortRange.label, f"there are two ports named {label}.")
        if not ROLE_NAME.fullmatch(label):
            raise one.wrong(PortRange.label, f"{label[:80]!r} is no label: it has letters, digits and . _ ~.")
        if one.first + one.count - 1 > 65535:
            raise one.wrong(PortRange.count, f"{one.count} ports from {one.first} on go beyond 65535.")
        made.ports.add(name=label, count=one.count, number=one.first)
    common.add_ports(made)


def _read_directories(document: Job, options: list[str]) -> None:
    for row, name in DIRECTORIES.items():
        if text := row.read(document.fields):
            options.append(f"{name}={text}")
            if row is not Job.code:
                document.note(row, f"{TOLD_ONLY}.")


def _read_code(job: JobFile, document: Job) -> None:
    """Let each task begin in a directory of its own that has a copy of the code, as in a container."""
    if document.code:
        job.tasks_rules.conventions.add(name="code", options=[f"source={document.code}", f"limit-mib={CODE_MIB}"])
        document.note(Job.code, "each task runs in a directory of its own with a copy, which is removed after the job.")


def _read_rules(job: JobFile, document: Job) -> None:
    common.read_retries(job, document.retries)
    if document.has(Job.enough):
        job.tasks_rules.succeeded_enough = document.enough
    pairs = document.variables.items()
    job.environment += [f"{key}={value}" for key, value in pairs if key and "=" not in key]
    for key, _ in pairs:
        if "=" in key:
            document.note(Job.variables, f"ignored: {key[:80]} is no name of a variable.")
