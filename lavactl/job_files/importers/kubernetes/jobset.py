"""JobSet: replicated jobs as roles, with the order of their starts and what their ends mean for the whole.

Each of the jobs that a role stands for is a group of its tasks: it has its own restarts, and can be restarted alone.
"""

import re
from typing import NamedTuple

from lavactl.job_files.importers.kinds import Shared
from lavactl.job_files.importers.kubernetes import batch, metadata, pods
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
from lavactl.job_files.model import UNLIMITED, JobFile
from lavactl.job_files.text.fields import Fields, one_of
from lavactl.job_files.text.merging import node_of, with_defaults
from lavactl.job_files.text.nodes import Mapping
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.job_files.text.merging import Plain
    from protos.common_pb2 import TaskAction

KEY = "jobset.sigs.k8s.io"
EXCLUSIVE = f"alpha.{KEY}/exclusive-topology"
STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
ORDERS = {"AnyOrder": False, "InOrder": True}
# (what is restarted, whether that counts); a set that fails is not restarted.
ACTIONS = {
    "FailJobSet": (messages.TERMINATE_JOB, True),
    "RestartJobSet": (messages.RESTART_JOB, True),
    "RestartJobSetAndIgnoreMaxRestarts": (messages.RESTART_JOB, False),
    "RestartJob": (messages.RESTART_GROUP, True),
    "RestartJobAndIgnoreMaxRestarts": (messages.RESTART_GROUP, False),
}
FAIL, RESTART = ACTIONS["FailJobSet"], ACTIONS["RestartJobSet"]
BACKOFF, DEADLINE, BY_POLICY = "BackoffLimitExceeded", "DeadlineExceeded", "PodFailurePolicy"
INDEXES, TOO_MANY_INDEXES = "FailedIndexes", "MaxFailedIndexesExceeded"
REASONS = (BACKOFF, DEADLINE, INDEXES, TOO_MANY_INDEXES, BY_POLICY)
OPERATORS = {"All": True, "Any": False}
IN_PLACE = "InPlaceRestart"
BACKOFF_MOST = 2**31 - 1
DEPENDENCIES_MOST = 5
_RULE_NAME = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]{0,126}[A-Za-z0-9_])?")
_SUFFIX = len("-abcde")  # of a pod's name

# -- fields ------------------------------------------------------------------------------------------------------------


class Annotations(metadata.Annotations):
    """``metadata.annotations`` of a JobSet."""

    page = ""
    exclusive = Text(EXCLUSIVE, "", "each job alone in a domain of this level",
                     told="tasks are placed by their requests; nothing is kept for one job of a set")  # fmt: skip


class Metadata(metadata.Metadata):
    """``metadata`` of a JobSet."""

    page = ""
    annotations = Part("annotations", Annotations, "settings of other programs")


class Dependency(Table):
    """One of ``dependsOn``."""

    name = Required("name", "a replicated job before this one")
    is_done = Word("status", {"Ready": False, "Complete": True}, None, "Ready: all its pods run; Complete: all its jobs"
                   " have succeeded", absent="refused")  # fmt: skip


class JobLabels(Table):
    """``metadata.labels`` of the jobs of a replicated job."""

    step = Text(STEP, "", "in a TrainingRuntime: the step of a TrainJob that it is", moot=True)
    others = Others("other objects select by them", told="tasks have no labels")


class JobAnnotations(Table):
    """``metadata.annotations`` of the jobs of a replicated job."""

    exclusive = Annotations.exclusive
    others = Others("programs beside the cluster read them", told="tasks have no labels")


class JobMetadata(Table):
    """``metadata`` of the jobs of a replicated job."""

    labels = Part("labels", JobLabels, "labels of each job")
    annotations = Part("annotations", JobAnnotations, "annotations of each job")
    others = Others("written by the controller", told="tasks are named by their job and role")


