"""JobSet: replicated jobs as roles, with the order of their starts and what their ends mean for the whole."""

from lavactl.job_files.importers.kinds import Shared
from lavactl.job_files.importers.kubernetes import batch, metadata
from lavactl.job_files.model import JobFile
from lavactl.job_files.text.fields import Fields, one_of
from lavactl.wire import messages

ORDERS = {"AnyOrder": False, "InOrder": True}
FAILURES = ("FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts")
REASONS = (
    "BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes", "MaxFailedIndexesExceeded", "PodFailurePolicy",
)  # fmt: skip
OPERATORS = {"All": True, "Any": False}


def read_job(fields: Fields, _shared: Shared) -> list[JobFile]:
    """Job of a document.

    Raises:
        FileError: a field is wrong, or a replicated job depends on one that does not stand before it.
    """
    job = metadata.start(fields, "JobSet", "jobset")
    spec = fields.child("spec")
    parts = spec.children("replicatedJobs")
    if not parts:
        raise spec.wrong("replicatedJobs", "a JobSet needs replicated jobs.")
    options = [_part(job, one) for one in parts]
    _read_order(job, spec, parts)
    _read_ends(job, spec)
    is_queued = metadata.has_queue_label(fields)
    metadata.read_suspend(job, spec, is_queued)
    metadata.read_times(job, spec)
    metadata.read_manager(spec)
    leader = spec.child("coordinator").text("replicatedJob")
    if leader and leader not in [one.name for one in job.roles]:
        raise spec.child("coordinator").wrong("replicatedJob", f"there is no replicated job named {leader}.")
    spec.ignore(("coordinator",), "lava runs the job")
    spec.child("coordinator").asked |= {"jobIndex", "podIndex"}
    network = spec.child("network")
    if not network.flag("enableDNSHostnames", True):
        options.append("network=no")
    if subdomain := network.text("subdomain"):
        metadata.check_label(network, "subdomain", subdomain)
        options.append(f"subdomain={subdomain}")
    network.asked.add("publishNotReadyAddresses")
    del job.tasks_rules.conventions[:]
    job.tasks_rules.conventions.add(name="jobset", options=options)
    job.roles = [one for one in job.roles if one.tasks_max]
    return [job]


def _part(job: JobFile, fields: Fields) -> str:
    """Add the role of a replicated job; returns the option that says how many tasks one of its replicas has."""
    name = fields.required("name")
    metadata.check_label(fields, "name", name)
    if any(one.name == name for one in job.roles):
        raise fields.wrong("name", f"there are two replicated jobs named {name}.")
    replicas = fields.number("replicas", 1)
    longest = f"{job.name}-{name}-{max(replicas - 1, 0)}"
    if len(longest) > metadata.LABEL_MAX:
        raise fields.wrong("name", f"its jobs would have names such as {longest}, longer than 63 characters.")
    template = fields.child("template")
    template.get("metadata")
    made = batch.read_role(job, batch.JobSpec(template.child("spec")), name)
    pods = made.completions or made.tasks_max
    made.tasks_max *= replicas
    made.completions *= replicas
    made.tasks_min = made.tasks_max
    made.may_be_absent = made.tasks_min == 0
    made.succeeded_enough = 0
    made.success_min = pods * replicas
    made.restarts_max *= replicas
    inner = template.child("spec")
    inner.ignore(("suspend",), "the JobSet's own counts")
    if inner.has("activeDeadlineSeconds"):
        limit = inner.number("activeDeadlineSeconds", 0, 1)
        made.run_limit_s = min(limit, made.run_limit_s or limit)
        inner.note("activeDeadlineSeconds", "each run of a task is limited by it.")
    inner.get("activeDeadlineSeconds")
    job.roles.append(made)
    return f"{name}.pods={pods}"


def _read_order(job: JobFile, spec: Fields, parts: list[Fields]) -> None:
    names = [one.name for one in job.roles]
    in_order = spec.child("startupPolicy").word("startupPolicyOrder", ORDERS, False)
    if in_order and (named := next((part for part in parts if part.has("dependsOn")), None)):
        raise named.wrong("dependsOn", "it does not go with startupPolicy InOrder.")
    for at, (part, made) in enumerate(zip(parts, job.roles, strict=True)):
        if in_order and at:
            made.after.append(names[at - 1])
        for one in part.children("dependsOn"):
            name = one.required("name")
            if name not in names[:at]:
                raise one.wrong("name", f"no replicated job before this one is named {name}.")
            if not one.has("status"):
                raise one.wrong("status", "it is missing.")
            before = made.after_done if one.word("status", {"Ready": False, "Complete": True}, False) else made.after
            if name not in before:
                before.append(name)


def _read_ends(job: JobFile, spec: Fields) -> None:
    success = spec.child("successPolicy")
    targets = success.texts("targetReplicatedJobs")
    names = {one.name for one in job.roles}
    for name in targets:
        if name not in names:
            raise success.wrong("targetReplicatedJobs", f"there is no replicated job named {name}.")
    is_all = success.word("operator", OPERATORS, True)
    counted = [one for one in job.roles if not targets or one.name in targets]
    if not is_all or (targets and len(counted) == 1):
        for one in counted:
            one.succeeded_enough = one.completions or one.tasks_max
    elif targets:
        success.note("targetReplicatedJobs", "the job is done when all of its tasks have ended.")
    failure = spec.child("failurePolicy")
    restarts = failure.number("maxRestarts", 0)
    seen: set[str] = set()
    for rule in failure.children("rules"):
        if not rule.has("action"):
            raise rule.wrong("action", "it is missing.")
        rule.word("action", {one: one for one in FAILURES}, "")
        for reason in rule.texts("onJobFailureReasons"):
            if reason not in REASONS:
                raise rule.wrong("onJobFailureReasons", f"expected {one_of(REASONS)}, found {reason[:80]}.")
        if (rule_name := rule.text("name")) and rule_name in seen:
            raise rule.wrong("name", f"there are two rules named {rule_name}.")
        seen.add(rule.text("name"))
        for name in rule.texts("targetReplicatedJobs"):
            if name not in names:
                raise rule.wrong("targetReplicatedJobs", f"there is no replicated job named {name}.")
        rule.note("", "ignored: every failed job counts.")
    failure.word("restartStrategy", {"Recreate": "", "BlockingRecreate": ""}, "")
    failure.ignore(("restartStrategy",), "all tasks end before any starts again")
    job.tasks_rules.restarts_max = restarts
    for one in job.roles:
        one.failed_enough = 0 if restarts else 1
        if restarts:
            one.policies.add(action=messages.RESTART_JOB, events=[messages.TASK_FAILED])
