"""MPIJobs of all versions: a launcher, and workers whose slots it starts ranks on."""

import os

from lavactl.job_files.importers.kinds import Shared
from lavactl.job_files.importers.kubernetes import batch, kubeflow, metadata, pods
from lavactl.job_files.importers.tables import Flag, Number, Part, Table, Text, Word
from lavactl.job_files.model import JobFile, gpus_per_task, role
from lavactl.job_files.text.fields import Fields
from lavactl.job_files.text.nodes import Mapping
from lavactl.wire import messages

KIND = "MPIJob"
LAUNCHER, WORKER = "launcher", "worker"
IMPLEMENTATIONS = {"OpenMPI": "OpenMPI", "Intel": "Intel", "MPICH": "MPICH"}
DISTRIBUTIONS = {"open_mpi": "OpenMPI", "intel_mpi": "Intel", "mpich": "MPICH"}
WAITS = {"AtStartup": False, "WaitForWorkersReady": True}
BACKOFF = 6
NO_SERVER = "lava starts the ranks there by itself"
V1ALPHA1, V2BETA1 = "v1alpha1", "v2beta1"
WITH_LAUNCHER_JOB = (V1ALPHA1, "v1alpha2", V2BETA1)  # versions whose launcher is a Job of batch/v1; in v1 it is a pod


class Launcher(kubeflow.ReplicaSpec):
    """``Launcher`` of ``mpiReplicaSpecs``."""

    replicas = Number("replicas", 1, "exactly one launcher")
    restart = Word(
        "restartPolicy", kubeflow.RESTARTS, "OnFailure", kubeflow.ReplicaSpec.restart.origin,
        here="as there; in v2beta1 Always and ExitCode are refused", absent="v1: Never; the others: OnFailure",
    )  # fmt: skip


class Worker(kubeflow.ReplicaSpec):
    """``Worker`` of ``mpiReplicaSpecs``."""

    replicas = Number("replicas", 0, "so many workers",
                      here="so many; without a number of at least 1 refused")  # fmt: skip
    template = Part("template", pods.Template, "the pods; without a command an SSH server, or sleep",
                    here="tasks whose command is only that, or none, hold their slots; ranks start there",
                    absent="refused")  # fmt: skip


class Replicas(Table):
    """``mpiReplicaSpecs``."""

    launcher = Part("Launcher", Launcher, "the pod that runs mpirun", absent="refused")
    worker = Part("Worker", Worker, "the pods that ranks run in", absent="a launcher alone")


class MPISpec(Table):
    """``spec`` of an MPIJob of v2beta1."""

    replicas = Part("mpiReplicaSpecs", Replicas, "launcher and workers")
    slots = Number("slotsPerWorker", 1, "slots of each worker in the hostfile", 1,
                   here="so, and processors of each worker that names none")  # fmt: skip
    policy = Part("runPolicy", kubeflow.RunPolicy, "times, retries of the launcher, queue")
    implementation = Word("mpiImplementation", IMPLEMENTATIONS, "OpenMPI", "form of the hostfile, and variables")
    is_worker = Flag("runLauncherAsWorker", False, "the launcher is the first line of the hostfile")
    keys = Text("sshAuthMountPath", os.path.join("/root", ".ssh"), "directory of the keys",
                told="ssh between tasks needs no keys", absent=".ssh of root")  # fmt: skip
    waits = Word("launcherCreationPolicy", WAITS, "AtStartup", "the launcher starts with the workers, or after them")
    old_waits = Flag("waitForWorkers", False, "an earlier word for WaitForWorkersReady")
    managed_by = metadata.Managed.managed_by


class OldSpec(metadata.Timed):
    """``spec`` of an MPIJob of v1 and v1alpha2."""

    replicas = MPISpec.replicas
    slots = MPISpec.slots
    main = Text("mainContainer", "", "the container that ranks start in", here="the container that is the task",
                absent="the first one")  # fmt: skip
    policy = Part("runPolicy", kubeflow.RunPolicy, "times, retries, queue; v1 has no other place for most of them")
    implementation = MPISpec.implementation
    distribution = Word("mpiDistribution", DISTRIBUTIONS, "open_mpi", "v1alpha2: the MPI of the image")
    clean = Word("cleanPodPolicy", kubeflow.CLEAN, "None", kubeflow.RunPolicy.clean.origin,
                 here=kubeflow.RunPolicy.clean.words)  # fmt: skip
    backoff = Number("backoffLimit", None, "retries of the launcher in v1alpha2",
                     here="as that of runPolicy, over which it wins", absent="v1: none; v1alpha2: 6")  # fmt: skip
    scheduler_priority = Text("priorityClassName", "", "the order in the queue", told="the queue's priority counts")
    keys = MPISpec.keys
    is_worker = MPISpec.is_worker
    waits = MPISpec.waits


