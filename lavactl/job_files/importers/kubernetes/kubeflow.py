"""Fields that Kubeflow's jobs share: replica specs, restart policies, and the run policy."""

from lavactl.job_files.importers.kubernetes import metadata, pods
from lavactl.job_files.importers.tables import Anything, Number, Part, Table, Text, Word
from lavactl.job_files.model import UNLIMITED, JobFile, role
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from protos.common_pb2 import RestartInPlace

EXIT_CODE = "ExitCode"
RESTARTS = {**pods.RESTARTS, EXIT_CODE: messages.RESTART_NEVER}
CLEAN = {"None": "None", "Running": "Running", "All": "All"}
RETRYABLE = range(128, 256)


class ReplicaSpec(Table):
    """Replicas of one type."""

    replicas = Number("replicas", 1, "so many pods, NAME-TYPE-0 and on")
    restart = Word(
        "restartPolicy", RESTARTS, "Never",
        "overrides that of the template; ExitCode: a new pod after 128 to 255, the job fails after 1 to 127",
    )  # fmt: skip
    template = Part("template", pods.Template, "the pods", absent="refused")


class SchedulingPolicy(Table):
    """``schedulingPolicy``: there for operators with a gang scheduler alone; here each job is a gang."""

    least = Number("minAvailable", None, "so many pods start together", 1, here="so many tasks", absent="all")
    queue = Text("queue", "", "the queue", absent="default; here the cluster's default queue")
    resources = Anything("minResources", None, "what must be free", told="the roles' requests count")
    priority = Text("priorityClass", "", "the order in the queue", told="the queue's priority counts")
    timeout_s = Number("scheduleTimeoutSeconds", None, "how long the gang waits", told="the job waits until it fits")


class RunPolicy(metadata.Suspended, metadata.Timed, metadata.Managed):
    """``runPolicy``."""

    clean = Word("cleanPodPolicy", CLEAN, "None", "pods that are kept after the job's end, running ones too",
                 here="tasks that still run are ended; None is told")  # fmt: skip
    backoff = Number("backoffLimit", None, "the job fails at this number of restarts in place of all pods together",
                     here="that of each role by itself; restarts by ExitCode do not count",
                     absent="none: restarts without end")  # fmt: skip
    scheduling = Part("schedulingPolicy", SchedulingPolicy, "the gang")


def read_replica(
    job: JobFile, name: str, spec: ReplicaSpec, default: "RestartInPlace | None" = None, container: str = ""
) -> messages.Role:
    """Role of a replica spec.

    Args:
        default: in place of that of the table.

    Raises:
        FileError: a field is wrong, or it has no container of the name that the origin demands.
    """
    made = role(name, spec.replicas)
    spec.need(ReplicaSpec.template)
    pods.fill_role(job, made, spec.template, container)
    pod = spec.template.pod
    if pod.has(pods.Pod.restart):
        pod.note(pods.Pod.restart, "ignored: that of the replicas counts.")
    made.restart = spec.restart or messages.RESTART_NEVER
    if default is not None:
        made.restart = made.restart if spec.has(ReplicaSpec.restart) else default
        if spec.restart == default and spec.text(ReplicaSpec.restart) != EXIT_CODE:
            spec.same(ReplicaSpec.restart)
    made.restarts_max = 0 if made.restart == messages.RESTART_NEVER else UNLIMITED
    if made.restart != messages.RESTART_NEVER or spec.text(ReplicaSpec.restart) == EXIT_CODE:
        pods.pause_restarts(made)
    if spec.text(ReplicaSpec.restart) == EXIT_CODE:
        made.policies.add(action=messages.RESTART_TASK, exit_codes=list(RETRYABLE))
        job.tasks_rules.restarts_max = UNLIMITED
    return made


def read_run_policy(job: JobFile, policy: RunPolicy, is_queued: bool) -> int | None:
    """Read a run policy; returns backoffLimit, None if it has none."""
    read_clean(policy, RunPolicy.clean)
    metadata.read_times(job, policy.fields)
    metadata.read_suspend(job, policy.fields, is_queued)
    metadata.read_manager(policy.fields)
    return policy.backoff


def read_clean(policy: Table, row: "Word[str]") -> None:
    """Tell that no task outlives its job."""
    if policy.has(row) and row.read(policy.fields) == "None":
        policy.note(row, "tasks that still run when the job is over are ended, as with Running.")
    policy.same(row)


def limit_restarts(job: JobFile, limit: int | None) -> None:
    """Limit restarts in place: at the limit the job fails, so that one less is done."""
    for one in job.roles if limit is not None else ():
        if one.restart != messages.RESTART_NEVER:
            one.restarts_max = max((limit or 0) - 1, 0)


def read_scheduling(job: JobFile, scheduling: SchedulingPolicy, total: int) -> int:
    """Read a scheduling policy; returns the least number of tasks that the job starts with."""
    if scheduling.queue:
        job.add("q", scheduling.queue, scheduling.fields, "queue")
    least = scheduling.least if scheduling.least is not None else total
    if least > total:
        raise scheduling.wrong(SchedulingPolicy.least, f"{least} is more than the {total} tasks of the job.")
    if least == total:
        scheduling.same(SchedulingPolicy.least)
    return least


def end_with_failures(job: JobFile) -> None:
    """Let the job fail with the first task that has failed for good."""
    for one in job.roles:
        one.failed_enough = 1
