"""PyTorchJob and TFJob of Kubeflow's training operator."""

from lavactl.job_files.importers.kinds import Shared
from lavactl.job_files.importers.kubernetes import kubeflow, metadata, pods
from lavactl.job_files.model import JobFile
from lavactl.job_files.text.fields import Fields
from lavactl.wire import messages

MASTER_PORT, TF_PORT = 23456, 2222
BACKENDS = ("c10d", "etcd", "etcd-v2")
TF_ROLES = {"Chief": "chief", "Master": "master", "PS": "ps", "Worker": "worker", "Evaluator": "evaluator"}
TF_POLICIES = {"": False, "AllWorkers": True}


def read_pytorch_job(fields: Fields, _shared: Shared) -> list[JobFile]:
    """Job of a PyTorchJob.

    Raises:
        FileError: a field is wrong, or the operator would refuse the job.
    """
    job = metadata.start(fields, "PyTorchJob", "pytorchjob")
    spec = fields.child("spec")
    replicas = spec.child("pytorchReplicaSpecs")
    _check_types(replicas, ("Master", "Worker"))
    for word in ("Master", "Worker"):
        if replicas.has(word):
            part = replicas.child(word)
            made = kubeflow.read_replica(job, word.lower(), part, messages.RESTART_ON_FAILURE, "pytorch")
            if word == "Master" and made.tasks_max != 1:
                raise part.wrong("replicas", "a job has exactly one master.")
            job.roles.append(made)
        replicas.get(word)
    options = read_processes(spec, "nprocPerNode")
    is_elastic = spec.has("elasticPolicy")
    if options and spec.child("elasticPolicy").has("nProcPerNode"):
        raise spec.child("elasticPolicy").wrong("nProcPerNode", "it does not go with nprocPerNode.")
    _finish(job, fields, spec)
    if is_elastic:
        options += _read_elastic(job, spec, options)
    _end_by_pytorch(job, is_elastic)
    port = int(next((one.partition("=")[2] for one in options if one.startswith("rdzv-port=")), MASTER_PORT))
    pods.add_port(job.roles[0], "pytorch", port, "pytorchjob-port")
    job.tasks_rules.conventions.add(name="pytorchjob", options=options)
    return [job]


def _check_types(replicas: Fields, known: "tuple[str, ...]") -> None:
    if not replicas.node.entries:
        raise replicas.wrong("", f"there is no replica spec; it takes {', '.join(known)}.")
    for name, _ in replicas.node:
        if name not in known:
            raise replicas.wrong(name, f"there are no replicas of this type; there are {', '.join(known)}.")


def read_processes(fields: Fields, key: str) -> list[str]:
    """Processes of each task, a number or a word of torchrun."""
    text = fields.text(key)
    if not text:
        return []
    if text not in ("auto", "cpu", "gpu", "xpu") and not (text.isdigit() and int(text) > 0):
        raise fields.wrong(key, f"expected a number, auto, cpu or gpu, found {text}.")
    return [f"nproc-per-node={text}"]


def _finish(job: JobFile, fields: Fields, spec: Fields) -> None:
    """Read the run policy and the gang's minimum; drop roles without tasks."""
    policy = spec.child("runPolicy")
    limit = kubeflow.read_run_policy(job, policy, metadata.has_queue_label(fields))
    for one in job.roles:
        if limit is not None and one.restart != messages.RESTART_NEVER:
            one.restarts_max = limit
        if one.policies and limit is not None:
            one.restarts_max = limit
    metadata.check_own_name(fields, job.name)
    job.roles = [one for one in job.roles if one.tasks_max]
    if not job.roles:
        raise spec.wrong("", "the job has no replicas at all.")
    total = sum(one.tasks_max for one in job.roles)
    short = total - kubeflow.read_scheduling(job, policy, total)
    for one in reversed(job.roles):
        less = min(short, one.tasks_min)
        one.tasks_min -= less
        one.may_be_absent = one.tasks_min == 0
        short -= less
    kubeflow.end_with_failures(job)


