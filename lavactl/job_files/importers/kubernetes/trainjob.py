"""TrainJob of Kubeflow's Trainer: a JobSet built from its runtime's template, with what the job itself says over it.

The runtime is a document of the same file, or one of those that Trainer installs itself. Its framework says what the
nodes are told; the rest is read as a JobSet.
"""

import re

from lavactl.job_files.importers.kinds import Shared
from lavactl.job_files.importers.kubernetes import jobset, metadata, pods, variables
from lavactl.job_files.importers.kubernetes.trainer_runtimes import (
    DATASET,
    LAUNCHER,
    MODEL,
    NODE,
    RUNTIMES,
    STEP,
    TRAINER,
)
from lavactl.job_files.importers.tables import (
    Anything,
    Flag,
    Number,
    Others,
    Part,
    Parts,
    Required,
    Table,
    Text,
    Texts,
    Word,
)
from lavactl.job_files.model import JobFile
from lavactl.job_files.text import quantities
from lavactl.job_files.text.fields import Fields, one_of
from lavactl.job_files.text.merging import changed, merged, node_of, replaced, with_field
from lavactl.job_files.text.nodes import Mapping, Node, Place, Scalar, Sequence
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from fractions import Fraction

GROUP = "trainer.kubeflow.org"
CLUSTER, NAMESPACED = "ClusterTrainingRuntime", "TrainingRuntime"
MANAGERS = (f"{GROUP}/trainjob-controller", "kueue.x-k8s.io/multikueue")
PORT = 29500
CONTAINERS = {TRAINER: NODE, DATASET: DATASET, MODEL: MODEL}
WORDS = ("auto", "cpu", "gpu")
RESERVED = {
    "torch": ("PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"),
    "mpi": ("OMPI_MCA_orte_default_hostfile", "OMPI_MCA_plm_rsh_args", "OMPI_MCA_orte_keep_fqdn_hostnames",
            "OMPI_MCA_orte_set_default_slots"),
    "xgboost": ("DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER"),
}  # fmt: skip
TORCHTUNE = ["tune", "run"]
NO_PROGRAM = "the program of its image is not known to lava; data and models must be where the command finds them"
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://.+)?")

# -- fields of a runtime -----------------------------------------------------------------------------------------------


class Torch(Table):
    """``torch``: torchrun's variables for the nodes."""

    processes = Text("numProcPerNode", "", "in earlier versions: PET_NPROC_PER_NODE, where the TrainJob says nothing",
                     absent="auto")  # fmt: skip
    elastic = Anything("elasticPolicy", None, "never used by the controller", told="the number of nodes is fixed")
    targets = Anything("envInjection", None, "other containers that have the variables, too",
                       told="the nodes' container alone is run")  # fmt: skip


class Mpi(Table):
    """``mpi``: a host file for the launcher, which starts the ranks by ssh."""

    processes = Number("numProcPerNode", 1, "slots of each node in the host file; the number of its GPUs for 1", 1)
    implementation = Word("mpiImplementation", {"OpenMPI": "OpenMPI"}, "OpenMPI", "any but OpenMPI is refused")
    keys = Text("sshAuthMountPath", "", "the directory of the keys", told="ssh between tasks needs no keys",
                absent="that of root")  # fmt: skip
    is_node = Flag("runLauncherAsNode", False, "the launcher is one of the nodes")


class Policy(Table):
    """``mlPolicy``; at most one framework."""

    nodes = Number("numNodes", 1, "the number of nodes", here="where the TrainJob says nothing", absent="1")
    torch = Part("torch", Torch, "PyTorch", here="convention trainjob, framework torch")
    mpi = Part("mpi", Mpi, "MPI", here="framework mpi")
    jax = Anything("jax", None, "JAX", here="framework jax")
    xgboost = Anything("xgboost", None, "XGBoost", here="framework xgboost")
    flux = Anything("flux", None, "Flux", refused="lava starts no brokers of Flux; a runtime with mpi starts ranks.")


