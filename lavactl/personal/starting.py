"""Starting processes through the door, from the side of the command.

A process is there when its door closed the error pipe without a word; then its pid is final. Daemons get an environment
made here from nothing, so that what a user's shell holds (LD_PRELOAD, PYTHONPATH, proxies) never reaches them.
"""

import os
import pwd
import subprocess
import sys
import sysconfig
from dataclasses import dataclass, replace
from pathlib import Path

from lavactl.errors import CommandError
from lavactl.personal.door import Passage

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# The directory that holds lavactl, agents, lavad and protos: the daemons run from the same installation as this
# command.
INSTALLATION = Path(__file__).resolve().parents[2]


@dataclass(slots=True)
class Starting:
    """A process on its way through the door; `what` names it in complaints."""

    what: str
    process: "subprocess.Popen[bytes]"
    error_fd: int


def start(what: str, passage: Passage) -> Starting:
    """Send a process off; `confirm` says whether it arrived."""
    reader, writer = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-S", "-m", "lavactl.personal.door", replace(passage, error_fd=writer).text()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PYTHONPATH": str(INSTALLATION), "PYTHONSAFEPATH": "1", "PATH": SYSTEM_PATH},
            cwd="/",
            pass_fds=[writer],
        )
    except OSError as error:
        os.close(reader)
        raise CommandError(f"{what} cannot be started: {error.strerror}.") from error
    finally:
        os.close(writer)
    return Starting(what, process, reader)


def confirm(starting: Starting) -> int:
    """The pid of the process, once it has become what it should; CommandError with the door's reason otherwise."""
    with os.fdopen(starting.error_fd, "rb") as stream:
        reason = stream.read().decode("utf-8", "replace")
    if reason:
        starting.process.wait()
        raise CommandError(f"{starting.what} cannot be started: {reason}.")
    return starting.process.pid


def run_inside(what: str, passage: Passage) -> None:
    """Run a short command through the door and wait for it; CommandError when it fails."""
    starting = start(what, passage)
    confirm(starting)
    code = starting.process.wait()
    if code != 0:
        raise CommandError(f"{what} failed with exit code {code}.")


def clean_environment() -> dict[str, str]:
    """What a daemon of this user starts with."""
    account = _account()
    environment = {"PATH": SYSTEM_PATH, "LANG": "C.UTF-8", "PYTHONSAFEPATH": "1", **account}
    if "TZ" in os.environ:
        environment["TZ"] = os.environ["TZ"]
    if str(INSTALLATION) not in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):
        environment["PYTHONPATH"] = str(INSTALLATION)
    return environment


def _account() -> dict[str, str]:
    try:
        entry = pwd.getpwuid(os.geteuid())
    except KeyError:
        return {"HOME": "/"}
    return {"HOME": entry.pw_dir, "USER": entry.pw_name, "LOGNAME": entry.pw_name, "SHELL": entry.pw_shell or "/bin/sh"}


def program(module: str, *arguments: str) -> list[str]:
    """The command line of one of lava's daemons, by absolute path."""
    return [sys.executable, "-m", module, *arguments]