class FirstSpec(metadata.Timed):
    """``spec`` of an MPIJob of v1alpha1: one template for launcher and workers."""

    template = Part("template", pods.Template, "the pod of launcher and workers", absent="refused")
    gpus = Number("gpus", None, "devices in all; one of gpus, processingUnits and replicas is needed", 1)
    per_node = Number("gpusPerNode", 1, "devices of each worker", 1, here="as there")
    units = Number("processingUnits", None, "as gpus, of the type that processingResourceType names", 1)
    units_per_node = Number("processingUnitsPerNode", 1, "as gpusPerNode", 1)
    unit = Text("processingResourceType", "nvidia.com/gpu", "the type of units", here="cpu, or GPUs")
    workers = Number("replicas", None, "workers; the template says what each takes", 1)
    slots = Number("slotsPerWorker", None, "slots of each worker in the hostfile", 1,
                   absent="devices of each worker, else its processors")  # fmt: skip
    on_master = Flag("launcherOnMaster", False, "the launcher runs on a control plane's host",
                     told="the launcher runs where it fits")  # fmt: skip
    clean = OldSpec.clean
    backoff = Number("backoffLimit", BACKOFF, "so many retries of the launcher")


class MPIJob(metadata.Document):
    """MPIJob of v2beta1: a launcher, and workers whose slots it starts ranks on."""

    spec = Part("spec", MPISpec, "the job")


class OldMPIJob(metadata.Document):
    """MPIJob of v1 and v1alpha2: a launcher, and workers whose slots it starts ranks on."""

    spec = Part("spec", OldSpec, "the job")


class FirstMPIJob(metadata.Document):
    """MPIJob of v1alpha1: a launcher, and workers whose slots it starts ranks on."""

    spec = Part("spec", FirstSpec, "the job")


def read_job(fields: Fields, _shared: Shared) -> list[JobFile]:
    """Job of a document.

    Raises:
        FileError: a field is wrong, or the operator would refuse the job.
    """
    version = fields.text("apiVersion").rpartition("/")[2]
    if version == V2BETA1:
        return [_read_new(MPIJob(fields), version)]
    if fields.child("spec").has("mpiReplicaSpecs"):
        return [_read_new(OldMPIJob(fields), version)]
    return [_read_first(FirstMPIJob(fields), version)]


def _read_new(document: MPIJob | OldMPIJob, version: str) -> JobFile:
    """Job of a document with ``mpiReplicaSpecs``."""
    spec = document.spec
    dialect = V2BETA1 if version == V2BETA1 else "v1"
    job = metadata.start(document, f"MPIJob {version}", f"mpijob-{dialect}")
    main = spec.main if isinstance(spec, OldSpec) else ""
    _read_launcher(job, spec.replicas, main, version)
    _read_workers(job, spec, main, version)
    options = [f"version={dialect}", *_read_mpi(job, spec)]
    _finish(job, document, spec, options, version)
    return job


def _read_launcher(job: JobFile, replicas: Replicas, main: str, version: str) -> None:
    if not replicas.has(Replicas.launcher):
        raise replicas.wrong(None, "there is no Launcher.")
    first = replicas.launcher
    default = None if version in WITH_LAUNCHER_JOB else messages.RESTART_NEVER
    launcher = kubeflow.read_replica(job, LAUNCHER, first, default, main)
    if launcher.tasks_max != 1:
        raise first.wrong(Launcher.replicas, "a job has exactly one launcher.")
    _check_restart(first, version)
    job.roles.append(launcher)


