"""Start and end of the master's child processes: programs of this installation that serve it over a socket pair."""

import asyncio
import os
import site
import subprocess
import sys
from pathlib import Path

import lavad


def spawn(module: str, descriptor: int) -> subprocess.Popen[bytes]:
    """Start a module as a program, with its end of the socket pair.

    It has a session of its own: a terminal's interrupt must not end it before the master.
    """
    root, environment = str(Path(lavad.__file__).parents[1]), dict(os.environ)
    if root not in site.getsitepackages():  # a checkout: the child would not find it by itself
        environment["PYTHONPATH"] = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, str(descriptor)],
        env=environment,
        cwd="/",
        pass_fds=[descriptor],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )


async def end(process: subprocess.Popen[bytes], timeout_s: float) -> None:
    """Wait for the end of a process whose socket is closed; kill it after the time given."""
    try:
        await asyncio.wait_for(asyncio.to_thread(process.wait), timeout_s)
    except TimeoutError:
        process.kill()
        process.wait()
