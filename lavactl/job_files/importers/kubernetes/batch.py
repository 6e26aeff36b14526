"""Job and CronJob of batch/v1, with Kueue's labels: one role whose tasks are the completions, so many at once."""

import re

from lavactl.job_files.importers.kinds import Shared
from lavactl.job_files.importers.kubernetes import metadata, pods
from lavactl.job_files.importers.tables import Anything, Flag, Number, Part, Parts, Table, Text, Texts, Word
from lavactl.job_files.model import JobFile, role
from lavactl.job_files.text.fields import Fields
from lavactl.job_files.text.nodes import Mapping
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from protos.common_pb2 import TaskEvent

ROLE = "job"
CODE_MAX = 255
BACKOFF = 6
BACKOFF_MAX_S = 600.0  # between two pods of a Job; a node's containers are restarted after 300 s at most
PARTIAL = "kueue.x-k8s.io/job-min-parallelism"
MODES = {"NonIndexed": False, "Indexed": True}
ACTIONS = {
    "FailJob": messages.TERMINATE_JOB,
    "Ignore": messages.RESTART_TASK,
    "FailIndex": messages.IGNORE,
    "Count": messages.RESTART_TASK,
}
COUNT = "Count"


REPLACEMENTS = {"TerminatingOrFailed": "TerminatingOrFailed", "Failed": "Failed"}


class ExitCodes(Table):
    """``onExitCodes`` of a rule of ``podFailurePolicy``."""

    container = Text(
        "containerName", "", "of this container alone", here="that of the task; another is told", absent="any"
    )
    operator = Word("operator", {"In": True, "NotIn": False}, None, "how values are meant", absent="refused")
    values = Texts("values", None, "exit codes, rising", absent="refused")


class Condition(Table):
    """One of ``onPodConditions`` of a rule of ``podFailurePolicy``."""

    kind = Text("type", "", "a condition of the pod", here="DisruptionTarget: the task was evicted; others are told",
                absent="refused")  # fmt: skip
    status = Text("status", "True", "its state", here="True; another never applies, which is told")


class FailureRule(Table):
    """One of ``rules`` of ``podFailurePolicy``."""

    action = Word("action", ACTIONS, None, "FailJob, FailIndex, Ignore (not counted) or Count", absent="refused")
    codes = Part("onExitCodes", ExitCodes, "exit codes that it is for")
    conditions = Parts("onPodConditions", Condition, "conditions that it is for")


class FailurePolicy(Table):
    """``podFailurePolicy``."""

    rules = Parts("rules", FailureRule, "the first that applies counts", here="policies of the role")


class SuccessRule(Table):
    """One of ``rules`` of ``successPolicy``."""

    count = Number("succeededCount", None, "so many indices have succeeded", 1, here="so many tasks")
    indices = Text("succeededIndexes", "", "these indices have succeeded",
                   told="only how many tasks succeeded counts")  # fmt: skip


class SuccessPolicy(Table):
    """``successPolicy``."""

    rules = Parts("rules", SuccessRule, "the job is done as soon as one is met")


class JobSpec(metadata.Suspended, metadata.Timed, metadata.Managed):
    """``spec`` of a Job."""

    parallelism = Number("parallelism", 1, "so many pods at once, never more than completions still owed",
                         here="so many tasks at once; 0 is refused")  # fmt: skip
    completions = Number(
        "completions", None, "so many pods must succeed", 1,
        absent="1 without parallelism; else the first success stops new pods",
    )  # fmt: skip
    is_indexed = Word("completionMode", MODES, "NonIndexed", "Indexed: a success of each index, told by a variable")
    backoff = Number("backoffLimit", BACKOFF, "so many failures of all pods together, then the job fails",
                     here="so many restarts of all tasks together")  # fmt: skip
    backoff_each = Number("backoffLimitPerIndex", None, "so many failures of each index",
                          here="so many restarts of each task")  # fmt: skip
    failed_max = Number("maxFailedIndexes", None, "more failed indices end the job", here="more failed tasks end it")
    failures = Part("podFailurePolicy", FailurePolicy, "failures that are final or do not count")
    success = Part("successPolicy", SuccessPolicy, "ends the job before all indices succeeded")
    replacement = Word("podReplacementPolicy", REPLACEMENTS, None, "when a pod is replaced",
                       told="a task is replaced when it has ended",
                       absent="TerminatingOrFailed; Failed with podFailurePolicy")  # fmt: skip
    manual_selector = Flag("manualSelector", False, "the selector is the user's",
                           told="tasks belong to their job")  # fmt: skip
    selector = Anything("selector", None, "written by the server; refused without manualSelector",
                   told="tasks belong to their job")  # fmt: skip
    scheduling = Anything("schedulingGroup", None, "the group that pods are scheduled with",
                     told="each job is a gang by itself where Kueue's label asks for it")  # fmt: skip
    template = Part("template", pods.Template, "the pods; restartPolicy must be OnFailure or Never", absent="refused")


