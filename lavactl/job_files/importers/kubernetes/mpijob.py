"""MPIJobs of all versions: a launcher, and workers whose slots it starts ranks on."""

from lavactl.job_files.importers.kinds import Shared
from lavactl.job_files.importers.kubernetes import kubeflow, metadata, pods
from lavactl.job_files.model import JobFile, gpus_per_task, role
from lavactl.job_files.text.fields import Fields
from lavactl.job_files.text.nodes import Mapping
from lavactl.wire import messages

KIND = "MPIJob"
LAUNCHER, WORKER = "launcher", "worker"
IMPLEMENTATIONS = ("OpenMPI", "Intel", "MPICH")
BACKOFF = 6
NO_SERVER = "lava starts the ranks there by itself"


def read_job(fields: Fields, _shared: Shared) -> list[JobFile]:
    """Job of a document.

    Raises:
        FileError: a field is wrong, or the operator would refuse the job.
    """
    version = fields.text("apiVersion").rpartition("/")[2]
    spec = fields.child("spec")
    is_old = not spec.has("mpiReplicaSpecs") and version != "v2beta1"
    dialect = "v1alpha1" if is_old else "v2beta1" if version == "v2beta1" else "v1"
    job = metadata.start(fields, f"MPIJob {version}", f"mpijob-{dialect}")
    options = [f"version={dialect}"]
    if is_old:
        _read_old(job, spec, options)
    else:
        _read_replicas(job, spec, options)
    metadata.check_own_name(fields, f"{job.name}-{WORKER}-{max(job.roles[1].tasks_max - 1, 0)}")
    _read_policy(job, fields, spec, dialect)
    _read_range(job, spec)
    job.tasks_rules.conventions.add(name="mpijob", options=options)
    return [job]


def _read_replicas(job: JobFile, spec: Fields, options: list[str]) -> None:
    replicas = spec.child("mpiReplicaSpecs")
    if not replicas.has("Launcher"):
        raise replicas.wrong("", "there is no Launcher.")
    first = replicas.child("Launcher")
    main = spec.text("mainContainer")
    launcher = kubeflow.read_replica(job, LAUNCHER, first, messages.RESTART_ON_FAILURE, main)
    if launcher.tasks_max != 1:
        raise first.wrong("replicas", "a job has exactly one launcher.")
    job.roles.append(launcher)
    if not replicas.has("Worker"):
        raise replicas.wrong("", "there is no Worker.")
    rest = replicas.child("Worker")
    workers = kubeflow.read_replica(job, WORKER, rest, messages.RESTART_NEVER, _named(rest, main), replicas=0)
    if not workers.tasks_max:
        raise rest.wrong("replicas", "a job needs at least one worker.")
    _hold(job, workers, rest)
    job.roles.append(workers)
    _read_mpi(job, spec, rest, options)
    if "version=v2beta1" in options:
        for one in (first, rest):
            if one.text("restartPolicy") not in ("", "Never", "OnFailure"):
                raise one.wrong("restartPolicy", f"expected Never or OnFailure, found {one.text('restartPolicy')}.")


def _named(replica: Fields, container: str) -> str:
    """The name, if one of the containers of a replica spec has it."""
    nodes = replica.child("template").child("spec").items("containers")
    return container if any(isinstance(node, Mapping) and node.text("name") == container for node in nodes) else ""


def _hold(job: JobFile, workers: messages.Role, fields: Fields) -> None:
    """Let workers that only run an SSH server, or nothing, hold their slots."""
    is_empty = not workers.argv and not workers.command
    if is_empty or pods.is_ssh_server(workers):
        pods.drop_lack(job, workers, fields.reading.notes)
        pods.hold_without_process(workers, fields, NO_SERVER)


def _read_mpi(job: JobFile, spec: Fields, worker: Fields, options: list[str]) -> None:
    slots = spec.number("slotsPerWorker", 1, 1)
    word = spec.word("mpiImplementation", {one: one for one in IMPLEMENTATIONS}, "OpenMPI")
    options += [f"implementation={word}", f"slots-per-worker={slots}"]
    if spec.flag("runLauncherAsWorker"):
        options.append("launcher-as-worker=yes")
    spec.text("sshAuthMountPath")
    spec.ignore(("sshAuthMountPath",), "ssh between tasks needs no keys")
    launcher, workers = job.roles
    is_waiting = {"AtStartup": False, "WaitForWorkersReady": True}
    if spec.word("launcherCreationPolicy", is_waiting, False):
        launcher.after.append(WORKER)
    if not _has_cpu(worker, spec.text("mainContainer")):
        workers.slots_per_task = slots


def _has_cpu(worker: Fields, main: str) -> bool:
    """True if the container of a replica spec that is the task says how many processors it takes."""
    name = _named(worker, main)
    containers = worker.child("template").child("spec").items("containers")
    chosen = next((one for one in containers if isinstance(one, Mapping) and name in ("", one.text("name"))), None)
    container = worker.reading.open(chosen) if chosen is not None else None
    resources = container.child("resources") if container else None
    return resources is not None and any(resources.child(one).has("cpu") for one in ("limits", "requests"))


