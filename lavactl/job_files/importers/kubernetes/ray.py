"""RayJob, RayCluster, RayCronJob: a head, groups of workers, and a task that hands the entry point in when they run."""

import json
import shlex

from lavactl.job_files.importers.kinds import Shared
from lavactl.job_files.importers.kubernetes import metadata, pods
from lavactl.job_files.importers.tables import Anything, Flag, Number, Pairs, Part, Parts, Required, Table, Text, Word
from lavactl.job_files.model import UNLIMITED, JobFile, role
from lavactl.job_files.text.fields import NUMBER_MAX, Fields
from lavactl.job_files.text.nodes import Mapping
from lavactl.job_files.text.yaml_text import NO_YAML, read_plain
from lavactl.text.units import number_text
from lavactl.wire import messages

HEAD, SUBMITTER = "head", "submitter"
NAME_MAX, CLUSTER_NAME_MAX = 47, 53
SELECTOR = "ray.io/cluster"
OVERWRITE = "ray.io/overwrite-container-cmd"
# Ports of the head: the parameter that names each, and its default.
PORTS = {"ray": ("port", "6379"), "ray-dashboard": ("dashboard-port", "8265"),
         "ray-client": ("ray-client-server-port", "10001")}  # fmt: skip
# A node starts within the bounds of its task: LAVA_RAY_START has them, and the ports that were reserved.
START_HEAD = 'eval "set -- $LAVA_RAY_START"; exec "$@"'
# A head asks for the token of its user's home as soon as there is one (Ray 2.60); not all of Ray's commands present it
# without being told to.
AUTH = '[ ! -e ~/.ray/auth_token ] || export RAY_AUTH_MODE="${RAY_AUTH_MODE-token}"; '
START_WORKER = f'{AUTH}until ray health-check --address="$RAY_ADDRESS" >/dev/null 2>&1; do sleep 1; done; {START_HEAD}'
DASHBOARD = '--address="http://$RAY_DASHBOARD_ADDRESS"'
ALWAYS = (("dashboard-host", "0.0.0.0"), *((key, default) for key, default in PORTS.values()))
OURS = ("block", "address", "head")
VALUED = ("log-color", "include-dashboard")  # parameters of ray start whose true and false are values
ENTRY = ("entrypoint", "entrypointNumCpus", "entrypointNumGpus", "entrypointResources", "jobId", "metadata")
MODES = ("K8sJobMode", "HTTPMode", "InteractiveMode", "SidecarMode")


REACHED = "ports of the job are reached on its hosts"
AUTOSCALED = "Ray's autoscaler cannot ask for tasks; a group with enableInTreeAutoscaling grows as room comes"
OWN_CLUSTER = "the Ray cluster is the job's own and ends with it"

# -- fields ------------------------------------------------------------------------------------------------------------


class Group(Table):
    """``headGroupSpec``: the head."""

    parameters = Pairs("rayStartParams", None, "options of ray start; true is one without a value, false none",
                       here="the same; ports are asked for, and slots and GPUs are those of the task")  # fmt: skip
    template = Part("template", pods.Template, "the pods; a command runs before ray start, which is added",
                    here="the tasks; restartPolicy is that of the kind", absent="refused")  # fmt: skip
    resources = Pairs("resources", None, "amounts that Ray is told in place of the container's",
                      told="Ray is told slots and GPUs of its task")  # fmt: skip
    labels = Pairs("labels", None, "labels of the Ray node", told="write them as labels of rayStartParams")
    service = Text("serviceType", "", "how the head is reached from outside", told=REACHED, absent="ClusterIP")
    ingress = Flag("enableIngress", False, "how the dashboard is reached from outside", told=REACHED)
    head_service = Anything("headService", None, "how the head is reached", told=REACHED)


class WorkerGroup(Group):
    """One of ``workerGroupSpecs``: a role."""

    name = Required("groupName", "its name", here="the role's name")
    replicas = Number("replicas", 0, "so many replicas, not under minReplicas nor over maxReplicas")
    least = Number("minReplicas", 0, "the least number of replicas")
    most = Number("maxReplicas", NUMBER_MAX, "the largest number of replicas; only the autoscaler goes there",
                  here="only with enableInTreeAutoscaling the job grows up to it, as room comes")  # fmt: skip
    hosts = Number("numOfHosts", 1, "pods of a replica", 1)
    suspend = Flag("suspend", False, "no pods", here="the group has no tasks")
    scale = Anything("scaleStrategy", None, "the pods that are deleted first", told="lavactl scale names tasks")
    idle_s = Number("idleTimeoutSeconds", None, "when the autoscaler takes an idle pod away", told=AUTOSCALED)
    priority = Number("priority", None, "the order of the autoscaler", -NUMBER_MAX, told=AUTOSCALED)