class JobAnnotations(metadata.Annotations):
    """``metadata.annotations`` of a Job."""

    page = ""
    partial = Number(PARTIAL, None, "Kueue admits the job with so many pods at least", 1,
                     here="the job starts with so many tasks at least")  # fmt: skip
    equal = Flag("kueue.x-k8s.io/job-completions-equal-parallelism", False,
                 "completions follow a changed parallelism", told="the number of tasks is not changed")  # fmt: skip


class JobMetadata(metadata.Metadata):
    """``metadata`` of a Job."""

    page = ""
    annotations = Part("annotations", JobAnnotations, "settings of Kueue and of other programs")


class Job(metadata.Document):
    """Job of batch/v1: one role whose tasks are the completions."""

    metadata = Part("metadata", JobMetadata, "name, labels, annotations")
    spec = Part("spec", JobSpec, "the job")


class JobTemplate(Table):
    """``jobTemplate`` of a CronJob."""

    metadata = Part("metadata", JobMetadata, "labels and annotations of each Job")
    spec = Part("spec", JobSpec, "the Job")


class CronJobSpec(metadata.Schedule):
    """``spec`` of a CronJob."""

    template = Part("jobTemplate", JobTemplate, "the Jobs that it makes", here="the job")


class CronJob(metadata.Document):
    """CronJob of batch/v1: its job is run once, and now."""

    spec = Part("spec", CronJobSpec, "schedule and job")


def read_cron_job(fields: Fields, _shared: Shared) -> list[JobFile]:
    """The job of a CronJob, to be run once and now."""
    document = CronJob(fields)
    job = metadata.start(document, "CronJob", "batch-job")
    metadata.read_schedule(document.spec, document.metadata)
    template = document.spec.template
    read_spec(job, template.spec, template.metadata)
    return [job]


def read_job(fields: Fields, _shared: Shared) -> list[JobFile]:
    """Job of a document."""
    document = Job(fields)
    job = metadata.start(document, "Job of batch/v1", "batch-job")
    if len(job.name) > metadata.LABEL_MAX:
        raise document.metadata.wrong(JobMetadata.name, f"a Job's name has at most {metadata.LABEL_MAX} characters.")
    read_spec(job, document.spec, document.metadata)
    return [job]


def read_spec(job: JobFile, spec: JobSpec, owner: JobMetadata) -> None:
    """Fill in a job from its specification.

    Raises:
        FileError: a field is wrong, or Kubernetes would refuse the job.
    """
    is_queued = bool(owner.labels.queue)
    made = read_role(job, spec, ROLE)
    at_once = made.tasks_max
    least = at_once if is_queued else 1
    if owner.annotations.has(JobAnnotations.partial):
        least = owner.annotations.fields.number(PARTIAL, least, 1, max(at_once, 1))
    made.tasks_min, made.may_be_absent = max(least, 1), False
    if made.tasks_min < at_once:  # all are to run, also those that find no room at the start
        made.completions = made.completions or at_once
    if spec.backoff_each is not None:
        made.group, made.restarts_max = 1, spec.backoff_each
        drop_counts(made)
        final = [one for one in made.policies if one.action in (messages.TERMINATE_JOB, messages.IGNORE)]
        job.tasks_rules.final_codes.extend(sorted({code for one in final for code in one.exit_codes}))
    elif spec.has(JobSpec.failures):
        _restart_by_rules(job, made, spec.backoff)
    metadata.read_times(job, spec.fields)
    metadata.read_suspend(job, spec.fields, is_queued)
    job.roles = [made]


