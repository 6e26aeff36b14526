"""What the words for the end of a job mean: the same in lists, in its history and in its report.

Invariant: a sentence begins with its word and ends with a full stop, as tools that look for ``TERM_`` expect.
"""

# What each termination reason means, as LSF prints it behind the word.
MEANINGS = {
    "TERM_PREEMPT": "job killed after preemption",
    "TERM_WINDOW": "job killed after queue run window closed",
    "TERM_LOAD": "job killed after load exceeded threshold",
    "TERM_RUNLIMIT": "job killed after reaching LSF run time limit",
    "TERM_DEADLINE": "job killed after reaching deadline",
    "TERM_PROCESSLIMIT": "job killed after reaching LSF process limit",
    "TERM_FORCE_OWNER": "job killed by owner without time for cleanup",
    "TERM_FORCE_ADMIN": "job killed by root or LSF administrator without time for cleanup",
    "TERM_REQUEUE_OWNER": "job killed and requeued by owner",
    "TERM_REQUEUE_ADMIN": "job killed and requeued by root or LSF administrator",
    "TERM_CPULIMIT": "job killed after reaching LSF CPU usage limit",
    "TERM_OWNER": "job killed by owner",
    "TERM_ADMIN": "job killed by root or LSF administrator",
    "TERM_MEMLIMIT": "job killed after reaching LSF memory usage limit",
    "TERM_EXTERNAL_SIGNAL": "job killed by a signal external to LSF",
    "TERM_SWAP": "job killed after reaching LSF swap usage limit",
    "TERM_THREADLIMIT": "job killed after reaching LSF thread limit",
    "TERM_CWD_NOTEXIST": "current working directory is not accessible or does not exist on the execution host",
}

# Why a job ended that was killed with all others of its host, whose agent did not run; one that can be rerun is.
SHUT_DOWN = ("TERM_ADMIN", "Its host was taken down.")

# Why a job ended whose host had no contact with the master for the time that the site allows (LAVA_FENCE_AFTER).
FENCED = ("TERM_UNKNOWN: its host had no contact with the master for too long and ended it.", "")


def sentence(reason: str) -> str:
    """A bare word with its meaning; anything else as it is."""
    return f"{reason}: {MEANINGS[reason]}." if reason in MEANINGS else reason


def explained(reason: str, detail: str) -> str:
    """Why a job ended, as its agent tells it: the reason, and if it could not start the sentence on that."""
    if not reason:
        return detail
    return f"{sentence(reason)} {detail}".rstrip() if reason in MEANINGS else reason
