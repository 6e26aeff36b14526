"""Code of a job: a directory that is copied beside each task, into a working directory of the task's own.

The task's program copies it first, as the job's user: what is missing or too large is the task's own failure, in its
output. Options: source, limit-mib.
"""

from agents.job_setup.told.scene import Scene, options_of
from agents.job_setup.told.values import Told
from agents.shepherd.messages import Program
from protos.jobs_pb2 import JobSpec

NAME = "code"
LIMIT_MIB = "200"
# Its arguments: the directory of commands, the source, the limit, then the task's own program. A personal cluster has
# lavactl beside the file that blaunch is a link to.
COPY = """\
lavactl=$1/lavactl
[ -x "$lavactl" ] || lavactl=$(dirname "$(readlink -f "$1/blaunch")")/lavactl
"$lavactl" stage --replace --limit-mib "$3" -- "$2" || exit
shift 3
exec "$@"
"""


def tell(scene: Scene) -> Told:
    """Tell where the code comes from."""
    return Told({"LAVA_CODE": scene.option("source", "")})


def options(spec: JobSpec) -> dict[str, str] | None:
    """Return the options of a job whose tasks get a copy of its code; None for any other job."""
    found = next((one for one in spec.tasks.conventions if one.name == NAME), None)
    return options_of(found.options) if found is not None else None


def copying(program: Program, given: dict[str, str], bin_dir: str) -> Program:
    """Return a program that copies the code and becomes another one."""
    words = (bin_dir, given.get("source", ""), given.get("limit-mib") or LIMIT_MIB)
    own = ("/bin/sh", "-c", program.text) if program.text else (program.path, *program.argv[1:])
    return Program("/bin/sh", ("/bin/sh", "-c", COPY, "sh", *words, *own))
