"""lavactl sshrun: run inside a job a launcher that starts its processes by ssh, so that blaunch starts them instead.

The launcher finds a program ``ssh`` first on its PATH, which is blaunch of this job. LSB_JOBID is hidden from the
launcher, but not from ``ssh``: Horovod would take the cluster for IBM's and look for programs that do not exist.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from lavactl.errors import CommandError, UsageError
from lavactl.io import Io
from lavactl.options import answer_standard, printable

USAGE = """\
Usage: lavactl sshrun COMMAND [ARGUMENT ...]
Runs a command in a job, for which `ssh HOST COMMAND` is blaunch: on hosts of the job, with no keys and no ssh. The
exit code is the command's. LSB_JOBID is hidden from it.
"""
HIDDEN = "LSB_JOBID"


def main(argv: list[str], io: Io) -> int:
    """Run the command."""
    answer = answer_standard(argv[:1], USAGE)
    if answer is not None:
        io.print(answer)
        return 0
    if not argv:
        raise UsageError("lavactl sshrun: no command is specified", USAGE)
    job = io.environ.get(HIDDEN)
    if not job:
        raise CommandError("lavactl sshrun: this is no job: LSB_JOBID is not set.")
    directory = Path(tempfile.mkdtemp(prefix="lava-ssh-"))
    try:
        write_ssh(directory / "ssh", job)
        return _run(argv, directory, io)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def write_ssh(path: Path, job: str) -> None:
    """Write a program that is called as ssh and runs blaunch of that job."""
    blaunch = Path(sys.argv[0]).resolve().with_name("blaunch")
    program = str(blaunch) if blaunch.exists() else str(Path(sys.executable).with_name("blaunch"))
    path.write_text(f'#!/bin/sh\n{HIDDEN}={_quoted(job)} exec {_quoted(program)} "$@"\n', encoding="utf-8")
    path.chmod(0o700)


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _run(argv: list[str], directory: Path, io: Io) -> int:
    environment = {name: value for name, value in io.environ.items() if name != HIDDEN}
    environment["PATH"] = f"{directory}:{environment.get('PATH', os.defpath)}"
    program = shutil.which(argv[0], path=environment["PATH"])
    if program is None:
        raise CommandError(f"lavactl sshrun: {printable(argv[0])}: no such program on PATH.", 127)
    io.flush()
    try:
        process = subprocess.Popen([program, *argv[1:]], env=environment)
    except OSError as error:
        raise CommandError(f"lavactl sshrun: {printable(program)}: {error.strerror}.", 126) from error
    # A signal to the job reaches the command, too, and the command decides how to end.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    code = process.wait()
    return 128 - code if code < 0 else code
