"""Volcano's Job and CronJob: tasks as roles, plugins as conventions, policies, and the gang's minimum."""

from dataclasses import dataclass

from lavactl.job_files import told
from lavactl.job_files.importers.kinds import Shared
from lavactl.job_files.importers.kubernetes import metadata, pods
from lavactl.job_files.importers.kubernetes.ray import START_HEAD, START_WORKER
from lavactl.job_files.importers.kubernetes.volcano_policies import read_policies
from lavactl.job_files.model import UNLIMITED, JobFile, role
from lavactl.job_files.text.fields import Fields
from lavactl.job_files.text.nodes import Null, Sequence
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

KIND, CRON_KIND = "Volcano Job", "Volcano CronJob"
DEFAULT_RETRIES = 3
PLUGINS = ("env", "svc", "ssh", "tensorflow", "pytorch", "mpi", "ray", "hcclrank")
# Plugins that bring others along.
ADDED = {
    "tensorflow": ("svc",), "mpi": ("svc", "ssh"), "pytorch": ("svc",), "ray": ("svc",),
}  # fmt: skip
UNUSED_FLAGS = {
    "ssh-private-key": "keys are made for each job",
    "ssh-public-key": "keys are made for each job",
    "publish-not-ready-addresses": "names resolve before any task runs",
    "disable-network-policy": "the network between jobs is open",
    "wait-master-enabled": "dependsOn makes tasks wait for others",
    "wait-master-timeout": "dependsOn makes tasks wait for others",
    "wait-master-image": "dependsOn makes tasks wait for others",
    "port": "no task needs an SSH server",
    "headContainer": "the first container is the task",
    "workerContainer": "the first container is the task",
}
# Ports of Ray's head: the flag of the plugin that names each, and its default.
RAY_PORTS = {"ray": ("port", 6379), "ray-dashboard": ("dashboardPort", 8265), "ray-client": ("clientPort", 10001)}
TOPOLOGY_POLICIES = ("none", "best-effort", "restricted", "single-numa-node")


@dataclass
class Part:
    """A task of the job as its gang sees it."""

    fields: Fields
    role: messages.Role
    replicas: int
    least: int
    priority: int


def read_cron_job(fields: Fields, shared: Shared) -> list[JobFile]:
    """The job of a CronJob, to be run once and now."""
    document = metadata.Document(fields)
    spec = fields.child("spec")
    metadata.read_schedule(metadata.Schedule(spec), document.metadata)
    template = spec.child("jobTemplate")
    template.get("metadata")
    job = metadata.start(document, CRON_KIND, "volcano")
    return [read_spec(job, template.child("spec"), shared)]


def read_job(fields: Fields, shared: Shared) -> list[JobFile]:
    """Job of a document."""
    job = metadata.start(fields, KIND, "volcano")
    return [read_spec(job, fields.child("spec"), shared)]


def read_spec(job: JobFile, spec: Fields, shared: Shared) -> JobFile:
    """Fill in a job from its specification.

    Raises:
        FileError: a field is wrong, or Volcano's admission would refuse the job.
    """
    metadata.set_queue(job, spec, "queue")
    tasks = spec.children("tasks")
    if not tasks:
        raise spec.wrong("tasks", "a job needs a task.")
    job.tasks_rules.policies.extend(read_policies(spec))
    parts = [_part(job, task, at, shared) for at, task in enumerate(tasks)]
    _check_names(parts)
    _set_minimum(job, spec, parts)
    _read_order(parts)
    job.roles = [part.role for part in parts if part.replicas]
    if not job.roles:
        raise spec.wrong("tasks", "the job has no replicas at all.")
    for part in parts:
        if not part.replicas:
            part.fields.note("replicas", f"role {part.role.name} has no tasks and is left out.")
    _read_plugins(job, spec, parts)
    _owe_all(job)
    _limit_restarts(job, parts)
    _read_rules(job, spec)
    return job


# -- tasks -------------------------------------------------------------------------------------------------------------


