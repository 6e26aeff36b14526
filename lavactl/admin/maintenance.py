"""Commands on the master's database, which run as programs of the master: commands never import it."""

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
    program = [sys.executable, "-P", "-m", "lavad.maintenance", name, *argv]
    done = subprocess.run(program, cwd=io.cwd, env=dict(io.environ), capture_output=True, check=False)
    io.write(done.stdout)
    io.flush()
    said = done.stderr.decode(errors="surrogateescape").rstrip("\n")
    if said:
        io.error(said)
    return FAILURE if done.returncode else 0
