"""Volcano's Job and CronJob: tasks as roles, plugins as conventions, policies, and the gang's minimum."""

from dataclasses import dataclass

from lavactl.job_files import told
from lavactl.job_files.importers.kinds import Shared
from lavactl.job_files.importers.kubernetes import metadata, pods
from lavactl.job_files.importers.kubernetes.ray import START_HEAD, START_WORKER
from lavactl.job_files.importers.kubernetes.volcano_policies import Policy, read_policies
from lavactl.job_files.importers.tables import Anything, Number, Part, Parts, Required, Table, Text, Texts, Word
from lavactl.job_files.model import UNLIMITED, JobFile, role
from lavactl.job_files.text.fields import Fields
from lavactl.job_files.text.nodes import Null, Sequence
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

KIND, CRON_KIND = "Volcano Job", "Volcano CronJob"
DEFAULT_RETRIES = 3
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


class DependsOn(Table):
    """``dependsOn`` of a task."""

    names = Texts("name", None, "tasks of which as many as their minAvailable run before pods of this one are made")
    any_is_enough = Word("iteration", {"any": True, "all": False}, "all", "any: one of the named tasks is enough")


class PartitionPolicy(Table):
    """``partitionPolicy`` of a task; partitions are groups of the role, by their index."""

    total = Number("totalPartitions", 0, "times partitionSize it is replicas", 1, absent="refused")
    size = Number("partitionSize", 0, "pods of a partition", 1, absent="refused")
    least = Number("minPartitions", 0, "times partitionSize it is minAvailable")
    topology = Anything("networkTopology", None, "each partition in one part of the network",
                        told="partitions are not kept together on hosts of their own")  # fmt: skip


class Task(Table):
    """One of ``tasks``."""

    name = Text("name", "", "pods are JOB-NAME-INDEX", here="the role", absent="default and its number")
    replicas = Number("replicas", 0, "so many pods", here="so many tasks; with 0 there is no role, which is told")
    least = Number("minAvailable", None, "so many start with the job, and must succeed",
                   absent="replicas, or those of minPartitions")  # fmt: skip
    retries = Number("maxRetry", DEFAULT_RETRIES, "restarts of its containers, then the event TaskFailed", -1,
                     here="as there; told where no policy is for TaskFailed")  # fmt: skip
    policies = Parts("policies", Policy, "rules of what happens, before those of the job")
    depends = Part("dependsOn", DependsOn, "order of the start")
    partitions = Part("partitionPolicy", PartitionPolicy, "groups of its pods")
    topology = Word("topologyPolicy", {word: word for word in TOPOLOGY_POLICIES}, "none", "binding to processors",
                    told="affinity[...] in a resource requirement binds to processors")  # fmt: skip
    template = Part("template", pods.Template, "the pods", absent="refused")


class Volume(Table):
    """One of ``volumes``: told, each as a whole."""

    path = Required("mountPath", "where each container has it; no colon, and not twice")
    claim_name = Text("volumeClaimName", "", "the claim; or")
    claim = Anything("volumeClaim", None, "a new claim; one of both is needed")


class Topology(Table):
    """``networkTopology``."""

    is_hard = Word("mode", {"hard": True, "soft": False}, "hard", "all pods below one switch, or near to it",
                   here="each role in one rack, or on few hosts")  # fmt: skip
    tier = Number(
        "highestTierAllowed", None, "the level of that switch", told="a role keeps to one rack or to few hosts"
    )
    tier_name = Text("highestTierName", "", "its name; not both", told="a role keeps to one rack or to few hosts")


class Plugins(Table):
    """``plugins``: lists of flags; an unknown one is refused, and a flag that has no meaning here is told."""

    env = Texts("env", None, "VC_TASK_INDEX and VK_TASK_INDEX")
    svc = Texts("svc", None, "names of the pods, and lists of them")
    ssh = Texts("ssh", None, "keys for ssh between pods", here="ssh between tasks without keys or servers")
    tensorflow = Texts("tensorflow", None, "TF_CONFIG; with svc")
    pytorch = Texts("pytorch", None, "MASTER_ADDR, RANK, WORLD_SIZE; with svc")
    mpi = Texts("mpi", None, "MPI_HOST; with svc and ssh; refused without its master")
    ray = Texts("ray", None, "ray start in place of the commands of head and worker; with svc")
    hcclrank = Texts("hcclrank", None, "the rank of each pod for Ascend's devices")


