"""brsvs: advance reservations; with -l in full, with -p and -z as weekly plans of reserved slots."""

import time

from lavactl.errors import FAILURE
from lavactl.options import FLAG, VALUE, Grammar, answered
from lavactl.text.render import MISSING, clean
from lavactl.views import planner
from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: brsvs [-l | -w] [reservation ...]
       brsvs [-p | -z] {all | "host ..."}
       brsvs -c {all | "policy ..."}
       brsvs -h | -V
"""
GRAMMAR = Grammar("brsvs", USAGE, {**dict.fromkeys(("l", "w"), FLAG), **dict.fromkeys(("p", "z", "c"), VALUE)})
NONE_FOUND = "No reservation found"
HEADER = ("RSVID", "TYPE", "USER", "NCPUS", "RSV_HOSTS", "TIME_WINDOW")
WIDTHS = (11, 7, 9, 9, 16, 0)


def main(argv: list[str], io: "Io") -> int:
    """Run brsvs."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    reply = io.client().reservations(cluster_pb2.ReservationsRequest(names=options.words))
    policies, hosts = options.last("c"), options.last("p", "z")
    if policies is not None:
        return show_policies(reply, policies, io)
    for name in reply.missing:
        io.error(f"{clean(name)}: No such reservation")
    if not reply.reservations:
        if not reply.missing:
            io.error(NONE_FOUND)
        return FAILURE
    if hosts is not None:
        named = None if hosts == "all" else hosts.split()
        io.print("\n\n".join(planner.plans(list(reply.reservations), named, "z" in options, io.now())) or NONE_FOUND)
    elif "l" in options:
        io.print("\n\n".join(long_text(one) for one in reply.reservations))
    else:
        io.print(table(list(reply.reservations), "w" in options))
    return FAILURE if reply.missing else 0


def table(records: list[cluster_pb2.ReservationRecord], uncut: bool) -> str:
    """A line for each host of each reservation; the first also holds the columns common to all."""
    rows = [HEADER, *(row for record in records for row in rows_of(record, uncut))]
    widths = [max(least, max(len(row[at]) for row in rows)) for at, least in enumerate(WIDTHS)]
    return "\n".join(" ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
                     for row in rows)  # fmt: skip


def rows_of(record: cluster_pb2.ReservationRecord, uncut: bool) -> list[tuple[str, ...]]:
    """Used and reserved slots, in total and on each host."""
    name = clean(record.name)
    used, slots = sum(host.used for host in record.hosts), sum(host.slots for host in record.hosts)
    users = " ".join(map(clean, record.holders)) or "system"
    first = (name if uncut else name[: WIDTHS[0]], record.kind, users, f"{used}/{slots}")
    hosts = [f"{clean(host.host)}:{host.used}/{host.slots}" for host in record.hosts] or [MISSING]
    rest = [("", "", "", "", host, "") for host in hosts[1:]]
    return [(*first, hosts[0], window_text(record)), *rest]


def window_text(record: cluster_pb2.ReservationRecord) -> str:
    """``11/12/6/0-11/12/8/0``; the configured windows of a recurring reservation, with an asterisk."""
    if record.windows:
        return f"{clean(record.windows)} *"
    return f"{date_text(record.begins_at)}-{date_text(record.ends_at)}"


def date_text(moment: float) -> str:
    """Month, day, hour and minute, without leading zeros."""
    local = time.localtime(moment)
    return f"{local.tm_mon}/{local.tm_mday}/{local.tm_hour}/{local.tm_min}"


def long_text(record: cluster_pb2.ReservationRecord) -> str:
    """Full description of one reservation, with its table."""
    lines = [table([record], True), f"Reservation Status: {'Active' if record.is_active else 'Inactive'}"]
    if record.description:
        lines.append(f"Description: {clean(record.description)}")
    lines.append(f"Creator: {clean(record.creator)}")
    lines.append(f"Reservation Type: {'OPEN' if record.is_open else 'CLOSED'}")
    for title, jobs in (("PEND Jobs", record.waiting), ("RUN Jobs", record.running)):
        if jobs:
            lines.append(f"{title}: {' '.join(map(str, jobs))}")
    lines.append(f"Resource Unit: {'Host' if record.whole_hosts else 'Slot'}")
    if record.queues:
        lines.append(f"Queues that may use it before it begins: {' '.join(map(clean, record.queues))}")
    lines.append(f"Start action: {'leave others alone' if record.leaves_others else 'suspend others as needed'}")
    return "\n".join(lines)


def show_policies(reply: cluster_pb2.ReservationsReply, named: str, io: "Io") -> int:
    """ResourceReservation sections of lsb.resources."""
    rules = [rule for rule in reply.rules if named == "all" or rule.name in named.split()]
    texts = [
        f"Policy Name: {clean(rule.name)}\nUsers: {clean(rule.users) or 'all'}\nHosts: {clean(rule.hosts) or 'all'}\n"
        f"Time Window: {clean(rule.windows) or 'all'}"
        for rule in rules
    ]
    if not texts:
        io.error("No reservation policy found")
        return FAILURE
    io.print("\n\n".join(texts))
    return 0
