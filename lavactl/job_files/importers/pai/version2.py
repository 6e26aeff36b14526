"""Job protocol version 2 of OpenPAI: YAML with parameters, prerequisites, deployments and templates."""

import re

from lavactl.job_files.importers.kinds import Shared
from lavactl.job_files.importers.pai import common
from lavactl.job_files.importers.pai.plugins import KEY, Commands, Plugin, read_plugins
from lavactl.job_files.importers.pai.template import left_over, render, variable
from lavactl.job_files.importers.tables import (
    Anything,
    Flag,
    Keys,
    Named,
    Number,
    Part,
    Parts,
    Required,
    Table,
    Text,
    Texts,
    Word,
)
from lavactl.job_files.model import JobFile, role
from lavactl.job_files.text.fields import Fields
from lavactl.job_files.text.nodes import Mapping, Node, Scalar
from lavactl.wire import messages

NAME = re.compile(r"[A-Za-z0-9_-]{1,255}")
ROLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")
PREREQUISITES = ("dockerimage", "script", "output", "data")
SHM_MIB = 512
CLASSES = {one: one for one in ("crit", "prod", "test", "oppo")}
OF_HIVED = "each task gets the slots, memory and GPUs that it asks for"
FETCHED = "commands of a role fetch what it needs"


class Prerequisite(Table):
    """One of ``prerequisites``."""

    name = Required("name", "the name that roles call it by; once for each type")
    kind = Required("type", "dockerimage, script, data or output")
    uri = Anything("uri", None, "the image, or where it comes from", here="the image of roles; templates may name it")
    auth = Anything("auth", None, "password of the registry", told="images are prepared by the site")
    version = Text("version", "", "for people", moot=True)
    protocol = Text("protocolVersion", "", "for people", moot=True)
    contributor = Text("contributor", "", "for people", moot=True)
    description = Text("description", "", "for people", moot=True)
    plugin = Anything("plugin", None, "the plugin that fetches it", told=FETCHED)
    require = Anything("require", None, "others that it needs", told=FETCHED)
    policy = Anything("failurePolicy", None, "whether the job goes on without it", told=FETCHED)
    callbacks = Anything("callbacks", None, "commands at its events", told=FETCHED)


class Completion(Table):
    """``completion`` of a role."""

    failed = Number("minFailedInstances", 1, "the job fails with so many failed tasks; null and 0 are 1, -1 never", -1)
    succeeded = Number("minSucceededInstances", None, "the job is done with so many done tasks of the role; -1 never",
                       -1, absent="all instances; so null and 0")  # fmt: skip


class Container(Table):
    """``extraContainerOptions`` of a role."""

    shm = Number("shmMB", SHM_MIB, "size of /dev/shm", here="tasks are told of it")
    infiniband = Flag("infiniband", False, "the devices of InfiniBand", told="tasks use the devices of their hosts")


class Resources(Table):
    """``resourcePerInstance`` of a role."""

    cpu = Number("cpu", None, "processors of each task", 1, here="slots of each task", absent="refused")
    memory = Number("memoryMB", None, "memory of each task, limit and request", 1, absent="refused")
    gpu = Number("gpu", None, "GPUs of each task", absent="refused")
    ports = Keys("ports", None, "so many random ports of the host by name; http and ssh are always there")


class Role(Table):
    """One of ``taskRoles``; another key is refused."""

    instances = Number("instances", 1, "so many tasks", 1)
    completion = Part("completion", Completion, "which ends of tasks end the job")
    retries = Number("taskRetryCount", 0, "retries of each task, without gangAllocation alone", -2,
                     here="so many times the tasks, counted together; told where the job is a gang")  # fmt: skip
    image = Required("dockerImage", "a prerequisite", here="used where the site runs containers; always told")
    data = Text("data", "", "a prerequisite", here="a name for templates")
    output = Text("output", "", "a prerequisite", here="a name for templates")
    script = Text("script", "", "a prerequisite", here="a name for templates")
    prerequisites = Texts("prerequisites", None, "prerequisites that it needs", here="they must be in the list")
    container = Part("extraContainerOptions", Container, "its container")
    resources = Part("resourcePerInstance", Resources, "the share of each task", absent="refused")
    commands = Texts("commands", None, "lines of one script", absent="refused")