class ClusterSpec(metadata.Managed):
    """Specification of a Ray cluster."""

    head = Part("headGroupSpec", Group, "the head", absent="refused")
    groups = Parts("workerGroupSpecs", WorkerGroup, "groups of workers")
    version = Text("rayVersion", "", "the version of the images", told="the Ray of the hosts is used")
    is_scaled = Flag("enableInTreeAutoscaling", False, "an autoscaler changes the number of workers",
                     here="groups have minReplicas to maxReplicas, as room comes")  # fmt: skip
    scaler = Anything("autoscalerOptions", None, "the autoscaler", told=AUTOSCALED)
    auth = Anything(
        "authOptions", None, "a token for the cluster", told="Ray's own token of the user's home is presented"
    )
    fault = Anything("gcsFaultToleranceOptions", None, "a new head finds the old one's state",
                     told="a lost head ends the cluster")  # fmt: skip
    upgrade = Anything("upgradeStrategy", None, "what a changed object leads to", told="a changed file is a new job")
    notes = Anything("headServiceAnnotations", None, "of the head's service", told=REACHED)
    history = Anything(
        "historyServerOptions", None, "a server for ended clusters", told="output and history are the job's"
    )
    network = Anything("networkPolicy", None, "who reaches the pods", told=REACHED)
    tls = Anything("tlsOptions", None, "encryption between the pods", told="write Ray's own variables for it")
    suspend = Flag("suspend", False, "no pods", here="the job is held until bresume; in a RayJob told by its own")


class JobSpec(metadata.Managed):
    """``spec`` of a RayJob."""

    cluster = Part("rayClusterSpec", ClusterSpec, "its cluster", absent="refused, unless it has a clusterSelector")
    selector = Pairs("clusterSelector", None, "ray.io/cluster: a RayCluster, which it does not end",
                     here="a RayCluster of the same file; one is started for each job, and ends with it")  # fmt: skip
    entry = Text("entrypoint", "", "the command that is submitted", absent="refused, but with InteractiveMode")
    environment = Text("runtimeEnvYAML", "", "the runtime environment")
    cpus = Text("entrypointNumCpus", "", "processors of the entry point", absent="0")
    gpus = Text("entrypointNumGpus", "", "GPUs of the entry point", absent="0")
    custom = Text("entrypointResources", "", "other resources of the entry point, in JSON")
    number = Text("jobId", "", "the id of the submission", absent="Ray's own")
    metadata = Pairs("metadata", None, "metadata of the submission")
    mode = Word("submissionMode", {one: one for one in MODES}, MODES[0], "the program that submits",
                here="a task of the job, but with InteractiveMode")  # fmt: skip
    retries = Number("backoffLimit", 0, "so many new clusters after a failure", here="so many restarts of the job")
    submitter = Anything(
        "submitterPodTemplate", None, "the pod that submits", told="the submitter is a task of the job"
    )
    submitter_rules = Anything(
        "submitterConfig", None, "retries of that pod", told="the submitter is a task of the job"
    )
    ends = Flag("shutdownAfterJobFinishes", False, "the cluster ends with the job", here=OWN_CLUSTER)
    ttl_s = Number("ttlSecondsAfterFinished", 0, "the cluster ends so long after the job",
                   here="the job leaves the lists then")  # fmt: skip
    deadline_s = Number("activeDeadlineSeconds", None, "the job fails so long after its first start", 1,
                        here="the run limit of the job; waiting does not count")  # fmt: skip
    start_s = Number("preRunningDeadlineSeconds", None, "the job fails if the cluster is not ready so soon", 1,
                     told="the job waits for its places; a policy of a lava file can end it")  # fmt: skip
    deletion = Anything("deletionStrategy", None, "what is deleted at the end", told=OWN_CLUSTER)
    suspend = Flag("suspend", False, "the cluster is deleted; refused without shutdownAfterJobFinishes",
                   here="the job is held until bresume; one with Kueue's label is not")  # fmt: skip


