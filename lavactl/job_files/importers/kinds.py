"""Kinds of documents, told apart by their content, and their importers, each imported when it is needed."""

from dataclasses import dataclass, field

from lavactl.job_files.text.nodes import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from lavactl.job_files.model import JobFile
    from lavactl.job_files.text.fields import Fields

    Importer = Callable[["Fields", "Shared"], list[JobFile]]

_KUBERNETES = "lavactl.job_files.importers.kubernetes."
# (API group, kind) to the module, its function, and the versions that are alike in what lava reads.
KUBERNETES = {
    ("batch.volcano.sh", "Job"): ("volcano", "read_job", ("v1alpha1",)),
    ("batch.volcano.sh", "CronJob"): ("volcano", "read_cron_job", ("v1alpha1",)),
    ("flow.volcano.sh", "JobFlow"): ("jobflow", "read_flow", ("v1alpha1",)),
    ("flow.volcano.sh", "JobTemplate"): ("jobflow", "read_template", ("v1alpha1",)),
    ("kubeflow.org", "MPIJob"): ("mpijob", "read_job", ("v2beta1", "v1", "v1alpha2", "v1alpha1")),
    ("kubeflow.org", "PyTorchJob"): ("training", "read_pytorch_job", ("v1", "v1beta2", "v1beta1")),
    ("kubeflow.org", "TFJob"): ("training", "read_tensorflow_job", ("v1", "v1beta2", "v1beta1", "v1alpha2")),
    ("kubeflow.org", "JAXJob"): ("training", "read_jax_job", ("v1",)),
    ("trainer.kubeflow.org", "TrainJob"): ("trainjob", "read_job", ("v1alpha1",)),
    ("trainer.kubeflow.org", "TrainingRuntime"): ("trainjob", "read_runtime", ("v1alpha1",)),
    ("trainer.kubeflow.org", "ClusterTrainingRuntime"): ("trainjob", "read_runtime", ("v1alpha1",)),
    ("jobset.x-k8s.io", "JobSet"): ("jobset", "read_job", ("v1alpha2", "v1alpha1")),
    ("ray.io", "RayJob"): ("ray", "read_job", ("v1", "v1alpha1")),
    ("ray.io", "RayCluster"): ("ray", "read_cluster", ("v1", "v1alpha1")),
    ("ray.io", "RayCronJob"): ("ray", "read_cron_job", ("v1",)),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): ("leaderworkerset", "read_job", ("v1", "v1alpha1")),
    ("batch", "Job"): ("batch", "read_job", ("v1",)),
    ("batch", "CronJob"): ("batch", "read_cron_job", ("v1", "v1beta1")),
}
# Pages of docs/reference/kinds: the module and the tables that each is written from.
PAGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "batch-job": ("kubernetes.batch", ("Job",)),
    "batch-cronjob": ("kubernetes.batch", ("CronJob",)),
    "volcano-job": ("kubernetes.volcano", ("Job",)),
    "volcano-cronjob": ("kubernetes.volcano", ("CronJob",)),
    "volcano-jobflow": ("kubernetes.jobflow", ("JobFlow", "JobTemplate")),
    "tfjob": ("kubernetes.training", ("TFJob",)),
    "pytorchjob": ("kubernetes.training", ("PyTorchJob",)),
    "mpijob": ("kubernetes.mpijob", ("MPIJob", "OldMPIJob", "FirstMPIJob")),
    "jobset": ("kubernetes.jobset", ("JobSet",)),
    "openpai-v2": ("pai.version2", ("Job",)),
    "openpai-v1": ("pai.version1", ("Job",)),
    "jaxjob": ("kubernetes.training", ("JAXJob",)),
    "trainjob": ("kubernetes.trainjob", ("TrainJob", "Runtime")),
    "rayjob": ("kubernetes.ray", ("RayJob", "RayCluster", "RayCronJob")),
    "leaderworkerset": ("kubernetes.leaderworkerset", ("LeaderWorkerSet",)),
    "pod": ("kubernetes.pods", ("Template",)),
    "metadata": ("kubernetes.metadata", ("Metadata",)),
}
JOB_KINDS = (
    "Volcano's Job, CronJob, JobFlow and JobTemplate, MPIJob, PyTorchJob, TFJob, JAXJob, TrainJob, JobSet, "
    "RayJob, RayCluster, RayCronJob, LeaderWorkerSet, and Job and CronJob of batch/v1"
)
# Documents beside the jobs: (words for them, what takes their place).
NO_JOBS = {
    **dict.fromkeys(
        (("scheduling.volcano.sh", "Queue"), ("scheduling.run.ai", "Queue"),
         ("kueue.x-k8s.io", "ClusterQueue"), ("kueue.x-k8s.io", "LocalQueue"),
         ("kueue.x-k8s.io", "ResourceFlavor"), ("kueue.x-k8s.io", "Cohort"), ("kueue.x-k8s.io", "Topology")),
        "its counterpart are queues and capacity pools, which administrators configure (lsb.queues, lsb.resources)",
    ),
    **dict.fromkeys(
        (("kueue.x-k8s.io", "WorkloadPriorityClass"), ("scheduling.k8s.io", "PriorityClass")),
        "only the order of roles in jobs of this file follows it",
    ),
    **dict.fromkeys(
        (("scheduling.volcano.sh", "PodGroup"), ("scheduling.x-k8s.io", "PodGroup"),
         ("scheduling.k8s.io", "PodGroup"), ("scheduling.k8s.io", "Workload")),
        "each job is a gang by itself",
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): "lavactl scale changes the number of tasks; autoscale of a lava file "
                                                "follows a metric",
    **dict.fromkeys(
        (("resource.k8s.io", "ResourceClaimTemplate"), ("resource.k8s.io", "ResourceClaim")),
        "GPUs are asked for by number",
    ),
    **dict.fromkeys((("", "ConfigMap"), ("", "Secret")), "variables of this file's jobs come from it, no files"),
    **dict.fromkeys(
        (("", "PersistentVolumeClaim"), ("", "PersistentVolume"), ("storage.k8s.io", "StorageClass")),
        "lava expects a shared file system",
    ),
    **dict.fromkeys(
        (("", "Service"), ("", "Namespace"), ("", "ServiceAccount"), ("rbac.authorization.k8s.io", "Role"),
         ("rbac.authorization.k8s.io", "RoleBinding"), ("rbac.authorization.k8s.io", "ClusterRole"),
         ("rbac.authorization.k8s.io", "ClusterRoleBinding"), ("networking.k8s.io", "NetworkPolicy"),
         ("networking.k8s.io", "Ingress"), ("policy", "PodDisruptionBudget")),
        "a job needs none here",
    ),
}  # fmt: skip


