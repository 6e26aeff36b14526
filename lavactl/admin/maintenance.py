"""Commands on the master's database, which run as programs of the master: commands never import it."""

import os
import subprocess
import sys

from lavactl.errors import FAILURE
from lavactl.options import answered_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io


def run(name: str, argv: list[str], io: "Io") -> int:
    """Run the master's program of that name with these arguments and print its output; its exit code."""
    if answered_version(argv, io):
        return 0
    done = of_master("lavad.maintenance", [name, *argv], io)
    return FAILURE if done else 0


def of_master(module: str, argv: list[str], io: "Io") -> int:
    """Run a program of the master's with these arguments, and print its output; its exit code.

    It keeps the present directory, which its user may be unable to enter once more.
    """
    # -P: files in that directory are no Python modules. close_fds: an argument may be an open file, as a shell makes of
    # <(zcat trace.gz).
    program, here = [sys.executable, "-P", "-m", module, *argv], io.cwd
    place = None if os.path.samefile(here, os.getcwd()) else here
    done = subprocess.run(program, cwd=place, env=dict(io.environ), capture_output=True, check=False, close_fds=False)
    io.write(done.stdout)
    io.flush()
    said = done.stderr.decode(errors="surrogateescape").rstrip("\n")
    if said:
        io.error(said)
    return done.returncode
