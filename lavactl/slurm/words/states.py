"""States of jobs and hosts in Slurm's words. Pure."""

from typing import NamedTuple

from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from protos import cluster_pb2


class State(NamedTuple):
    """A job's state: its two letters and its word."""

    letters: str
    word: str


PENDING, RUNNING = State("PD", "PENDING"), State("R", "RUNNING")
SUSPENDED, COMPLETED = State("S", "SUSPENDED"), State("CD", "COMPLETED")
CONFIGURING, COMPLETING = State("CF", "CONFIGURING"), State("CG", "COMPLETING")
FAILED, CANCELLED = State("F", "FAILED"), State("CA", "CANCELLED")
PRESENT = {
    messages.PEND: PENDING,
    messages.PSUSP: PENDING,
    messages.STAGING: CONFIGURING,
    messages.RUN: RUNNING,
    messages.UNKWN: RUNNING,
    messages.USUSP: SUSPENDED,
    messages.SSUSP: SUSPENDED,
    messages.DONE: COMPLETED,
    messages.ZOMBI: COMPLETING,
}
ENDED = (messages.DONE, messages.EXIT)
# Beginnings of the reason why a job ended, first match first.
BY_REASON = (
    ("TERM_RUNLIMIT", State("TO", "TIMEOUT")),
    ("TERM_DEADLINE", State("DL", "DEADLINE")),
    ("TERM_MEMLIMIT", State("OOM", "OUT_OF_MEMORY")),
    ("TERM_SWAP", State("OOM", "OUT_OF_MEMORY")),
    ("TERM_PREEMPT", State("PR", "PREEMPTED")),
    ("TERM_REVOKED", State("NF", "NODE_FAIL")),
    ("TERM_OWNER", CANCELLED),
    ("TERM_ADMIN", CANCELLED),
    ("TERM_FORCE", CANCELLED),
    ("TERM_ORPHAN", CANCELLED),
)
ALL = {
    state.letters: state
    for state in (PENDING, RUNNING, SUSPENDED, COMPLETED, CONFIGURING, COMPLETING, FAILED, *(s for _, s in BY_REASON))
}
# States of other clusters, which no job here ever has.
ABSENT = (
    "BF", "BOOT_FAIL", "ST", "STOPPED", "SE", "SPECIAL_EXIT", "RQ", "REQUEUED", "RS", "RESIZING", "RV", "REVOKED",
    "RD", "RESV_DEL_HOLD", "RF", "REQUEUE_FED", "RH", "REQUEUE_HOLD", "SI", "SIGNALING", "SO", "STAGE_OUT",
)  # fmt: skip


def state_of(job: messages.JobRecord) -> State:
    """State of a job."""
    if job.state != messages.EXIT:
        return PRESENT.get(job.state, PENDING)
    found = next((state for beginning, state in BY_REASON if job.exit_reason.startswith(beginning)), None)
    if found is not None:
        return found
    if not job.start_time and not job.exit_reason:
        return CANCELLED  # elements of an array that were ended while they waited
    return State("NF", "NODE_FAIL") if "host" in job.exit_reason and not job.exit_reason.startswith("TERM_") else FAILED


def read_state(text: str) -> State | None:
    """State by its letters or word; None for one that no job here has.

    Raises:
        ValueError: Slurm has no such state.
    """
    word = text.strip().upper()
    for state in ALL.values():
        if word in state:
            return state
    if word in ABSENT:
        return None
    raise ValueError(text)


def may_have(state: State) -> "tuple[int, ...]":
    """lava's states of jobs that may be in this one."""
    found = tuple(number for number, present in PRESENT.items() if present == state)
    return found or (messages.EXIT,)


FULL = ("closed_Full", "closed_Excl", "closed_full", "closed_cu")


def host_state(host: "cluster_pb2.HostRecord") -> str:
    """State of a host: idle, mix, alloc, drain, drng, down, unk."""
    status = host.status
    if status.startswith(("unavail", "unreach")):
        return "down"
    if status.startswith("closed") and not status.startswith(FULL):
        return "drng" if host.njobs else "drain"
    if not host.njobs:
        return "idle"
    return "alloc" if host.njobs >= host.slots_max or status.startswith("closed") else "mix"


HOST_WORDS = {
    "idle": "IDLE", "mix": "MIXED", "alloc": "ALLOCATED", "drain": "IDLE+DRAIN", "drng": "MIXED+DRAIN", "down": "DOWN",
}  # fmt: skip
LONG_WORDS = {
    "idle": "idle", "mix": "mixed", "alloc": "allocated", "drain": "drained", "drng": "draining", "down": "down",
}  # fmt: skip