class SetTemplate(Table):
    """``template`` of a runtime: a JobSet."""

    metadata = Anything("metadata", None, "labels and annotations of the JobSet", told="jobs have no labels")
    spec = Part("spec", jobset.Spec, "the JobSet", here="the job; roles with the label of a step are changed by the "
                "TrainJob", absent="refused")  # fmt: skip


class RuntimeSpec(Table):
    """``spec`` of a runtime."""

    policy = Part("mlPolicy", Policy, "framework and number of nodes")
    gang = Anything("podGroupPolicy", None, "pods are scheduled together",
                    told="the job starts when all its tasks have places")  # fmt: skip
    template = Part("template", SetTemplate, "the JobSet")


class Runtime(metadata.Document):
    """TrainingRuntime or ClusterTrainingRuntime: nothing by itself; TrainJobs of the same file are built from it."""

    spec = Part("spec", RuntimeSpec, "the runtime")


# -- fields of a job ---------------------------------------------------------------------------------------------------


class Reference(Table):
    """``runtimeRef``."""

    name = Required("name", "a runtime that exists before the job", here="one of the same file, or one that Trainer "
                    "installs: " + ", ".join(RUNTIMES))  # fmt: skip
    kind = Word("kind", {word: word for word in (CLUSTER, NAMESPACED)}, CLUSTER, "its kind")
    group = Word("apiGroup", {GROUP: GROUP}, GROUP, "its API group")


class Source(Table):
    """``dataset`` or ``model`` of ``initializer``."""

    uri = Text("storageUri", "", "STORAGE_URI of the initializer's container")
    env = Parts("env", variables.Variable, "further variables of it")
    secret = Anything("secretRef", None, "variables of it from a Secret")


class Initializer(Table):
    """``initializer``: jobs of the runtime that fetch data and model before the nodes start."""

    dataset = Part("dataset", Source, "for the job dataset-initializer, which the runtime must have")
    model = Part("model", Source, "for the job model-initializer, which the runtime must have")


class Trainer(Table):
    """``trainer``: over the container ``node`` of the runtime's job whose step is ``trainer``."""

    image = Text("image", "", "in place of the runtime's", here="as image of a container")
    command = Texts("command", None, "in place of the runtime's", absent="the runtime's")
    args = Texts("args", None, "in place of the runtime's", absent="the runtime's")
    env = Parts("env", variables.Variable, "over the runtime's, by name; names of the framework are refused")
    nodes = Number("numNodes", None, "the number of nodes; 0 runs nothing", 1, here="the number of nodes; 0 is refused",
                   absent="the runtime's, else 1")  # fmt: skip
    resources = Part("resourcesPerNode", pods.Resources, "over the runtime's; it alone counts for the processes")
    processes = Text("numProcPerNode", "auto", "processes of each node; for torch and mpi only; auto: without GPUs the "
                     "processors", absent="torch: auto; mpi: the runtime's, for 1 the GPUs")  # fmt: skip


class Patch(Table):
    """One of ``runtimePatches``."""

    manager = Required("manager", "the program that wrote it", here="it must be a name such as example.com/team")
    time = Anything("time", None, "written by the webhook", moot=True)
    spec = Anything("trainingRuntimeSpec", None, "fields over those of the runtime", here="the same; each is read as "
                    "one of the runtime")  # fmt: skip


class Override(Table):
    """One of ``podTemplateOverrides`` (``podSpecOverrides``) of earlier versions."""

    jobs = Anything("targetJobs", None, "names of the runtime's jobs", absent="refused")
    metadata = Anything("metadata", None, "over the pods' metadata", here="the same; each is read as of the runtime")
    spec = Anything("spec", None, "over the pods", here="the same; each is read as of the runtime")
    others = Others("in podSpecOverrides: over the pods", told="write them below spec, as podTemplateOverrides")


