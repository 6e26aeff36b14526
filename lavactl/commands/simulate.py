"""lavactl simulate: replay a trace through the master's scheduler in virtual time, without a cluster.

The simulator is part of the master and runs as a program of its own: commands never import the master.
"""

import subprocess
import sys

from lavactl.options import answered_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io


def main(argv: list[str], io: "Io") -> int:
    """Run the simulator with these arguments and print its output; the exit code."""
    if answered_version(argv, io):
        return 0
    # -P: files in the caller's directory are traces, not Python modules. close_fds: a trace may be an open file, as a
    # shell makes of <(zcat trace.gz).
    program = [sys.executable, "-P", "-m", "lavad.simulator", *argv]
    done = subprocess.run(program, cwd=io.cwd, env=dict(io.environ), capture_output=True, check=False, close_fds=False)
    io.write(done.stdout)
    io.flush()
    said = done.stderr.decode(errors="surrogateescape").rstrip("\n")
    if said:
        io.error(said)
    return done.returncode
