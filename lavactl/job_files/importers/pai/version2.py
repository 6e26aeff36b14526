"""Job protocol version 2 of OpenPAI: YAML with parameters, prerequisites, deployments and templates."""

import re

from lavactl.job_files.importers.kinds import Shared
from lavactl.job_files.importers.pai import common
from lavactl.job_files.importers.pai.plugins import Commands, read_plugins
from lavactl.job_files.importers.pai.template import left_over, render, variable
from lavactl.job_files.model import JobFile, role
from lavactl.job_files.text.fields import Fields
from lavactl.job_files.text.nodes import Mapping, Node, Scalar
from lavactl.wire import messages

NAME = re.compile(r"[A-Za-z0-9_-]{1,255}")
ROLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")
ROOT = frozenset(
    ("protocolVersion", "name", "type", "version", "contributor", "description", "prerequisites", "parameters",
     "secrets", "jobRetryCount", "taskRoles", "deployments", "defaults", "extras")
)  # fmt: skip
PREREQUISITES = ("dockerimage", "script", "output", "data")
SHM_MIB = 512
CLASSES = ("crit", "prod", "test", "oppo")


def read_job(fields: Fields, shared: Shared) -> list[JobFile]:
    """Job of a document.

    Raises:
        FileError: a field is wrong, or the server would refuse the job.
    """
    _check_root(fields)
    name = fields.required("name")
    if not NAME.fullmatch(name):
        raise fields.wrong("name", f"{name[:80]!r} is no job name: it has letters, digits, _ and -.")
    defaults = fields.child("defaults")
    queue = defaults.text("virtualCluster")
    job = common.start(fields, "OpenPAI job (protocol 2)", "openpai-v2", name, shared.user, queue)
    if fields.has("description"):
        job.options.append(("Jd", fields.text("description").strip()))
    options = ["generation=1", f"user={shared.user}", f"job={name}", f"vc={queue or 'default'}"]
    extras = fields.child("extras")
    is_gang = extras.flag("gangAllocation", True)
    commands = _commands(fields, defaults)
    options += read_plugins(extras, commands)
    _Roles(job, fields, commands, is_gang).read(options)
    _read_extras(extras)
    common.read_retries(job, fields.number("jobRetryCount", 0))
    job.tasks_rules.conventions.add(name="pai", options=options)
    return [job]


def _check_root(fields: Fields) -> None:
    for key, _ in fields.node:
        if key not in ROOT:
            raise fields.reading.wrong(fields.node.keys[key], key, "the protocol has no such key.")
    if fields.text("protocolVersion") not in ("2", "2.0"):
        raise fields.wrong("protocolVersion", f"expected 2, found {fields.text('protocolVersion')}.")
    if fields.text("type") != "job":
        raise fields.wrong("type", f"expected job, found {fields.text('type') or 'nothing'}.")
    fields.asked |= {"version", "contributor"}


def _commands(fields: Fields, defaults: Fields) -> Commands:
    """Commands before and after those of the roles, by the deployment that the job names."""
    found = Commands()
    wanted = defaults.text("deployment")
    roles = set(_names(fields.node.get("taskRoles")))
    names = []
    for one in fields.children("deployments"):
        name = one.required("name")
        if name in names:
            raise one.wrong("name", f"there are two deployments named {name}.")
        names.append(name)
        if name != wanted:
            one.asked.add("taskRoles")
            one.note("", f"deployment {name} is not the one that the job takes.")
            continue
        for part_name, part in one.named("taskRoles"):
            if part_name not in roles:
                raise part.wrong("", f"there is no task role named {part_name}.")
            found.before[part_name] = part.texts("preCommands")
            found.behind[part_name] = part.texts("postCommands")
    if wanted and wanted not in names:
        raise defaults.wrong("deployment", f"there is no deployment named {wanted}.")
    return found


def _names(node: Node | None) -> list[str]:
    return list(node.entries) if isinstance(node, Mapping) else []


def _read_extras(extras: Fields) -> None:
    hived = extras.child("hivedScheduler")
    hived.word("jobPriorityClass", {one: one for one in CLASSES}, "")
    hived.ignore(("jobPriorityClass",), "the queue's priority counts")
    hived.ignore(("taskRoles",), "each task gets the slots, memory and GPUs that it asks for")
    extras.ignore(("submitFrom",), "it names the program that wrote the file")
    extras.ignore(("jobStatusChangeNotification",), "no mail is sent about jobs of tasks")
    extras.ignore(("storages",), "lava expects a shared file system")