class JobSpec(batch.JobSpec):
    """``spec`` of the jobs of a replicated job."""

    is_indexed = Word("completionMode", batch.MODES, "Indexed", "Indexed: a success of each index, told by a variable")
    completions = Number(
        "completions", None, "so many pods must succeed", 1, absent="1 without parallelism; else refused if Indexed"
    )
    backoff = Number("backoffLimit", batch.BACKOFF, "so many failures of the pods of one job, then that job fails",
                     here="so many restarts of the tasks of each job of the set")  # fmt: skip
    deadline_s = Number("activeDeadlineSeconds", None, "the job fails so long after its start", 1,
                        here="each run of a task is limited by it, which is told")  # fmt: skip
    suspend = Flag("suspend", False, "the controller sets it", told="the JobSet's own counts")
    ttl_s = Number("ttlSecondsAfterFinished", None, "the job is deleted so long after its end",
                   told="the JobSet's own counts: tasks stay in the record of their job")  # fmt: skip
    template = Part(
        "template", pods.Template, "the pods", here="the tasks; restartPolicy is OnFailure where it is absent",
        absent="refused",
    )  # fmt: skip


class JobTemplate(Table):
    """``template`` of a replicated job."""

    metadata = Part("metadata", JobMetadata, "labels and annotations of each job")
    spec = Part("spec", JobSpec, "each job")


class ReplicatedJob(Table):
    """One of ``replicatedJobs``: a role, each of whose jobs is a group of its tasks."""

    name = Required("name", "its name", here="the role's name")
    replicas = Number("replicas", 1, "so many jobs", here="so many groups of tasks")
    group = Text("groupName", "default", "jobs of one group have numbers of their own in labels",
                 here="for the variables that ask for these labels")  # fmt: skip
    after = Parts("dependsOn", Dependency, "replicated jobs that are ready, or done, before its jobs are made",
                  here="before its tasks start; they have their places from the beginning")  # fmt: skip
    template = Part("template", JobTemplate, "its jobs")


class Success(Table):
    """``successPolicy``."""

    is_all = Word("operator", OPERATORS, "All", "All or Any of the jobs of the targets")
    targets = Texts("targetReplicatedJobs", None, "replicated jobs that count", absent="all")


class Rule(Table):
    """One of ``rules`` of ``failurePolicy``: the first one that applies counts."""

    name = Text("name", "", "a name for messages, of its own", moot=True, absent="failurePolicyRule and its number")
    action = Word("action", ACTIONS, None, "what a failed job leads to", absent="refused",
                  here="the same; also RestartJob..., which the JobSet controller has behind a gate")  # fmt: skip
    targets = Texts("targetReplicatedJobs", None, "replicated jobs that it is for", absent="all")
    reasons = Texts("onJobFailureReasons", None, "reasons that it is for", absent="all",
                    here="BackoffLimitExceeded: no restarts left; DeadlineExceeded: the run limit; PodFailurePolicy: an"
                         " exit code of a rule FailJob")  # fmt: skip
    patterns = Texts("onJobFailureMessagePatterns", None, "patterns of the message that it is for", absent="any",
                     here="a rule with patterns never applies, which is told")  # fmt: skip


class Failure(Table):
    """``failurePolicy``; without it the first failed job fails the set."""

    restarts_max = Number("maxRestarts", 0, "so many restarts, at once, then the set fails",
                          here="so many; each waits as one of the failed task would: 10 s, doubling")  # fmt: skip
    strategy = Word(
        "restartStrategy", {one: one for one in ("Recreate", "BlockingRecreate", IN_PLACE)}, "Recreate",
        "how pods are replaced", here="all tasks end before any starts again; on their hosts",
    )  # fmt: skip
    rules = Parts("rules", Rule, "what a failed job leads to", absent="RestartJobSet")


class Startup(Table):
    """``startupPolicy``."""

    in_order = Word("startupPolicyOrder", ORDERS, "AnyOrder",
                    "InOrder: jobs are made when those before them run")  # fmt: skip


class Network(Table):
    """``network``."""

    has_names = Flag("enableDNSHostnames", True, "pods have names SET-ROLE-JOB-POD.SUBDOMAIN")
    subdomain = Text("subdomain", "", "the last part of these names", absent="the set's name")
    early = Flag("publishNotReadyAddresses", True, "names of pods that are not ready are known, too",
                 told="tasks have names from the beginning")  # fmt: skip


class Coordinator(Table):
    """``coordinator``: its name is the label and annotation jobset.sigs.k8s.io/coordinator."""

    role = Required("replicatedJob", "its replicated job")
    job = Number("jobIndex", 0, "its job")
    pod = Number("podIndex", 0, "its pod")


