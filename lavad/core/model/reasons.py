"""Pending reasons and end reasons: LSF's numbers and sentences where it has them.

The two errors of the core, too, by what the caller can do about them.
"""

from dataclasses import dataclass
from typing import NamedTuple


class Refused(Exception):
    """Refusal of a request for good; the message is one sentence for the user."""


class NotNow(Exception):
    """Refusal of a request for now; the message says what it waits for."""


class Reason(NamedTuple):
    """A kind of pending reason: its number and its sentence, which may get details of a job or a host."""

    code: int
    text: str
    # True: a host that it applies to is no candidate, however idle: closed, away, or not what the job may use.
    rules_out: bool = False
    # True: no host would start the job while it holds, so that its wait is not counted as that of an eligible job.
    is_ineligible: bool = False

    def saying(self, text: str) -> "Reason":
        """Return the same reason with another sentence."""
        return self._replace(text=text)

    def with_details(self, details: str) -> "Reason":
        """Return the same reason with details in brackets behind its sentence."""
        return self.saying(f"{self.text} ({details})")


@dataclass(frozen=True, slots=True)
class PendingReason:
    """A pending reason. ``hosts`` are those that it applies to; empty if it is about the job, its queue or its user."""

    reason: Reason
    hosts: tuple[str, ...] = ()
    advice: str = ""

    @property
    def code(self) -> int:
        """Number of the reason."""
        return self.reason.code

    @property
    def text(self) -> str:
        """Sentence of the reason."""
        return self.reason.text


FOUND_ON_HOST = "found on its host after the database had been replaced"  # an attempt that the database lacked

