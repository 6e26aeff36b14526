"""Configuration check and reconfiguration as badmin and lsadmin print them."""

from lavactl.errors import FAILURE, CommandError
from lavactl.text.render import clean
from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

FATES = ("honoured", "ignored", "unknown")


def check(io: "Io", verbose: bool) -> int:
    """ckconfig: print every complaint, and with ``verbose`` the status of every setting."""
    io.print("\nChecking configuration files ...\n")
    reply = io.client().configure(cluster_pb2.ConfigureRequest())
    if verbose:
        show_entries(reply, io)
    return conclude(reply, io)


def reconfigure(io: "Io", verbose: bool, comment: str = "") -> int:
    """reconfig: the same check; without errors the master applies the files."""
    io.print("\nChecking configuration files ...\n")
    reply = io.client().configure(cluster_pb2.ConfigureRequest(apply=True, comment=comment))
    if verbose:
        show_entries(reply, io)
    code = conclude(reply, io)
    if reply.applied:
        io.print("Reconfiguration initiated")
    return code


def conclude(reply: cluster_pb2.ConfigureReply, io: "Io") -> int:
    """Print the complaints and LSF's closing line; the exit code."""
    io.flush()
    for complaint in reply.complaints:
        place = f"{complaint.file}:{complaint.line}" if complaint.line else complaint.file
        kind = "" if complaint.fatal else "warning: "
        io.error(clean(f"{place}: {kind}{complaint.text}"))
    if any(complaint.fatal for complaint in reply.complaints):
        raise CommandError("There are fatal errors.", FAILURE)
    io.print("There are warning errors." if reply.complaints else "No errors found.")
    if not reply.files:
        io.print("There are no configuration files of LSF: the built-in queues are in force.")
    return 0


def show_entries(reply: cluster_pb2.ConfigureReply, io: "Io") -> None:
    """Print every setting grouped by status (honoured, ignored, unknown), with the reason where it has no effect."""
    for file in reply.files:
        io.print(clean(file))
    for fate in FATES:
        found = [entry for entry in reply.entries if entry.fate == fate]
        io.print(f"\n{len(found)} setting{' is' if len(found) == 1 else 's are'} {fate}" + (":" if found else "."))
        for entry in found:
            name = entry.file.rpartition("/")[2]
            note = f" ({entry.note})" if entry.note else ""
            io.print(clean(f"  {name}:{entry.line} {entry.name}{note}"))
    io.print()