def _read_workers(job: JobFile, spec: MPISpec | OldSpec, main: str, version: str) -> None:
    """Add the workers, which hold their slots where they only run an SSH server, or nothing."""
    if not spec.replicas.has(Replicas.worker):
        return
    rest = spec.replicas.worker
    workers = kubeflow.read_replica(job, WORKER, rest, container=_named(rest, main))
    _check_restart(rest, version)
    if not workers.tasks_max:
        raise rest.wrong(Worker.replicas, "a job needs at least one worker.")
    is_empty = not workers.argv and not workers.command
    if is_empty or pods.is_ssh_server(workers):
        pods.drop_lack(job, workers, rest.fields.reading.notes)
        pods.hold_without_process(workers, rest.fields, NO_SERVER)
    if not _has_cpu(rest, main):
        workers.slots_per_task = spec.slots
    job.roles.append(workers)


def _check_restart(spec: kubeflow.ReplicaSpec, version: str) -> None:
    word = spec.text(kubeflow.ReplicaSpec.restart)
    if version == V2BETA1 and spec.has(kubeflow.ReplicaSpec.restart) and word not in ("Never", "OnFailure"):
        raise spec.wrong(kubeflow.ReplicaSpec.restart, f"expected Never or OnFailure, found {word}.")


def _named(replica: Worker, container: str) -> str:
    """The name, if one of the containers of a replica spec has it."""
    nodes = replica.template.pod.fields.items("containers")
    return container if any(isinstance(node, Mapping) and node.text("name") == container for node in nodes) else ""


def _read_mpi(job: JobFile, spec: MPISpec | OldSpec) -> list[str]:
    """Read which MPI starts the ranks; returns options of the convention."""
    word = spec.implementation
    if isinstance(spec, OldSpec) and spec.has(OldSpec.distribution):
        word = spec.distribution
    waits = bool(spec.waits)
    if isinstance(spec, MPISpec) and spec.old_waits:
        waits = True
    if waits and len(job.roles) > 1:
        job.roles[0].after.append(WORKER)
    options = [f"implementation={word}", f"slots-per-worker={spec.slots}"]
    return options + (["launcher-as-worker=yes"] if spec.is_worker else [])


def _has_cpu(worker: Worker, main: str) -> bool:
    """True if the container of a replica spec that is the task says how many processors it takes."""
    name = _named(worker, main)
    containers = worker.template.pod.fields.items("containers")
    chosen = next((one for one in containers if isinstance(one, Mapping) and name in ("", one.text("name"))), None)
    if chosen is None:
        return False
    resources = pods.Container(worker.fields.reading.open(chosen)).resources
    return any(one.has(pods.Amounts.cpu) for one in (resources.limits, resources.requests))


def _read_first(document: FirstMPIJob, version: str) -> JobFile:
    """Job of the first form: one template for launcher and workers, and a number of workers or of units."""
    job = metadata.start(document, f"MPIJob {version}", f"mpijob-{V1ALPHA1}")
    spec = document.spec
    if not spec.has(FirstSpec.template):
        raise spec.wrong(None, "there are neither mpiReplicaSpecs nor a template.")
    count, per_worker = _workers(spec)
    launcher, workers = role(LAUNCHER, 1), role(WORKER, count)
    pods.fill_role(job, launcher, spec.template)
    launcher.restart = messages.RESTART_ON_FAILURE
    for field in ("requirement", "memory_limit_mib", "slots_per_task", "image"):
        setattr(workers, field, getattr(launcher, field))
    gpus = launcher.gpu.num
    workers.gpu.CopyFrom(launcher.gpu)
    if per_worker and not gpus and spec.unit != "cpu":
        workers.gpu.CopyFrom(gpus_per_task(per_worker))
    launcher.gpu.CopyFrom(messages.GpuRequest())
    launcher.requirement, launcher.memory_limit_mib, launcher.slots_per_task = "", 0, 1
    slots = spec.slots or per_worker or gpus or workers.slots_per_task
    workers.slots_per_task = max(workers.slots_per_task, 1 if gpus or per_worker else slots)
    pods.hold_without_process(workers, spec.fields, NO_SERVER)
    job.roles = [launcher, workers]
    _finish(job, document, spec, [f"version={V1ALPHA1}", f"slots-per-worker={slots}"], version)
    return job


