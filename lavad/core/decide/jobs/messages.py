"""Messages that users and programs post to a job (bpost): kept in the store; only the first word of the external
status is in memory, for conditions."""

from lavad.core import commands as c
from lavad.core.activity_events import JobMessagePosted
from lavad.core.cluster import Cluster
from lavad.core.decide.decision import Decision, is_owner
from lavad.core.decide.jobs.control import find
from lavad.core.model import FINAL
from lavad.core.model.ranges import Ranges
from lavad.core.model.reasons import Refused
from lavad.core.state.records import ArrayRecord, Job


def post(cluster: Cluster, command: c.PostMessage, now: float) -> Decision:
    """Post a message: to a job that has not ended, by its owner or an administrator; data by the owner alone."""
    record = find(cluster, command.target, command.caller)
    index = index_of(record, command.target.indices)
    if _is_over(record, index):
        raise Refused("Job has already finished")
    if command.data and not is_owner(record, command.caller):
        raise Refused("User permission denied: only the owner of a job attaches data to it")
    words = (command.number, command.caller.user, command.text, command.level, command.data)
    return Decision([JobMessagePosted(now, record.id, index, *words)], reply=index)


def index_of(record: Job | ArrayRecord, indices: Ranges | None) -> int:
    """The element that a target names; 0 for a plain job, and for an array as a whole.

    Raises:
        Refused: several elements are named, or one that does not exist.
    """
    if indices is None or not isinstance(record, ArrayRecord):
        return 0
    if len(indices) != 1:
        raise Refused("One element of the array is expected: messages are those of a job or of one element")
    index = indices.first()
    if record.state_of(index) is None:
        raise Refused("No matching job found")
    return index


def _is_over(record: Job | ArrayRecord, index: int) -> bool:
    if isinstance(record, Job):
        return record.state in FINAL
    return record.state_of(index) in FINAL if index else record.is_over
