"""lavactl scale: give roles of a running job another number of tasks, or end a task for good."""

from lavactl.errors import FAILURE
from lavactl.jobrefs import key_text, read_refs
from lavactl.options import VALUE, Grammar, answered
from lavactl.rolesizes import read_sizes
from lavactl.text.render import clean
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io
    from lavactl.options import Options

USAGE = """\
Usage: lavactl scale job_id role=tasks ... | tasks
       lavactl scale job_id --remove "role-index | host ..."
       lavactl scale job_id --remove-host "host ..."
A role with more tasks than that releases the newest ones; one with fewer grows as soon as there is room. What was
released is not taken back by itself.
"""
GRAMMAR = Grammar("scale", USAGE, {"-remove": VALUE, "-remove-host": VALUE})


def main(argv: list[str], io: "Io") -> int:
    """Run lavactl scale."""
    if answered(argv, USAGE, io):
        return 0
    request = _request(GRAMMAR.parse(argv))
    reply = io.client().resize(request)
    name = key_text(request.ref.job, 0)
    if reply.error:
        io.error(f"Job <{name}>: {clean(reply.error).rstrip('.')}")
        return FAILURE
    changes = [_change(before, after) for before, after in zip(reply.before, reply.after, strict=True)]
    told = f": {', '.join(changes)}" if changes else ""  # a master of an earlier version tells of none
    io.print(f"Job <{name}>: it is being resized{told}")
    return 0


def _change(before: messages.RoleSize, after: messages.RoleSize) -> str:
    role = f"{clean(before.role)} " if before.role else ""
    tasks = f"{after.tasks} task{'' if after.tasks == 1 else 's'}"
    return f"{role}stays at {tasks}" if before.tasks == after.tasks else f"{role}from {before.tasks} to {tasks}"


def _request(options: "Options") -> messages.ResizeRequest:
    if not options.words:
        raise GRAMMAR.wrong("a job ID is expected")
    job, *sizes = options.words
    request = messages.ResizeRequest(ref=read_refs([job])[0])
    gone, hosts = options.last("-remove"), options.last("-remove-host")
    if gone is not None and hosts is not None:
        raise GRAMMAR.wrong("either --remove or --remove-host is expected")
    if (gone is None and hosts is None) == (not sizes):
        raise GRAMMAR.wrong("either sizes of roles, or --remove or --remove-host with what is to go, are expected")
    if hosts is not None:
        request.action, request.what = messages.RESIZE_RELEASE_HOSTS, hosts
    elif gone is not None:
        request.action, request.what = messages.RESIZE_RELEASE, gone
    else:
        request.action = messages.RESIZE_SCALE
        request.sizes.extend(read_sizes(sizes, GRAMMAR))
    return request
