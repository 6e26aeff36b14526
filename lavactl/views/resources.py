"""Site-defined resources in host listings: the tables of -s, and the columns that -l adds to LSF's indices."""

from lavactl.errors import FAILURE
from lavactl.text.render import MISSING, clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lavactl.io import Io
    from protos import cluster_pb2

    Record = cluster_pb2.ResourceRecord
    Instance = cluster_pb2.ResourceInstance

LINE_MAX = 80
PLACE = 52  # column where the hosts of a line begin
TABLE_WIDTH = 6  # columns of `own_table` side by side
HEADER = f"{'RESOURCE':<25}{'VALUE':>20}{'LOCATION':>15}"
RESERVED_HEADER = f"{'RESOURCE':<20}{'TOTAL':>10}{'RESERVED':>15}{'LOCATION':>15}"


def show_values(names: list[str], io: "Io", *, dynamic: bool) -> int:
    """``lsload -s`` (dynamic) and ``lshosts -s``: values of shared resources, of these names or all; the exit code."""
    none = f"No {'dynamic' if dynamic else 'static'} shared resources defined"
    return _show(names, io, HEADER, none, lambda one: one.dynamic is dynamic, value_row)


def show_amounts(names: list[str], io: "Io") -> int:
    """``bhosts -s``: numeric shared resources with the amounts reserved by jobs; the exit code."""
    return _show(names, io, RESERVED_HEADER, "No shared resources defined", lambda one: True, amount_row)


def _show(
    names: list[str],
    io: "Io",
    header: str,
    none: str,
    is_meant: "Callable[[Record], bool]",
    row: "Callable[[str, Instance], str]",
) -> int:
    records = list(io.client().resources().resources)
    known = {one.name for one in records}
    missing = [name for name in names if name not in known]
    for name in missing:
        io.error(f"{clean(name)}: Bad resource name")
    meant = [one for one in records if is_meant(one) and (not names or one.name in names)]
    rows = "".join(row(one.name, instance) for one in meant for instance in one.instances if instance.shared)
    if rows:
        io.print(header)
        io.print(rows, end="")
    elif not missing:
        io.print(none)
    return FAILURE if missing else 0


def value_row(name: str, instance: "Instance") -> str:
    """One line of ``lsload -s`` and ``lshosts -s``; continuation lines where the hosts need them."""
    return _with_hosts(f"{name:<25}{value_of(instance):>20}", instance.hosts)


def amount_row(name: str, instance: "Instance") -> str:
    """One line of ``bhosts -s``: TOTAL is the amount left for jobs, as in LSF; empty for a string resource."""
    if instance.value:
        return ""
    left = f"{instance.total - instance.reserved:.1f}" if instance.HasField("total") else MISSING
    return _with_hosts(f"{name:<20}{left:>10}{instance.reserved:>15.1f}", instance.hosts)


def value_of(instance: "Instance") -> str:
    """String as it is, number with one decimal; ``-`` if no elim has reported it."""
    if instance.value:
        return clean(instance.value)
    return f"{instance.total:.1f}" if instance.HasField("total") else MISSING


def _with_hosts(start: str, hosts: "Iterable[str]") -> str:
    lines = [start.ljust(PLACE)]
    for host in hosts:
        if len(lines[-1]) > PLACE and len(lines[-1]) + len(host) + 1 > LINE_MAX:
            lines.append(" " * PLACE)
        lines[-1] += f"{host} "
    return "\n".join(line.rstrip() for line in lines) + "\n"


def of_hosts(records: "Iterable[Record]") -> "dict[str, dict[str, Instance]]":
    """Host -> resource -> its instance on that host."""
    found: dict[str, dict[str, Instance]] = {}
    for record in records:
        for instance in record.instances:
            for host in instance.hosts:
                found.setdefault(host, {})[record.name] = instance
    return found


def own_table(mine: "dict[str, Instance]") -> list[str]:
    """``bhosts -l``: the host's numeric resources below LSF's own indices, in rows of ``TABLE_WIDTH``."""
    numeric = [(name, one) for name, one in mine.items() if not one.value]
    lines: list[str] = []
    for at in range(0, len(numeric), TABLE_WIDTH):
        some = numeric[at : at + TABLE_WIDTH]
        lines += ["", " " * 10 + "".join(f" {clean(name):>12}" for name, _ in some)]
        lines.append(" Total    " + "".join(f" {value_of(one):>12}" for _, one in some))
        lines.append(" Reserved " + "".join(f" {one.reserved:>12.1f}" for _, one in some))
    return lines


def load_names(records: "Iterable[Record]") -> list[str]:
    """``lsload -l``: names of the columns after LSF's indices: resources that elims report."""
    return [record.name for record in records if record.dynamic]


def load_header(names: list[str]) -> str:
    """Header of these columns."""
    return "".join(f"{clean(name):>{len(name) + 2}}" for name in names)


def load_values(names: list[str], mine: "dict[str, Instance]") -> str:
    """Values of these columns for one host; ``-`` if the host lacks the resource or no elim has reported it."""
    return "".join(f" {load_of(name, mine):>{len(name) + 1}}" for name in names)


def load_of(name: str, mine: "dict[str, Instance]") -> str:
    """Value of one of these resources on a host; ``-`` if the host lacks it or no elim has reported it."""
    return value_of(mine[name]) if name in mine else MISSING
