"""The site's eexec: run before and after each job on its first host, as its user, with what esub printed as its input.

It is part of the job's pre- and post-execution commands: one that fails before the job keeps it from being started.
"""

import asyncio
import logging
import os
import shlex

NAME = "eexec"
LOOK_UP_S = 5.0  # for a file server to answer, once it has answered before
LOG = logging.getLogger(__name__)


def program_in(directory: str) -> str:
    """Return the path of the program in LSF_SERVERDIR; empty if there is none."""
    path = f"{directory}/{NAME}"
    return path if directory and os.access(path, os.X_OK) and os.path.isfile(path) else ""


class LookUp:
    """Look-ups of the program beside the event loop: a file server that hangs holds no other work up.

    Only one is under way for a directory, however often it is asked for. The last answer stays until the next; before
    the first there is none to go by, so that is waited for: jobs must not run without the site's program.
    """

    def __init__(self) -> None:
        self.program = ""
        self._is_known = False
        self._directory = ""
        self._under_way: asyncio.Task[str] | None = None

    async def look(self, directory: str) -> str:
        """Return the path of the program in a directory, as last known if that does not answer; empty for none."""
        if self._under_way is None or directory != self._directory:
            self._directory = directory
            self._under_way = asyncio.create_task(asyncio.to_thread(program_in, directory))
        done, _ = await asyncio.wait([self._under_way], timeout=LOOK_UP_S if self._is_known else None)
        if done:
            self.program, self._is_known, self._under_way = self._under_way.result(), True, None
        else:
            LOG.warning("event=eexec_not_looked_up directory=%s seconds=%g", directory, LOOK_UP_S)
        return self.program


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
