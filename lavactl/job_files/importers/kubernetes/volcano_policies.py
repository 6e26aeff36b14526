"""Volcano's lifecycle policies, with the checks that its admission makes."""

from lavactl.job_files.importers.tables import Number, Table, Text, Texts, Word
from lavactl.job_files.text.durations import WORDING, read_duration
from lavactl.job_files.text.fields import one_of
from lavactl.job_files.text.nodes import Scalar
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from protos.common_pb2 import TaskAction

ANY = "*"
# An event of None is accepted there, and nothing that happens here.
EVENTS = {
    ANY: messages.TASK_ANY,
    "PodFailed": messages.TASK_FAILED,
    "PodEvicted": messages.TASK_EVICTED,
    "PodPending": messages.TASK_PENDING,
    "TaskCompleted": messages.ROLE_COMPLETED,
    "TaskFailed": messages.ROLE_FAILED,
    "Unknown": messages.HOST_LOST,
    "JobUpdated": None,
}
INTERNAL_EVENTS = ("OutOfSync", "CommandIssued", "PodRunning")
ACTIONS = {
    "AbortJob": messages.ABORT_JOB,
    "RestartJob": messages.RESTART_JOB,
    "RestartTask": messages.RESTART_ROLE,
    "RestartPod": messages.RESTART_TASK,
    "RestartPartition": messages.RESTART_GROUP,
    "TerminateJob": messages.TERMINATE_JOB,
    "CompleteJob": messages.COMPLETE_JOB,
    "ResumeJob": messages.RESUME_JOB,
}
INTERNAL_ACTIONS = ("SyncJob", "EnqueueJob", "SyncQueue", "OpenQueue", "CloseQueue")
RESUMING = (ANY, "Unknown")
NEVER = "a job that is being aborted, the only one that ResumeJob is for, meets no {}"
CODE_MAX = 255


class Policy(Table):
    """One of ``policies``, of a job or of a task."""

    event = Text("event", "", "the event that it is for; a policy has events or an exitCode")
    events = Texts("events", None, "several events")
    code = Number("exitCode", None, "the exit code of the first container that it is for; 0 is refused", -(2**31))
    action = Word("action", ACTIONS, None, "what is done; the first policy that applies counts, of task, then job",
                  absent="refused; of an exitCode nothing is done")  # fmt: skip
    timeout = Text("timeout", "", "the action waits for so long; without it PodPending is ignored", absent="at once")


def read_policies(table: Table, policies: list[Policy]) -> list[messages.TaskPolicy]:
    """Policies of a job or of one of its tasks.

    Raises:
        FileError: one of them is wrong, or two are for the same event or exit code.
    """
    seen: set[str] = set()
    found = []
    for one in policies:
        policy = _policy(one, seen)
        if policy is not None:
            found.append(policy)
    if ANY in seen and any(not word.isdigit() and word != ANY for word in seen):
        raise table.fields.wrong("policies", "a policy for every event (*) stands beside policies for single events.")
    return found


def _policy(one: Policy, seen: set[str]) -> messages.TaskPolicy | None:
    events = ([one.event] if one.event else []) + one.events
    if bool(events) == one.has(Policy.code):
        raise one.wrong(None, "a policy is for an event or for an exitCode, one of them.")
    policy = messages.TaskPolicy(timeout_s=_timeout_s(one))
    if one.has(Policy.code):
        _read_code(one, policy, seen)
        if not one.has(Policy.action):
            one.note(None, "ignored: without an action nothing is done.")
            return None
    policy.action = _action(one)
    if not one.has(Policy.code):
        return policy if _read_events(one, policy, events, seen) else None
    if policy.action == messages.RESUME_JOB:
        one.note(Policy.code, f"ignored: {NEVER.format('exit code')}.")
        return None
    return policy


def _action(one: Policy) -> "TaskAction":
    one.need(Policy.action)
    word = one.text(Policy.action)
    if word in INTERNAL_ACTIONS:
        raise one.wrong(Policy.action, f"{word} is an internal action; it takes {one_of(ACTIONS)}.")
    return one.action or messages.IGNORE


def _timeout_s(one: Policy) -> float:
    fields = one.fields
    node = fields.scalar("timeout", WORDING)
    if node is None:
        return 0.0
    if node.text.isdigit() and int(node.text):
        raise fields.expected("timeout", WORDING, node)  # a number needs its unit
    try:
        return read_duration(node.text)
    except ValueError:
        raise fields.expected("timeout", WORDING, node) from None


def _read_code(one: Policy, policy: messages.TaskPolicy, seen: set[str]) -> None:
    code = one.code or 0
    if code == 0:
        raise one.wrong(Policy.code, "0 is no failure: a policy for it is not allowed.")
    if str(code) in seen:
        raise one.wrong(Policy.code, f"there are two policies for exit code {code}.")
    seen.add(str(code))
    if not 0 < code <= CODE_MAX:
        raise one.wrong(Policy.code, f"exit codes are from 1 to {CODE_MAX}.")
    policy.exit_codes.append(code)


def _read_events(one: Policy, policy: messages.TaskPolicy, words: list[str], seen: set[str]) -> bool:
    """Fill in the events; False if none of them can happen here."""
    key = "event" if isinstance(one.fields.node.get("event"), Scalar) else "events"
    for word in words:
        if word in INTERNAL_EVENTS:
            raise one.fields.wrong(key, f"{word} is an internal event; it takes {one_of(EVENTS)}.")
        if word not in EVENTS:
            raise one.fields.wrong(key, f"expected {one_of(EVENTS)}, found {word}.")
        if word in seen:
            raise one.fields.wrong(key, f"there are two policies for the event {word}.")
        seen.add(word)
        event = EVENTS[word]
        why = _never(word, policy) if event is not None else f"{word} does not happen here"
        if event is None or why:
            one.note(None if len(words) == 1 else Policy.events, f"ignored: {why}.")
        else:
            policy.events.append(event)
    return bool(policy.events)


def _never(word: str, policy: messages.TaskPolicy) -> str:
    """Reason for which an event leads to nothing; empty if it does not."""
    if policy.action == messages.RESUME_JOB and word not in RESUMING:
        return NEVER.format(word)
    return "PodPending needs a timeout" if word == "PodPending" and not policy.timeout_s else ""
