"""The site's eexec: run before and after each job on its first host, as its user, with what esub printed as its input.

It is part of the job's pre- and post-execution commands: one that fails before the job keeps it from being started.
"""

import os
import shlex

NAME = "eexec"


def program_in(directory: str) -> str:
    """Return the path of the program in LSF_SERVERDIR; empty if there is none."""
    path = f"{directory}/{NAME}"
    return path if directory and os.access(path, os.X_OK) and os.path.isfile(path) else ""


def before(program: str, source: str, command: str) -> str:
    """Return the pre-execution command of a job with eexec before its own; ``source`` is the file for its input."""
    return f"{_run(program, source, 'START')} || exit\n{command}".rstrip() if program else command


def after(program: str, source: str, command: str) -> str:
    """Return the post-execution command of a job with eexec behind its own, whose exit code stays."""
    if not program:
        return command
    last = _run(program, source, "END")
    return f"(\n{command}\n)\nstatus=$?\n{last}\nexit $status" if command else last


def _run(program: str, source: str, phase: str) -> str:
    return f"LS_EXEC_T={phase} {shlex.quote(program)} < {shlex.quote(source or '/dev/null')}"