def _read_elastic(job: JobFile, spec: Fields, known: list[str]) -> list[str]:
    policy = spec.child("elasticPolicy")
    workers = next((one for one in job.roles if one.name == "worker"), None)
    if workers is None:
        raise policy.wrong("", "an elastic job needs workers.")
    replicas = workers.tasks_max
    least = policy.number("minReplicas", replicas, 1)
    most = policy.number("maxReplicas", max(replicas, least), 1)
    if not least <= replicas <= most:
        raise policy.wrong("", f"{replicas} replicas are not from minReplicas {least} to maxReplicas {most}.")
    workers.tasks_min, workers.tasks_max, workers.may_be_absent = least, most, False
    if most > replicas:
        policy.note("maxReplicas", f"the job starts with {least} and grows up to {most} as room comes.")
    policy.ignore(("metrics",), "the job grows as room comes")
    options = [f"min={least}", f"max={most}"]
    backend = policy.word("rdzvBackend", {one: one for one in BACKENDS}, "")
    options += [f"rdzv-backend={backend}"] if backend else []
    for key, name in (("rdzvPort", "rdzv-port"), ("maxRestarts", "max-restarts")):
        if policy.has(key):
            options.append(f"{name}={policy.number(key, 0)}")
        policy.get(key)
    for key, name in (("rdzvHost", "rdzv-host"), ("rdzvId", "rdzv-id")):
        options += [f"{name}={policy.text(key)}"] if policy.text(key) else []
    pairs = [f"{one.required('key')}={one.text('value')}" for one in policy.children("rdzvConf")]
    options += [f"rdzv-conf={','.join(pairs)}"] if pairs else []
    options += ["standalone=yes"] if policy.flag("standalone") else []
    return options + ([] if known else read_processes(policy, "nProcPerNode"))


def _end_by_pytorch(job: JobFile, is_elastic: bool) -> None:
    """Let the master's success end the job; without one that of all workers, of an elastic job that of any."""
    master = next((one for one in job.roles if one.name == "master"), None)
    if master is not None:
        master.succeeded_enough = 1
        return
    workers = job.roles[0]
    workers.succeeded_enough = 1 if is_elastic else workers.tasks_max


def read_tensorflow_job(fields: Fields, _shared: Shared) -> list[JobFile]:
    """Job of a TFJob.

    Raises:
        FileError: a field is wrong, or the operator would refuse the job.
    """
    job = metadata.start(fields, "TFJob", "tfjob")
    spec = fields.child("spec")
    replicas = spec.child("tfReplicaSpecs")
    _check_types(replicas, tuple(TF_ROLES))
    for word, name in TF_ROLES.items():
        if replicas.has(word):
            part = replicas.child(word)
            made = kubeflow.read_replica(job, name, part, messages.RESTART_NEVER, "tensorflow")
            if word in ("Chief", "Master", "Evaluator") and made.tasks_max > 1:
                raise part.wrong("replicas", f"a job has at most one {name}.")
            job.roles.append(made)
        replicas.get(word)
    if replicas.has("Chief") and replicas.has("Master"):
        raise replicas.wrong("Master", "a job has a Chief or a Master, not both.")
    is_all = spec.word("successPolicy", TF_POLICIES, False)
    _finish(job, fields, spec)
    _end_by_tensorflow(job, is_all)
    for one in job.roles:
        pods.add_port(one, "tfjob-port", TF_PORT)
    options = ["dynamic-worker=yes"] if spec.flag("enableDynamicWorker") else []
    job.tasks_rules.conventions.add(name="tfjob", options=options)
    return [job]


def _end_by_tensorflow(job: JobFile, is_all: bool) -> None:
    """Let the chief's success end the job; without one that of worker 0, or of all workers."""
    by_name = {one.name: one for one in job.roles}
    chief = by_name.get("chief") or by_name.get("master")
    workers = by_name.get("worker")
    if chief is not None:
        chief.succeeded_enough = 1
    elif workers is not None:
        workers.succeeded_enough = workers.tasks_max
        if not is_all:
            workers.policies.add(action=messages.COMPLETE_JOB, events=[messages.TASK_SUCCEEDED], index_plus_one=1)
