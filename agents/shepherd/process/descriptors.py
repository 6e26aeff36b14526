"""Descriptor limit of a shepherd: its kept tasks take up to six each, and a job may have hundreds on a host.

Jobs do not inherit the raised limit. Long-lived descriptors are kept above `FLOOR`: the pipe by which a new process
answers needs a small number (`agents.shepherd.process.identity`).
"""

import fcntl
import os
import resource

FLOOR = 512
WANTED = 65536
GIVEN = resource.getrlimit(resource.RLIMIT_NOFILE)

Limits = list[tuple[int, tuple[int, int]]]


def raise_limit() -> None:
    """Raise the soft limit to the hard one."""
    hard = WANTED if GIVEN[1] == resource.RLIM_INFINITY else min(GIVEN[1], WANTED)
    if hard > GIVEN[0]:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, GIVEN[1]))


def as_given() -> Limits:
    """Set the initial limit, for the start of a process; return the limit to restore."""
    now = resource.getrlimit(resource.RLIMIT_NOFILE)
    if now == GIVEN:
        return []
    resource.setrlimit(resource.RLIMIT_NOFILE, GIVEN)
    return [(resource.RLIMIT_NOFILE, now)]


def aside(descriptor: int) -> int:
    """Move a descriptor to a large number, if the limit permits."""
    try:
        moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, FLOOR)
    except OSError:  # the limit is too low
        return descriptor
    os.close(descriptor)
    return moved