class JobSpec(Table):
    """``spec`` of a Job."""

    scheduler = Text("schedulerName", "volcano", "the scheduler", told="lava is the scheduler")
    least = Number("minAvailable", 0, "the job starts when so many pods have room; all replicas are owed",
                   absent="the sum of the tasks' minAvailable")  # fmt: skip
    min_success = Number("minSuccess", None, "the job is done as soon as so many succeeded", 1)
    queue = Text("queue", "default", "the queue", here="the queue; default is the cluster's own if none has that name")
    retries = Number("maxRetry", DEFAULT_RETRIES, "attempts: 3 is a first run and two restarts; 0 is 3")
    policies = Parts("policies", Policy, "rules of what happens")
    plugins = Part("plugins", Plugins, "what pods are told of each other")
    tasks = Parts("tasks", Task, "the pods by task", here="roles", absent="refused")
    volumes = Parts("volumes", Volume, "directories of all containers",
                    here="told: lava expects a shared file system")  # fmt: skip
    topology = Part("networkTopology", Topology, "placement in the network")
    ttl_s = metadata.Timed.ttl_s
    estimate = Anything("runningEstimate", None, "how long the job runs", told="the queue's rules count")
    priority = Text("priorityClassName", "", "the order in the queue", told="the queue's rules count")


class Job(metadata.Document):
    """Job of Volcano: a gang of tasks with policies and plugins."""

    spec = Part("spec", JobSpec, "the job")


class JobTemplate(Table):
    """``jobTemplate`` of a CronJob."""

    metadata = Part("metadata", metadata.Metadata, "labels and annotations of each Job")
    spec = Part("spec", JobSpec, "the Job; its own admission sees it when it is made, here at once")


class CronJobSpec(metadata.Schedule):
    """``spec`` of a CronJob."""

    template = Part("jobTemplate", JobTemplate, "the Jobs that it makes", here="the job")


class CronJob(metadata.Document):
    """CronJob of Volcano: its job is run once, and now."""

    spec = Part("spec", CronJobSpec, "schedule and job")


@dataclass
class Member:
    """A task of the job as its gang sees it."""

    task: Task
    role: messages.Role
    replicas: int
    least: int
    priority: int


def read_cron_job(fields: Fields, shared: Shared) -> list[JobFile]:
    """The job of a CronJob, to be run once and now."""
    document = CronJob(fields)
    metadata.read_schedule(document.spec, document.metadata)
    if "TZ" in document.spec.schedule:
        raise document.spec.wrong(CronJobSpec.schedule, "its time zone stands in timeZone.")
    template = document.spec.template
    _ = template.metadata.labels, template.metadata.annotations  # told, one by one
    job = metadata.start(document, CRON_KIND, "volcano")
    return [read_spec(job, template.spec, shared)]


def read_job(fields: Fields, shared: Shared) -> list[JobFile]:
    """Job of a document."""
    document = Job(fields)
    job = metadata.start(document, KIND, "volcano")
    return [read_spec(job, document.spec, shared)]


def read_spec(job: JobFile, spec: JobSpec, shared: Shared) -> JobFile:
    """Fill in a job from its specification.

    Raises:
        FileError: a field is wrong, or Volcano's admission would refuse the job.
    """
    if spec.has(JobSpec.queue):
        job.add("q", spec.fields.required("queue"), spec.fields, "queue")
    tasks = spec.tasks
    if not tasks:
        raise spec.wrong(JobSpec.tasks, "a job needs a task.")
    job.tasks_rules.policies.extend(read_policies(spec, spec.policies))
    parts = [_part(job, task, at, shared) for at, task in enumerate(tasks)]
    _check_names(parts)
    _set_minimum(job, spec, parts)
    _read_order(parts)
    job.roles = [part.role for part in parts if part.replicas]
    if not job.roles:
        raise spec.wrong(JobSpec.tasks, "the job has no replicas at all.")
    for part in parts:
        if not part.replicas:
            part.task.note(Task.replicas, f"role {part.role.name} has no tasks and is left out.")
    _read_plugins(job, spec, parts)
    _owe_all(job)
    _limit_restarts(job, parts)
    _read_rules(job, spec)
    return job


