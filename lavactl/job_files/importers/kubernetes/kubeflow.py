"""Fields that Kubeflow's jobs share: replica specs, restart policies, and the run policy."""

from lavactl.job_files.importers.kubernetes import metadata, pods
from lavactl.job_files.model import UNLIMITED, JobFile, role
from lavactl.job_files.text.fields import Fields
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from protos.common_pb2 import RestartInPlace

EXIT_CODE = "ExitCode"
RESTARTS = {**pods.RESTARTS, EXIT_CODE: messages.RESTART_NEVER}
CLEAN = {"None": "None", "Running": "Running", "All": "All"}
RETRYABLE = range(128, 256)


def read_replica(
    job: JobFile, name: str, fields: Fields, default: "RestartInPlace", container: str = "", replicas: int = 1
) -> messages.Role:
    """Role of a replica spec.

    Raises:
        FileError: a field is wrong, or it has no container of the name that the origin demands.
    """
    made = role(name, fields.number("replicas", replicas))
    if not fields.has("template"):
        raise fields.wrong("template", "it is missing.")
    pods.fill_role(job, made, fields.child("template"), container)
    made.restart = fields.word("restartPolicy", RESTARTS, default)
    made.restarts_max = 0 if made.restart == messages.RESTART_NEVER else UNLIMITED
    if fields.text("restartPolicy") == EXIT_CODE:
        made.policies.add(action=messages.RESTART_TASK, exit_codes=list(RETRYABLE))
    return made


def read_run_policy(job: JobFile, policy: Fields, is_queued: bool) -> int | None:
    """Read a run policy; returns backoffLimit, None if it has none."""
    clean = policy.word("cleanPodPolicy", CLEAN, "")
    if clean == "None":
        policy.note("cleanPodPolicy", "tasks that still run when the job is over are ended, as with Running.")
    metadata.read_times(job, policy)
    metadata.read_suspend(job, policy, is_queued)
    metadata.read_manager(policy)
    limit = policy.number("backoffLimit", 0) if policy.has("backoffLimit") else None
    policy.get("backoffLimit")
    return limit


def read_scheduling(job: JobFile, policy: Fields, total: int) -> int:
    """Read a scheduling policy; returns the least number of tasks that the job starts with."""
    scheduling = policy.child("schedulingPolicy")
    if scheduling.has("queue"):
        metadata.set_queue(job, scheduling, "queue")
    scheduling.ignore(("minResources", "priorityClass"), "the roles' requests and the queue's priority count")
    scheduling.ignore(("scheduleTimeoutSeconds",), "the job waits until it fits")
    least = scheduling.number("minAvailable", total, 1)
    if least > total:
        raise scheduling.wrong("minAvailable", f"{least} is more than the {total} tasks of the job.")
    return least


def end_with_failures(job: JobFile) -> None:
    """Let the job fail with the first task that has failed for good."""
    for one in job.roles:
        one.failed_enough = 1