NEW_JOB = Reason(1, "New job is waiting for scheduling")
BEGIN_TIME = Reason(2, "The job has a specified start time", is_ineligible=True)
DEPENDENCY = Reason(3, "Job dependency condition not satisfied", is_ineligible=True)
NEVER_SATISFIED = Reason(4, "Dependency condition invalid or never satisfied", is_ineligible=True)
# Of pre-execution commands, by whose they are: the job's, its queue's on the first host, and on each host.
_QUEUES = Reason(306, "The queue's pre-exec command exited with non-zero status")
PRE_EXEC = {
    "job": Reason(6, "The job's pre-exec command exited with non-zero status"),
    "queue": _QUEUES,
    "host": _QUEUES,
}
REQUIREMENT = Reason(1001, "Job's resource requirements not satisfied", rules_out=True)
EXCLUSIVE = Reason(1002, "Job's requirement for exclusive execution not satisfied")
REQUEUED = Reason(23, "Requeue the job for the next run")
ARRAY_LIMIT = Reason(38, "The job array has reached its running element limit")
JOB_GROUP = Reason(45, "The job group limit has been reached")
POOL_LIMIT = Reason(343, "The capacity pool has reached its maximum")
BUDGET = Reason(344, "What is left of the budget is not enough for the job")
QUEUE_INACTIVE = Reason(301, "The queue is inactivated by the administrator", is_ineligible=True)
IN_CONTAINER = Reason(350, "The queue's jobs run in a container, in which lava cannot keep the job", is_ineligible=True)
QUEUE_WINDOW = Reason(302, "The queue is inactivated by its time windows", is_ineligible=True)
WINDOW_TOO_SHORT = Reason(315, "Job will not finish before queue's run window is closed", is_ineligible=True)
DEADLINE_TOO_NEAR = Reason(1010, "Job will not finish on the host before job's termination deadline")
QUEUE_SLOTS = Reason(303, "The queue has reached its job slot limit")
QUEUE_USER_SLOTS = Reason(304, "User has reached the per-user job slot limit of the queue")
QUEUE_USER_SLOTS_PARALLEL = Reason(305, "Not enough per-user job slots of the queue for the parallel job")
QUEUE_SLOTS_PARALLEL = Reason(314, "The queue has not enough job slots for the parallel job")
USER_SLOTS = Reason(601, "The user has reached his/her job slot limit")
GROUP_SLOTS = Reason(602, "One of the user's groups has reached its job slot limit")
USER_SLOTS_PARALLEL = Reason(603, "The user has not enough job slots for the parallel job")
GROUP_SLOTS_PARALLEL = Reason(604, "One of the user's groups has not enough job slots for the parallel job")
NO_SHARE = Reason(699, "The user has no share of the queue any more")
NAMED_LIMIT = Reason(700, "A limit has been reached")  # its sentence names the limit
TOGETHER = Reason(1351, "Not enough hosts with what its tasks need together")
SPAN = Reason(312, "Not enough hosts to meet the job's spanning requirement")
HELD_BY_USER = Reason(607, "The job was suspended by the user while pending")
HELD_BY_ADMIN = Reason(610, "The job was suspended by LSF admin or root while pending")
SUSPENDED_BY_USER = "The job was suspended by user"
SUSPENDED_BY_ADMIN = "The job was suspended by LSF admin or root"
CLOSED = Reason(1301, "Closed by LSF administrator", rules_out=True)
LOCKED = Reason(1302, "Host is locked by LSF administrator")
BUSY = Reason(2001, "Load threshold reached")
QUEUE_BUSY = Reason(2001, "Load threshold of the queue reached")  # followed by the load indices
NO_SLOTS = Reason(1303, "Not enough job slot(s)")
HOST_WINDOW = Reason(1304, "Dispatch windows closed", rules_out=True)
SLOT_LIMIT = Reason(1305, "Job slot limit reached")
QUEUE_PROCESSOR = Reason(1306, "Queue's per-CPU job slot limit reached")
QUEUE_HOST = Reason(1307, "Queue's per-host job slot limit reached")
USER_PROCESSOR = Reason(1308, "User's per-CPU job slot limit reached")
HOST_USER = Reason(1309, "Host's per-user job slot limit reached")
GROUP_PROCESSOR = Reason(1324, "User group's per-CPU job slot limit reached")
NOT_OF_QUEUE = Reason(1310, "Not usable to the queue", rules_out=True)
NOT_NAMED = Reason(1311, "Not specified in job submission", rules_out=True)
JUST_STARTED = Reason(1314, "Just started a job recently")
RECENT_FAILURE = Reason(1314, "Host is avoided for a while after a failed start")
UNREACHABLE = Reason(1601, "Unable to reach slave batch server", rules_out=True)
RUNNING_EXCLUSIVE = Reason(1322, "Running an exclusive job")
MEMORY = Reason(2601 + 10, "Job's requirements for reserving resource (mem) not satisfied")
PORTS = Reason(1348, "A port that the job's tasks name is in use on the host")
PORTS_APART = Reason(1349, "Not enough hosts for tasks that name the same port")
RESERVING = 2601  # plus the resource's number
GPUS = Reason(2601 + 300, "Not enough GPUs on the hosts")
GPU_TOPOLOGY = Reason(2601 + 301, "Free GPUs are not linked or placed as the job requires")
GPU_MODE = Reason(2601 + 302, "The host's agent can't set the compute mode of its GPUs", rules_out=True)
MPS = Reason(2601 + 303, "The host has no MPS control daemon (nvidia-cuda-mps-control)", rules_out=True)
NEARNESS = Reason(2601 + 304, "No free GPUs near the processors that the job would be bound to (aff=no lifts this)")
GPU_MODEL = Reason(2601 + 305, "The host has no GPU of the model that the job asks for", rules_out=True)
UNIT_KEPT = Reason(1334, "A job has the host's compute unit for itself")
SAME = Reason(1330, "Not enough hosts that are the same in what the job requires")
COMPUTE_UNITS = Reason(1331, "Job's compute unit requirements not satisfied")
NAMED_NOT_OF_QUEUE = Reason(1326, "Host or host group is not used by the queue", rules_out=True)
AFFINITY = Reason(1332, "Not enough free processors for the job's affinity requirement")
NO_TOPOLOGY = Reason(1333, "The host has not reported its processors", rules_out=True)

RESERVATION_INACTIVE = Reason(340, "The job's advance reservation is inactive")
RESERVATION_GONE = Reason(341, "The job's advance reservation has expired or was deleted")
RESERVED = Reason(1340, "Job slots reserved by an advance reservation")
NOT_RESERVED = Reason(1341, "Not a host of the job's advance reservation", rules_out=True)

