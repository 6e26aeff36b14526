"""TrainJob of Kubeflow's trainer: nodes that run one command, whose runtime lava takes the place of."""

from lavactl.job_files.importers.kinds import Shared
from lavactl.job_files.importers.kubernetes import metadata, pods
from lavactl.job_files.importers.kubernetes.training import read_processes
from lavactl.job_files.importers.kubernetes.variables import read_variables
from lavactl.job_files.model import JobFile, role
from lavactl.job_files.text.fields import Fields

NODE = "node"
MASTER_PORT = 29500


def read_job(fields: Fields, _shared: Shared) -> list[JobFile]:
    """Job of a document."""
    job = metadata.start(fields, "TrainJob", "trainjob")
    spec = fields.child("spec")
    runtime = spec.child("runtimeRef")
    name = runtime.required("name")
    runtime.word("kind", {word: word for word in ("ClusterTrainingRuntime", "TrainingRuntime")}, "")
    runtime.asked.add("apiGroup")
    runtime.note("name", f"ignored: lava takes the place of the runtime {name}; its template is not read.")
    trainer = spec.child("trainer")
    nodes = role(NODE, trainer.number("numNodes", 1, 1))
    pods.fill_amounts(nodes, trainer.child("resourcesPerNode"))
    variables = read_variables(job, nodes, trainer)
    pods.fill_environment(nodes, variables)
    nodes.image = trainer.text("image")
    if nodes.image:
        trainer.note("image", f"{nodes.image} is used only where hosts are configured to run containers.")
    pods.fill_command(job, nodes, trainer, variables)
    options = ["worker=node"]
    options += read_processes(trainer, "numProcPerNode")
    spec.ignore(("initializer",), "data and models are where the command finds them")
    metadata.read_manager(spec)
    metadata.read_suspend(job, spec, metadata.has_queue_label(fields))
    nodes.failed_enough, nodes.succeeded_enough = 1, nodes.tasks_max
    job.roles = [nodes]
    pods.add_port(nodes, "pytorch", MASTER_PORT)
    job.tasks_rules.conventions.add(name="pytorchjob", options=options)
    return [job]
