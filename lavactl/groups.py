"""Groups of users and of hosts as tables: bugroup and bmgroup differ in words only."""

from lavactl.errors import FAILURE
from lavactl.options import printable
from lavactl.render import clean
from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io
    from lavactl.options import Options


def show_groups(options: "Options", io: "Io", *, hosts: bool) -> int:
    """Members of the groups named, or of all."""
    request = cluster_pb2.GroupsRequest(names=options.words, hosts=hosts, flat="r" in options)
    reply = io.client().groups(request)
    noun = "host" if hosts else "user"
    if "l" in options:
        io.print("\n\n".join(long_text(group, noun) for group in reply.groups))
    elif reply.groups:
        io.print(f"GROUP_NAME    {noun.upper()}S")
        io.print("\n".join(f"{clean(group.name):<12}  {members_text(group, noun)}" for group in reply.groups))
    io.flush()
    for name in reply.missing:
        io.error(f"{printable(name)}: No such {noun} group")
    if not reply.groups and not reply.missing:
        io.error(f"No {noun} group found")
    return 0 if reply.groups and not reply.missing else FAILURE


def members_text(group: cluster_pb2.GroupRecord, noun: str) -> str:
    """Members, inner groups with a slash behind them."""
    if list(group.members) == ["all"]:
        return f"all {noun}s"
    return clean(" ".join(group.members))


def long_text(group: cluster_pb2.GroupRecord, noun: str) -> str:
    """One group with its shares and administrators."""
    lines = [f"GROUP_NAME:  {clean(group.name)}", f"{noun.upper()}S:  {members_text(group, noun)}"]
    if group.shares:
        lines.append("SHARES:  " + " ".join(f"[{clean(share.name)}, {share.shares}]" for share in group.shares))
    if group.administrators:
        lines.append(f"GROUP_ADMIN:  {clean(' '.join(group.administrators))}")
    return "\n".join(lines)
