"""Processes that try to outlive their job in every known way, run as ``python3 zoo.py TOKEN WHAT``.

All of them keep this file and the token in their command line, by which a test finds remaining ones. WHAT is ``end``
(start them all and end with exit code 3), ``stay`` (start them all, ignore every signal and stay) or the name of one
kind. Only the standard library is imported: it runs as any user.
"""

import os
import signal
import sys
import time

STAY_S = 300.0
FORK_FOR_S = 2.0
CLOSED_DOWN_TO = 64
DEAF_TO = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGUSR1)


def stay() -> None:
    """Sleep until killed."""
    end = time.monotonic() + STAY_S
    while time.monotonic() < end:
        time.sleep(1)
    os._exit(0)


def be_deaf() -> None:
    """Ignore every signal that can be ignored."""
    for number in DEAF_TO:
        signal.signal(number, signal.SIG_IGN)


def double_fork() -> None:
    """The grandchild has lost its parent."""
    if os.fork() == 0:
        stay()


def new_session() -> None:
    """Process in a new session."""
    os.setsid()


def nohup() -> None:
    """As nohup does it."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def own_group() -> None:
    """Process in a new process group."""
    os.setpgid(0, 0)


def daemon() -> None:
    """Orphan, session, root directory, closed descriptors, an empty environment."""
    if os.fork() != 0:
        os._exit(0)
    os.setsid()
    be_deaf()
    os.chdir("/")
    os.closerange(0, CLOSED_DOWN_TO)
    os.execve(sys.executable, [sys.executable, "-S", __file__, sys.argv[1], "deaf"], {})


def runaway() -> None:
    """Process that changes its pid continually: the parent exits as soon as it has forked."""
    be_deaf()
    end = time.monotonic() + FORK_FOR_S
    while time.monotonic() < end:
        if os.fork() != 0:
            os._exit(0)


ANIMALS = {
    "double_fork": double_fork,
    "new_session": new_session,
    "nohup": nohup,
    "deaf": be_deaf,
    "own_group": own_group,
    "daemon": daemon,
    "runaway": runaway,
}


def main() -> None:
    """Start the processes."""
    what = sys.argv[2]
    if what in ANIMALS:
        ANIMALS[what]()
        stay()
    for animal in ANIMALS.values():
        if os.fork() == 0:
            animal()
            stay()
    if what == "stay":
        be_deaf()
        stay()
    time.sleep(0.3)
    os._exit(3)


if __name__ == "__main__":
    main()