class Spec(metadata.Suspended):
    """``spec`` of a TrainJob."""

    runtime = Part("runtimeRef", Reference, "its runtime", absent="refused")
    trainer = Part("trainer", Trainer, "the nodes", absent="the runtime's; then they are told nothing of torch, jax "
                   "and xgboost")  # fmt: skip
    initializer = Part("initializer", Initializer, "data and model", absent="the runtime's jobs as they are")
    patches = Parts("runtimePatches", Patch, "changes of the runtime for this job, in their order")
    overrides = Parts("podTemplateOverrides", Override, "the same in earlier versions")
    old_overrides = Parts("podSpecOverrides", Override, "the same in earlier versions")
    labels = Anything("labels", None, "in earlier versions: labels of the JobSet", told="jobs have no labels")
    annotations = Anything("annotations", None, "in earlier versions: annotations of the JobSet",
                           told="jobs have no annotations")  # fmt: skip
    managed_by = Text("managedBy", MANAGERS[0], f"the controller: {' or '.join(MANAGERS)}", told="lava runs the job")
    deadline_s = Number("activeDeadlineSeconds", None, "the job fails so long after its creation; waiting counts", 1,
                        here="the run limit of the job; waiting does not count")  # fmt: skip


class TrainJob(metadata.Document):
    """TrainJob: a JobSet made from a runtime."""

    spec = Part("spec", Spec, "the job")


# -- documents ---------------------------------------------------------------------------------------------------------


def reference_of(document: Mapping) -> "tuple[str, str]":
    """Kind and name of the runtime that a TrainJob names; empty where it is malformed."""
    spec = document.get("spec")
    found = spec.get("runtimeRef") if isinstance(spec, Mapping) else None
    return (found.text("kind") or CLUSTER, found.text("name")) if isinstance(found, Mapping) else ("", "")


def read_runtime(fields: Fields, shared: Shared) -> list[JobFile]:
    """No job. A runtime that no TrainJob of the file uses is read to find its errors; the others are read with theirs.

    Raises:
        FileError: a field is wrong, or the runtime's webhook would refuse it.
    """
    document = Runtime(fields)
    kind, name = fields.text("kind"), document.metadata.name
    job = metadata.start(document, kind, "trainjob")
    spec = document.spec
    spec.template.need(SetTemplate.spec)
    _check_steps(spec.template.spec)
    framework_of(spec.policy)
    jobset.read_spec(job, spec.template.spec)
    for role in job.roles:
        pods.drop_lack(job, role, fields.reading.notes)  # the TrainJob may have a command
    if (kind, name) not in shared.used_runtimes:
        fields.note("", f"{kind} {name} is no job and is left out: no TrainJob of this file uses it.")
    for part in spec.template.spec.jobs:
        if part.template.metadata.labels.step in (DATASET, MODEL) and _lacks_program(part):
            part.note(None, f"ignored: {NO_PROGRAM}.")
    return []


def _lacks_program(part: jobset.ReplicatedJob) -> bool:
    container = part.template.spec.template.pod.containers[0]
    return not (container.command or container.args)


def _check_steps(spec: jobset.Spec) -> None:
    """Refuse jobs of a step that the webhook of runtimes refuses."""
    for part in spec.jobs:
        step = part.template.metadata.labels.step
        if step not in CONTAINERS:
            continue
        if part.replicas != 1:
            raise part.wrong(jobset.ReplicatedJob.replicas, f"the job of the step {step} has one replica.")
        pod = part.template.fields.child("spec").child("template").child("spec")
        names = [one.text("name") for one in pod.items("containers") if isinstance(one, Mapping)]
        if CONTAINERS[step] not in names:
            raise pod.wrong("containers", f"the job of the step {step} needs a container named {CONTAINERS[step]}.")


def framework_of(policy: Policy) -> str:
    """Framework of a runtime; empty for none."""
    rows = (Policy.torch, Policy.mpi, Policy.jax, Policy.xgboost)
    given = [row.name for row in rows if row.name in policy.fields.node.entries]
    policy.fields.asked |= {Policy.nodes.name, *given}
    if len(given) > 1:
        raise policy.wrong(None, f"it has one framework, not {' and '.join(given)}.")
    if given == [Policy.mpi.name]:
        _ = policy.mpi.implementation, policy.mpi.processes, policy.mpi.is_node
    if given == [Policy.torch.name]:
        _ = policy.torch.processes
    return given[0] if given else ""


