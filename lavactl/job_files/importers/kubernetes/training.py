"""PyTorchJob, TFJob and JAXJob of Kubeflow's training operator."""

from lavactl.job_files.importers.kinds import Shared
from lavactl.job_files.importers.kubernetes import kubeflow, metadata, pods
from lavactl.job_files.importers.tables import Anything, Flag, Number, Part, Parts, Required, Table, Text, Word
from lavactl.job_files.model import JobFile
from lavactl.job_files.text.fields import Fields
from lavactl.wire import messages

MASTER_PORT, TF_PORT, JAX_PORT = 23456, 2222, 6666
BACKENDS = ("c10d", "etcd", "etcd-v2")
TF_POLICIES = {"": False, "AllWorkers": True}
PROCESSES = ("auto", "cpu", "gpu", "xpu")


class PyTorchReplica(kubeflow.ReplicaSpec):
    """Replicas of one type; a container must be named pytorch."""

    restart = Word("restartPolicy", kubeflow.RESTARTS, "OnFailure", kubeflow.ReplicaSpec.restart.origin)


class PyTorchReplicas(Table):
    """``pytorchReplicaSpecs``; another type is refused."""

    master = Part(
        "Master", PyTorchReplica, "one pod, rank 0; the operator from 1.8 on refuses one whose replicas are not written"
    )
    worker = Part("Worker", PyTorchReplica, "the other ranks")


class RendezvousPair(Table):
    """One of ``rdzvConf``."""

    key = Required("key", "name of an option of the rendezvous")
    value = Text("value", "", "its value")


class ElasticPolicy(Table):
    """``elasticPolicy``."""

    least = Number("minReplicas", None, "torchrun's least number of nodes", 1,
                   here="the job starts with so many workers, and keeps running with them",
                   absent="maxReplicas; without both the workers' replicas")  # fmt: skip
    most = Number("maxReplicas", None, "torchrun's largest number of nodes", 1,
                  here="lavactl scale changes the number of workers up to it",
                  absent="minReplicas; without both the workers' replicas")  # fmt: skip
    backend = Word("rdzvBackend", {one: one for one in BACKENDS}, None, "PET_RDZV_BACKEND", absent="c10d")
    port = Number("rdzvPort", None, "the port of PET_RDZV_ENDPOINT", 0, 65535, absent="23456")
    host = Text("rdzvHost", "", "the host of PET_RDZV_ENDPOINT", absent="worker 0")
    number = Text("rdzvId", "", "PET_RDZV_ID", absent="none; here the job's number")
    options = Parts("rdzvConf", RendezvousPair, "PET_RDZV_CONF")
    standalone = Flag("standalone", False, "PET_STANDALONE")
    processes = Text("nProcPerNode", "", "the older place of nprocPerNode; refused beside it")
    restarts = Number("maxRestarts", None, "PET_MAX_RESTARTS")
    metrics = Anything("metrics", None, "a HorizontalPodAutoscaler changes the number of workers",
                       told="the job grows as room comes")  # fmt: skip


class PyTorchSpec(Table):
    """``spec`` of a PyTorchJob."""

    replicas = Part("pytorchReplicaSpecs", PyTorchReplicas, "the pods by type", absent="refused")
    processes = Text("nprocPerNode", "", "PET_NPROC_PER_NODE, and with a Master WORLD_SIZE",
                     absent="auto; here the GPUs of a task, else 1")  # fmt: skip
    elastic = Part("elasticPolicy", ElasticPolicy, "torchrun with a range of nodes", absent="not elastic")
    policy = Part("runPolicy", kubeflow.RunPolicy, "times, retries, queue")


class PyTorchJob(metadata.Document):
    """PyTorchJob: a master and workers that find each other by the variables of torch.distributed."""

    spec = Part("spec", PyTorchSpec, "the job")


class TensorFlowReplica(kubeflow.ReplicaSpec):
    """Replicas of one type; a container must be named tensorflow."""


class TensorFlowReplicas(Table):
    """``tfReplicaSpecs``; another type is refused."""

    chief = Part("Chief", TensorFlowReplica, "at most one, and no Master beside it; its success ends the job")
    master = Part("Master", TensorFlowReplica, "as Chief")
    ps = Part("PS", TensorFlowReplica, "parameter servers")
    worker = Part("Worker", TensorFlowReplica, "workers; without a chief the success of number 0 ends the job")
    evaluator = Part("Evaluator", TensorFlowReplica, "at most one; not in the cluster of TF_CONFIG")


class TensorFlowSpec(Table):
    """``spec`` of a TFJob."""

    replicas = Part("tfReplicaSpecs", TensorFlowReplicas, "the pods by type", absent="refused")
    is_all = Word("successPolicy", TF_POLICIES, "", "AllWorkers: without a chief all workers must succeed")
    is_dynamic = Flag("enableDynamicWorker", False, "TF_CONFIG of a worker has itself and the servers; "
                      "a failed worker does not fail the job")  # fmt: skip
    policy = Part("runPolicy", kubeflow.RunPolicy, "times, retries, queue")


