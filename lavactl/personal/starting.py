"""Start of processes through `door`, from the side of the command.

A process has started when `door` closed the error pipe without a message; then its pid is final. Daemons get an
environment built here from scratch, so that variables of a user's shell (LD_PRELOAD, PYTHONPATH, proxies) never reach
them.
"""

import os
import pwd
import subprocess
import sys
import sysconfig
from dataclasses import dataclass, replace
from pathlib import Path

from lavactl.errors import CommandError
from lavactl.personal.hosts.namespace_exec import Passage

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# The directory of lavactl, agents, lavad and protos: the daemons run from the same installation as this command.
INSTALLATION = Path(__file__).resolve().parents[2]


@dataclass(slots=True)
class Starting:
    """A process being started by `door`; `what` names it in error messages."""

    what: str
    process: "subprocess.Popen[bytes]"
    error_fd: int


def start(what: str, passage: Passage) -> Starting:
    """Start a process; `confirm` reports the result."""
    reader, writer = os.pipe()
    try:
        process = subprocess.Popen(
            [
                sys.executable,
                "-S",
                "-m",
                "lavactl.personal.hosts.namespace_exec",
                replace(passage, error_fd=writer).text(),
            ],
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
    """Wait until the process has been exec'ed; its pid, or CommandError with the reason."""
    with os.fdopen(starting.error_fd, "rb") as stream:
        reason = stream.read().decode("utf-8", "replace")
    if reason:
        starting.process.wait()
        raise CommandError(f"{starting.what} cannot be started: {reason}.")
    return starting.process.pid


def run_inside(what: str, passage: Passage) -> None:
    """Run a short command through `door` and wait for it; CommandError if it fails."""
    starting = start(what, passage)
    confirm(starting)
    code = starting.process.wait()
    if code != 0:
        raise CommandError(f"{what} failed with exit code {code}.")


def clean_environment() -> dict[str, str]:
    """Environment of this user's daemons."""
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
    """Command line of one of lava's daemons, by absolute path."""
    return [sys.executable, "-m", module, *arguments]