def _read_old(job: JobFile, spec: Fields, options: list[str]) -> None:
    """Read the first form of the job: one template for launcher and workers, and a number of workers or of units."""
    if not spec.has("template"):
        raise spec.wrong("", "there are neither mpiReplicaSpecs nor a template.")
    count, per_worker = _workers(spec)
    launcher, workers = role(LAUNCHER, 1), role(WORKER, count)
    template = spec.child("template")
    pods.fill_role(job, launcher, template)
    launcher.restart, launcher.restarts_max = messages.RESTART_NEVER, 0
    for field in ("requirement", "memory_limit_mib", "slots_per_task", "image"):
        setattr(workers, field, getattr(launcher, field))
    gpus = launcher.gpu.num
    workers.gpu.CopyFrom(launcher.gpu)
    if per_worker and not gpus and spec.text("processingResourceType", "nvidia.com/gpu") != "cpu":
        workers.gpu.CopyFrom(gpus_per_task(per_worker))
    launcher.gpu.CopyFrom(messages.GpuRequest())
    launcher.requirement, launcher.memory_limit_mib, launcher.slots_per_task = "", 0, 1
    slots = spec.number("slotsPerWorker", per_worker or gpus or workers.slots_per_task, 1)
    workers.slots_per_task = max(workers.slots_per_task, 1 if gpus or per_worker else slots)
    pods.hold_without_process(workers, spec, NO_SERVER)
    spec.flag("launcherOnMaster")
    spec.ignore(("launcherOnMaster",), "the launcher runs where it fits")
    spec.text("processingResourceType")
    options += [f"slots-per-worker={slots}"]
    job.roles = [launcher, workers]


def _workers(spec: Fields) -> tuple[int, int]:
    """(number of workers, processing units of each; 0 if the template's resources say that)."""
    given = [key for key in ("replicas", "gpus", "processingUnits") if spec.has(key)]
    if len(given) != 1:
        raise spec.wrong("", "the job has replicas, gpus or processingUnits, exactly one of them.")
    count = spec.number(given[0], 0, 1)
    if given[0] == "replicas":
        return count, 0
    per_node = "gpusPerNode" if given[0] == "gpus" else "processingUnitsPerNode"
    each = spec.number(per_node, 1, 1)
    if count >= each and count % each:
        raise spec.wrong(given[0], f"{count} is no multiple of the {each} of each worker.")
    return max(count // each, 1), min(count, each)


def _read_policy(job: JobFile, fields: Fields, spec: Fields, dialect: str) -> None:
    is_queued = metadata.has_queue_label(fields)
    places = [spec.child("runPolicy")] if spec.has("runPolicy") or dialect == "v2beta1" else []
    places += [] if dialect == "v2beta1" else [spec]  # where the older versions have them; it wins
    limits = [kubeflow.read_run_policy(job, place, is_queued) for place in places]
    limit = next((one for one in reversed(limits) if one is not None), None)
    launcher, workers = job.roles
    least = kubeflow.read_scheduling(job, spec.child("runPolicy"), workers.tasks_max + 1)
    workers.tasks_min = max(least - 1, 0)
    workers.may_be_absent = workers.tasks_min == 0
    spec.ignore(("priorityClassName",), "the queue's priority counts")
    launcher.restart = messages.RESTART_ON_FAILURE
    launcher.restarts_max = BACKOFF if limit is None else limit
    launcher.succeeded_enough = launcher.failed_enough = 1
    workers.policies.add(action=messages.TERMINATE_JOB, events=[messages.TASK_EVICTED])


def _read_range(job: JobFile, spec: Fields) -> None:
    """Read the range of workers from the launcher's options of elastic Horovod: the operator has no field for it."""
    launcher, workers = job.roles
    words = [*launcher.argv, *launcher.command.split()]
    least, most = (_option(words, name) for name in ("--min-np", "--max-np"))
    if not most:
        return
    slots = spec.number("slotsPerWorker", 1, 1)
    workers.tasks_max = max(most // slots, 1)
    workers.tasks_min = min(max(-(-(least or most) // slots), 1), workers.tasks_max)
    workers.may_be_absent = False
    where = spec.child("mpiReplicaSpecs").child("Worker") if spec.has("mpiReplicaSpecs") else spec
    size = f"{workers.tasks_min} to {workers.tasks_max} tasks"
    where.note("replicas", f"{size}, as --min-np and --max-np of the launcher say; lavactl scale changes it.")


def _option(words: list[str], name: str) -> int:
    """Value of an option with a number; 0 if it is not given."""
    for place, word in enumerate(words):
        value = word.partition("=")[2] if word.startswith(f"{name}=") else ""
        if word == name and place + 1 < len(words):
            value = words[place + 1]
        if value.isascii() and value.isdigit():
            return int(value)
    return 0