class TFJob(metadata.Document):
    """TFJob: chief, servers and workers that TF_CONFIG tells of each other."""

    spec = Part("spec", TensorFlowSpec, "the job")


class JAXReplica(kubeflow.ReplicaSpec):
    """Replicas of one type; a container must be named jax."""


class JAXReplicas(Table):
    """``jaxReplicaSpecs``; another type is refused."""

    worker = Part("Worker", JAXReplica, "the processes; number 0 is the coordinator, and all must succeed")


class JAXSpec(Table):
    """``spec`` of a JAXJob."""

    replicas = Part("jaxReplicaSpecs", JAXReplicas, "the pods by type", absent="refused")
    policy = Part("runPolicy", kubeflow.RunPolicy, "times, retries, queue")


class JAXJob(metadata.Document):
    """JAXJob: workers that are told their coordinator, their number and how many they are."""

    spec = Part("spec", JAXSpec, "the job")


def read_pytorch_job(fields: Fields, _shared: Shared) -> list[JobFile]:
    """Job of a PyTorchJob.

    Raises:
        FileError: a field is wrong, or the operator would refuse the job.
    """
    document = PyTorchJob(fields)
    job = metadata.start(document, "PyTorchJob", "pytorchjob")
    spec, replicas = document.spec, document.spec.replicas
    _check_types(replicas)
    for row in (PyTorchReplicas.master, PyTorchReplicas.worker):
        if replicas.has(row):
            part = row.read(replicas.fields)
            made = kubeflow.read_replica(job, row.name.lower(), part, container="pytorch")
            if row is PyTorchReplicas.master and made.tasks_max != 1:
                raise part.wrong(kubeflow.ReplicaSpec.replicas, "a job has exactly one master.")
            job.roles.append(made)
    options = read_processes(spec.fields, "nprocPerNode")
    is_elastic = spec.has(PyTorchSpec.elastic)
    if options and spec.elastic.processes:
        raise spec.elastic.wrong(ElasticPolicy.processes, "it does not go with nprocPerNode.")
    _finish(job, document, spec.policy, spec.fields)
    if is_elastic:
        options += _read_elastic(job, spec.elastic, options)
    _end_by_pytorch(job, is_elastic)
    port = int(next((one.partition("=")[2] for one in options if one.startswith("rdzv-port=")), MASTER_PORT))
    pods.add_port(job.roles[0], "pytorch", port, "pytorchjob-port")
    for one in job.roles[1:]:  # only the first task listens on it
        pods.prefer_port(one, "pytorchjob-port")
    job.tasks_rules.conventions.add(name="pytorchjob", options=options)
    return [job]


def _check_types(replicas: Table) -> None:
    known = replicas.rows()
    if not replicas.fields.node.entries:
        raise replicas.wrong(None, f"there is no replica spec; it takes {', '.join(known)}.")
    for name, _ in replicas.fields.node:
        if name not in known:
            raise replicas.fields.wrong(name, f"there are no replicas of this type; there are {', '.join(known)}.")


def read_processes(fields: Fields, key: str) -> list[str]:
    """Processes of each task, a number or a word of torchrun."""
    text = fields.text(key)
    if not text:
        return []
    if text not in PROCESSES and not (text.isdigit() and int(text) > 0):
        raise fields.wrong(key, f"expected a number, auto, cpu or gpu, found {text}.")
    return [f"nproc-per-node={text}"]


def _finish(job: JobFile, document: metadata.Document, policy: kubeflow.RunPolicy, spec: Fields) -> None:
    """Read the run policy and the gang's minimum; drop roles without tasks."""
    limit = kubeflow.read_run_policy(job, policy, bool(document.metadata.labels.queue))
    kubeflow.limit_restarts(job, limit)
    if limit is not None and all(one.restart == messages.RESTART_NEVER for one in job.roles):
        policy.note(kubeflow.RunPolicy.backoff, "without effect, as no role restarts in place.")
    metadata.check_own_name(document.fields, job.name)
    job.roles = [one for one in job.roles if one.tasks_max]
    if not job.roles:
        raise spec.wrong("", "the job has no replicas at all.")
    total = sum(one.tasks_max for one in job.roles)
    short = total - kubeflow.read_scheduling(job, policy.scheduling, total)
    for one in reversed(job.roles):
        less = min(short, one.tasks_min)
        if less and one.tasks_min == one.tasks_max:  # the minimum is for the start; all replicas run
            one.completions = one.tasks_max
        one.tasks_min -= less
        one.may_be_absent = one.tasks_min == 0
        short -= less
    kubeflow.end_with_failures(job)