class DeploymentRole(Table):
    """``taskRoles`` of a deployment."""

    before = Texts("preCommands", None, "lines before the role's commands")
    behind = Texts("postCommands", None, "lines behind them")


class Deployment(Table):
    """One of ``deployments``."""

    name = Required("name", "its name, once")
    roles = Named(
        "taskRoles", DeploymentRole, "commands by role", here="of the one that the job takes; others are told"
    )


class Defaults(Table):
    """``defaults``."""

    cluster = Text("virtualCluster", "default", "the virtual cluster; refused to users who may not",
                   here="the queue; default is the cluster's own if none has that name")  # fmt: skip
    deployment = Text("deployment", "", "the deployment that the job takes")


class Hived(Table):
    """``extras.hivedScheduler``."""

    priority = Word("jobPriorityClass", CLASSES, "test", "priority, and with oppo no guarantee",
                    told="the queue's priority counts")  # fmt: skip
    roles = Anything("taskRoles", None, "SKU, affinity group and pinned cell of each role", told=OF_HIVED)
    lazy = Anything("lazyPreemptionEnable", None, "a preempted job is downgraded", told="the queue's rules count")
    gang_release = Anything("gangReleaseEnable", None, "cells are freed together", told="the queue's rules count")


class Extras(Table):
    """``extras``."""

    is_gang = Flag("gangAllocation", True, "all tasks are placed together, and not retried by themselves")
    hived = Part("hivedScheduler", Hived, "HiveD")
    plugins = Parts(KEY, Plugin, "runtime plugins")
    submit_from = Text("submitFrom", "", "the program that wrote the file", moot=True)
    notices = Anything("jobStatusChangeNotification", None, "mails", told="no mail is sent about jobs of tasks")
    storages = Anything("storages", None, "mounts", told="lava expects a shared file system")
    board = Anything("tensorBoard", None, "the page of TensorBoard", told="lava has none; a role can run it")


class Job(Table):
    """Job of OpenPAI, protocol version 2; another key at the top is refused."""

    protocol = Required("protocolVersion", "2", here="2, else refused")
    name = Required("name", "letters, digits, _ and -; one unfinished job of a name for each user")
    kind = Required("type", "job", here="job, else refused")
    version = Text("version", "", "for people", moot=True)
    contributor = Text("contributor", "", "for people", moot=True)
    description = Text("description", "", "for people", here="the description of the job")
    prerequisites = Parts("prerequisites", Prerequisite, "images, data, scripts by name")
    parameters = Anything("parameters", None, "values for templates")
    secrets = Anything("secrets", None, "values for templates", here="variables that tasks have and nothing shows")
    retries = Number("jobRetryCount", 0, "runs after a failure; after some exit codes always, after others never")
    roles = Named("taskRoles", Role, "the tasks by role", absent="refused")
    deployments = Parts("deployments", Deployment, "commands around those of roles")
    defaults = Part("defaults", Defaults, "virtual cluster and deployment")
    extras = Part("extras", Extras, "gang, HiveD, plugins")


def read_job(fields: Fields, shared: Shared) -> list[JobFile]:
    """Job of a document.

    Raises:
        FileError: a field is wrong, or the server would refuse the job.
    """
    document = Job(fields)
    _check_root(document)
    name = document.name
    if not NAME.fullmatch(name):
        raise document.wrong(Job.name, f"{name[:80]!r} is no job name: it has letters, digits, _ and -.")
    queue = document.defaults.cluster if document.defaults.has(Defaults.cluster) else ""
    job = common.start(fields, "OpenPAI job (protocol 2)", "openpai-v2", name, shared.user, document.defaults.fields)
    if document.has(Job.description):
        job.options.append(("Jd", document.description.strip()))
    options = ["generation=1", f"user={shared.user}", f"job={name}", f"vc={queue or 'default'}"]
    extras = document.extras
    commands = _commands(document)
    options += read_plugins(extras.plugins, commands)
    _Roles(job, document, commands, extras.is_gang).read(options)
    _ = extras.hived  # told, one by one
    common.read_retries(job, document.retries)
    job.tasks_rules.conventions.add(name="pai", options=options)
    return [job]


