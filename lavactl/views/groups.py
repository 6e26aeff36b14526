"""Tables of user groups, host groups and compute units; bugroup and bmgroup differ only in the noun."""

from lavactl.errors import FAILURE
from lavactl.options import printable
from lavactl.text.render import clean
from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from lavactl.io import Io
    from lavactl.options import Options


def show_groups(options: "Options", io: "Io", *, hosts: bool) -> int:
    """Print the members of the named groups, or of all; with -cu, of compute units."""
    units = "cu" in options
    request = cluster_pb2.GroupsRequest(names=options.words, hosts=hosts, flat="r" in options, units_only=units)
    reply = io.client().groups(request)
    noun = "host" if hosts else "user"
    kind = "compute unit" if units else f"{noun} group"
    if "l" in options:
        io.print("\n\n".join(long_text(group, noun) for group in reply.groups))
    elif reply.groups:
        io.print(units_table(reply.groups) if units else groups_table(reply.groups, noun))
    io.flush()
    for name in reply.missing:
        io.error(f"{printable(name)}: No such {kind}")
    if not reply.groups and not reply.missing:
        io.error(f"No {kind} found")
    return 0 if reply.groups and not reply.missing else FAILURE


def groups_table(groups: "Iterable[cluster_pb2.GroupRecord]", noun: str) -> str:
    """A line for each group."""
    rows = (f"{clean(group.name):<12}  {members_text(group, noun)}" for group in groups)
    return "\n".join([f"GROUP_NAME    {noun.upper()}S", *rows])


def units_table(groups: "Iterable[cluster_pb2.GroupRecord]") -> str:
    """A line for each compute unit."""
    rows = [("NAME", "TYPE", "HOSTS")]
    rows += [(clean(unit.name), clean(unit.type), members_text(unit, "host")) for unit in groups]
    return "\n".join("{:<12}  {:<12}  {}".format(*row) for row in rows)


def members_text(group: cluster_pb2.GroupRecord, noun: str) -> str:
    """Group members; nested groups have a slash appended."""
    if list(group.members) == ["all"]:
        return f"all {noun}s"
    return clean(" ".join(group.members))


def long_text(group: cluster_pb2.GroupRecord, noun: str) -> str:
    """One group with its shares and administrators, or one compute unit with its type."""
    lines = [f"GROUP_NAME:  {clean(group.name)}", f"{noun.upper()}S:  {members_text(group, noun)}"]
    if group.type:
        lines = [f"NAME:  {clean(group.name)}", f"TYPE:  {clean(group.type)}", lines[1]]
    if group.shares:
        lines.append("SHARES:  " + " ".join(f"[{clean(share.name)}, {share.shares}]" for share in group.shares))
    if group.administrators:
        lines.append(f"GROUP_ADMIN:  {clean(' '.join(group.administrators))}")
    return "\n".join(lines)