def _part(job: JobFile, task: Fields, at: int, shared: Shared) -> Part:
    name = task.text("name") or f"default{at}"
    metadata.check_label(task, "name", name)
    replicas = task.number("replicas", 0)
    least = _least(task, replicas)
    made = role(name, replicas, min(least, replicas))
    if not task.has("template"):
        raise task.wrong("template", "it is missing.")
    template = task.child("template")
    pods.fill_role(job, made, template)
    made.restart = template.child("spec").word("restartPolicy", pods.RESTARTS, messages.RESTART_ALWAYS)
    made.restarts_max = 0 if made.restart == messages.RESTART_NEVER else UNLIMITED
    if not template.child("spec").has("restartPolicy"):
        template.child("spec").note(
            "restartPolicy", "none is given: each task is started again whenever it ends, also well."
        )
    made.policies.extend(read_policies(task))
    task.word("topologyPolicy", {word: word for word in TOPOLOGY_POLICIES}, "")
    task.ignore(("topologyPolicy",), "affinity[...] in a resource requirement binds to processors")
    return Part(task, made, replicas, least, _priority(template.child("spec"), shared))


def _least(task: Fields, replicas: int) -> int:
    """Minimum of a task; without one it is all replicas, or its smallest partitions."""
    default = replicas
    if task.has("partitionPolicy"):
        policy = task.child("partitionPolicy")
        total, size = policy.number("totalPartitions", 0, 1), policy.number("partitionSize", 0, 1)
        least = policy.number("minPartitions", 0)
        if total * size != replicas:
            raise policy.wrong("", f"totalPartitions x partitionSize is {total * size}, but replicas is {replicas}.")
        policy.note("", "its partitions are not kept together on hosts of their own.")
        if least:
            default = least * size
            if task.number("minAvailable", default) != default:
                raise task.wrong("minAvailable", f"it must be minPartitions x partitionSize, that is {default}.")
    task.get("partitionPolicy")
    least = task.number("minAvailable", default)
    if least > replicas:
        raise task.wrong("minAvailable", f"{least} is more than the {replicas} replicas of the task.")
    return least


def _priority(pod: Fields, shared: Shared) -> int:
    if pod.has("priority"):
        return pod.number("priority", 0, -(2**31))
    pod.get("priority")
    return shared.priorities.get(pod.text("priorityClassName"), 0)


def _check_names(parts: list[Part]) -> None:
    seen: set[str] = set()
    for part in parts:
        if part.role.name in seen:
            raise part.fields.wrong("name", f"there are two tasks named {part.role.name}.")
        seen.add(part.role.name)


def _set_minimum(job: JobFile, spec: Fields, parts: list[Part]) -> None:
    """Share the minimum of the gang out to its roles.

    One at or above the sum of the roles' minima adds to them; a smaller one takes their place: those of the highest
    priority come first, then those that stand first.
    """
    total, least = sum(part.replicas for part in parts), sum(part.least for part in parts)
    wanted = spec.number("minAvailable", 0) or least
    if wanted > total:
        raise spec.wrong("minAvailable", f"{wanted} is more than the {total} replicas of all tasks.")
    starts = {id(part): part.least if wanted >= least else 0 for part in parts}
    left = wanted - sum(starts.values())
    for part in sorted(parts, key=lambda one: -one.priority):
        more = min(left, part.replicas - starts[id(part)])
        starts[id(part)] += more
        left -= more
    for part in parts:
        part.role.tasks_min = starts[id(part)]
        part.role.may_be_absent = part.role.tasks_min == 0
    if wanted < least:
        said = ", ".join(f"{part.role.name} {part.role.tasks_min}" for part in parts)
        spec.note("minAvailable", f"below the sum of the tasks' own minima, {least}: the job starts with {said}.")
    rules = job.tasks_rules
    rules.success_min = wanted
    if wanted >= least:
        for part in parts:
            part.role.success_min = part.least


def _read_order(parts: list[Part]) -> None:
    """Read dependsOn: tasks that start after others."""
    known = {part.role.name: part for part in parts}
    for part in parts:
        depends = part.fields.child("dependsOn")
        names = depends.texts("name")
        for name in names:
            if name not in known:
                raise depends.wrong("name", f"there is no task named {name}.")
        part.role.after.extend(name for name in dict.fromkeys(names) if known[name].replicas)
        part.role.after_any = depends.word("iteration", {"any": True, "all": False}, False) and len(names) > 1
    _refuse_cycle(parts)


