"""RayJob: a head, groups of workers, and a task that hands the entry point in when they run."""

import shlex

from lavactl.job_files.importers.kinds import Shared
from lavactl.job_files.importers.kubernetes import metadata, pods
from lavactl.job_files.model import UNLIMITED, JobFile, role
from lavactl.job_files.text.fields import Fields
from lavactl.wire import messages

HEAD, SUBMITTER = "head", "submitter"
# Ports of the head: the parameter that names each, and its default.
PORTS = {"ray": ("port", "6379"), "ray-dashboard": ("dashboard-port", "8265"),
         "ray-client": ("ray-client-server-port", "10001")}  # fmt: skip
# A node starts within the bounds of its task: LAVA_RAY_START has them, and the ports that were reserved.
START_HEAD = 'eval "set -- $LAVA_RAY_START"; exec "$@"'
START_WORKER = f'until ray health-check --address="$RAY_ADDRESS" >/dev/null 2>&1; do sleep 1; done; {START_HEAD}'
DASHBOARD = '--address="http://$RAY_DASHBOARD_ADDRESS"'
OURS = ("block", "address", "head")
MODES = ("K8sJobMode", "HTTPMode", "InteractiveMode", "SidecarMode")


def read_job(fields: Fields, _shared: Shared) -> list[JobFile]:
    """Job of a document.

    Raises:
        FileError: a field is wrong, or the job is for a cluster that runs elsewhere.
    """
    job = metadata.start(fields, "RayJob", "rayjob")
    spec = fields.child("spec")
    if spec.has("clusterSelector"):
        raise spec.wrong("clusterSelector", "lava starts a Ray cluster for each job; it knows no other.")
    if not spec.has("rayClusterSpec"):
        raise spec.wrong("rayClusterSpec", "it is missing.")
    cluster = spec.child("rayClusterSpec")
    options = _read_head(job, cluster)
    for group in cluster.children("workerGroupSpecs"):
        _read_group(job, group)
    cluster.ignore(("rayVersion",), "the Ray of the hosts is used")
    cluster.ignore(("autoscalerOptions", "enableInTreeAutoscaling"), "the job grows as room comes")
    _read_submitter(job, spec)
    _read_rules(job, fields, spec)
    job.tasks_rules.conventions.add(name="rayjob", options=options)
    return [job]


def _read_head(job: JobFile, cluster: Fields) -> list[str]:
    group = cluster.child("headGroupSpec")
    if not cluster.has("headGroupSpec"):
        raise cluster.wrong("headGroupSpec", "it is missing.")
    head = role(HEAD, 1)
    _fill(job, head, group)
    given = group.pairs("rayStartParams")
    for name, (key, default) in PORTS.items():
        text = given.pop(key, default)
        if not (text.isascii() and text.isdigit()) or not 0 < int(text) < 1 << 16:
            raise group.wrong("rayStartParams", f"expected a port for {key}, found {text[:80]}.")
        pods.add_port(head, name, int(text))
    head.command = START_HEAD + _flags(given)
    head.failed_enough = 1
    job.roles.append(head)
    return [f"head={HEAD}"]


def _read_group(job: JobFile, group: Fields) -> None:
    name = group.required("groupName")
    metadata.check_label(group, "groupName", name)
    if any(one.name == name for one in job.roles) or name == SUBMITTER:
        raise group.wrong("groupName", f"there are two groups named {name}.")
    replicas = group.number("replicas", group.number("minReplicas", 0))
    least = min(group.number("minReplicas", replicas), replicas)
    hosts = group.number("numOfHosts", 1, 1)
    most = max(group.number("maxReplicas", replicas), replicas)
    if most > 1 << 20:
        most = replicas  # the operator's default stands for no bound
    made = role(name, most * hosts, (least or 0) * hosts)
    if not most:
        group.note("", f"role {name} has no tasks and is left out.")
    _fill(job, made, group)
    made.command = START_WORKER + _flags(group.pairs("rayStartParams"))
    made.after.append(HEAD)
    made.restart, made.restarts_max = messages.RESTART_ALWAYS, UNLIMITED  # Ray gives a slow node up after 30 s
    group.ignore(("scaleStrategy", "idleTimeoutSeconds"), "the job grows as room comes")
    if most:
        job.roles.append(made)


def _fill(job: JobFile, made: messages.Role, group: Fields) -> None:
    """Fill in a role from its group's template; its command is Ray's."""
    if not group.has("template"):
        raise group.wrong("template", "it is missing.")
    pods.fill_role(job, made, group.child("template"))
    pods.drop_lack(job, made, group.reading.notes)
    container = group.child("template").child("spec").children("containers")[0]
    container.ignore(("command", "args"), "the task runs ray start")
    del made.argv[:]
    made.restart, made.restarts_max = messages.RESTART_NEVER, 0
    group.ignore(("serviceType", "enableIngress", "headService"), "ports of the job are reached on its hosts")


def _flags(parameters: dict[str, str]) -> str:
    return "".join(f" --{name}={shlex.quote(value)}" for name, value in parameters.items() if name not in OURS)


def _read_submitter(job: JobFile, spec: Fields) -> None:
    made = role(SUBMITTER, 1)
    words = [f"until ray job list {DASHBOARD} >/dev/null 2>&1; do sleep 1; done; exec ray job submit", DASHBOARD]
    if spec.has("runtimeEnvYAML"):
        words.append(f"--runtime-env-json={shlex.quote(_as_json(spec))}")
    for key, flag in (("entrypointNumCpus", "num-cpus"), ("entrypointNumGpus", "num-gpus")):
        if spec.has(key):
            words.append(f"--entrypoint-{flag}={spec.real(key, 0):g}")
        spec.get(key)
    if job_id := spec.text("jobId"):
        words.append(f"--submission-id={shlex.quote(job_id)}")
    made.command = f"{' '.join(words)} -- {spec.required('entrypoint')}"
    made.after.extend(one.name for one in job.roles)
    made.succeeded_enough = made.failed_enough = 1
    job.roles.append(made)


def _as_json(spec: Fields) -> str:
    """The runtime environment, a YAML text in the file, as JSON."""
    import json

    import yaml

    try:
        value = yaml.safe_load(spec.text("runtimeEnvYAML"))
        return json.dumps(value)
    except (yaml.YAMLError, TypeError, ValueError):
        raise spec.wrong("runtimeEnvYAML", "this text is no YAML.") from None


def _read_rules(job: JobFile, fields: Fields, spec: Fields) -> None:
    metadata.read_suspend(job, spec, metadata.has_queue_label(fields))
    metadata.read_times(job, spec)
    rules = job.tasks_rules
    rules.restarts_max = spec.number("backoffLimit", 0)
    rules.restarts_when_failed = rules.restarts_max > 0
    spec.word("submissionMode", {mode: mode for mode in MODES}, MODES[0])
    spec.asked |= {"shutdownAfterJobFinishes"}
    spec.ignore(("submitterPodTemplate", "submitterConfig"), "the submitter is a task of the job")
    spec.ignore(("metadata", "managedBy"), "lava runs the job")
    spec.get("runtimeEnvYAML")
