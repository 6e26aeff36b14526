"""Program of a job's command line or script, with its shell and the queue's job starter."""

import os
import re
import shlex

from agents.shepherd.messages import Program
from protos.jobs_pb2 import JobSpec

USER_COMMAND = "%USRCMD"  # place of the job's command in JOB_STARTER
# Dash starts the last command of a line as a child, too, and dies of a signal at once: that would end the job. With
# these traps it waits for the command and exits with its code; after a warning signal no later line is run.
TRAPS = "trap exit HUP INT TERM USR2; trap : USR1;"
# Words without special meaning to any shell: a command of only these needs none.
PLAIN = re.compile(r"/[A-Za-z0-9_./+@-]*(?: +[A-Za-z0-9_./=,:+@%-]+)*")


def command_of(spec: JobSpec) -> str:
    """Return the command of a job; bytes of it that are not UTF-8 are surrogates."""
    return spec.command_bytes.decode("utf-8", "surrogateescape") or spec.command


def program_of(command: str, shell: str, script: str, starter: str = "", arguments: tuple[str, ...] = ()) -> Program:
    """Return the program for a command line or a spooled script, started by the job starter if there is one.

    Args:
        arguments: of the script.
    """
    if starter:
        return _by_starter(starter, command, shell, script, arguments)
    if script:
        return _interpreter(command, shell, script, arguments)
    if shell:
        return Program(shell, (f"-{os.path.basename(shell)}", "-c", command))
    if PLAIN.fullmatch(command):
        words = tuple(command.split())
        return Program(words[0], words, guarded(command))
    return Program("/bin/sh", ("/bin/sh", "-c", guarded(command)))


def guarded(command: str) -> str:
    """Protect a command line's shell from the job's signals, so that its program has time to handle them.

    A warning signal does not affect the shell; told to end, it ends as soon as the program that it waits for has ended.
    """
    return f"{TRAPS} {command}"


def absent_starter(starter: str) -> str:
    """Return the path of a job starter's program if this host does not have it; empty if it has, or names no path."""
    path = next(iter(starter.split()), "")
    return path if path.startswith("/") and not os.access(path, os.X_OK) else ""


def _by_starter(starter: str, command: str, shell: str, script: str, arguments: tuple[str, ...]) -> Program:
    """Insert the job's command line into the starter's, unchanged: the site has quoted it or not."""
    if script:
        interpreter = _interpreter(command, shell, script, arguments)
        command = shlex.join((interpreter.path, *interpreter.argv[1:]))
    line = starter.replace(USER_COMMAND, command) if USER_COMMAND in starter else f"{starter} {command}"
    return program_of(line, shell, "")


def _interpreter(text: str, shell: str, script: str, arguments: tuple[str, ...]) -> Program:
    """Parse the #! line as the kernel would; scripts may lie on a file system without execution."""
    line = text.partition("\n")[0]
    words = line[2:].strip().split(None, 1) if line.startswith("#!") else []
    if words and words[0].startswith("/"):
        return Program(words[0], (*(word.rstrip() for word in words), script, *arguments))
    if shell:
        return Program(shell, (f"-{os.path.basename(shell)}", script, *arguments))
    return Program("/bin/sh", ("/bin/sh", script, *arguments))
