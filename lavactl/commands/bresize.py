"""bresize: release hosts and slots of a running resizable job, or request its growth."""

from lavactl.errors import FAILURE
from lavactl.jobrefs import key_text, read_refs
from lavactl.options import FLAG, VALUE, Grammar, answered, printable
from lavactl.rolesizes import read_sizes
from lavactl.text.render import clean
from lavactl.text.units import read_count
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io
    from lavactl.options import Options

USAGE = """\
Usage: bresize release [-c] [-rnc command | -rncn] "all [^host ...]" | "[slots*]host ..." job_id
       bresize request [-c] [min,]slots job_id
       bresize cancel job_id
       bresize -h | -V
The first host of a job keeps at least one slot, and a job keeps as many as its -n says at least. What was released is
not taken back by itself: bresize request lets the job grow again.
Of a job of roles, release also takes "role=tasks ...": the tasks that a role keeps; request takes "role=tasks ...".
"""
GRAMMAR = Grammar("bresize", USAGE, {"c": FLAG, "rnc": VALUE, "rncn": FLAG})
SLOTS_MAX = 2**31 - 1
NO_COMMAND = ":"  # -rncn: a notification command that does nothing


def main(argv: list[str], io: "Io") -> int:
    """Run bresize."""
    if answered(argv, USAGE, io):
        return 0
    action, *rest = argv or [""]
    readers = {"release": _release, "request": _request, "cancel": _cancel}
    if action.startswith("-"):
        GRAMMAR.parse(argv)  # reports the error
    if action not in readers:
        word = f"{printable(action)}: " if action else ""
        raise GRAMMAR.wrong(f"{word}release, request or cancel is expected")
    request, done = readers[action](GRAMMAR.parse(rest))
    reply = io.client().resize(request)
    name = key_text(request.ref.job, 0)
    if reply.error:
        io.error(f"Job <{name}>: {clean(reply.error).rstrip('.')}")
        return FAILURE
    io.print(f"Job <{name}>: {done}")
    return 0


def _words(options: "Options", count: int, expected: str) -> list[str]:
    if len(options.words) != count:
        raise GRAMMAR.wrong(f"{expected} is expected")
    return options.words


def _release(options: "Options") -> "tuple[messages.ResizeRequest, str]":
    what, job = _words(options, 2, "a list of hosts and a job ID")
    if "rnc" in options and "rncn" in options:
        raise GRAMMAR.wrong("-rnc and -rncn exclude each other")
    notify = NO_COMMAND if "rncn" in options else options.last("rnc") or ""
    request = messages.ResizeRequest(ref=read_refs([job])[0], what=what, notify=notify)
    request.action = messages.RESIZE_RELEASE
    return request, "release is being carried out"


def _request(options: "Options") -> "tuple[messages.ResizeRequest, str]":
    slots, job = _words(options, 2, "a number of slots and a job ID")
    if "=" in slots:
        request = messages.ResizeRequest(ref=read_refs([job])[0], sizes=read_sizes(slots.split(), GRAMMAR))
        request.action = messages.RESIZE_REQUEST
        return request, f"it grows to {printable(' '.join(slots.split()))} as soon as there is room"
    try:
        tasks = read_count(slots.rpartition(",")[2], 1, SLOTS_MAX)
    except ValueError:
        raise GRAMMAR.wrong(f"{printable(slots)}: a number of slots is expected") from None
    request = messages.ResizeRequest(ref=read_refs([job])[0], tasks=tasks)
    request.action = messages.RESIZE_REQUEST
    return request, f"it grows to {tasks} slots as soon as there is room"


def _cancel(options: "Options") -> "tuple[messages.ResizeRequest, str]":
    (job,) = _words(options, 1, "a job ID")
    request = messages.ResizeRequest(ref=read_refs([job])[0])
    request.action = messages.RESIZE_CANCEL
    return request, "it grows no further"
