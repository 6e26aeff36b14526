"""Job and CronJob of batch/v1, with Kueue's labels: one role whose tasks are the completions."""

import re

from lavactl.job_files.importers.kinds import Shared
from lavactl.job_files.importers.kubernetes import metadata, pods
from lavactl.job_files.model import JobFile, role
from lavactl.job_files.text.fields import Fields
from lavactl.job_files.text.nodes import Mapping
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from protos.common_pb2 import TaskAction

ROLE = "job"
CODE_MAX = 255
BACKOFF = 6
PARTIAL = "kueue.x-k8s.io/job-min-parallelism"
TOPOLOGIES = {
    "kueue.x-k8s.io/podset-required-topology": "rack",
    "kueue.x-k8s.io/podset-preferred-topology": "pack",
}
HOST_LEVEL = "kubernetes.io/hostname"
MODES = {"NonIndexed": False, "Indexed": True}
ACTIONS = {
    "FailJob": messages.TERMINATE_JOB,
    "Ignore": messages.RESTART_TASK,
    "FailIndex": messages.IGNORE,
    "Count": None,
}


def read_cron_job(fields: Fields, _shared: Shared) -> list[JobFile]:
    """The job of a CronJob, to be run once and now."""
    job = metadata.start(fields, "CronJob", "batch-job")
    spec = fields.child("spec")
    metadata.read_schedule(spec, fields)
    template = spec.child("jobTemplate")
    read_spec(job, template.child("spec"), template)
    return [job]


def read_job(fields: Fields, _shared: Shared) -> list[JobFile]:
    """Job of a document."""
    job = metadata.start(fields, "Job of batch/v1", "batch-job")
    if len(job.name) > metadata.LABEL_MAX:
        raise fields.child("metadata").wrong("name", f"a Job's name has at most {metadata.LABEL_MAX} characters.")
    read_spec(job, fields.child("spec"), fields)
    return [job]


def read_spec(job: JobFile, spec: Fields, owner: Fields) -> None:
    """Fill in a job from its specification.

    Raises:
        FileError: a field is wrong, or Kubernetes would refuse the job.
    """
    is_queued = metadata.has_queue_label(owner)
    made = read_role(job, spec, ROLE)
    at_once = min(spec.number("parallelism", 1), made.tasks_max)
    least = at_once if is_queued else 1
    annotations = owner.child("metadata").child("annotations")
    if annotations.has(PARTIAL):
        least = annotations.number(PARTIAL, least, 1, max(at_once, 1))
    annotations.get(PARTIAL)
    made.tasks_min, made.may_be_absent = max(least, 1), False
    made.success_min = made.succeeded_enough  # also where some find no room before the others have ended
    metadata.read_times(job, spec)
    metadata.read_suspend(job, spec, is_queued)
    job.roles = [made]


def read_role(job: JobFile, spec: Fields, name: str) -> messages.Role:
    """Role of a job's specification, with its completions as tasks."""
    parallelism = spec.number("parallelism", 1)
    completions = spec.number("completions", parallelism, 1) if spec.has("completions") else 0
    spec.get("completions")
    if not (completions or parallelism):
        raise spec.wrong("parallelism", "a job without parallelism would never start.")
    is_indexed = spec.word("completionMode", MODES, False)
    if is_indexed and not completions:
        raise spec.wrong("completions", "an indexed job needs completions.")
    made = role(name, completions or parallelism)
    if completions > parallelism:
        spec.note(
            "parallelism",
            f"up to {completions} tasks run at once, as room comes; the job fails if some find none until the others "
            'have ended: a job array (bsub -J "name[1-100]%10") runs one after the other.',
        )
    template = spec.child("template")
    if not spec.has("template"):
        raise spec.wrong("template", "it is missing.")
    pods.fill_role(job, made, template)
    _check_failures(spec, template.child("spec"), is_indexed)
    if is_indexed:
        job.tasks_rules.conventions.add(name="indexed", options=[])
    _read_placement(made, template.child("metadata").child("annotations"))
    _read_ends(made, spec, completions)
    return made


def _check_failures(spec: Fields, pod: Fields, is_indexed: bool) -> None:
    """Refuse what Kubernetes refuses of how a job ends."""
    if pod.text("restartPolicy") not in ("Never", "OnFailure"):
        raise pod.wrong("restartPolicy", "a job needs the restartPolicy Never or OnFailure.")
    for key in ("podFailurePolicy", "backoffLimitPerIndex"):
        if spec.has(key) and pod.text("restartPolicy") != "Never":
            raise pod.wrong("restartPolicy", f"{key} needs the restartPolicy Never.")
    for key in ("backoffLimitPerIndex", "successPolicy"):
        if spec.has(key) and not is_indexed:
            raise spec.wrong(key, "it needs the completionMode Indexed.")
    if spec.has("maxFailedIndexes") and not spec.has("backoffLimitPerIndex"):
        raise spec.wrong("maxFailedIndexes", "it needs a backoffLimitPerIndex.")


def _read_placement(made: messages.Role, annotations: Fields) -> None:
    if all(annotations.has(key) for key in TOPOLOGIES):
        raise annotations.wrong("", f"it has one of {' and '.join(TOPOLOGIES)}, not both.")
    for key, spread in TOPOLOGIES.items():
        level = annotations.text(key)
        if not level:
            continue
        if level == HOST_LEVEL and spread == "rack":
            made.requirement = f"span[hosts=1] {made.requirement}".strip()
            annotations.note(key, f"the tasks of role {made.name} keep to one host.")
        else:
            made.spread = spread
            words = "one rack" if spread == "rack" else "few hosts"
            annotations.note(key, f"the tasks of role {made.name} keep to {words}, in place of one {level}.")


