"""Termination reasons of jobs as sentences: the same in listings, history and job report.

Invariant: a sentence begins with the reason's keyword and ends with a full stop, as tools that look for ``TERM_``
expect.
"""

# Meaning of each termination reason, as LSF prints it after the keyword.
MEANINGS = {
    "TERM_PREEMPT": "job killed after preemption",
    "TERM_WINDOW": "job killed after queue run window closed",
    "TERM_GPU_IDLE": "job killed because all its GPUs were idle for too long",
    "TERM_LOAD": "job killed after load exceeded threshold",
    "TERM_RUNLIMIT": "job killed after reaching LSF run time limit",
    "TERM_DEADLINE": "job killed after reaching deadline",
    "TERM_PROCESSLIMIT": "job killed after reaching LSF process limit",
    "TERM_FORCE_OWNER": "job killed by owner without time for cleanup",
    "TERM_FORCE_ADMIN": "job killed by root or LSF administrator without time for cleanup",
    "TERM_REQUEUE_OWNER": "job killed and requeued by owner",
    "TERM_REQUEUE_ADMIN": "job killed and requeued by root or LSF administrator",
    "TERM_CPULIMIT": "job killed after reaching LSF CPU usage limit",
    "TERM_CHKPNT": "job killed after checkpointing",
    "TERM_OWNER": "job killed by owner",
    "TERM_ADMIN": "job killed by root or LSF administrator",
    "TERM_MEMLIMIT": "job killed after reaching LSF memory usage limit",
    "TERM_EXTERNAL_SIGNAL": "job killed by a signal external to LSF",
    "TERM_SWAP": "job killed after reaching LSF swap usage limit",
    "TERM_THREADLIMIT": "job killed after reaching LSF thread limit",
    "TERM_PRE_EXEC_FAIL": "job killed because its pre-execution command failed",
    "TERM_CWD_NOTEXIST": "current working directory is not accessible or does not exist on the execution host",
}

CWD_NOTEXIST = "TERM_CWD_NOTEXIST"

# Keywords of limits. A job that ends well when it is told of one is done, and keeps the reason.
LIMITS = (
    "TERM_RUNLIMIT", "TERM_DEADLINE", "TERM_MEMLIMIT", "TERM_CPULIMIT", "TERM_SWAP", "TERM_PROCESSLIMIT",
    "TERM_THREADLIMIT",
)  # fmt: skip

# Reason and detail of a job that was killed with all others of its host while its agent was down; rerunnable ones
# rerun.
SHUT_DOWN = ("TERM_ADMIN", "Its host was taken down.")

# Reason and detail of a job ended by its host after LAVA_FENCE_AFTER without contact with the master.
FENCED = ("TERM_UNKNOWN: its host had no contact with the master for too long and ended it.", "")


# Reason and detail of a job that was still there when its host was taken away (badmin hclose -revoke).
TAKEN_AWAY = ("TERM_ADMIN", "Its host was taken away.")


def sentence(reason: str) -> str:
    """Bare keyword with its meaning; any other text as it is."""
    return f"{reason}: {MEANINGS[reason]}." if reason in MEANINGS else reason


def is_kept(status: int, reason: str) -> bool:
    """True if a reason is recorded with this wait status: with success only a limit that was reached."""
    return bool(status) or reason.startswith(LIMITS)


def explained(reason: str, detail: str) -> str:
    """Reason for the end of a job as its agent reports it, followed by the sentence on a failed start, if any."""
    if not reason:
        return detail
    return f"{sentence(reason)} {detail}".rstrip() if reason in MEANINGS else reason