class RayJob(metadata.Document):
    """RayJob: a cluster and the task that submits to it, as one job."""

    spec = Part("spec", JobSpec, "the job")


class RayCluster(metadata.Document):
    """RayCluster: a job that runs until it is ended; or the cluster of RayJobs of the same file."""

    spec = Part("spec", ClusterSpec, "the cluster")


class CronSpec(metadata.Schedule):
    """``spec`` of a RayCronJob."""

    job = Part("jobTemplate", JobSpec, "the spec of its RayJobs", here="the job")


class RayCronJob(metadata.Document):
    """RayCronJob: its job is run once, and now."""

    spec = Part("spec", CronSpec, "schedule and job")


# -- documents ---------------------------------------------------------------------------------------------------------


def selected_by(document: Mapping) -> str:
    """Name of the RayCluster that a RayJob selects; empty for none."""
    spec = document.get("spec")
    found = spec.get("clusterSelector") if isinstance(spec, Mapping) else None
    return found.text(SELECTOR) if isinstance(found, Mapping) else ""


def read_job(fields: Fields, shared: Shared) -> list[JobFile]:
    """Job of a document.

    Raises:
        FileError: a field is wrong, or the job is for a cluster that runs elsewhere.
    """
    document = RayJob(fields)
    job = metadata.start(document, "RayJob", "rayjob")
    if len(job.name) > NAME_MAX:
        raise document.metadata.wrong(metadata.Metadata.name, f"a RayJob's name has at most {NAME_MAX} characters.")
    _read_job(job, document.spec, bool(document.metadata.labels.queue), shared)
    return [job]


def read_cron_job(fields: Fields, shared: Shared) -> list[JobFile]:
    """The job of a RayCronJob, to be run once and now."""
    document = RayCronJob(fields)
    job = metadata.start(document, "RayCronJob", "rayjob")
    metadata.read_schedule(document.spec, document.metadata)
    _read_job(job, document.spec.job, bool(document.metadata.labels.queue), shared)
    return [job]


def read_cluster(fields: Fields, shared: Shared) -> list[JobFile]:
    """Job of a RayCluster, which runs until it is ended; none if RayJobs of the file select it.

    Raises:
        FileError: a field is wrong.
    """
    document = RayCluster(fields)
    job = metadata.start(document, "RayCluster", "rayjob")
    if len(job.name) > CLUSTER_NAME_MAX:
        raise document.metadata.wrong(
            metadata.Metadata.name, f"a RayCluster's name has at most {CLUSTER_NAME_MAX} characters."
        )
    spec = document.spec
    _read_cluster(job, spec)
    metadata.read_manager(spec.fields)
    if spec.suspend:
        job.options.append(("H", ""))
    if job.name in shared.selected_clusters:
        spec.same(ClusterSpec.suspend)
        fields.note("", f"RayCluster {job.name} is that of the RayJobs of this file that select it.")
        return []
    spec.note(None, "the cluster runs until it is ended, by bkill.")
    return [job]


def _read_job(job: JobFile, spec: JobSpec, is_queued: bool, shared: Shared) -> None:
    """Fill in a job from its specification."""
    if spec.has(JobSpec.selector):
        _read_selected(job, spec, shared)
    elif spec.has(JobSpec.cluster):
        _read_cluster(job, spec.cluster)
        if spec.cluster.suspend:
            spec.cluster.note(ClusterSpec.suspend, "ignored: the RayJob's own counts.")
    else:
        raise spec.wrong(JobSpec.cluster, "it is missing.")
    _read_mode(job, spec)
    _read_rules(job, spec, is_queued)


def _read_selected(job: JobFile, spec: JobSpec, shared: Shared) -> None:
    """Read the RayCluster of the same file that a job selects; its remarks are those of its own document."""
    name = spec.selector.get(SELECTOR, "")
    if not name:
        raise spec.wrong(JobSpec.selector, f"it names a RayCluster by {SELECTOR}.")
    document = shared.clusters.get(name)
    content = document.get("spec") if document is not None else None
    if not isinstance(content, Mapping):
        raise spec.wrong(
            JobSpec.selector, f"there is no RayCluster {name} in this file; lava starts a Ray cluster for each job."
        )
    if spec.has(JobSpec.cluster):
        spec.note(JobSpec.cluster, "ignored: the job is for the cluster that it selects.")
    if spec.mode == "SidecarMode":
        raise spec.wrong(JobSpec.mode, "it does not go with a clusterSelector.")
    for row in (JobSpec.retries, JobSpec.suspend):
        if row.read(spec.fields):
            raise spec.wrong(row, "it does not go with a clusterSelector.")
    spec.note(JobSpec.selector, f"the RayCluster {name} is started for this job, and ends with it.")
    reading = type(spec.fields.reading)(spec.fields.reading.file, spec.fields.reading.beside)
    _read_cluster(job, ClusterSpec(reading.open(content, "spec")))