def _refuse_cycle(parts: list[Part]) -> None:
    left = {part.role.name: part for part in parts}
    while left:
        free = [name for name, part in left.items() if not left.keys() & set(part.role.after)]
        if not free:
            first = next(iter(left.values()))
            raise first.fields.wrong("dependsOn", f"the tasks {', '.join(left)} depend on each other in a circle.")
        for name in free:
            del left[name]


def _limit_restarts(job: JobFile, parts: list[Part]) -> None:
    """Limit restarts in place where a policy waits for their end; otherwise a container is restarted without end."""
    of_job = _names_role_failure(job.tasks_rules.policies)
    for part in parts:
        retries = part.fields.number("maxRetry", DEFAULT_RETRIES, -1)
        is_heard = of_job or _names_role_failure(part.role.policies)
        if part.role.restart != messages.RESTART_NEVER:
            part.role.restarts_max = retries if retries >= 0 and is_heard else UNLIMITED
            if part.fields.has("maxRetry") and not is_heard:
                part.fields.note("maxRetry", "without effect, as no policy is for TaskFailed.")


def _names_role_failure(policies: "Iterable[messages.TaskPolicy]") -> bool:
    heard = (messages.ROLE_FAILED, messages.TASK_ANY)
    return any(event in heard for policy in policies for event in policy.events)


# -- the job -----------------------------------------------------------------------------------------------------------


def _read_rules(job: JobFile, spec: Fields) -> None:
    rules = job.tasks_rules
    rules.restarts_max = (spec.number("maxRetry", 0) or DEFAULT_RETRIES) - 1
    if spec.has("minSuccess"):
        rules.succeeded_enough = spec.number("minSuccess", 0, 1)
        rules.success_min = rules.succeeded_enough
    spec.get("minSuccess")
    metadata.read_times(job, spec)
    if spec.text("schedulerName", "volcano") != "volcano":
        spec.note("schedulerName", f"ignored: lava is the scheduler, not {spec.text('schedulerName')}.")
    spec.ignore(("runningEstimate", "priorityClassName"), "the queue's rules count")
    _ignore_volumes(spec)
    _read_topology(job, spec)


def _ignore_volumes(spec: Fields) -> None:
    paths: set[str] = set()
    for volume in spec.children("volumes"):
        path = volume.required("mountPath")
        if ":" in path or path in paths:
            raise volume.wrong("mountPath", f"{path} holds a colon." if ":" in path else f"{path} is mounted twice.")
        if volume.has("volumeClaimName") == volume.has("volumeClaim"):
            raise volume.wrong("", "a volume has a volumeClaimName or a volumeClaim, one of them.")
        paths.add(path)
        volume.asked |= {"volumeClaimName", "volumeClaim"}
        volume.note("", f"ignored: lava expects a shared file system; tasks find {path} there if the host has it.")


def _read_topology(job: JobFile, spec: Fields) -> None:
    if not spec.has("networkTopology"):
        return
    topology = spec.child("networkTopology")
    if topology.has("highestTierAllowed") and topology.has("highestTierName"):
        raise topology.wrong("", "it has a highestTierAllowed or a highestTierName, not both.")
    is_hard = topology.word("mode", {"hard": True, "soft": False}, True)
    topology.asked |= {"highestTierAllowed", "highestTierName"}
    for one in job.roles:
        one.spread = "rack" if is_hard else "pack"
    spec.note("networkTopology", "each role keeps to one rack." if is_hard else "each role keeps to few hosts.")


def _read_plugins(job: JobFile, spec: Fields, parts: list[Part]) -> None:
    plugins = spec.child("plugins")
    found: dict[str, list[str]] = {}
    for name, node in plugins.node:
        if name not in PLUGINS:
            raise plugins.wrong(name, f"there is no plugin named {name}; there are {', '.join(PLUGINS)}.")
        if not isinstance(node, Sequence | Null):
            raise plugins.expected(name, "a list of flags", node)
        found[name] = _options(plugins, name)
    for name in list(found):
        for added in ADDED.get(name, ()):
            found.setdefault(added, [])
    for name, options in found.items():
        job.tasks_rules.conventions.add(name=name, options=options)
    _check_plugin_roles(spec, found, parts)
    _add_ports(found, parts)
    if "ray" in found:
        _start_ray(job, found["ray"], plugins)
    if "ssh" in found:
        for part in parts:
            if pods.is_ssh_server(part.role):
                pods.hold_without_process(part.role, part.fields, "lava starts processes there without an SSH server")
        _count_without_servers(job)