def _read_elastic(job: JobFile, policy: ElasticPolicy, known: list[str]) -> list[str]:
    workers = next((one for one in job.roles if one.name == "worker"), None)
    if workers is None:
        raise policy.wrong(None, "an elastic job needs workers.")
    replicas = workers.tasks_max
    least, most = _range(policy, replicas)
    if not least <= replicas <= most:
        raise policy.wrong(None, f"{replicas} replicas are not from minReplicas {least} to maxReplicas {most}.")
    workers.tasks_min, workers.tasks_max, workers.may_be_absent = least, most, False
    if most > replicas:
        policy.note(
            ElasticPolicy.most, f"the job starts with {least}, and grows beyond {replicas} up to {most} as room comes."
        )
    options = [f"min={least}", f"max={most}"]
    options += [f"rdzv-backend={policy.backend}"] if policy.backend else []
    options += [f"rdzv-port={policy.port}"] if policy.port is not None else []
    options += [f"max-restarts={policy.restarts}"] if policy.restarts is not None else []
    options += [f"rdzv-host={policy.host}"] if policy.host else []
    options += [f"rdzv-id={policy.number}"] if policy.number else []
    pairs = [f"{one.key}={one.value}" for one in policy.options]
    options += [f"rdzv-conf={','.join(pairs)}"] if pairs else []
    options += ["standalone=yes"] if policy.standalone else []
    return options + ([] if known else read_processes(policy.fields, "nProcPerNode"))


def _range(policy: ElasticPolicy, replicas: int) -> tuple[int, int]:
    """Least and largest number of workers: one alone is both, and without both it is the workers' replicas."""
    given = [one for one in (policy.least, policy.most) if one is not None] or [replicas]
    if given == [replicas] or policy.least == policy.most:
        policy.same(ElasticPolicy.least)
        policy.same(ElasticPolicy.most)
    return given[0], given[-1]


def _end_by_pytorch(job: JobFile, is_elastic: bool) -> None:
    """Let the master's success end the job; without one that of all workers, of an elastic job that of any."""
    master = next((one for one in job.roles if one.name == "master"), None)
    if master is not None:
        master.succeeded_enough = 1
        return
    workers = job.roles[0]
    workers.succeeded_enough = 1 if is_elastic else workers.tasks_max


def read_jax_job(fields: Fields, _shared: Shared) -> list[JobFile]:
    """Job of a JAXJob.

    Raises:
        FileError: a field is wrong, or the operator would refuse the job.
    """
    document = JAXJob(fields)
    job = metadata.start(document, "JAXJob", "jaxjob")
    spec, replicas = document.spec, document.spec.replicas
    _check_types(replicas)
    workers = kubeflow.read_replica(job, "worker", replicas.worker, container="jax")
    job.roles = [workers]
    _finish(job, document, spec.policy, spec.fields)
    workers.succeeded_enough = workers.tasks_max
    pods.add_port(workers, "jaxjob-port", JAX_PORT)
    job.tasks_rules.conventions.add(name="jaxjob", options=[])
    return [job]


def read_tensorflow_job(fields: Fields, _shared: Shared) -> list[JobFile]:
    """Job of a TFJob.

    Raises:
        FileError: a field is wrong, or the operator would refuse the job.
    """
    document = TFJob(fields)
    job = metadata.start(document, "TFJob", "tfjob")
    spec, replicas = document.spec, document.spec.replicas
    _check_types(replicas)
    for word in replicas.rows():
        if not replicas.fields.has(word):
            continue
        part = TensorFlowReplica(replicas.fields.child(word))
        made = kubeflow.read_replica(job, word.lower(), part, container="tensorflow")
        if word in ("Chief", "Master", "Evaluator") and made.tasks_max > 1:
            raise part.wrong(kubeflow.ReplicaSpec.replicas, f"a job has at most one {word.lower()}.")
        job.roles.append(made)
    if replicas.has(TensorFlowReplicas.chief) and replicas.has(TensorFlowReplicas.master):
        raise replicas.wrong(TensorFlowReplicas.master, "a job has a Chief or a Master, not both.")
    _finish(job, document, spec.policy, spec.fields)
    _end_by_tensorflow(job, spec)
    for one in job.roles:
        pods.add_port(one, "tfjob-port", TF_PORT)
    options = ["dynamic-worker=yes"] if spec.is_dynamic else []
    job.tasks_rules.conventions.add(name="tfjob", options=options)
    return [job]


def _end_by_tensorflow(job: JobFile, spec: TensorFlowSpec) -> None:
    """Let the chief's success end the job; without one that of worker 0, or of all workers."""
    by_name = {one.name: one for one in job.roles}
    chief = by_name.get("chief") or by_name.get("master")
    workers = by_name.get("worker")
    if workers is not None and spec.is_dynamic:
        workers.failed_enough = 0
    if chief is not None:
        chief.succeeded_enough = 1
        if spec.has(TensorFlowSpec.is_all):
            spec.note(TensorFlowSpec.is_all, f"without effect: the success of the {chief.name} ends the job.")
    elif workers is not None:
        workers.succeeded_enough = workers.tasks_max
        if not spec.is_all:
            workers.policies.add(action=messages.COMPLETE_JOB, events=[messages.TASK_SUCCEEDED], index_plus_one=1)