def read_job(fields: Fields, shared: Shared) -> list[JobFile]:
    """Job of a document.

    Raises:
        FileError: a field is wrong, there is no such runtime, or Trainer would refuse the job.
    """
    document = TrainJob(fields)
    job = metadata.start(document, "TrainJob", "trainjob")
    metadata.check_own_name(fields, job.name)
    spec = document.spec
    path, runtime = _runtime(spec, shared)
    policy = Policy(fields.reading.open(_below(runtime, "mlPolicy"), f"{path}.mlPolicy"))
    built = Builder(
        job, spec, policy, _below(runtime, "template", "spec"), has_policy=runtime.get("mlPolicy") is not None
    )
    jobset.read_spec(job, jobset.Spec(fields.reading.open(built.set(), f"{path}.template.spec")))
    built.finish()
    _read_rules(job, document)
    _drop_repeated(fields, path, runtime)
    return [job]


def _drop_repeated(fields: Fields, path: str, runtime: Mapping) -> None:
    """Drop remarks on the runtime that its own document has, and those on the job's fields under their places there."""
    reading, theirs = fields.reading, {*_lines(runtime)} if path.startswith((CLUSTER, NAMESPACED)) else set()
    own = {(note.place, note.text) for note in reading.notes if not note.field.startswith(path)}
    theirs -= {*_lines(fields.node)}
    reading.notes = [
        note for note in reading.notes
        if not note.field.startswith(path) or (note.place not in theirs and (note.place, note.text) not in own)
    ]  # fmt: skip


def _lines(node: Node) -> "Iterator[Place]":
    """Places of all keys and values of a mapping."""
    yield node.place
    if isinstance(node, Mapping):
        yield from node.keys.values()
    for one in node.entries.values() if isinstance(node, Mapping) else node.items if isinstance(node, Sequence) else ():
        yield from _lines(one)


def _read_rules(job: JobFile, document: TrainJob) -> None:
    spec = document.spec
    metadata.read_suspend(job, spec.fields, bool(document.metadata.labels.queue))
    metadata.read_manager(spec.fields)
    if spec.managed_by not in MANAGERS:
        raise spec.wrong(Spec.managed_by, f"expected {one_of(MANAGERS)}, found {spec.managed_by[:80]}.")
    if spec.deadline_s is not None:
        job.run_limit_s = min(spec.deadline_s, job.run_limit_s or spec.deadline_s)


def _runtime(spec: Spec, shared: Shared) -> "tuple[str, Mapping]":
    """Path of a job's runtime for messages, and its specification."""
    reference = spec.runtime
    kind, name = reference.kind or CLUSTER, reference.name
    found = shared.runtimes.get((kind, name))
    if found is not None:
        content = found.get("spec")
        if not isinstance(content, Mapping):
            raise reference.wrong(Reference.name, f"the {kind} {name} has no spec.")
        return f"{kind} {name}.spec", content
    if kind == CLUSTER and name in RUNTIMES:
        reference.note(Reference.name, f"{name} is read as Trainer installs it, without its image.")
        made = node_of(RUNTIMES[name], spec.fields.place("runtimeRef"))
        assert isinstance(made, Mapping)
        return f"{kind} {name}.spec", made
    other = NAMESPACED if kind == CLUSTER else CLUSTER
    if (other, name) in shared.runtimes:
        raise reference.wrong(Reference.name, f"there is no {kind} {name}; for the {other} it needs kind: {other}.")
    raise reference.wrong(
        Reference.name, f"there is no {kind} {name} in this file; without it lava knows {one_of(RUNTIMES)}."
    )


def _below(node: Mapping, *keys: str) -> Mapping:
    """Mapping below a mapping; an empty one where there is none."""
    for key in keys:
        found = node.get(key)
        node = found if isinstance(found, Mapping) else Mapping(node.place, {}, {})
    return node


# -- the JobSet --------------------------------------------------------------------------------------------------------