def _owe_all(job: JobFile) -> None:
    """Let all replicas run: a minimum says when the job may start, and how many must succeed."""
    for one in job.roles:
        if one.launch == messages.LAUNCH_EACH and one.tasks_min < one.tasks_max:
            one.completions = one.tasks_max


def _count_without_servers(job: JobFile) -> None:
    """Leave roles without a process out of the successes that the job needs: they never succeed."""
    held = [one for one in job.roles if one.launch == messages.LAUNCH_NONE]
    for one in held:
        one.success_min = 0
    job.tasks_rules.success_min = max(job.tasks_rules.success_min - sum(one.tasks_min for one in held), 0)


def _options(plugins: Fields, name: str) -> list[str]:
    """Flags as ``NAME=VALUE``; one without a value is on."""
    found = []
    words = list(reversed(plugins.texts(name)))
    while words:
        flag = words.pop()
        text = flag.lstrip("-")
        if not flag.startswith("-") or not text:
            plugins.note(name, f"ignored: {flag} is no flag.")
            continue
        key, equals, value = text.partition("=")
        if not equals and words and not words[-1].startswith("-"):
            value, equals = words.pop(), "="
        value = value if equals else "true"
        fault = told.fault(name, key, value, ())
        why = (fault and (UNUSED_FLAGS.get(key) if key not in told.OPTIONS[name] else None)) or fault.rstrip(".")
        if why:
            plugins.note(name, f"ignored: {key}: {why}.")
        else:
            found.append(f"{key}={value}")
    return found


def _option(options: list[str], name: str, default: str) -> str:
    return next((one.partition("=")[2] for one in options if one.startswith(f"{name}=")), default)


def _check_plugin_roles(spec: Fields, found: dict[str, list[str]], parts: list[Part]) -> None:
    names = {part.role.name for part in parts}
    if "mpi" in found and (master := _option(found["mpi"], "master", "master")) not in names:
        raise spec.child("plugins").wrong("mpi", f"there is no task named {master}, which mpi needs as its master.")


def _add_ports(found: dict[str, list[str]], parts: list[Part]) -> None:
    """Reserve the ports that plugins tell of, so that tasks of one host do not share them."""
    by_name = {part.role.name: part.role for part in parts}
    if "tensorflow" in found:
        number = _number(found["tensorflow"], "port", 2222)
        for key in ("ps", "worker", "chief", "evaluator"):
            if (one := by_name.get(_option(found["tensorflow"], key, key))) is not None:
                pods.add_port(one, "tensorflow", number, "tfjob-port")
    if "pytorch" in found:
        master = by_name.get(_option(found["pytorch"], "master", "master"))
        if master is not None:
            pods.add_port(master, "pytorch", _number(found["pytorch"], "port", 23456), "pytorchjob-port")


def _number(options: list[str], name: str, default: int) -> int:
    """Value of a flag that is a port; a bad one counts as not given, as there."""
    text = _option(options, name, "")
    return int(text) if text.isascii() and text.isdigit() and 0 < int(text) < 1 << 16 else default


def _start_ray(job: JobFile, options: list[str], plugins: Fields) -> None:
    """Replace the commands of Ray's roles, as the plugin does."""
    head, worker = _option(options, "head", "head"), _option(options, "worker", "worker")
    starts = {head: START_HEAD, worker: START_WORKER}
    for one in job.roles:
        if one.name in starts:
            del one.argv[:]
            one.command = starts[one.name]
            pods.drop_lack(job, one, plugins.reading.notes)
            plugins.note("ray", f"role {one.name} runs ray start in place of its own command.")
        if one.name == head:
            for name, (key, number) in RAY_PORTS.items():
                pods.add_port(one, name, _number(options, key, number))