class Spec(metadata.Suspended, metadata.Timed, metadata.Managed):
    """``spec`` of a JobSet."""

    deadline_s = Number("activeDeadlineSeconds", None, "no field of a JobSet", told="no field of a JobSet: its jobs"
                        " have it")  # fmt: skip
    jobs = Parts("replicatedJobs", ReplicatedJob, "its jobs", here="roles of one job, which starts when all their tasks"
                 " have places", absent="refused")  # fmt: skip
    startup = Part("startupPolicy", Startup, "order of starts")
    success = Part("successPolicy", Success, "when the set is done")
    failure = Part("failurePolicy", Failure, "what a failed job leads to")
    network = Part("network", Network, "names of pods")
    coordinator = Part("coordinator", Coordinator, "a pod that others ask for", absent="none")
    claims = Anything("volumeClaimPolicies", None, "volumes that are made for the set", told=pods.FILES)
    group_claims = Anything("scheduling", None, "how pods are scheduled together",
                            told="the job starts when all tasks have places")  # fmt: skip


class JobSet(metadata.Document):
    """JobSet: one job, whose roles are its replicated jobs."""

    metadata = Part("metadata", Metadata, "name, labels, annotations")
    spec = Part("spec", Spec, "the set")


# -- reading -----------------------------------------------------------------------------------------------------------


def read_job(fields: Fields, _shared: Shared) -> list[JobFile]:
    """Job of a document.

    Raises:
        FileError: a field is wrong, or a replicated job depends on one that does not stand before it.
    """
    document = JobSet(fields)
    job = metadata.start(document, "JobSet", "jobset")
    spec = document.spec
    read_spec(job, spec)
    metadata.read_suspend(job, spec.fields, bool(document.metadata.labels.queue))
    ttl = spec.ttl_s
    if ttl is not None:
        job.tasks_rules.has_ttl, job.tasks_rules.ttl_s = True, float(ttl)
    metadata.read_manager(spec.fields)
    return [job]


def read_spec(job: JobFile, spec: Spec) -> None:
    """Fill in a job from the specification of a JobSet.

    Raises:
        FileError: a field is wrong, or the JobSet would be refused.
    """
    parts = spec.jobs
    if not parts:
        raise spec.wrong(Spec.jobs, "a JobSet needs replicated jobs.")
    coordinator = _coordinator(job, spec)
    labels = _labels(job, parts, coordinator)
    inner = [_part(job, part, labels[part.name]) for part in parts]
    options = [f"{one.name}.pods={one.group or one.success_min}" for one in job.roles]
    _check_coordinator(job, spec)
    _read_order(job, spec, parts)
    _read_failures(job, spec, inner)
    _read_success(job, spec)
    network = spec.network
    options += ["network=no"] * (not network.has_names)
    if network.subdomain:
        metadata.check_label(network.fields, Network.subdomain.name, network.subdomain)
        options.append(f"subdomain={network.subdomain}")
    del job.tasks_rules.conventions[:]
    job.tasks_rules.conventions.add(name="jobset", options=options)
    job.roles = [one for one in job.roles if one.tasks_max]


def _defaulted(spec: Fields) -> Fields:
    """Specification of a job with what the JobSet's own webhook writes into it, and a Job's where both are absent."""
    defaults: dict[str, Plain] = {"template": {"spec": {"restartPolicy": "OnFailure"}}}
    if not (spec.has("parallelism") or spec.has("completions")):
        defaults["completions"] = "1"
    given = node_of(defaults, spec.place())
    assert isinstance(given, Mapping)
    if not isinstance(spec.node.get("template"), Mapping):
        del given.entries["template"]
    return spec.reading.open(with_defaults(spec.node, given), spec.path)