# -- the cluster -------------------------------------------------------------------------------------------------------


def _read_cluster(job: JobFile, cluster: ClusterSpec) -> None:
    """Add head and workers."""
    cluster.need(ClusterSpec.head)
    _read_head(job, cluster.head)
    for group in cluster.groups:
        _read_group(job, group, cluster.is_scaled)
    job.tasks_rules.conventions.add(name="rayjob", options=[f"head={HEAD}"])


def _read_head(job: JobFile, group: Group) -> None:
    head = role(HEAD, 1)
    before = _fill(job, head, group)
    given = dict(group.parameters)
    for name, (key, default) in PORTS.items():
        text = given.pop(key, default)
        if not (text.isascii() and text.isdigit()) or not 0 < int(text) < 1 << 16:
            raise group.wrong(Group.parameters, f"expected a port for {key}, found {text[:80]}.")
        pods.add_port(head, name, int(text))
        _know_port(group, int(text))
    head.command = before + START_HEAD + _flags(given)
    head.failed_enough = 1
    job.roles.append(head)


def _know_port(group: Group, number: int) -> None:
    """Remember that a port of the container is one that the head has anyway, under a name of its own."""
    container = group.template.pod.containers[0]
    for port in container.ports:
        if port.number == number:
            port.same(pods.Port.number)
            port.same(pods.Port.name)
    if all(pods.Port.number.name in port.fields.same for port in container.ports):
        container.same(pods.Container.ports)


def _read_group(job: JobFile, group: WorkerGroup, is_scaled: bool) -> None:
    name = group.name
    metadata.check_label(group.fields, WorkerGroup.name.name, name)
    if any(one.name == name for one in job.roles) or name == SUBMITTER:
        raise group.wrong(WorkerGroup.name, f"there are two groups named {name}.")
    least, most = group.least, group.most
    if most < least:
        raise group.wrong(WorkerGroup.most, "it is less than minReplicas.")
    wanted = 0 if group.suspend else max(least, min(group.replicas, most))
    made = role(name, wanted * group.hosts)
    if is_scaled and not group.suspend:
        most = most if most < NUMBER_MAX else wanted
        made = role(name, most * group.hosts, least * group.hosts)
        group.note(WorkerGroup.most, f"the job begins with {least} to {most} replicas, as there is room, not {wanted}.")
    elif group.has(WorkerGroup.most) and most > wanted:
        group.note(WorkerGroup.most, f"without autoscaling the group keeps to {wanted} of up to {most} replicas.")
    elif group.has(WorkerGroup.most) and group.replicas <= most:
        group.same(WorkerGroup.most)
    if not is_scaled and group.replicas >= least:
        group.same(WorkerGroup.least)  # a bound for the autoscaler
    if wanted == (0 if group.suspend else least):
        group.same(WorkerGroup.replicas)
    if not made.tasks_max:
        group.note(None, f"role {name} has no tasks and is left out.")
    before = _fill(job, made, group)
    made.command = before + START_WORKER + _flags(group.parameters)
    made.after.append(HEAD)
    made.restart, made.restarts_max = messages.RESTART_ALWAYS, UNLIMITED  # Ray gives a slow node up after 30 s
    pods.pause_restarts(made)
    if made.tasks_max:
        job.roles.append(made)


def _fill(job: JobFile, made: messages.Role, group: Group) -> str:
    """Fill in a role from its group's template; returns what its own command does before ray start, for the shell."""
    group.need(Group.template)
    template = group.template
    pods.fill_role(job, made, template)
    pods.drop_lack(job, made, group.fields.reading.notes)
    container, annotations = template.pod.containers[0], template.metadata.fields.child("annotations")
    words = " ".join([*container.command, *container.args])
    is_own = "ray start" in words or annotations.text(OVERWRITE) == "true"
    if is_own:
        container.fields.ignore(("command", "args"), "the task runs ray start with the ports that it has")
    if template.pod.has(pods.Pod.restart):
        template.pod.same(pods.Pod.restart)
    given = group.fields.child(Group.parameters.name)
    given.same.update(
        key for key, text in group.parameters.items()
        if key in OURS or text.lower() == "false" or (key, text) in ALWAYS
    )  # fmt: skip
    del made.argv[:]
    made.restart, made.restarts_max = messages.RESTART_NEVER, 0
    return "" if is_own or not words else f"{words} && "