# -- tasks -------------------------------------------------------------------------------------------------------------


def _part(job: JobFile, task: Task, at: int, shared: Shared) -> Member:
    name = task.name or f"default{at}"
    metadata.check_label(task.fields, "name", name)
    replicas = task.replicas
    least = _least(task, replicas)
    made = role(name, replicas, min(least, replicas))
    task.need(Task.template)
    pod = task.template.pod
    pods.fill_role(job, made, task.template)
    made.restart = pod.restart if pod.restart is not None else messages.RESTART_ALWAYS
    if made.restart != messages.RESTART_NEVER:
        made.restarts_max = UNLIMITED
        pods.pause_restarts(made)
    if not pod.has(pods.Pod.restart):
        pod.note(pods.Pod.restart, "none is given: each task is started again whenever it ends, also well.")
    if task.has(Task.partitions):
        made.group = task.partitions.size
    made.policies.extend(read_policies(task, task.policies))
    return Member(task, made, replicas, least, _priority(pod, shared))


def _least(task: Task, replicas: int) -> int:
    """Minimum of a task; without one it is all replicas, or its smallest partitions."""
    default = replicas
    if task.has(Task.partitions):
        policy = task.partitions
        if policy.total * policy.size != replicas:
            product = policy.total * policy.size
            raise policy.wrong(None, f"totalPartitions x partitionSize is {product}, but replicas is {replicas}.")
        if policy.least:
            default = policy.least * policy.size
            if task.least not in (None, default):
                raise task.wrong(Task.least, f"it must be minPartitions x partitionSize, that is {default}.")
    least = task.least if task.least is not None else default
    if least == default:
        task.same(Task.least)
    if least > replicas:
        raise task.wrong(Task.least, f"{least} is more than the {replicas} replicas of the task.")
    return least


def _priority(pod: pods.Pod, shared: Shared) -> int:
    return pod.priority if pod.priority is not None else shared.priorities.get(pod.priority_class, 0)


def _check_names(parts: list[Member]) -> None:
    seen: set[str] = set()
    for part in parts:
        if part.role.name in seen:
            raise part.task.wrong(Task.name, f"there are two tasks named {part.role.name}.")
        seen.add(part.role.name)


def _set_minimum(job: JobFile, spec: JobSpec, parts: list[Member]) -> None:
    """Share the minimum of the gang out to its roles.

    One at or above the sum of the roles' minima adds to them; a smaller one takes their place: those of the highest
    priority come first, then those that stand first.
    """
    total, least = sum(part.replicas for part in parts), sum(part.least for part in parts)
    wanted = spec.least or least
    if wanted == least:
        spec.same(JobSpec.least)
    if wanted > total:
        raise spec.wrong(JobSpec.least, f"{wanted} is more than the {total} replicas of all tasks.")
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
        spec.note(JobSpec.least, f"below the sum of the tasks' own minima, {least}: the job starts with {said}.")
    rules = job.tasks_rules
    rules.success_min = wanted
    if wanted >= least:
        for part in parts:
            part.role.success_min = part.least


def _read_order(parts: list[Member]) -> None:
    """Read dependsOn: tasks that start after others."""
    known = {part.role.name: part for part in parts}
    for part in parts:
        depends = part.task.depends
        names = depends.names
        for name in names:
            if name not in known:
                raise depends.wrong(DependsOn.names, f"there is no task named {name}.")
        part.role.after.extend(name for name in dict.fromkeys(names) if known[name].replicas)
        part.role.after_any = bool(depends.any_is_enough) and len(names) > 1
        if len(names) < 2:
            depends.same(DependsOn.any_is_enough)
    _refuse_cycle(parts)