def drop_counts(made: messages.Role) -> None:
    """Drop rules that only say that a failure counts, where tasks restart in place: there each does."""
    kept = [one for one in made.policies if one.action != messages.RESTART_TASK or one.uncounted]
    del made.policies[:]
    made.policies.extend(kept)


def _restart_by_rules(job: JobFile, made: messages.Role, limit: int) -> None:
    """Restart failed tasks by a policy behind those of the file, which come before a restart there."""
    made.restart, made.restarts_max = messages.RESTART_NEVER, 0
    made.policies.add(action=messages.RESTART_TASK, events=[messages.TASK_FAILED])
    job.tasks_rules.restarts_max = limit


def read_role(job: JobFile, spec: JobSpec, name: str) -> messages.Role:
    """Role of a job's specification: at most ``parallelism`` tasks at once, until its completions have succeeded."""
    parallelism = spec.parallelism
    completions = spec.completions or int(not spec.has(JobSpec.parallelism))
    if not parallelism:
        raise spec.wrong(JobSpec.parallelism, "a job without parallelism would never start.")
    is_indexed = bool(spec.is_indexed)
    if is_indexed and not spec.completions:
        raise spec.wrong(JobSpec.completions, "an indexed job needs completions.")
    if completions == parallelism == 1:
        spec.same(JobSpec.completions)
    made = role(name, min(completions or parallelism, parallelism))
    if completions > parallelism:
        made.completions = completions
    spec.need(JobSpec.template)
    pods.fill_role(job, made, spec.template)
    _check_failures(spec, spec.template.pod, is_indexed)
    if is_indexed:
        job.tasks_rules.conventions.add(name="indexed", options=[])
    _read_ends(made, spec, completions)
    return made


def _check_failures(spec: JobSpec, pod: pods.Pod, is_indexed: bool) -> None:
    """Refuse what Kubernetes refuses of how a job ends."""
    policy = pod.text(pods.Pod.restart)
    if policy not in ("Never", "OnFailure"):
        raise pod.wrong(pods.Pod.restart, "a job needs the restartPolicy Never or OnFailure.")
    for key in (JobSpec.failures.name, JobSpec.backoff_each.name):
        if spec.fields.has(key) and policy != "Never":
            raise pod.wrong(pods.Pod.restart, f"{key} needs the restartPolicy Never.")
    for key in (JobSpec.backoff_each.name, JobSpec.success.name):
        if spec.fields.has(key) and not is_indexed:
            raise spec.fields.wrong(key, "it needs the completionMode Indexed.")
    if spec.has(JobSpec.failed_max) and not spec.has(JobSpec.backoff_each):
        raise spec.wrong(JobSpec.failed_max, "it needs a backoffLimitPerIndex.")


def _read_ends(made: messages.Role, spec: JobSpec, completions: int) -> None:
    """Read when the job is done and when it has failed: pods that fail are replaced, up to backoffLimit."""
    total = made.completions or made.tasks_max
    _read_failures(made, spec)
    made.restart = spec.template.pod.restart or messages.RESTART_NEVER
    retry(made, spec.backoff)
    if spec.backoff_each is not None:
        made.restarts_max = spec.backoff_each * total
    is_endless = spec.backoff_each is not None and spec.failed_max is None
    made.failed_enough = 0 if is_endless else min((spec.failed_max or 0) + 1, total)
    made.succeeded_enough = completions
    made.success_min = completions or 1  # of a work queue any: its other tasks run to their end
    for rule in spec.success.rules:
        if rule.count is not None:
            made.succeeded_enough = rule.fields.number("succeededCount", 1, 1, total)
        if rule.count is None and not rule.indices:
            raise rule.wrong(None, "a rule has succeededIndexes or a succeededCount, or both.")
        _check_indices(rule, total)
    metadata.read_manager(spec.fields)
    if spec.has(JobSpec.selector) and not spec.manual_selector:
        raise spec.wrong(JobSpec.selector, "it needs manualSelector: true.")