def _part(job: JobFile, part: ReplicatedJob, labels: "dict[str, str]") -> JobSpec:
    """Add the role of a replicated job; returns the specification of its jobs."""
    name, replicas = part.name, part.replicas
    metadata.check_label(part.fields, ReplicatedJob.name.name, name)
    if any(one.name == name for one in job.roles):
        raise part.wrong(ReplicatedJob.name, f"there are two replicated jobs named {name}.")
    template = part.template
    _ = template.metadata.labels, template.metadata.annotations  # told, one by one
    given = template.fields.child(JobTemplate.spec.name)
    inner = JobSpec(_defaulted(given))
    given.asked |= {*given.node.entries}  # they are read with the defaults
    job.labels[name] = labels
    made = batch.read_role(job, inner, name)
    batch.drop_counts(made)
    inner.note_if(JobSpec.backoff_each, "the restarts of all tasks of a job are counted together.")
    pod = inner.template.pod
    if pod.text(pods.Pod.restart) == "OnFailure" or not inner.backoff:
        pod.same(pods.Pod.restart)
    tasks = made.completions or made.tasks_max
    _check_names(job, part, tasks)
    _multiply(made, tasks, replicas)
    made.restarts_max = min(made.restarts_max, UNLIMITED)
    if inner.deadline_s is not None:
        made.run_limit_s = min(inner.deadline_s, made.run_limit_s or inner.deadline_s)
        inner.note(JobSpec.deadline_s, "each run of a task is limited by it.")
    job.roles.append(made)
    return inner


def _multiply(made: messages.Role, tasks: int, replicas: int) -> None:
    """Let a role of one job stand for several."""
    made.tasks_max *= replicas
    made.completions *= replicas
    made.tasks_min = made.tasks_max
    made.group = tasks if replicas > 1 else 0
    made.may_be_absent = made.tasks_min == 0
    made.succeeded_enough = 0
    made.success_min = tasks * replicas


def _check_names(job: JobFile, part: ReplicatedJob, tasks: int) -> None:
    """Refuse names of which those of the jobs and pods would be none."""
    longest = f"{job.name}-{part.name}-{max(part.replicas - 1, 0)}"
    pod = f"{longest}-{max(tasks - 1, 0)}"
    if len(longest) > metadata.LABEL_MAX or len(pod) + _SUFFIX > metadata.LABEL_MAX:
        raise part.wrong(
            ReplicatedJob.name,
            f"its jobs would have names such as {longest}, longer than 63 characters with the pod's.",
        )


def _read_order(job: JobFile, spec: Spec, parts: list[ReplicatedJob]) -> None:
    names = [one.name for one in job.roles]
    in_order = spec.startup.in_order
    for at, (part, made) in enumerate(zip(parts, job.roles, strict=True)):
        before = part.after
        if before and in_order:
            raise part.wrong(ReplicatedJob.after, "it does not go with startupPolicy InOrder.")
        if before and not at:
            raise part.wrong(ReplicatedJob.after, "the first replicated job depends on none.")
        if len(before) > DEPENDENCIES_MOST:
            raise part.wrong(ReplicatedJob.after, f"it has more than {DEPENDENCIES_MOST} entries.")
        if in_order and at:
            made.after.append(names[at - 1])
        for one in before:
            if one.name not in names[:at]:
                raise one.wrong(Dependency.name, f"no replicated job before this one is named {one.name}.")
            one.need(Dependency.is_done)
            roles = made.after_done if one.is_done else made.after
            if one.name not in roles:
                roles.append(one.name)


# -- ends --------------------------------------------------------------------------------------------------------------


def _read_success(job: JobFile, spec: Spec) -> None:
    """Read when the set is done, whatever the other jobs do."""
    success = spec.success
    targets = success.targets
    names = [one.name for one in job.roles]
    _check_targets(success, Success.targets.name, targets, names)
    counted = [one for one in job.roles if not targets or one.name in targets]
    if success.is_all:
        if len(counted) < len(job.roles):
            job.tasks_rules.needs_each = len(counted) > 1
            for one in counted:
                one.succeeded_enough = one.success_min
        return
    for one in counted:
        one.succeeded_enough = one.group or one.success_min
        if one.group > 1:
            success.note(Success.is_all, f"role {one.name} is done with {one.group} of its tasks, of whichever job.")


def _check_targets(table: Table, key: str, targets: list[str], names: list[str]) -> None:
    for name in targets:
        if name not in names:
            raise table.fields.wrong(key, f"there is no replicated job named {name}.")


class Effective(NamedTuple):
    """Rule of the failure policy, by its meaning."""

    action: "tuple[TaskAction, bool]"
    roles: list[str]  # none: all
    reasons: list[str]  # none: all


