"""Volcano's lifecycle policies, with the checks that its admission makes."""

from lavactl.job_files.text.durations import WORDING, read_duration
from lavactl.job_files.text.fields import Fields, one_of
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
    "RestartPartition": messages.RESTART_ROLE,
    "TerminateJob": messages.TERMINATE_JOB,
    "CompleteJob": messages.COMPLETE_JOB,
    "ResumeJob": messages.RESUME_JOB,
}
INTERNAL_ACTIONS = ("SyncJob", "EnqueueJob", "SyncQueue", "OpenQueue", "CloseQueue")
RESUMING = (ANY, "Unknown")
NEVER = "a job that is being aborted, the only one that ResumeJob is for, meets no {}"
CODE_MAX = 255


def read_policies(fields: Fields) -> list[messages.TaskPolicy]:
    """Policies of a job or of one of its tasks.

    Raises:
        FileError: one of them is wrong, or two are for the same event or exit code.
    """
    seen: set[str] = set()
    found = []
    for one in fields.children("policies"):
        policy = _policy(one, seen)
        if policy is not None:
            found.append(policy)
    if ANY in seen and any(not word.isdigit() and word != ANY for word in seen):
        raise fields.wrong("policies", "a policy for every event (*) stands beside policies for single events.")
    return found


def _policy(fields: Fields, seen: set[str]) -> messages.TaskPolicy | None:
    events = _event_words(fields)
    if bool(events) == fields.has("exitCode"):
        raise fields.wrong("", "a policy is for an event or for an exitCode, one of them.")
    if not fields.has("action"):
        raise fields.wrong("action", "it is missing.")
    policy = messages.TaskPolicy(action=_action(fields), timeout_s=_timeout_s(fields))
    if fields.has("exitCode"):
        _read_code(fields, policy, seen)
        if policy.action == messages.RESUME_JOB:
            fields.note("exitCode", f"ignored: {NEVER.format('exit code')}.")
            return None
        return policy
    fields.get("exitCode")
    return policy if _read_events(fields, policy, events, seen) else None


def _event_words(fields: Fields) -> list[str]:
    words = [fields.text("event")] if fields.has("event") else []
    fields.get("event")
    return words + fields.texts("events")


def _action(fields: Fields) -> "TaskAction":
    word = fields.text("action")
    if word in INTERNAL_ACTIONS:
        raise fields.wrong("action", f"{word} is an internal action; it takes {one_of(ACTIONS)}.")
    if word == "RestartPartition":
        fields.note("action", "all tasks of the role are restarted: lava has no partitions.")
    return fields.word("action", ACTIONS, messages.IGNORE)


def _timeout_s(fields: Fields) -> float:
    node = fields.scalar("timeout", WORDING)
    if node is None:
        return 0.0
    if node.text.isdigit() and int(node.text):
        raise fields.expected("timeout", WORDING, node)  # a number needs its unit
    try:
        return read_duration(node.text)
    except ValueError:
        raise fields.expected("timeout", WORDING, node) from None


def _read_code(fields: Fields, policy: messages.TaskPolicy, seen: set[str]) -> None:
    code = fields.number("exitCode", 0, -(2**31))
    if code == 0:
        raise fields.wrong("exitCode", "0 is no failure: a policy for it is not allowed.")
    if str(code) in seen:
        raise fields.wrong("exitCode", f"there are two policies for exit code {code}.")
    seen.add(str(code))
    if not 0 < code <= CODE_MAX:
        raise fields.wrong("exitCode", f"exit codes are from 1 to {CODE_MAX}.")
    policy.exit_codes.append(code)


def _read_events(fields: Fields, policy: messages.TaskPolicy, words: list[str], seen: set[str]) -> bool:
    """Fill in the events; False if none of them can happen here."""
    key = "event" if isinstance(fields.node.get("event"), Scalar) else "events"
    for word in words:
        if word in INTERNAL_EVENTS:
            raise fields.wrong(key, f"{word} is an internal event; it takes {one_of(EVENTS)}.")
        if word not in EVENTS:
            raise fields.wrong(key, f"expected {one_of(EVENTS)}, found {word}.")
        if word in seen:
            raise fields.wrong(key, f"there are two policies for the event {word}.")
        seen.add(word)
        event = EVENTS[word]
        if event is None:
            fields.note(key, f"ignored: {word} does not happen here.")
        elif policy.action == messages.RESUME_JOB and word not in RESUMING:
            fields.note(key, f"ignored: {NEVER.format(word)}.")
        elif word == "PodPending" and not policy.timeout_s:
            fields.note(key, "ignored: PodPending needs a timeout.")
        else:
            policy.events.append(event)
    return bool(policy.events)