def retry(made: messages.Role, limit: int) -> None:
    """Restart tasks that fail: new pods in place of failed ones up to the limit.

    With OnFailure the containers restart, and the job fails when their restarts reach the limit: one less.
    """
    is_in_place = made.restart == messages.RESTART_ON_FAILURE
    made.restarts_max = max(limit - 1, 0) if is_in_place else limit
    made.restart = messages.RESTART_ON_FAILURE
    pods.pause_restarts(made, 300.0 if is_in_place else BACKOFF_MAX_S)


def _check_indices(rule: SuccessRule, completions: int) -> None:
    """Refuse indices such as ``0,2-3`` that no completion has, or that do not rise."""
    last = -1
    for part in rule.indices.split(",") if rule.indices else ():
        found = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", part)
        first, end = (int(found[1]), int(found[2] or found[1])) if found else (-1, -1)
        if not last < first <= end < completions:
            raise rule.wrong(
                SuccessRule.indices,
                f"expected rising indices from 0 to {completions - 1}, such as 0,2-3, found {part[:40]}.",
            )
        last = end


def _read_failures(made: messages.Role, spec: JobSpec) -> None:
    has_limit = spec.has(JobSpec.backoff_each)
    for rule in spec.failures.rules:
        rule.need(FailureRule.action)
        action = rule.action
        if rule.text(FailureRule.action) == "FailIndex" and not has_limit:
            raise rule.wrong(FailureRule.action, "FailIndex needs a backoffLimitPerIndex.")
        if rule.has(FailureRule.codes) == bool(rule.conditions):
            raise rule.wrong(None, "a rule is for onExitCodes or for onPodConditions, one of them.")
        if rule.has(FailureRule.codes):
            is_for_task = _is_for_task(rule.codes, spec.template.pod)
            codes = _read_codes(rule.codes, is_for_task)
            _add(made, rule, messages.TaskPolicy(action=action or messages.IGNORE, exit_codes=codes))
        else:
            events = _read_conditions(rule)
            _add(made, rule, messages.TaskPolicy(action=action or messages.IGNORE, events=events))


def _add(made: messages.Role, rule: FailureRule, policy: messages.TaskPolicy) -> None:
    """Add the policy of a rule, if it is for something that happens here; a failure that is ignored is not counted."""
    policy.uncounted = policy.action == messages.RESTART_TASK and rule.text(FailureRule.action) != COUNT
    if policy.exit_codes or policy.events:
        made.policies.append(policy)


def _is_for_task(codes: ExitCodes, pod: pods.Pod) -> bool:
    """True for a rule about the container that is the task; one that the pod has not is refused."""
    names = [
        [one.text("name") for one in pod.fields.items(key) if isinstance(one, Mapping)]
        for key in ("containers", "initContainers")
    ]
    if codes.container and codes.container not in names[0] + names[1]:
        raise codes.wrong(ExitCodes.container, f"there is no container named {codes.container[:80]}.")
    codes.same(ExitCodes.container)
    return codes.container in ("", names[0][0])


def _read_codes(codes: ExitCodes, is_for_task: bool) -> list[int]:
    """Exit codes of a rule; none of one that is for another container than the task's."""
    codes.need(ExitCodes.operator)
    found = [codes.fields.whole("values", text) for text in codes.values]
    if found != sorted(set(found)):
        raise codes.wrong(ExitCodes.values, "exit codes rise, and stand there once.")
    if not found or (codes.operator and 0 in found) or not all(0 <= one <= CODE_MAX for one in found):
        raise codes.wrong(ExitCodes.values, "expected exit codes from 1 to 255.")
    if not codes.operator:
        found = [code for code in range(1, CODE_MAX + 1) if code not in found]
    if not is_for_task:
        codes.note(ExitCodes.container, f"ignored: container {codes.container} is not run.")
    return found if is_for_task else []


def _read_conditions(rule: FailureRule) -> "list[TaskEvent]":
    """Events of a rule for conditions of pods: those of evicted ones."""
    met = False
    for one in rule.conditions:
        one.need(Condition.kind)
        met = met or (one.kind == "DisruptionTarget" and one.status == "True")
    if not met:
        rule.note(FailureRule.conditions, "ignored: of conditions only DisruptionTarget happens here.")
    return [messages.TASK_EVICTED] if met else []