def _read_failures(job: JobFile, spec: Spec, parts: list[JobSpec]) -> None:
    """Read what a failed job of the set leads to, as policies of each role."""
    failure, names = spec.failure, [one.name for one in job.roles]
    _check_rules(failure, names)
    job.tasks_rules.restarts_max = min(failure.restarts_max, UNLIMITED)
    is_in_place = failure.strategy == IN_PLACE
    if failure.strategy == "BlockingRecreate":
        failure.same(Failure.strategy)
    for part, made in zip(parts, job.roles, strict=True):
        if is_in_place:
            _check_in_place(part)
            made.restart, made.restarts_max = messages.RESTART_NEVER, 0
        if not spec.has(Spec.failure):
            made.failed_enough = 1
    if spec.has(Spec.failure):
        _fill_policies(job, failure, [part.backoff_each is not None for part in parts])
    for part, made in zip(parts, job.roles, strict=True):
        _read_final_codes(job, part, made)


def _read_final_codes(job: JobFile, part: JobSpec, made: messages.Role) -> None:
    """Let exit codes that fail a job fail it at once, although its tasks restart in place."""
    codes = {code for one in made.policies if one.action == messages.TERMINATE_JOB for code in one.exit_codes}
    if made.restarts_max and codes:
        job.tasks_rules.final_codes.extend(sorted(codes - {*job.tasks_rules.final_codes}))
        if len(job.roles) > 1:
            part.note(JobSpec.failures, "the exit codes of FailJob are final for all roles of the job.")
    restarting = (messages.RESTART_JOB, messages.RESTART_GROUP)
    if made.restarts_max and any(one.exit_codes and one.action in restarting for one in made.policies):
        part.note(JobSpec.failures, "the exit codes of FailJob are heard when the restarts of their job are used up.")


def _check_rules(failure: Failure, names: list[str]) -> None:
    seen: set[str] = set()
    for rule in failure.rules:
        rule.need(Rule.action)
        name = rule.name
        if name and not _RULE_NAME.fullmatch(name):
            raise rule.wrong(Rule.name, f"{name[:80]!r} is no name of a rule: it has letters, digits and _ , :")
        if name and name in seen:
            raise rule.wrong(Rule.name, f"there are two rules named {name}.")
        seen.add(name)
        _check_targets(rule, Rule.targets.name, rule.targets, names)
        for reason in rule.reasons:
            if reason not in REASONS:
                raise rule.wrong(Rule.reasons, f"expected {one_of(REASONS)}, found {reason[:80]}.")
        if rule.patterns:
            rule.note(Rule.patterns, "the rule is ignored: a job of lava has no such message.")


def _fill_policies(job: JobFile, failure: Failure, per_index: list[bool]) -> None:
    """Fill in the policies of each role, and remember what of the rules makes no difference to them."""
    given = [rule for rule in failure.rules if not rule.patterns]
    rules = [Effective(rule.action or RESTART, rule.targets, rule.reasons) for rule in given]

    def made_by(some: list[Effective]) -> "list[list[messages.TaskPolicy]]":
        return [_policies(role, some, each) for role, each in zip(job.roles, per_index, strict=True)]

    found = made_by(rules)
    if found == made_by([]):
        failure.same(Failure.rules)
    for at, (rule, one) in enumerate(zip(given, rules, strict=True)):
        for row, changed in ((Rule.targets, one._replace(roles=[])), (Rule.reasons, one._replace(reasons=[]))):
            if found == made_by([*rules[:at], changed, *rules[at + 1 :]]):
                rule.same(row)
    for made, policies in zip(job.roles, found, strict=True):
        del made.policies[:]
        made.policies.extend(policies)
        made.failed_enough = 0


def _policies(made: messages.Role, rules: list[Effective], is_per_index: bool) -> "list[messages.TaskPolicy]":
    """Policies of a role for each way in which one of its jobs can fail; those of its own that end the job first."""
    found = []
    for own in made.policies:
        policy = messages.TaskPolicy()
        policy.CopyFrom(own)
        if own.action == messages.TERMINATE_JOB:
            _act(policy, _action(rules, made.name, BY_POLICY))
        found.append(policy)
    reason = (TOO_MANY_INDEXES if made.failed_enough > 1 else INDEXES) if is_per_index else BACKOFF
    events = [(reason, messages.TASK_FAILED)]
    if made.run_limit_s:
        events.insert(0, (DEADLINE, messages.TASK_TIMEOUT))
    for why, event in events:
        policy = messages.TaskPolicy(events=[event])
        _act(policy, _action(rules, made.name, why))
        found.append(policy)
    return found


