"""LeaderWorkerSet: each replica is a group of a leader and its workers, and becomes a job of its own."""

import copy

from lavactl.job_files.importers.kinds import Shared
from lavactl.job_files.importers.kubernetes import metadata, pods
from lavactl.job_files.model import UNLIMITED, JobFile, role
from lavactl.job_files.text.fields import Fields
from lavactl.wire import messages

LEADER, WORKER = "leader", "worker"
RESTARTS = {
    "RecreateGroupOnPodRestart": True, "RecreateGroupAfterStart": True, "Default": False, "None": False,
}  # fmt: skip
STARTS = {"LeaderCreated": False, "LeaderReady": True}
REPLICAS_MAX = 1000


def read_job(fields: Fields, _shared: Shared) -> list[JobFile]:
    """Jobs of a document, one for each replica.

    Raises:
        FileError: a field is wrong.
    """
    first = metadata.start(fields, "LeaderWorkerSet", "leaderworkerset")
    spec = fields.child("spec")
    group = spec.child("leaderWorkerTemplate")
    size = group.number("size", 1, 1)
    if not group.has("workerTemplate"):
        raise group.wrong("workerTemplate", "it is missing.")
    leader = role(LEADER, 1)
    has_own = group.has("leaderTemplate")
    pods.fill_role(first, leader, group.child("leaderTemplate" if has_own else "workerTemplate"))
    first.roles = [leader]
    if size > 1:
        workers = role(WORKER, size - 1)
        pods.fill_role(first, workers, group.child("workerTemplate"))
        first.roles.append(workers)
    group.get("leaderTemplate"), group.get("workerTemplate")
    _read_rules(first, spec, group)
    first.tasks_rules.conventions.add(name="leaderworkerset", options=[f"size={size}"])
    return _replicas(first, spec)


def _read_rules(job: JobFile, spec: Fields, group: Fields) -> None:
    recreates = group.word("restartPolicy", RESTARTS, True)
    waits = spec.word("startupPolicy", STARTS, False)
    for one in job.roles:
        if recreates:
            one.restart, one.restarts_max = messages.RESTART_NEVER, 0
            one.policies.add(action=messages.RESTART_JOB, events=[messages.TASK_FAILED, messages.TASK_EVICTED])
        else:
            one.restart, one.restarts_max = messages.RESTART_ALWAYS, UNLIMITED
        if one.name == WORKER and waits:
            one.after.append(LEADER)
    job.tasks_rules.restarts_max = UNLIMITED if recreates else 0
    rollout = spec.child("rolloutStrategy")
    rollout.word("type", {"RollingUpdate": ""}, "")
    steps = rollout.child("rollingUpdateConfiguration")
    if all(steps.text(key, "1").rstrip("%") == "0" for key in ("maxUnavailable", "maxSurge")):
        raise steps.wrong("maxUnavailable", "it may not be 0 when maxSurge is 0.")
    spec.ignore(("rolloutStrategy",), "a changed file is a new job")
    steps.asked.add("partition")
    spec.child("networkConfig").word("subdomainPolicy", {"Shared": "", "UniquePerReplica": ""}, "")
    spec.ignore(("networkConfig",), "tasks are named below the job")
    sub = group.child("subGroupPolicy")
    size, part = group.number("size", 1, 1), sub.number("subGroupSize", 1, 1)
    if size % part and (size - 1) % part:
        raise sub.wrong("subGroupSize", f"neither {size}, the size, nor {size - 1} is a multiple of {part}.")
    sub.word("subGroupPolicyType", {"LeaderWorker": "", "LeaderExcluded": ""}, "")
    group.ignore(("subGroupPolicy", "volumeClaimTemplates"), "lava has none")


def _replicas(first: JobFile, spec: Fields) -> list[JobFile]:
    replicas = spec.number("replicas", 1, 0, REPLICAS_MAX)
    if not replicas:
        raise spec.wrong("replicas", "the set has no replicas at all.")
    if replicas == 1:
        return [first]
    spec.note("replicas", f"{replicas} groups become {replicas} jobs, each with its own leader.")
    found = []
    for at in range(replicas):
        job = copy.copy(first)
        job.rules = messages.TaskRules()
        job.rules.CopyFrom(first.tasks_rules)
        job.rules.owner_name = f"{first.name}-{at}"
        job.options = [(name, f"{value}-{at}" if name == "J" else value) for name, value in first.options]
        job.notes, job.lacks = [], list(first.lacks)
        found.append(job)
    return found