def _flags(parameters: dict[str, str]) -> str:
    """Options of ray start; as with the operator true is an option without a value, and false none."""
    found = ""
    for name, value in parameters.items():
        if name in OURS or (name not in VALUED and value.lower() == "false"):
            continue
        found += f" --{name}" if name not in VALUED and value.lower() == "true" else f" --{name}={shlex.quote(value)}"
    return found


def _read_mode(job: JobFile, spec: JobSpec) -> None:
    """Read the way in which the entry point is handed in: by a task of the job, or by hand."""
    if spec.mode != "InteractiveMode":
        spec.same(JobSpec.mode)
        _read_submitter(job, spec.fields)
        return
    if spec.retries:
        raise spec.wrong(JobSpec.retries, "it does not go with the submissionMode InteractiveMode.")
    spec.fields.ignore((*ENTRY, "runtimeEnvYAML"), "it is given by hand, with ray job submit")
    spec.note(JobSpec.mode, "the cluster runs until it is ended, by bkill or activeDeadlineSeconds.")


def _read_submitter(job: JobFile, spec: Fields) -> None:
    made = role(SUBMITTER, 1)
    # The dashboard answers before the cluster takes jobs: one that does nothing tells when it does.
    taken = f"{AUTH}until ray job submit {DASHBOARD} --no-wait -- true >/dev/null 2>&1; do sleep 1; done"
    words = [f"{taken}; exec ray job submit", DASHBOARD]
    if spec.has("runtimeEnvYAML"):
        words.append(f"--runtime-env-json={shlex.quote(_as_json(spec, 'runtimeEnvYAML'))}")
    for key, flag in (("entrypointNumCpus", "num-cpus"), ("entrypointNumGpus", "num-gpus")):
        if spec.has(key):
            words.append(f"--entrypoint-{flag}={number_text(spec.real(key, 0))}")
        spec.get(key)
    if spec.has("entrypointResources"):
        words.append(f"--entrypoint-resources={shlex.quote(_as_json(spec, 'entrypointResources'))}")
    if pairs := spec.pairs("metadata"):
        words.append(f"--metadata-json={shlex.quote(json.dumps(pairs))}")
    if job_id := spec.text("jobId"):
        words.append(f"--submission-id={shlex.quote(job_id)}")
    made.command = f"{' '.join(words)} -- {spec.required('entrypoint')}"
    made.after.extend(one.name for one in job.roles)
    made.succeeded_enough = made.failed_enough = 1
    job.roles.append(made)


def _as_json(spec: Fields, key: str) -> str:
    """A mapping that stands in the file as a text, in YAML or JSON, as JSON."""
    try:
        value = read_plain(spec.text(key))
        text = json.dumps(value)
    except TypeError:
        raise spec.wrong(key, NO_YAML) from None
    except ValueError as error:
        raise spec.wrong(key, str(error)) from None
    if not isinstance(value, dict):
        raise spec.wrong(key, "the text is no mapping.")
    return text


def _read_rules(job: JobFile, spec: JobSpec, is_queued: bool) -> None:
    metadata.read_suspend(job, spec.fields, is_queued)
    if spec.deadline_s is not None:
        job.run_limit_s = min(spec.deadline_s, job.run_limit_s or spec.deadline_s)
    rules = job.tasks_rules
    if spec.has(JobSpec.ttl_s):
        rules.has_ttl, rules.ttl_s = True, float(spec.ttl_s)
    rules.restarts_max = min(spec.retries, UNLIMITED)
    rules.restarts_when_failed = rules.restarts_max > 0
    metadata.read_manager(spec.fields)
    if spec.ends or spec.has(JobSpec.selector):
        return
    for row in (JobSpec.ttl_s, JobSpec.suspend):
        if row.read(spec.fields):
            raise spec.wrong(row, "it needs shutdownAfterJobFinishes: true.")
    spec.note(JobSpec.ends, f"{OWN_CLUSTER}.")