def _action(rules: list[Effective], role: str, reason: str) -> "tuple[TaskAction, bool]":
    """Action of the first rule for a job of that role that failed for that reason."""
    for rule in rules:
        if role in (rule.roles or [role]) and reason in (rule.reasons or [reason]):
            return rule.action
    return RESTART


def _act(policy: "messages.TaskPolicy", action: "tuple[TaskAction, bool]") -> None:
    policy.action, is_counted = action
    policy.uncounted = not is_counted


def _check_in_place(inner: JobSpec) -> None:
    """Refuse what the JobSet's webhook refuses of a set that restarts in place."""
    if inner.fields.text(JobSpec.backoff.name) != str(BACKOFF_MOST):
        raise inner.wrong(JobSpec.backoff, f"it must be {BACKOFF_MOST} with the restartStrategy {IN_PLACE}.")
    if inner.fields.text("podReplacementPolicy") != "Failed":
        raise inner.wrong(JobSpec.replacement, f"it must be Failed with the restartStrategy {IN_PLACE}.")
    if not inner.has(JobSpec.completions) or inner.fields.text("parallelism") != inner.fields.text("completions"):
        raise inner.wrong(JobSpec.completions, f"it must be the parallelism with the restartStrategy {IN_PLACE}.")


# -- labels ------------------------------------------------------------------------------------------------------------


def _coordinator(job: JobFile, spec: Spec) -> str:
    """Name of the coordinator; empty if there is none."""
    if not spec.has(Spec.coordinator):
        return ""
    found = spec.coordinator
    for row in (Coordinator.role, Coordinator.job, Coordinator.pod):
        found.same(row)  # nothing but its label knows it
    subdomain = spec.network.subdomain or job.name
    return f"{job.name}-{found.role}-{found.job}-{found.pod}.{subdomain}"


def _check_coordinator(job: JobFile, spec: Spec) -> None:
    if not spec.has(Spec.coordinator):
        return
    found = spec.coordinator
    role = next((one for one in job.roles if one.name == found.role), None)
    if role is None:
        raise found.wrong(Coordinator.role, f"there is no replicated job named {found.role}.")
    size = role.group or role.success_min
    for row, given, most in (
        (Coordinator.job, found.job, role.success_min // size),
        (Coordinator.pod, found.pod, size),
    ):
        if given >= most:
            raise found.wrong(row, f"role {role.name} has {most} of them, from 0.")


def _labels(job: JobFile, parts: list[ReplicatedJob], coordinator: str) -> "dict[str, dict[str, str]]":
    """Labels and annotations of the pods of each replicated job, as words of the shell."""
    found: dict[str, dict[str, str]] = {}
    before, in_group = 0, dict[str, int]()
    total = sum(part.replicas for part in parts)
    for part in parts:
        group, replicas = part.group, part.replicas
        metadata.check_label(part.fields, ReplicatedJob.group.name, group)
        part.same(ReplicatedJob.group)  # nothing but its labels know it
        place = in_group.get(group, 0)
        values = {
            "jobset-name": job.name,
            "replicatedjob-name": part.name,
            "replicatedjob-replicas": str(replicas),
            "global-replicas": str(total),
            "job-index": '"$JOB_INDEX"',
            "job-global-index": f'"$((JOB_INDEX + {before}))"',
            "group-name": group,
            "group-replicas": str(sum(one.replicas for one in parts if one.group == group)),
            "job-group-index": f'"$((JOB_INDEX + {place}))"',
            "job-key": f'"$(printf %s default/{job.name}-{part.name}-"$JOB_INDEX" | sha1sum | cut -d" " -f1)"',
        }
        if coordinator:
            values["coordinator"] = coordinator
        found[part.name] = {f"{KEY}/{name}": word for name, word in values.items()}
        found[part.name]["metadata.name"] = f'{job.name}-{part.name}-"$JOB_INDEX"-"$JOB_COMPLETION_INDEX"'
        before, in_group[group] = before + replicas, place + replicas
    return found
