"""busers: running and pending jobs of users and groups, and their limits, counted in slots."""

from lavactl.errors import FAILURE
from lavactl.options import FLAG, Grammar, answered, printable
from lavactl.text.render import MISSING, clean
from lavactl.text.units import number_text
from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: busers [-w] [user ... | user_group ... | all]
       busers -h | -V
"""
GRAMMAR = Grammar("busers", USAGE, {"w": FLAG, **dict.fromkeys(("l", "alloc", "o"), "not supported yet.")})
HEADER = "USER/GROUP          JL/P    MAX  NJOBS   PEND    RUN  SSUSP  USUSP    RSV"
WIDE_HEADER = HEADER + "  MPEND  PJOBS MPJOBS"


def main(argv: list[str], io: "Io") -> int:
    """Run busers."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    everybody = "all" in options.words
    names = [] if everybody else options.words
    accounts = [name for name in names if io.home_of(name) is not None]
    request = cluster_pb2.UsersRequest(names=names, everybody=everybody, accounts=accounts)
    reply = io.client().users(request)
    is_wide = "w" in options
    if reply.users:
        io.print(WIDE_HEADER if is_wide else HEADER)
        io.print("\n".join(row(user, is_wide) for user in reply.users))
    io.flush()
    for name in reply.missing:
        io.error(f"{printable(name)}: No such user/user group")
    return FAILURE if reply.missing else 0


def row(user: cluster_pb2.UserRecord, is_wide: bool) -> str:
    """One line of the table; a group has a slash appended to its name."""
    name = clean(user.name) + "/" * user.is_group
    per_processor = number_text(user.per_processor) if user.HasField("per_processor") else MISSING
    most = str(user.max) if user.HasField("max") else MISSING
    counts = (most, user.njobs, user.pend, user.run, user.ssusp, user.ususp, user.rsv)
    line = f"{name if is_wide else name[:18]:<18} {per_processor:>5}" + "".join(f" {count:>6}" for count in counts)
    if not is_wide:
        return line
    slots = str(user.pend_max) if user.HasField("pend_max") else MISSING
    jobs = str(user.pending_jobs_max) if user.HasField("pending_jobs_max") else MISSING
    return f"{line} {slots:>6} {user.pending_jobs:>6} {jobs:>6}"