def _workers(spec: FirstSpec) -> tuple[int, int]:
    """(number of workers, processing units of each; 0 if the template's resources say that)."""
    counts = {FirstSpec.workers: spec.workers, FirstSpec.gpus: spec.gpus, FirstSpec.units: spec.units}
    given = [(row, count) for row, count in counts.items() if count is not None]
    if len(given) != 1:
        raise spec.wrong(None, "the job has replicas, gpus or processingUnits, exactly one of them.")
    row, count = given[0]
    if row is FirstSpec.workers:
        return count, 0
    each = spec.per_node if row is FirstSpec.gpus else spec.units_per_node
    if count >= each and count % each:
        raise spec.wrong(row, f"{count} is no multiple of the {each} of each worker.")
    return max(count // each, 1), min(count, each)


def _finish(
    job: JobFile, document: "metadata.Document", spec: MPISpec | OldSpec | FirstSpec, options: list[str], version: str
) -> None:
    count = job.roles[1].tasks_max if len(job.roles) > 1 else 1
    metadata.check_own_name(document.fields, f"{job.name}-{WORKER}-{count - 1}")
    limit = _read_policies(job, document, spec)
    _end(job, limit, version)
    _read_range(job, spec)
    job.tasks_rules.conventions.add(name="mpijob", options=options)


def _read_policies(job: JobFile, document: "metadata.Document", spec: MPISpec | OldSpec | FirstSpec) -> int | None:
    """Read the run policies, in both places where older versions have them; returns backoffLimit."""
    is_queued = bool(document.metadata.labels.queue)
    limit = None
    if not isinstance(spec, FirstSpec):
        limit = kubeflow.read_run_policy(job, spec.policy, is_queued)
        _read_gang(job, spec.policy)
    if isinstance(spec, MPISpec):
        return limit
    kubeflow.read_clean(spec, type(spec).clean)
    metadata.read_times(job, spec.fields)
    if spec.has(type(spec).backoff):
        if limit is not None and isinstance(spec, OldSpec):
            spec.policy.note(kubeflow.RunPolicy.backoff, "ignored: that beside runPolicy counts.")
        limit = spec.backoff
    return limit


def _read_gang(job: JobFile, policy: kubeflow.RunPolicy) -> None:
    workers = job.roles[1:]
    least = kubeflow.read_scheduling(job, policy.scheduling, 1 + sum(one.tasks_max for one in workers))
    for one in workers:
        one.tasks_min = max(least - 1, 0)
        one.may_be_absent = one.tasks_min == 0


def _end(job: JobFile, limit: int | None, version: str) -> None:
    """Let the launcher's end be the job's; where it is a Job of batch/v1, it is retried."""
    launcher = job.roles[0]
    if version in WITH_LAUNCHER_JOB:
        batch.retry(launcher, BACKOFF if limit is None else limit)
    else:
        kubeflow.limit_restarts(job, limit)
        for one in job.roles:
            one.failed_enough = 1 if one.launch != messages.LAUNCH_NONE else 0
    launcher.succeeded_enough = launcher.failed_enough = 1
    for one in job.roles[1:]:
        one.policies.add(action=messages.TERMINATE_JOB, events=[messages.TASK_EVICTED])


def _read_range(job: JobFile, spec: MPISpec | OldSpec | FirstSpec) -> None:
    """Read the range of workers from the launcher's options of elastic Horovod: the operator has no field for it."""
    launcher = job.roles[0]
    words = [*launcher.argv, *launcher.command.split()]
    least, most = (_option(words, name) for name in ("--min-np", "--max-np"))
    if not most or len(job.roles) < 2:
        return
    workers, slots = job.roles[1], spec.slots or 1
    asked, workers.tasks_max = workers.tasks_max, max(most // slots, 1)
    workers.tasks_min = min(max(-(-(least or most) // slots), 1), workers.tasks_max)
    workers.may_be_absent = False
    where = spec.fields if isinstance(spec, FirstSpec) else spec.replicas.worker.fields
    size = f"{workers.tasks_min} to {workers.tasks_max} tasks"
    where.note(
        "replicas",
        f"{size} in place of {asked}, as --min-np and --max-np of the launcher say; lavactl scale changes it.",
    )


def _option(words: list[str], name: str) -> int:
    """Value of an option with a number; 0 if it is not given."""
    for place, word in enumerate(words):
        value = word.partition("=")[2] if word.startswith(f"{name}=") else ""
        if word == name and place + 1 < len(words):
            value = words[place + 1]
        if value.isascii() and value.isdigit():
            return int(value)
    return 0
