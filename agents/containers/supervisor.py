"""Supervision of a container's program: the task's first process waits for it and ends as it ends.

Runtimes have processes of their own, some of which end at the first signal although the program is still busy with
it, as when it writes a checkpoint. A signal to a task goes to all its processes. So this one, which takes none of them
to heart, adopts what a runtime leaves behind, waits for the program itself, and has its exit status.
"""

import contextlib
import ctypes
import json
import os
import signal
from collections.abc import Sequence

PR_SET_CHILD_SUBREAPER = 36
PASSED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU)
OPTIONS, CHILD = "{options}", "{child}"  # words of a command line that stand for descriptors


def supervise(argv: Sequence[str], text: bytes, has_child: bool) -> int:
    """Run a runtime's command line until its program has ended; return the program's wait status.

    Args:
        text: what the runtime reads from the descriptor of ``{options}``.
        has_child: it writes the process id of the program to the descriptor of ``{child}``, as bubblewrap does.

    Raises:
        OSError: the runtime cannot be executed.
    """
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in PASSED:
        signal.signal(number, _ignore)  # not SIG_IGN, which the program would inherit
    options = _memory_of(text) if text else -1
    told, tell = os.pipe()
    words = [{OPTIONS: str(options), CHILD: str(tell)}.get(word, word) for word in argv]
    given = [descriptor for descriptor in (options, tell if has_child else -1) if descriptor >= 0]
    for descriptor in given:
        os.set_inheritable(descriptor, True)
    runtime = os.posix_spawnp(words[0], words, os.environ, setsigdef=PASSED)
    os.close(tell)
    child = _child_of(told) if has_child else 0
    return _wait(runtime, child)


def _ignore(number: int, frame: object) -> None:
    """Take no notice: the program has the signal as well."""


def _memory_of(text: bytes) -> int:
    descriptor = os.memfd_create("lava-container")
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(text)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _child_of(told: int) -> int:
    """Return the process id of the program; 0 if the runtime has ended without one."""
    with os.fdopen(told, "rb") as file:
        text = file.read()
    try:
        return int(json.loads(text)["child-pid"])
    except (ValueError, KeyError):
        return 0


def _wait(runtime: int, child: int) -> int:
    """Wait for both; the status is the program's if it was left behind by the runtime, else the runtime's own."""
    statuses: dict[int, int] = {}
    while runtime not in statuses or (child and _is_left(child, statuses[runtime]) and child not in statuses):
        try:
            pid, status = os.wait()
        except ChildProcessError:
            break
        statuses[pid] = status
    return statuses.get(child, statuses.get(runtime, 0))


def _is_left(child: int, status: int) -> bool:
    """Return True if a runtime that has ended with this status has left its program running."""
    if not os.WIFSIGNALED(status):
        return False
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(child, 0)
        return True
    return False


def end_as(status: int) -> None:
    """End this process with a wait status: an exit code, or the same signal."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        signal.signal(number, signal.SIG_DFL) if number not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