HELD_BACK = Reason(342, "The job would delay a job that goes before it")
UNKNOWN_USER = Reason(1343, "The user is not known on the host", rules_out=True)
LACKING = Reason(1347, "The host lacks what the job needs to start", rules_out=True)
LACKS_COMMANDS = Reason(
    1344, "The host's agent is of a version without pre- and post-execution commands", rules_out=True
)
LACKS_COPIES = Reason(1345, "The host's agent is of a version that copies no files for jobs", rules_out=True)
LACKS_CHECKPOINTS = Reason(1346, "The host's agent is of a version that makes no checkpoints", rules_out=True)
SAVED_UP = Reason(1342, "Job slots reserved for another job")

TERM_OWNER = "TERM_OWNER: job killed by owner."
TERM_OWNER_DONE = "TERM_OWNER: job killed by owner, to be recorded as done."
TERM_ADMIN_DONE = "TERM_ADMIN: job killed by root or LSF administrator, to be recorded as done."
RECORDED_DONE = frozenset({TERM_OWNER_DONE, TERM_ADMIN_DONE})
TERM_ADMIN = "TERM_ADMIN: job killed by root or LSF administrator."
TERM_FORCE_OWNER = "TERM_FORCE_OWNER: job killed by owner without time for cleanup."
TERM_FORCE_ADMIN = "TERM_FORCE_ADMIN: job killed by root or LSF administrator without time for cleanup."
TERM_WINDOW = "TERM_WINDOW: job killed after queue run window closed."
TERM_GPU_IDLE = "TERM_GPU_IDLE: job killed because all its GPUs were idle for too long."
TERM_LOAD = "TERM_LOAD: job killed after load exceeded threshold."
TERM_DEADLINE = "TERM_DEADLINE: job killed after reaching LSF deadline."
# Limits that the processes of one host reach. Others are checked by the master, or reached by all hosts at once.
LIMITS_OF_HOSTS = ("TERM_MEMLIMIT", "TERM_CPULIMIT", "TERM_SWAP", "TERM_PROCESSLIMIT", "TERM_THREADLIMIT")
LIMITS_OF_JOBS = (*LIMITS_OF_HOSTS, "TERM_RUNLIMIT")
# Limits that a job is told of: one that then ends well is DONE, and its end keeps the reason.
TOLD_LIMITS = (*LIMITS_OF_JOBS, "TERM_DEADLINE")


# Stored with the job's end: its state stays so whatever becomes of the configuration.
SUCCESS_EXIT = "SUCCESS_EXIT_VALUES: exit code {} means success."
_SUCCESS = SUCCESS_EXIT.partition("{")[0]


def is_done(status: int, reason: str) -> bool:
    """True if a job that ended with this wait status and reason is DONE, not EXIT."""
    return reason.startswith(_SUCCESS) or (status == 0 and (not reason or reason.startswith(TOLD_LIMITS)))


TERM_ORPHAN_SYSTEM = "TERM_ORPHAN_SYSTEM: orphan job was automatically terminated by LSF."
TERM_REQUEUE_OWNER = "TERM_REQUEUE_OWNER: job killed and requeued by owner."
TERM_REQUEUE_ADMIN = "TERM_REQUEUE_ADMIN: job killed and requeued by root or LSF administrator."
TERM_PRE_EXEC_FAIL = "TERM_PRE_EXEC_FAIL: job killed because its pre-execution command failed."
TERM_CHKPNT = "TERM_CHKPNT"  # by hosts: the job was killed after a checkpoint
MIGRATED = "the job goes on elsewhere from its checkpoint"
SUSPENDED_FOR_LONG = "the job migrates: it was suspended for longer than its migration threshold"
TERM_RERUNS = "TERM_UNKNOWN: the job was run {} times, and was lost each time."
TERM_REVOKED = "TERM_ADMIN: job killed because its host is taken away."
TERM_HOST_LOST = "TERM_UNKNOWN: a host of the job was lost."

EXIT_STATUS_KILLED = 130 << 8  # a shell's status for SIGINT; LSF's usual one after bkill
EXIT_STATUS_LOST = 127 << 8
EXIT_STATUS_PRE_EXEC = 98 << 8  # LSF's of a job that its pre-execution command does not let start