def _read_ends(made: messages.Role, spec: Fields, completions: int) -> None:
    """Read when the job is done and when it has failed: pods that fail are replaced, up to backoffLimit."""
    _read_failures(made, spec)
    made.restart = messages.RESTART_ON_FAILURE
    made.restarts_max = spec.number("backoffLimit", BACKOFF)
    if spec.has("backoffLimitPerIndex"):
        made.restarts_max = spec.number("backoffLimitPerIndex", 0) * made.tasks_max
        spec.note("backoffLimitPerIndex", "the restarts of all tasks are counted together.")
    spec.get("backoffLimitPerIndex")
    made.failed_enough = spec.number("maxFailedIndexes", 0, 0, made.tasks_max) + 1
    made.failed_enough = min(made.failed_enough, made.tasks_max)
    made.succeeded_enough = completions or 1
    policy = spec.child("successPolicy")
    for rule in policy.children("rules"):
        if rule.has("succeededCount"):
            made.succeeded_enough = rule.number("succeededCount", 1, 1, made.tasks_max)
        rule.get("succeededCount")
        if not (rule.has("succeededCount") or rule.has("succeededIndexes")):
            raise rule.wrong("", "a rule has succeededIndexes or a succeededCount, or both.")
        _check_indices(rule, made.tasks_max)
        rule.ignore(("succeededIndexes",), "only how many tasks succeeded counts")
    spec.word("podReplacementPolicy", {word: word for word in ("TerminatingOrFailed", "Failed")}, "")
    spec.ignore(("podReplacementPolicy",), "a task is replaced when it has ended")
    metadata.read_manager(spec)
    if spec.has("selector") and not spec.flag("manualSelector"):
        raise spec.wrong("selector", "it needs manualSelector: true.")
    spec.ignore(("manualSelector", "selector"), "tasks belong to their job")


def _check_indices(rule: Fields, completions: int) -> None:
    """Refuse indices such as ``0,2-3`` that no completion has, or that do not rise."""
    last = -1
    for part in rule.text("succeededIndexes").split(",") if rule.has("succeededIndexes") else ():
        found = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", part)
        first, end = (int(found[1]), int(found[2] or found[1])) if found else (-1, -1)
        if not last < first <= end < completions:
            raise rule.wrong(
                "succeededIndexes",
                f"expected rising indices from 0 to {completions - 1}, such as 0,2-3, found {part[:40]}.",
            )
        last = end


def _read_failures(made: messages.Role, spec: Fields) -> None:
    has_limit = spec.has("backoffLimitPerIndex")
    for rule in spec.child("podFailurePolicy").children("rules"):
        if not rule.has("action"):
            raise rule.wrong("action", "it is missing.")
        action = rule.word("action", ACTIONS, None)
        if rule.text("action") == "FailIndex" and not has_limit:
            raise rule.wrong("action", "FailIndex needs a backoffLimitPerIndex.")
        if rule.has("onExitCodes") == rule.has("onPodConditions"):
            raise rule.wrong("", "a rule is for onExitCodes or for onPodConditions, one of them.")
        if rule.has("onExitCodes"):
            _check_container(rule.child("onExitCodes"), spec.child("template").child("spec"))
            _read_codes(made, rule.child("onExitCodes"), action)
        elif not _read_conditions(made, rule, action):
            rule.note("onPodConditions", "ignored: of conditions only DisruptionTarget happens here.")


def _check_container(codes: Fields, pod: Fields) -> None:
    """Refuse a rule for a container that the pod has not."""
    names = [
        one.text("name")
        for key in ("containers", "initContainers")
        for one in pod.items(key)
        if isinstance(one, Mapping)
    ]
    if (name := codes.text("containerName")) and name not in names:
        raise codes.wrong("containerName", f"there is no container named {name[:80]}.")


def _read_codes(made: messages.Role, codes: Fields, action: "TaskAction | None") -> None:
    if not codes.has("operator"):
        raise codes.wrong("operator", "it is missing.")
    is_in = codes.word("operator", {"In": True, "NotIn": False}, True)
    found = [codes.whole("values", text) for text in codes.texts("values")]
    if found != sorted(set(found)):
        raise codes.wrong("values", "exit codes rise, and stand there once.")
    if not found or (is_in and 0 in found) or not all(0 <= one <= CODE_MAX for one in found):
        raise codes.wrong("values", "expected exit codes from 1 to 255.")
    if not is_in:
        found = [code for code in range(1, CODE_MAX + 1) if code not in found]
    if action is None:
        codes.note("", "as without the rule: the failure counts.")
    else:
        made.policies.add(action=action, exit_codes=found)


def _read_conditions(made: messages.Role, rule: Fields, action: "TaskAction | None") -> bool:
    """Read a rule for evicted pods; False if it is for something else."""
    found = False
    for one in rule.children("onPodConditions"):
        one.required("type")
        found = found or one.text("type") == "DisruptionTarget"
        one.asked |= {"type", "status"}
    if found and action is not None:
        made.policies.add(action=action, events=[messages.TASK_EVICTED])
    return found