def _refuse_cycle(parts: list[Member]) -> None:
    left = {part.role.name: part for part in parts}
    while left:
        free = [name for name, part in left.items() if not left.keys() & set(part.role.after)]
        if not free:
            first = next(iter(left.values()))
            raise first.task.wrong(Task.depends, f"the tasks {', '.join(left)} depend on each other in a circle.")
        for name in free:
            del left[name]


def _limit_restarts(job: JobFile, parts: list[Member]) -> None:
    """Limit restarts in place where a policy waits for their end; otherwise a container is restarted without end."""
    of_job = _names_role_failure(job.tasks_rules.policies)
    for part in parts:
        retries = part.task.retries or DEFAULT_RETRIES
        is_heard = of_job or _names_role_failure(part.role.policies)
        if part.role.restart != messages.RESTART_NEVER:
            part.role.restarts_max = retries if retries >= 0 and is_heard else UNLIMITED
            if not is_heard:
                part.task.note_if(Task.retries, "without effect, as no policy is for TaskFailed.")
        else:
            part.task.note_if(Task.retries, "without effect: its restartPolicy is Never.")


def _names_role_failure(policies: "Iterable[messages.TaskPolicy]") -> bool:
    heard = (messages.ROLE_FAILED, messages.TASK_ANY)
    return any(event in heard for policy in policies for event in policy.events)


# -- the job -----------------------------------------------------------------------------------------------------------


def _read_rules(job: JobFile, spec: JobSpec) -> None:
    rules = job.tasks_rules
    rules.restarts_max = (spec.retries or DEFAULT_RETRIES) - 1
    if spec.min_success is not None:
        rules.succeeded_enough = rules.success_min = spec.min_success
    metadata.keep(job, spec.ttl_s)
    _ignore_volumes(spec)
    _read_topology(job, spec)


def _ignore_volumes(spec: JobSpec) -> None:
    paths: set[str] = set()
    for volume in spec.volumes:
        path = volume.path
        if ":" in path or path in paths:
            raise volume.wrong(Volume.path, f"{path} holds a colon." if ":" in path else f"{path} is mounted twice.")
        if volume.has(Volume.claim_name) == volume.has(Volume.claim):
            raise volume.wrong(None, "a volume has a volumeClaimName or a volumeClaim, one of them.")
        paths.add(path)
        volume.fields.asked |= {"volumeClaimName", "volumeClaim"}
        volume.note(None, f"ignored: lava expects a shared file system; tasks find {path} there if the host has it.")


def _read_topology(job: JobFile, spec: JobSpec) -> None:
    if not spec.has(JobSpec.topology):
        return
    topology = spec.topology
    if topology.has(Topology.tier) and topology.has(Topology.tier_name):
        raise topology.wrong(None, "it has a highestTierAllowed or a highestTierName, not both.")
    for one in job.roles:
        one.spread = "rack" if topology.is_hard else "pack"
    spec.note(JobSpec.topology, "each role keeps to one rack." if topology.is_hard else "each role keeps to few hosts.")


def _read_plugins(job: JobFile, spec: JobSpec, parts: list[Member]) -> None:
    plugins = spec.plugins.fields
    found: dict[str, list[str]] = {}
    for name, node in plugins.node:
        if name not in Plugins.rows():
            raise plugins.wrong(name, f"there is no plugin named {name}; there are {', '.join(Plugins.rows())}.")
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
                pods.hold_without_process(
                    part.role, part.task.fields, "lava starts processes there without an SSH server"
                )
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


def _check_plugin_roles(spec: JobSpec, found: dict[str, list[str]], parts: list[Member]) -> None:
    names = {part.role.name for part in parts}
    if "mpi" in found and (master := _option(found["mpi"], "master", "master")) not in names:
        raise spec.plugins.wrong(Plugins.mpi, f"there is no task named {master}, which mpi needs as its master.")


def _add_ports(found: dict[str, list[str]], parts: list[Member]) -> None:
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