@dataclass
class Shared:
    """Knowledge that the documents of a file have of each other."""

    user: str
    templates: dict[str, Mapping] = field(default_factory=dict)  # JobTemplates by name
    used_templates: set[str] = field(default_factory=set)  # by a JobFlow
    runtimes: dict[tuple[str, str], Mapping] = field(default_factory=dict)  # of Kubeflow's Trainer, by kind and name
    used_runtimes: set[tuple[str, str]] = field(default_factory=set)  # by a TrainJob
    clusters: dict[str, Mapping] = field(default_factory=dict)  # RayClusters by name
    selected_clusters: set[str] = field(default_factory=set)  # by a RayJob
    priorities: dict[str, int] = field(default_factory=dict)  # PriorityClasses by name
    beside: dict[tuple[str, str], Mapping] = field(default_factory=dict)  # ConfigMaps and Secrets by kind and name


def group_of(document: Mapping) -> str:
    """API group of a document, without its version."""
    group, slash, _ = document.text("apiVersion").rpartition("/")
    return group if slash else ""


def prepare(document: Mapping, shared: Shared) -> None:
    """Note what other documents refer to."""
    metadata = document.get("metadata")
    name = metadata.text("name") if isinstance(metadata, Mapping) else ""
    kind = document.text("kind")
    if kind == "JobTemplate":
        shared.templates[name] = document
    elif kind == "PriorityClass" and document.text("value").lstrip("-").isdigit():
        shared.priorities[name] = int(document.text("value"))
    elif kind in ("ConfigMap", "Secret"):
        shared.beside[kind, name] = document
    elif kind in ("TrainingRuntime", "ClusterTrainingRuntime"):
        shared.runtimes[kind, name] = document
    elif kind == "TrainJob":
        from lavactl.job_files.importers.kubernetes.trainjob import reference_of

        shared.used_runtimes.add(reference_of(document))
    elif kind == "RayCluster":
        shared.clusters[name] = document
    elif kind == "RayJob":
        from lavactl.job_files.importers.kubernetes.ray import selected_by

        shared.selected_clusters.add(selected_by(document))
    elif kind == "JobFlow":
        from lavactl.job_files.importers.kubernetes.jobflow import names_of

        shared.used_templates |= names_of(document)


def importer_of(fields: "Fields") -> "Importer | None":
    """Importer of a document; None if it is none of another system.

    Raises:
        FileError: it is of another system, but no job that lava knows.
    """
    document = fields.node
    if document.get("kind") is not None or document.get("apiVersion") is not None:
        return _kubernetes(fields)
    if document.get("protocolVersion") is not None:
        return _named("lavactl.job_files.importers.pai.version2", "read_job")
    if document.get("jobName") is not None and document.get("taskRoles") is not None:
        return _named("lavactl.job_files.importers.pai.version1", "read_job")
    if document.get("physicalCluster") is not None or document.get("virtualClusters") is not None:
        raise fields.wrong(
            "", "this is a configuration of HiveD, no job; queues and capacity pools of lava take its place."
        )
    return None


def _named(module: str, function: str) -> "Importer":
    importer: Importer = getattr(__import__(module, fromlist=[function]), function)
    return importer


def _kubernetes(fields: "Fields") -> "Importer":
    version, kind = fields.required("apiVersion"), fields.required("kind")
    group = group_of(fields.node)
    known = KUBERNETES.get((group, kind))
    if known is not None:
        module, function, versions = known
        if (given := version.rpartition("/")[2]) not in versions:
            raise fields.wrong("apiVersion", f"lava knows {kind}s of {', '.join(versions)}, not of {given}.")
        return _named(_KUBERNETES + module, function)
    if (group, kind) in NO_JOBS:
        return _leave_out
    raise fields.wrong("kind", f"{kind} of {version} is no job that lava knows; it knows {JOB_KINDS}.")


def _leave_out(fields: "Fields", _shared: Shared) -> "list[JobFile]":
    """Note a document that is no job."""
    kind = fields.text("kind")
    if kind in ("ConfigMap", "Secret"):
        from lavactl.job_files.importers.kubernetes.variables import read_data

        read_data(fields, kind)
    fields.asked |= set(fields.node.entries)
    fields.note("", f"{kind} is no job and is left out: {NO_JOBS[group_of(fields.node), kind]}.")
    return []