class Builder:
    """Building of a TrainJob's JobSet, in the order of Trainer's own: patches, resources, steps, framework."""

    def __init__(self, job: JobFile, spec: Spec, policy: Policy, template: Mapping, has_policy: bool) -> None:
        self.job = job
        self.spec = spec
        self.trainer = spec.trainer
        self.has_trainer = spec.has(Spec.trainer)
        self.policy = policy
        self.has_policy = has_policy
        self.framework = framework_of(policy)
        self.made = template
        self.steps: dict[str, str] = {}  # jobs of the set by the step that each is
        self.resources: Node | None = None  # of a node, as they count for its processes

    def set(self) -> Mapping:
        """Specification of the JobSet."""
        for patch in self.spec.patches:
            self._patch(patch)
        for override in (*self.spec.overrides, *self.spec.old_overrides):
            self._override(override)
        self.steps = {step: name for name, step in self._labels().items() if step}
        self._check()
        for step in (DATASET, MODEL):
            self._initialize(step)
        self._train()
        self._count()
        return self.made

    def _jobs(self) -> list[Mapping]:
        found = self.made.get("replicatedJobs")
        return [one for one in found.items if isinstance(one, Mapping)] if isinstance(found, Sequence) else []

    def _labels(self) -> "dict[str, str]":
        """Steps of the jobs of the set, by their names."""
        return {one.text("name"): _below(one, "template", "metadata", "labels").text(STEP) for one in self._jobs()}

    def _containers(self, name: str) -> list[str]:
        pod = next(
            _below(one, "template", "spec", "template", "spec") for one in self._jobs() if one.text("name") == name
        )
        found: list[str] = []
        for key in ("initContainers", "containers"):
            nodes = pod.get(key)
            found += (
                [one.text("name") for one in nodes.items if isinstance(one, Mapping)]
                if isinstance(nodes, Sequence)
                else []
            )
        return found

    # -- patches -------------------------------------------------------------------------------------------------------

    def _patch(self, patch: Patch) -> None:
        if not metadata.MANAGER.fullmatch(patch.manager):
            raise patch.wrong(Patch.manager, f"expected a name such as example.com/team, found {patch.manager[:80]}.")
        given = patch.spec
        if not isinstance(given, Mapping):
            return
        template = _below(given, "template")
        if template.get("metadata") is not None:
            patch.note(Patch.spec, "ignored: metadata: jobs have no labels.")
        content = _below(template, "spec")
        jobs = content.get("replicatedJobs")
        for at, one in enumerate(jobs.items if isinstance(jobs, Sequence) else ()):
            if isinstance(one, Mapping):
                self._check_patch(patch, one)
                path = f"{self._path(patch)}.template.spec.replicatedJobs[{at}].template.spec.template.spec"
                self._tell_pod(_below(one, "template", "spec", "template", "spec"), path)
        self.made = merged(self.made, content)

    def _check_patch(self, patch: Patch, one: Mapping) -> None:
        """Refuse a patch of a job or container that the runtime has not, and variables of those of the steps."""
        name = one.text("name")
        if name not in [known.text("name") for known in self._jobs()]:
            raise patch.fields.reading.wrong(one.place, self._path(patch), f"the runtime has no job named {name}.")
        known = self._containers(name)
        pod = _below(one, "template", "spec", "template", "spec")
        for key in ("initContainers", "containers"):
            nodes = pod.get(key)
            for container in nodes.items if isinstance(nodes, Sequence) else ():
                if not isinstance(container, Mapping):
                    continue
                if container.text("name") not in known:
                    raise patch.fields.reading.wrong(
                        container.place, self._path(patch), f"its job {name} has no container {container.text('name')}."
                    )
                if container.get("env") is not None and container.text("name") in CONTAINERS.values():
                    raise patch.fields.reading.wrong(
                        container.place, self._path(patch), "variables of this container are those of the TrainJob."
                    )

    def _tell_pod(self, node: Mapping, path: str) -> None:
        """Tell under the job's own path what is not honoured of a pod that is laid over the runtime's."""
        fields = self.spec.fields.reading.open(node, path)
        pods.Pod(fields)
        fields.asked |= {*node.entries}

    @staticmethod
    def _path(patch: Patch) -> str:
        return patch.fields.path_of(Patch.spec.name)

    def _override(self, override: Override) -> None:
        targets = override.jobs
        names = (
            [one.text("name") for one in targets.items if isinstance(one, Mapping)]
            if isinstance(targets, Sequence)
            else []
        )
        if not names:
            raise override.wrong(Override.jobs, "it names the runtime's jobs that it is for.")
        given = {row.name: node for row in (Override.metadata, Override.spec) if (node := row.read(override.fields))}
        for name in names:
            if name not in [one.text("name") for one in self._jobs()]:
                raise override.wrong(Override.jobs, f"the runtime has no job named {name}.")
            path = (f"replicatedJobs={name}", "template", "spec", "template")
            self._tell_pod(
                _below(override.fields.node, Override.spec.name), override.fields.path_of(Override.spec.name)
            )
            self.made = changed(self.made, path, lambda pod: merged(pod, Mapping(pod.place, given, _places(given))))

    # -- steps ---------------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        """Refuse variables that are the framework's, and a command that Trainer itself would complete."""
        reserved = RESERVED.get(self.framework, ())
        for one in self.trainer.env:
            if one.name in reserved:
                raise one.wrong(variables.Variable.name, f"{one.name} is set by the framework of the runtime.")
        if self.framework == "torch" and self.trainer.command == TORCHTUNE:
            raise self.trainer.wrong(
                Trainer.command,
                "the recipe that Trainer adds to tune run is not known to lava; write the whole command.",
            )

    def _initialize(self, step: str) -> None:
        """Let an initializer of the runtime fetch what the job names."""
        part = self.spec.initializer
        row = Initializer.dataset if step == DATASET else Initializer.model
        if not part.has(row):
            return
        source = row.read(part.fields)
        name = self.steps.get(step, "")
        if not name or step not in self._containers(name):
            raise part.wrong(row, f"the runtime has no job {step} with a container of that name.")
        if not _URI.fullmatch(source.uri):
            raise source.wrong(Source.uri, f"expected a URI such as hf://owner/name, found {source.uri[:80]}.")
        _ = [one.name for one in source.env]
        uri = source.fields.get(Source.uri.name)
        given: list[Node] = []
        if isinstance(uri, Scalar):
            value = Scalar(uri.place, uri.text, is_quoted=True)
            given.append(_named("STORAGE_URI", {"value": value}, uri))
        env = source.fields.get(Source.env.name)
        given += env.items if isinstance(env, Sequence) else []
        secret = source.secret

        def with_source(container: Mapping) -> Mapping:
            made = replaced(container.get("env"), Sequence(container.place, given))
            found = with_field(container, "env", made) if made is not None else container
            if isinstance(secret, Mapping):
                reference = Mapping(secret.place, {"secretRef": secret}, {"secretRef": secret.place})
                before = container.get("envFrom")
                all_of = [*(before.items if isinstance(before, Sequence) else ()), reference]
                found = with_field(found, "envFrom", Sequence(secret.place, list(all_of)))
            return found

        self._change_container(name, step, with_source)

    def _change_container(self, job: str, container: str, change: "Callable[[Mapping], Mapping]") -> None:
        path = (f"replicatedJobs={job}", "template", "spec", "template", "spec", f"containers={container}")
        self.made = changed(self.made, path, change)

    def _train(self) -> None:
        """Lay the job's trainer over the container of the nodes."""
        _ = self.trainer.image, self.trainer.args
        pods.fill_amounts(messages.Role(), self.trainer.resources)  # what is wrong is told at its own place
        name = self.steps.get(TRAINER, "")
        is_node_too = self.framework == "mpi" and self.policy.mpi.is_node and name != NODE
        self.resources = self.trainer.fields.get(Trainer.resources.name) or self._given_resources(name)
        if name:
            self._change_container(name, NODE, self._trained)
        if is_node_too:
            self._change_container(NODE, NODE, self._with_share)

    def _given_resources(self, name: str) -> Node | None:
        """Resources that the runtime's nodes have."""
        for one in self._jobs():
            containers = _below(one, "template", "spec", "template", "spec").get("containers")
            for container in containers.items if isinstance(containers, Sequence) else ():
                if one.text("name") not in (NODE, name) or not isinstance(container, Mapping):
                    continue
                if container.text("name") == NODE and container.get("resources") is not None:
                    return container.get("resources")
        return None

    def _trained(self, container: Mapping) -> Mapping:
        for row in (Trainer.image, Trainer.command, Trainer.args):
            given = self.trainer.fields.get(row.name)
            if given is not None:
                container = with_field(container, row.name, given)
        return self._with_share(container)

    def _with_share(self, container: Mapping) -> Mapping:
        """Container with the job's variables and, where the runtime has a policy, its resources."""
        env = replaced(container.get("env"), self.trainer.fields.get(Trainer.env.name))
        if env is not None:
            container = with_field(container, "env", env)
        given = self.trainer.fields.get(Trainer.resources.name)
        if isinstance(given, Mapping) and self.has_policy:
            self.trainer.resources.fields.asked |= {*given.entries}  # read where they are merged
            container = with_field(container, "resources", merged(_below(container, "resources"), given))
        elif given is not None:
            self.trainer.note(Trainer.resources, "ignored: the runtime has no mlPolicy; Trainer ignores it as well.")
        return container

    def _count(self) -> None:
        """Set the number of nodes."""
        wanted = self.trainer.nodes
        count = self.policy.nodes if wanted is None else wanted
        name = self.steps.get(TRAINER, "")
        if self.framework == "mpi":
            self._size(NODE, max(count - 1, 1) if self.policy.mpi.is_node else count)
            if name != NODE:
                self._size(name, 1)
        elif self.has_policy or wanted is not None:
            self._size(name, count)
        if wanted is not None and self.policy.has(Policy.nodes):
            self.trainer.note(Trainer.nodes, f"in place of the runtime's {self.policy.nodes}.")

    def _size(self, job: str, count: int) -> None:
        def sized(spec: Mapping) -> Mapping:
            place = self.trainer.fields.place(Trainer.nodes.name) if self.has_trainer else spec.place
            number = Scalar(place, str(count))
            return with_field(with_field(spec, "parallelism", number), "completions", number)

        self.made = changed(self.made, (f"replicatedJobs={job}", "template", "spec"), sized)

    # -- framework -----------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Say what the nodes are told, and leave initializers out of which lava does not know the program."""
        self._leave_out()
        nodes = next((one for one in self.job.roles if one.name == self.steps.get(TRAINER)), None)
        options = [f"worker={NODE if self.framework == 'mpi' else self.steps.get(TRAINER, NODE)}"]
        processes = self._processes()
        if self.framework == "mpi":
            self._finish_mpi(options, processes)
        elif nodes is None or not self.framework:
            self._tell_unused()
            return
        elif not self.has_trainer:
            self.spec.note(
                None, f"the nodes are told nothing of {self.framework}: Trainer tells them only with a trainer."
            )
            return
        else:
            options += [f"nproc-per-node={processes}"] if self.framework in ("torch", "xgboost") else []
            pods.add_port(nodes, "trainer", PORT)
            _take_slots(nodes, processes if self.framework == "torch" else "", self.resources)
        if self.framework not in ("torch", "mpi"):
            self._tell_unused()
        self.job.tasks_rules.conventions.add(name="trainjob", options=[f"framework={self.framework}", *options])

    def _tell_unused(self) -> None:
        if self.trainer.processes != "auto":
            self.trainer.note(Trainer.processes, "ignored: it is for torch and mpi; Trainer ignores it as well.")

    def _finish_mpi(self, options: list[str], slots: str) -> None:
        options += [f"launcher={self.steps.get(TRAINER, LAUNCHER)}", f"slots={slots}"]
        options += ["launcher-as-worker=yes"] * self.policy.mpi.is_node
        for one in self.job.roles:
            if one.name in (NODE, self.steps.get(TRAINER)):
                _take_slots(one, slots, self.resources)
            if one.name == NODE and pods.is_ssh_server(one):
                one.success_min = 0
                pods.hold_without_process(one, self.spec.fields, "the launcher starts the ranks there")

    def _processes(self) -> str:
        """Processes of each node: a number, or auto, for torchrun to find out."""
        text = self.trainer.processes
        if not (text in WORDS or (text.isascii() and text.isdigit() and int(text))):
            raise self.trainer.wrong(
                Trainer.processes, f"expected a number from 1, {one_of(WORDS)}, found {text[:80]}."
            )
        gpus, processors = _amounts(self.resources)
        if self.framework == "mpi":
            given = self.policy.mpi.processes
            return text if text.isdigit() else str(gpus if given == 1 and gpus > 1 else given)
        if self.framework == "xgboost":
            return str(gpus or 1)
        if self.framework == "torch":
            text = text if self.trainer.has(Trainer.processes) else self.policy.torch.processes or text
            return str(max(processors, 1)) if text == "auto" and not gpus else text
        return text

    def _leave_out(self) -> None:
        """Leave out initializers without a command: lava does not know the program of their image."""
        lacking = [
            one for one in self.job.roles
            if one.name in (self.steps.get(DATASET), self.steps.get(MODEL)) and not (one.argv or one.command)
        ]  # fmt: skip
        for role in lacking:
            pods.drop_lack(self.job, role, self.spec.fields.reading.notes)
            self.job.roles.remove(role)
            options = self.job.tasks_rules.conventions[0].options
            options[:] = [one for one in options if not one.startswith(f"{role.name}.")]
            waiting = [one.name for one in self.job.roles if role.name in (*one.after, *one.after_done)]
            for other in self.job.roles:
                for names in (other.after, other.after_done):
                    names[:] = [one for one in names if one != role.name]
            words = f" ({', '.join(waiting)} does not wait for it)" if waiting else ""
            self._tell_left_out(role.name, f"role {role.name} is left out{words}: {NO_PROGRAM}")

    def _tell_left_out(self, name: str, sentence: str) -> None:
        part, row = self.spec.initializer, Initializer.dataset if name == self.steps.get(DATASET) else Initializer.model
        if part.has(row):
            uri = row.read(part.fields).uri
            part.note(row, f"ignored: {sentence}{f'; {uri} is not fetched' * bool(uri)}.")
        else:
            self.spec.runtime.note(Reference.name, f"{sentence}.")