class _Roles:
    """Reading of the task roles, which refer to the job's prerequisites and parameters."""

    def __init__(self, job: JobFile, fields: Fields, commands: Commands, is_gang: bool) -> None:
        self.job = job
        self.fields = fields
        self.commands = commands
        self.is_gang = is_gang
        self.parameters = {name: node for name in ("parameters", "secrets") if (node := fields.get(name))}
        for name, node in self.parameters.items():
            if not isinstance(node, Mapping):
                raise fields.expected(name, "a mapping", node)
        self.used_secrets: set[str] = set()
        self.prerequisites: dict[tuple[str, str], Fields] = {}

    def read(self, options: list[str]) -> None:
        """Read all roles; adds what the convention is told of them to ``options``."""
        for one in self.fields.children("prerequisites"):
            self._prerequisite(one)
        named = self.fields.named("taskRoles")
        if not named:
            raise self.fields.wrong("taskRoles", "a job needs a task role.")
        for name, part in named:
            if not ROLE_NAME.fullmatch(name):
                raise part.wrong("", f"{name[:80]!r} is no name of a role: it is a letter, then letters, digits and _.")
            options += self._role(name, part)
        self._keep_secrets()

    def _prerequisite(self, one: Fields) -> None:
        kind, name = one.required("type"), one.required("name")
        if kind not in PREREQUISITES:
            raise one.wrong("type", f"expected {', '.join(PREREQUISITES)}, found {kind}.")
        if (kind, name) in self.prerequisites:
            raise one.wrong("name", f"there are two prerequisites of type {kind} named {name}.")
        self.prerequisites[kind, name] = one
        one.asked |= {"protocolVersion", "version", "contributor", "description", "uri"}
        one.ignore(("auth",), "images are prepared by the site")
        one.ignore(("plugin", "require", "failurePolicy", "callbacks"), "commands of a role fetch what it needs")

    def _values(self, part: Fields) -> dict[str, Node]:
        """Names that templates of a role may use."""
        values: dict[str, Node] = dict(self.parameters)
        for key in ("script", "data", "output"):
            if wanted := part.text(key):
                values[key] = self._find(part, key, key, wanted).node
        return values

    def _find(self, part: Fields, key: str, kind: str, name: str) -> Fields:
        found = self.prerequisites.get((kind, name))
        if found is None:
            raise part.wrong(key, f"there is no prerequisite of type {kind} named {name}.")
        return found

    def _role(self, name: str, part: Fields) -> list[str]:
        count = part.number("instances", 1, 1)
        least = count if self.is_gang else int(not self.job.roles)
        made = role(name, count, least)
        made.completions = count if least < count else 0
        image = self._find(part, "dockerImage", "dockerimage", part.required("dockerImage"))
        made.image = image.required("uri")
        part.note("dockerImage", f"{made.image} is used only where hosts are configured to run containers.")
        for wanted in part.texts("prerequisites"):
            if all(known != wanted for _, known in self.prerequisites):
                raise part.wrong("prerequisites", f"there is no prerequisite named {wanted}.")
        values = self._values(part)
        words = part.texts("commands")
        if not words:
            raise part.wrong("commands", "a role needs a command.")
        lines = self.commands.of(name, words)
        made.command = "\n".join(render(line, values, self.used_secrets).strip() for line in lines)
        for tag in left_over(made.command):
            part.note("commands", f"{tag} stands for no parameter, secret or prerequisite, and is left as it is.")
        container = part.child("extraContainerOptions")
        shm = container.number("shmMB", SHM_MIB)
        container.ignore(("infiniband",), "tasks use the devices of their hosts")
        self._read_resources(made, part)
        self._read_completion(made, part)
        self.job.roles.append(made)
        return common.resources_told(made, shm)

    def _read_resources(self, made: messages.Role, part: Fields) -> None:
        wanted = part.child("resourcePerInstance")
        for key in ("cpu", "memoryMB", "gpu"):
            if not wanted.has(key):
                raise wanted.wrong(key, "it is missing.")
        common.fill_resources(
            made, wanted.number("cpu", 1, 1), wanted.number("memoryMB", 1, 1), wanted.number("gpu", 0)
        )
        ports = wanted.child("ports")
        for label, _ in ports.node:
            made.ports.add(name=label, count=ports.number(label, 1, 1, 1000))
        common.add_ports(made)
        retries = part.number("taskRetryCount", 0, -2)
        if retries and self.is_gang:
            part.note("taskRetryCount", "ignored: tasks of a gang are not retried one by one.")
        elif retries:
            made.restart = messages.RESTART_ON_FAILURE
            made.restarts_max = retries * made.tasks_max if retries > 0 else 1_000_000

    def _read_completion(self, made: messages.Role, part: Fields) -> None:
        """Read the counts that end the job; -1 means never, and success is that of all instances if nothing is said."""
        completion = part.child("completion")
        counts = {"minFailedInstances": 1, "minSucceededInstances": made.tasks_max}
        for key, default in counts.items():
            counts[key] = completion.number(key, default, -1, made.tasks_max)
            if counts[key] == 0:
                raise completion.wrong(key, "expected -1 or a number of at least 1, found 0.")
        made.failed_enough = max(counts["minFailedInstances"], 0)
        made.succeeded_enough = max(counts["minSucceededInstances"], 0)

    def _keep_secrets(self) -> None:
        held = self.parameters.get("secrets")
        if not isinstance(held, Mapping):
            return
        for name, node in held:
            if name in self.used_secrets and isinstance(node, Scalar):
                self.job.tasks_rules.secrets.append(f"{variable(name)}={node.text}".encode("utf-8", "surrogateescape"))
            else:
                self.fields.reading.note(held.keys[name], f"secrets.{name}", "ignored: no command uses it.")
