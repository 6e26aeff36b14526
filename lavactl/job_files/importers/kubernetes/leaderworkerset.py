"""LeaderWorkerSet: each replica is a group of a leader and its workers, and becomes a job of its own."""

import copy

from lavactl.job_files.importers.kinds import Shared
from lavactl.job_files.importers.kubernetes import metadata, pods
from lavactl.job_files.importers.tables import Anything, Number, Part, Table, Text, Word
from lavactl.job_files.model import UNLIMITED, JobFile, role
from lavactl.job_files.text.fields import Fields
from lavactl.wire import messages

LEADER, WORKER = "leader", "worker"
KEY = "leaderworkerset.sigs.k8s.io"
RESTARTS = {
    "RecreateGroupOnPodRestart": True, "RecreateGroupAfterStart": True, "Default": False, "None": False,
}  # fmt: skip
STARTS = {"LeaderCreated": False, "LeaderReady": True}
REPLICAS_MAX = 1000
UNIQUE = "UniquePerReplica"
CHANGED = "a changed file is a new job"


class SubGroups(Table):
    """``subGroupPolicy``."""

    kind = Word("subGroupPolicyType", {one: one for one in ("LeaderWorker", "LeaderExcluded")}, "LeaderWorker",
                "LeaderExcluded: the leader is in no sub-group", told="tasks have no labels")  # fmt: skip
    size = Number("subGroupSize", None, "pods of a sub-group, for labels and placement", 1,
                  here="for the variables that ask for its labels; nothing is placed by it, which is told")  # fmt: skip


class Group(Table):
    """``leaderWorkerTemplate``: a group."""

    leader = Part("leaderTemplate", pods.Template, "the leader's pod", here="role leader", absent="workerTemplate")
    worker = Part("workerTemplate", pods.Template, "the workers' pods; restartPolicy is always Always",
                  here="role worker", absent="refused")  # fmt: skip
    size = Number("size", 1, "pods of a group, its leader among them", 1, here="tasks of a job")
    recreates = Word(
        "restartPolicy", RESTARTS, "RecreateGroupOnPodRestart",
        "any end of a container makes the whole group anew, however it ended; None: the container alone is restarted",
        here="any end of a task restarts the job, without bound, after 10 s, doubling up to 5 min",
    )  # fmt: skip
    parts = Part("subGroupPolicy", SubGroups, "parts of a group that are placed together")
    claims = Anything("volumeClaimTemplates", None, "volumes of each pod", told=pods.FILES)
    kept_claims = Anything("persistentVolumeClaimRetentionPolicy", None, "what becomes of them", told=pods.FILES)
    claim_templates = Anything(
        "resourceClaimTemplates", None, "devices of a group", told="GPUs are asked for by number"
    )


class RollingUpdate(Table):
    """``rollingUpdateConfiguration``."""

    unavailable = Text("maxUnavailable", "1", "groups that may be missing during a change", told=CHANGED)
    surge = Text("maxSurge", "0", "groups that may be added during a change", told=CHANGED)
    partition = Number("partition", 0, "groups from this number on are changed", told=CHANGED)


class Rollout(Table):
    """``rolloutStrategy``."""

    kind = Word("type", {"RollingUpdate": ""}, "RollingUpdate", "how a changed set replaces its groups", told=CHANGED)
    rolling = Part("rollingUpdateConfiguration", RollingUpdate, "its steps")


class Network(Table):
    """``networkConfig``."""

    policy = Word("subdomainPolicy", {one: one for one in ("Shared", UNIQUE)}, "Shared",
                  "the service in the leader's name: the set's, or one of each group")  # fmt: skip


class Spec(Table):
    """``spec`` of a LeaderWorkerSet."""

    replicas = Number(
        "replicas", 1, "so many groups", 0, REPLICAS_MAX, here="so many jobs, NAME-0 and on; 0 is refused"
    )
    group = Part("leaderWorkerTemplate", Group, "each group", absent="refused")
    waits = Word("startupPolicy", STARTS, "LeaderCreated", "LeaderReady: workers are made when their leader is ready")
    rollout = Part("rolloutStrategy", Rollout, "changes of the set")
    network = Part("networkConfig", Network, "names")


class LeaderWorkerSet(metadata.Document):
    """LeaderWorkerSet: a job for each of its groups; as there, a group never ends by itself."""

    spec = Part("spec", Spec, "the set")


