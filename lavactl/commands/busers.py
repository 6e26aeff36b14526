"""busers: running and pending jobs of users and groups, and their limits, counted in slots."""

from lavactl.errors import FAILURE
from lavactl.options import FLAG, VALUE, Grammar, answered, printable
from lavactl.text.fields import show_fields
from lavactl.text.render import MISSING, clean
from lavactl.text.units import number_text
from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from lavactl.io import Io

USAGE = """\
Usage: busers [-w | -o "field ..." [-json]] [-alloc] [user ... | user_group ... | all]
       busers -h | -V
  -alloc  count all slots of its hosts for an exclusive job
"""
GRAMMAR = Grammar(
    "busers",
    USAGE,
    {
        **dict.fromkeys(("w", "json", "alloc"), FLAG),
        "o": VALUE,
        "l": "the manual of LSF's busers describes no such option; -w shows all columns.",
    },
)
HEADER = "USER/GROUP          JL/P    MAX  NJOBS   PEND    RUN  SSUSP  USUSP    RSV"
WIDE_HEADER = HEADER + "  MPEND  PJOBS MPJOBS"
# Field of -o: recommended width and reader.
FIELDS: "dict[str, tuple[int, Callable[[cluster_pb2.UserRecord], str]]]" = {
    "user": (15, lambda user: name_of(user)),
    "jl/p": (6, lambda user: per_processor(user)),
    "max": (6, lambda user: bound(user, "max")),
    "nstart": (6, lambda user: str(user.run + user.ssusp + user.ususp)),
    "pend": (6, lambda user: str(user.pend)),
    "run": (6, lambda user: str(user.run)),
    "ssusp": (6, lambda user: str(user.ssusp)),
    "ususp": (6, lambda user: str(user.ususp)),
    "rsv": (6, lambda user: str(user.rsv)),
    "njobs": (6, lambda user: str(user.njobs)),
    "pjobs": (6, lambda user: str(user.pending_jobs)),
    "mpend": (6, lambda user: bound(user, "pend_max")),
    "mpjobs": (6, lambda user: bound(user, "pending_jobs_max")),
}


def main(argv: list[str], io: "Io") -> int:
    """Run busers."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    form = options.last("o")
    if form is None and "w" not in options:
        form = io.setting("LSB_BUSERS_FORMAT") or None
    if "json" in options and form is None:
        raise GRAMMAR.wrong("-json needs -o")
    if "w" in options and form is not None:
        raise GRAMMAR.wrong("-w and -o cannot be used together")
    everybody = "all" in options.words
    names = [] if everybody else options.words
    accounts = [name for name in names if io.home_of(name) is not None]
    request = cluster_pb2.UsersRequest(
        names=names, everybody=everybody, accounts=accounts, allocated="alloc" in options
    )
    reply = io.client().users(request)
    is_wide = "w" in options
    if form is not None and reply.users:
        show_fields(reply.users, form, FIELDS, {}, options, io, ("busers", "USERS"))
    elif reply.users:
        io.print(WIDE_HEADER if is_wide else HEADER)
        io.print("\n".join(row(user, is_wide) for user in reply.users))
    io.flush()
    for name in reply.missing:
        io.error(f"{printable(name)}: No such user/user group")
    return FAILURE if reply.missing else 0


def row(user: cluster_pb2.UserRecord, is_wide: bool) -> str:
    """One line of the table."""
    name = name_of(user)
    counts = (bound(user, "max"), user.njobs, user.pend, user.run, user.ssusp, user.ususp, user.rsv)
    line = f"{name if is_wide else name[:18]:<18} {per_processor(user):>5}" + "".join(
        f" {count:>6}" for count in counts
    )
    if not is_wide:
        return line
    return f"{line} {bound(user, 'pend_max'):>6} {user.pending_jobs:>6} {bound(user, 'pending_jobs_max'):>6}"


def name_of(user: cluster_pb2.UserRecord) -> str:
    """Name; that of a group has a slash appended."""
    return clean(user.name) + "/" * user.is_group


def per_processor(user: cluster_pb2.UserRecord) -> str:
    """JL/P."""
    return number_text(user.per_processor) if user.HasField("per_processor") else MISSING


def bound(user: cluster_pb2.UserRecord, name: str) -> str:
    """A limit, or a dash without one."""
    return str(getattr(user, name)) if user.HasField(name) else MISSING