def _places(entries: "dict[str, Node]") -> dict[str, Place]:
    return {key: node.place for key, node in entries.items()}


def _named(name: str, entries: "dict[str, Node]", at: Node) -> Mapping:
    """Thing of a list with a name."""
    found: dict[str, Node] = {"name": Scalar(at.place, name, is_quoted=True), **entries}
    return Mapping(at.place, found, dict.fromkeys(found, at.place))


def _take_slots(role: messages.Role, processes: str, resources: Node | None) -> None:
    """Let each process of a task have a slot, where its container names no processors."""
    has_cpu = isinstance(resources, Mapping) and any(
        _below(resources, key).get("cpu") is not None for key in ("limits", "requests")
    )
    if processes.isdigit() and not has_cpu:
        role.slots_per_task = max(int(processes), 1)


def _amounts(resources: Node | None) -> "tuple[int, int]":
    """GPUs and processors of a node: those requested, else the limits."""
    if not isinstance(resources, Mapping):
        return 0, 0
    requests, limits = (_below(resources, key) for key in ("requests", "limits"))
    gpus = _gpus(requests) or _gpus(limits)
    processors = _quantity(requests.get("cpu")) or _quantity(limits.get("cpu"))
    return gpus, quantities.whole(processors)


def _gpus(amounts: Mapping) -> int:
    return next((quantities.whole(_quantity(node)) for name, node in amounts if "gpu" in name.lower()), 0)


def _quantity(node: Node | None) -> "Fraction":
    try:
        return quantities.read_quantity(node.text if isinstance(node, Scalar) else "0")
    except ValueError:
        return quantities.read_quantity("0")  # refused where the container is read