def read_job(fields: Fields, _shared: Shared) -> list[JobFile]:
    """Jobs of a document, one for each replica.

    Raises:
        FileError: a field is wrong.
    """
    document = LeaderWorkerSet(fields)
    first = metadata.start(document, "LeaderWorkerSet", "leaderworkerset")
    metadata.check_own_name(fields, first.name)
    spec, group = document.spec, document.spec.group
    group.need(Group.worker)
    _check(spec, group)
    for name in (LEADER, WORKER):
        first.labels[name] = _labels(first.name, name, group, spec.replicas)
    leader = role(LEADER, 1)
    pods.fill_role(first, leader, group.leader if group.has(Group.leader) else group.worker)
    first.roles = [leader]
    if group.size > 1:
        workers = role(WORKER, group.size - 1)
        pods.fill_role(first, workers, group.worker)
        first.roles.append(workers)
    elif group.has(Group.leader):
        group.note(Group.worker, "ignored: a group of one has its leader alone.")
    _read_rules(first, spec, group)
    return _replicas(first, spec, group)


def _read_rules(job: JobFile, spec: Spec, group: Group) -> None:
    """Read what the end of a task leads to: pods of a set are restarted always."""
    recreates = bool(group.recreates)
    for one in job.roles:
        one.restart, one.restarts_max = messages.RESTART_ALWAYS, UNLIMITED
        pods.pause_restarts(one)
        if recreates:
            one.restart, one.restarts_max = messages.RESTART_NEVER, 0
            ends = [messages.TASK_FAILED, messages.TASK_SUCCEEDED, messages.TASK_EVICTED]
            one.policies.add(action=messages.RESTART_JOB, events=ends)
        if one.name == WORKER and spec.waits:
            one.after.append(LEADER)
    if spec.waits and group.size == 1:
        spec.same(Spec.waits)
    if group.fields.text(Group.recreates.name) == "RecreateGroupAfterStart":
        group.same(Group.recreates)  # a job's tasks start together, so that none is pending
    job.tasks_rules.restarts_max = UNLIMITED if recreates else 0
    spec.note(
        None, "as in the origin a task that ends well is started anew, too: the job runs until it is ended, by bkill."
    )


def _check(spec: Spec, group: Group) -> None:
    """Refuse what the set's webhook refuses, and a set that runs nothing."""
    if not spec.replicas:
        raise spec.wrong(Spec.replicas, "the set has no replicas at all.")
    steps = spec.rollout.rolling
    for row, text in ((RollingUpdate.unavailable, steps.unavailable), (RollingUpdate.surge, steps.surge)):
        number = text.removesuffix("%")
        if not (number.isascii() and number.isdigit()) or (number != text and int(number) > 100):
            raise steps.wrong(row, f"expected a number, or up to 100%, found {text[:80]}.")
    if all(text.rstrip("%").strip("0") == "" for text in (steps.unavailable, steps.surge)):
        raise steps.wrong(RollingUpdate.unavailable, "it may not be 0 when maxSurge is 0.")
    if not group.has(Group.parts):
        return
    size, part = group.size, group.parts.size or 1
    if size % part and (size - 1) % part:
        raise group.parts.wrong(SubGroups.size, f"neither {size}, the size, nor {size - 1} is a multiple of {part}.")
    if group.parts.kind == "LeaderExcluded" and (size - 1) % part:
        raise group.parts.wrong(SubGroups.size, f"{size - 1}, the workers, are no multiple of {part}.")
    group.parts.note(SubGroups.size, f"ignored: tasks are placed by their requests, not in sub-groups of {part}.")


def _labels(name: str, own: str, group: Group, replicas: int) -> "dict[str, str]":
    """Labels and annotations of the pods of a role, as words of the shell; the job's name ends with the group."""
    number = '"${LSB_JOBNAME##*-}"' if replicas > 1 else "0"
    leader = f"{name}-{number}"
    values = {
        "name": name,
        "group-index": number,
        "worker-index": '"$LWS_WORKER_INDEX"',
        "size": str(group.size),
        "leader-name": leader,
    }
    found = {f"{KEY}/{key}": word for key, word in values.items()}
    found["metadata.name"] = leader if own == LEADER else f'{leader}-"$LWS_WORKER_INDEX"'
    return found


def _replicas(first: JobFile, spec: Spec, group: Group) -> list[JobFile]:
    replicas = spec.replicas
    if replicas > 1:
        spec.note(Spec.replicas, f"{replicas} groups become {replicas} jobs, each with its own leader.")
    return [_group(first, at, spec.network.policy == UNIQUE, group.size, replicas > 1) for at in range(replicas)]


def _group(first: JobFile, at: int, is_unique: bool, size: int, is_one_of_some: bool) -> JobFile:
    """Job of one group."""
    job = copy.copy(first)
    job.rules = messages.TaskRules()
    job.rules.CopyFrom(first.tasks_rules)
    options = [f"size={size}", f"group={at}"] + [f"subdomain={first.name}-{at}"] * is_unique
    job.rules.conventions.add(name="leaderworkerset", options=options)
    job.options = [(key, f"{value}-{at}" if key == "J" and is_one_of_some else value) for key, value in first.options]
    job.notes, job.lacks = [], list(first.lacks)
    return job
