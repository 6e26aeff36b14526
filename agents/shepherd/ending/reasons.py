"""Termination reasons of limits that the kernel enforces."""

import os
import signal
from collections.abc import Callable

from agents.shepherd.messages import JobSetup


def of_end(setup: JobSetup, status: int, oom_kills: Callable[[], int]) -> str:
    """Return the limit that ended a job with this wait status, as a TERM_ word; empty for none."""
    if not status:
        return ""
    if setup.memory_limit_mib and oom_kills():
        return "TERM_MEMLIMIT"
    has_cpu_limit = any(name == "cpu" for name, _ in setup.rlimits)
    return "TERM_CPULIMIT" if has_cpu_limit and _ended_by(status) == signal.SIGXCPU else ""


def _ended_by(status: int) -> int:
    """Return the signal that killed the job, or the last program that its shell ran; 0 for none."""
    if os.WIFSIGNALED(status):
        return os.WTERMSIG(status)
    return max(0, os.WEXITSTATUS(status) - 128)
