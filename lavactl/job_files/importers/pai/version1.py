"""Job JSON of OpenPAI 0.x: ``jobName`` and ``taskRoles``."""

import re

from lavactl.job_files.importers.kinds import Shared
from lavactl.job_files.importers.pai import common
from lavactl.job_files.model import JobFile, role
from lavactl.job_files.text.fields import Fields
from lavactl.wire import messages

NAME = re.compile(r"[A-Za-z0-9._~-]{1,255}")
ROLE_NAME = re.compile(r"[A-Za-z0-9._~]{1,255}")
MEMORY_MIB, SHM_MIB = 100, 64
NEVER = 0
CODE_MIB = 200
DIRECTORIES = {"dataDir": "data-dir", "outputDir": "output-dir", "codeDir": "code-dir"}


def read_job(fields: Fields, shared: Shared) -> list[JobFile]:
    """Job of a document.

    Raises:
        FileError: a field is wrong, or the server would refuse the job.
    """
    name = fields.required("jobName")
    if not NAME.fullmatch(name):
        raise fields.wrong("jobName", f"{name[:80]!r} is no job name: it has letters, digits and - . _ ~.")
    queue = fields.text("virtualCluster")
    job = common.start(fields, "OpenPAI job (JSON)", "openpai-v1", name, shared.user, queue)
    image = fields.text("image")
    if image:
        fields.note("image", f"{image} is used only where hosts are configured to run containers.")
    options = ["generation=0", "jobssh=yes", f"user={shared.user}", f"job={name}", f"vc={queue or 'default'}"]
    parts = fields.children("taskRoles")
    if not parts:
        raise fields.wrong("taskRoles", "a job needs a task role.")
    model = fields.text("gpuType")
    for at, part in enumerate(parts):
        options += _read_role(job, part, at, image, model)
    _read_directories(fields, options)
    _read_code(job, fields)
    _read_rules(job, fields)
    job.tasks_rules.conventions.add(name="pai", options=options)
    return [job]


def _read_role(job: JobFile, part: Fields, at: int, image: str, model: str) -> list[str]:
    """Add a role; returns what the convention is told of it."""
    name = part.text("name")
    if not name:
        name = f"role{at}"
        part.note("name", f"missing: the role is called {name}.")
    if not ROLE_NAME.fullmatch(name):
        raise part.wrong("name", f"{name[:80]!r} is no name of a role: it has letters, digits and . _ ~.")
    if any(one.name == name for one in job.roles):
        raise part.wrong("name", f"there are two task roles named {name}.")
    made = role(name, part.number("taskNumber", 1, 1))
    made.command = _command(part)
    made.image = image
    memory = part.number("memoryMB", MEMORY_MIB, 1)
    shm = part.number("shmMB", min(SHM_MIB, memory))
    if shm > memory:
        raise part.wrong("shmMB", f"{shm} is more than the role's memoryMB {memory}.")
    common.fill_resources(made, part.number("cpuNumber", 1, 1), memory, part.number("gpuNumber", 0))
    if model and made.gpu.num:
        made.gpu.text += f":gmodel={model}"
    _read_ports(made, part)
    made.failed_enough = _count(part, "minFailedTaskCount", made.tasks_max, 1)
    made.succeeded_enough = _count(part, "minSucceededTaskCount", made.tasks_max, NEVER)
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


def _read_ports(made: messages.Role, part: Fields) -> None:
    for one in part.children("portList"):
        label = one.required("label")
        if any(port.name == label for port in made.ports):
            raise one.wrong("label", f"there are two ports named {label}.")
        if not ROLE_NAME.fullmatch(label):
            raise one.wrong("label", f"{label[:80]!r} is no label: it has letters, digits and . _ ~.")
        number, count = one.number("beginAt", 0, 0, 65535), one.number("portNumber", 1, 1, 1000)
        if number + count - 1 > 65535:
            raise one.wrong("portNumber", f"{count} ports from {number} on go beyond 65535.")
        made.ports.add(name=label, count=count, number=number)
    common.add_ports(made)


def _read_directories(fields: Fields, options: list[str]) -> None:
    for key, name in DIRECTORIES.items():
        if text := fields.text(key):
            options.append(f"{name}={text}")
            if key != "codeDir":
                fields.note(key, "tasks are told of it; lava copies nothing.")
    fields.ignore(("authFile",), "images are prepared by the site")


def _read_code(job: JobFile, fields: Fields) -> None:
    """Let each task begin in a directory of its own that has a copy of the code, as in a container."""
    if source := fields.text("codeDir"):
        job.tasks_rules.conventions.add(name="code", options=[f"source={source}", f"limit-mib={CODE_MIB}"])
        fields.note("codeDir", "each task runs in a directory of its own with a copy, which is removed after the job.")


def _read_rules(job: JobFile, fields: Fields) -> None:
    common.read_retries(job, fields.number("retryCount", 0, -2))
    if fields.has("killAllOnCompletedTaskNumber"):
        job.tasks_rules.succeeded_enough = fields.number("killAllOnCompletedTaskNumber", 0)
    fields.get("killAllOnCompletedTaskNumber")
    job.environment += [f"{key}={value}" for key, value in fields.pairs("jobEnvs").items() if key and "=" not in key]