def _check_root(document: Job) -> None:
    document.refuse_others()
    version, kind = document.fields.text("protocolVersion"), document.fields.text("type")
    if version not in ("2", "2.0"):
        raise document.wrong(Job.protocol, f"expected 2, found {version}.")
    if kind != "job":
        raise document.wrong(Job.kind, f"expected job, found {kind or 'nothing'}.")


def _commands(document: Job) -> Commands:
    """Commands before and after those of the roles, by the deployment that the job names."""
    found = Commands()
    wanted = document.defaults.deployment
    roles = set(_names(document.fields.node.get("taskRoles")))
    names = []
    for one in document.deployments:
        if one.name in names:
            raise one.wrong(Deployment.name, f"there are two deployments named {one.name}.")
        names.append(one.name)
        if one.name != wanted:
            one.fields.asked.add("taskRoles")
            one.note(None, f"ignored: deployment {one.name} is not the one that the job takes.")
            continue
        for part_name, part in one.roles:
            if part_name not in roles:
                raise part.wrong(None, f"there is no task role named {part_name}.")
            found.before[part_name], found.behind[part_name] = part.before, part.behind
    if wanted and wanted not in names:
        raise document.defaults.wrong(Defaults.deployment, f"there is no deployment named {wanted}.")
    return found


def _names(node: Node | None) -> list[str]:
    return list(node.entries) if isinstance(node, Mapping) else []


