"""bjdepinfo: dependencies of a job: its parents or its children."""

from lavactl.errors import FAILURE, CommandError
from lavactl.jobrefs import key_text, read_ref, ref_text
from lavactl.options import FLAG, VALUE, Grammar, answered, printable
from lavactl.text import units
from lavactl.text.render import clean
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: bjdepinfo [-p | -c] [-r depth] [-l] job_id | "job_id[index]"
       bjdepinfo -h | -V
"""
GRAMMAR = Grammar("bjdepinfo", USAGE, {"p": FLAG, "c": FLAG, "l": FLAG, "r": VALUE})


def main(argv: list[str], io: "Io") -> int:
    """Run bjdepinfo."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    if len(options.words) != 1:
        raise GRAMMAR.wrong("one job id is expected")
    if "p" in options and "c" in options:
        raise GRAMMAR.wrong("-p and -c cannot be used together")
    ref = read_ref(options.words[0])
    if not ref.job:
        raise CommandError(f"{printable(options.words[0])}: Illegal job ID.")
    children = "c" in options
    request = messages.DependenciesRequest(ref=ref, children=children, depth=read_depth(options.last("r")))
    reply = io.client().dependencies(request)
    if reply.error:
        io.error(f"Job <{ref_text(ref)}>: {clean(reply.error)}")
        return FAILURE
    if "l" in options:
        io.print(condition_line(ref, reply))
    if not reply.links:
        io.flush()
        nobody = "No job waits for it" if children else "It waits for no job"
        io.error(f"Job <{ref_text(ref)}>: {nobody}")
        return FAILURE
    io.print(table(reply, "CHILD" if children else "PARENT"))
    return 0


def read_depth(text: str | None) -> int:
    """Number of dependency levels to follow, from -r; by default 1."""
    if text is None:
        return 1
    try:
        return units.read_count(text, 1, 100)
    except ValueError:
        raise CommandError(f"-r {printable(text)}: expected a whole number from 1 to 100.") from None


def condition_line(ref: messages.JobRef, reply: messages.DependenciesReply) -> str:
    """-l: the job's own dependency condition."""
    if not reply.condition:
        return f"Job <{ref_text(ref)}> has no dependency condition that is not satisfied."
    return f"The dependency condition of job <{ref_text(ref)}> is not satisfied: {clean(reply.condition)}"


def table(reply: messages.DependenciesReply, title: str) -> str:
    """A line for each parent or child job."""
    rows = [("JOBID", title, f"{title}_STATUS", f"{title}_NAME", "LEVEL")]
    rows += [
        (str(one.job), key_text(one.relative, one.index), one.status or "-", clean(one.name) or "-", str(one.level))
        for one in reply.links
    ]
    return "\n".join("{:<14} {:<14} {:<14} {:<12} {}".format(*row) for row in rows)
