"""RayJob: a head, groups of workers, and a task that hands the entry point in when they run."""

import json
import shlex

from lavactl.job_files.importers.kinds import Shared
from lavactl.job_files.importers.kubernetes import metadata, pods
from lavactl.job_files.model import UNLIMITED, JobFile, role
from lavactl.job_files.text.fields import Fields
from lavactl.job_files.text.yaml_text import NO_YAML, read_plain
from lavactl.text.units import number_text
from lavactl.wire import messages

HEAD, SUBMITTER = "head", "submitter"
NAME_MAX = 47
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
OURS = ("block", "address", "head")
VALUED = ("log-color", "include-dashboard")  # parameters of ray start whose true and false are values
ENTRY = ("entrypoint", "entrypointNumCpus", "entrypointNumGpus", "entrypointResources", "jobId", "metadata")
MODES = ("K8sJobMode", "HTTPMode", "InteractiveMode", "SidecarMode")


def read_job(fields: Fields, _shared: Shared) -> list[JobFile]:
    """Job of a document.

    Raises:
        FileError: a field is wrong, or the job is for a cluster that runs elsewhere.
    """
    job = metadata.start(fields, "RayJob", "rayjob")
    spec = fields.child("spec")
    if len(job.name) > NAME_MAX:
        raise fields.child("metadata").wrong("name", f"a RayJob's name has at most {NAME_MAX} characters.")
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
    _read_mode(job, spec)
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
    if group.number("maxReplicas", replicas) < group.number("minReplicas", 0):
        raise group.wrong("maxReplicas", "it is less than minReplicas.")
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
    """Options of ray start; as with the operator true is an option without a value, and false none."""
    found = ""
    for name, value in parameters.items():
        if name in OURS or (name not in VALUED and value.lower() == "false"):
            continue
        found += f" --{name}" if name not in VALUED and value.lower() == "true" else f" --{name}={shlex.quote(value)}"
    return found


def _read_mode(job: JobFile, spec: Fields) -> None:
    """Read who hands the entry point in: a task of the job, except where the user does it by hand."""
    mode = spec.word("submissionMode", {one: one for one in MODES}, MODES[0])
    if mode != "InteractiveMode":
        _read_submitter(job, spec)
        return
    if spec.has("backoffLimit") and spec.number("backoffLimit", 0):
        raise spec.wrong("backoffLimit", "it does not go with the submissionMode InteractiveMode.")
    spec.ignore((*ENTRY, "runtimeEnvYAML"), "it is given by hand, with ray job submit")
    spec.note("submissionMode", "the cluster runs until it is ended, by bkill or activeDeadlineSeconds.")


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


def _read_rules(job: JobFile, fields: Fields, spec: Fields) -> None:
    metadata.read_suspend(job, spec, metadata.has_queue_label(fields))
    metadata.read_times(job, spec)
    rules = job.tasks_rules
    rules.restarts_max = spec.number("backoffLimit", 0)
    rules.restarts_when_failed = rules.restarts_max > 0
    _read_shutdown(spec)
    spec.ignore(("submitterPodTemplate", "submitterConfig"), "the submitter is a task of the job")
    metadata.read_manager(spec)


def _read_shutdown(spec: Fields) -> None:
    """Refuse what needs a cluster that ends with the job; any other ends with it here as well."""
    if spec.flag("shutdownAfterJobFinishes"):
        return
    for key in ("ttlSecondsAfterFinished", "suspend"):
        if spec.text(key) not in ("", "0", "false"):
            raise spec.wrong(key, "it needs shutdownAfterJobFinishes: true.")
    spec.note("shutdownAfterJobFinishes", "the Ray cluster is the job's own and ends with it.")