class _Roles:
    """Reading of the task roles, which refer to the job's prerequisites and parameters."""

    def __init__(self, job: JobFile, document: Job, commands: Commands, is_gang: bool) -> None:
        self.job = job
        self.document = document
        self.commands = commands
        self.is_gang = is_gang
        given = {"parameters": document.parameters, "secrets": document.secrets}
        self.parameters = {name: node for name, node in given.items() if node}
        for name, node in self.parameters.items():
            if not isinstance(node, Mapping):
                raise document.fields.expected(name, "a mapping", node)
        self.used_secrets: set[str] = set()
        self.prerequisites: dict[tuple[str, str], Prerequisite] = {}

    def read(self, options: list[str]) -> None:
        """Read all roles; adds what the convention is told of them to ``options``."""
        for one in self.document.prerequisites:
            self._prerequisite(one)
        named = self.document.roles
        if not named:
            raise self.document.wrong(Job.roles, "a job needs a task role.")
        for name, part in named:
            if not ROLE_NAME.fullmatch(name):
                raise part.wrong(
                    None, f"{name[:80]!r} is no name of a role: it is a letter, then letters, digits and _."
                )
            part.refuse_others()
            options += self._role(name, part)
        self._keep_secrets()
        self._tell_unused()

    def _prerequisite(self, one: Prerequisite) -> None:
        kind, name = one.kind, one.name
        if kind not in PREREQUISITES:
            raise one.wrong(Prerequisite.kind, f"expected {', '.join(PREREQUISITES)}, found {kind}.")
        if (kind, name) in self.prerequisites:
            raise one.wrong(Prerequisite.name, f"there are two prerequisites of type {kind} named {name}.")
        self.prerequisites[kind, name] = one
        one.fields.asked.add("uri")

    def _values(self, part: Role) -> dict[str, Node]:
        """Names that templates of a role may use."""
        values: dict[str, Node] = dict(self.parameters)
        for row in (Role.script, Role.data, Role.output):
            if wanted := row.read(part.fields):
                values[row.name] = self._find(part, row.name, row.name, wanted).fields.node
        return values

    def _find(self, part: Role, key: str, kind: str, name: str) -> Prerequisite:
        found = self.prerequisites.get((kind, name))
        if found is None:
            raise part.fields.wrong(key, f"there is no prerequisite of type {kind} named {name}.")
        return found

    def _role(self, name: str, part: Role) -> list[str]:
        count = part.instances
        least = count if self.is_gang else int(not self.job.roles)
        made = role(name, count, least)
        made.completions = count if least < count else 0
        image = self._find(part, "dockerImage", "dockerimage", part.image)
        made.image = image.fields.required("uri")
        part.note(Role.image, f"{made.image} is used only where hosts are configured to run containers.")
        for wanted in part.prerequisites:
            if all(known != wanted for _, known in self.prerequisites):
                raise part.wrong(Role.prerequisites, f"there is no prerequisite named {wanted}.")
        part.same(Role.prerequisites)  # what a role needs is fetched by its commands
        words = part.commands
        if not words:
            raise part.wrong(Role.commands, "a role needs a command.")
        values = self._values(part)
        lines = self.commands.of(name, words)
        made.command = "\n".join(render(line, values, self.used_secrets).strip() for line in lines)
        for tag in left_over(made.command):
            part.note(Role.commands, f"{tag} stands for no parameter, secret or prerequisite, and is left as it is.")
        self._read_resources(made, part)
        self._read_completion(made, part.completion)
        self.job.roles.append(made)
        return common.resources_told(made, part.container.shm)

    def _read_resources(self, made: messages.Role, part: Role) -> None:
        wanted = part.resources
        for row in (Resources.cpu, Resources.memory, Resources.gpu):
            wanted.need(row)
        common.fill_resources(made, wanted.cpu or 1, wanted.memory or 1, wanted.gpu or 0)
        ports = wanted.ports
        for label, _ in ports.node:
            made.ports.add(name=label, count=ports.number(label, 1, 1, 1000))
            if label in common.PORTS and ports.number(label, 1) == 1:
                ports.same.add(label)
        common.add_ports(made)
        if part.retries and self.is_gang:
            part.note(Role.retries, "ignored: tasks of a gang are not retried one by one.")
        elif part.retries:
            made.restart = messages.RESTART_ON_FAILURE
            made.restarts_max = part.retries * made.tasks_max if part.retries > 0 else 1_000_000
            common.pause(made)

    def _read_completion(self, made: messages.Role, completion: Completion) -> None:
        """Read the counts that end the job; -1 means never, and 0 is as if nothing were said."""
        for row, default in ((Completion.failed, 1), (Completion.succeeded, made.tasks_max)):
            given = row.read(completion.fields) or default
            if given > made.tasks_max:
                raise completion.wrong(row, f"{given} is more than the {made.tasks_max} instances of the role.")
            if given == default:
                completion.same(row)
            if row is Completion.failed:
                made.failed_enough = max(given, 0)
            else:
                made.succeeded_enough = max(given, 0)

    def _keep_secrets(self) -> None:
        held = self.parameters.get("secrets")
        if not isinstance(held, Mapping):
            return
        for name, node in held:
            if name in self.used_secrets and isinstance(node, Scalar):
                self.job.tasks_rules.secrets.append(f"{variable(name)}={node.text}".encode("utf-8", "surrogateescape"))
            else:
                self.document.fields.reading.note(held.keys[name], f"secrets.{name}", "ignored: no command uses it.")

    def _tell_unused(self) -> None:
        """Tell of parameters and prerequisites that nothing of the job names."""
        held = self.parameters.get("parameters")
        text = "\n".join(line for name, part in self.document.roles for line in self.commands.of(name, part.commands))
        for name, _ in held if isinstance(held, Mapping) else ():
            if f"$parameters.{name}" not in text:
                place = held.keys[name] if isinstance(held, Mapping) else self.document.fields.place()
                self.document.fields.reading.note(place, f"parameters.{name}", "ignored: no command uses it.")
        for (kind, word), one in self.prerequisites.items():
            named = [(name, part) for name, part in self.document.roles if word in _named(part, kind)]
            lines = [line for name, part in named for line in self.commands.of(name, part.commands)]
            if not named:
                one.note(None, "ignored: no role names it.")
            elif kind != "dockerimage" and not any(f"${kind}.uri" in line for line in lines):
                one.note_if(Prerequisite.uri, "ignored: no command names it, and nothing else fetches it.")


def _named(part: Role, kind: str) -> tuple[str, ...]:
    """Prerequisites of a type that a role names."""
    return (part.image,) if kind == "dockerimage" else (part.fields.text(kind),)
