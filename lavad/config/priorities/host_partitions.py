"""HostPartition sections of lsb.hosts: HPART_NAME, HOSTS, USER_SHARES.

The hosts of a partition are a host group of its name, as in LSF. Its shares order the jobs of the queues that use them,
so a queue with an order by users of its own is refused there.
"""

from collections.abc import Iterable
from dataclasses import replace

from lavad.config import names, shares, users
from lavad.config.grammar import Cell, Document, Row
from lavad.config.site import Fields, Honoured, Site, Table, required, sets
from lavad.core.model.priorities.host_partition import HostPartition
from lavad.core.model.priorities.job_order import JobOrder
from lavad.core.model.rules.names import MemberChange
from lavad.core.model.rules.queues import Queue
from lavad.core.model.rules.users import Fairshare

HOST_PARTITION: Table = {
    "HPART_NAME": sets("name", str, "the partition's name, also of the host group of its hosts; required"),
    "HOSTS": Honoured(
        lambda text, site: {"hosts": names.hosts(text, site)}, "its hosts: hosts, groups, ranges, `all ~h`; required"
    ),
    "USER_SHARES": Honoured(
        lambda text, site: {"shares": shares.share_list(text, site)},
        "`[name,shares] ...`: shares of users and groups on these hosts, across queues; required",
    ),
}


def read_partitions(document: Document, groups: dict[str, Row], site: Site) -> tuple[HostPartition, ...]:
    """Read the partitions, and make a host group of each. ``groups`` are the other host groups by name."""
    rows: dict[str, Row] = {}
    found: list[HostPartition] = []
    for section in document.of("HostPartition"):
        for row in section.rows:
            fields = site.read(row, HOST_PARTITION)
            name, *needed = [required(row, word, section, site) for word in HOST_PARTITION]
            if not (name and all(needed)):
                continue
            if name in groups:
                site.wrong(row["HPART_NAME"], f"HPART_NAME = {name}: there is a host group of this name already")
                continue
            users.add_named(rows, name, row, row["HPART_NAME"], "host partition", site)
            if rows.get(name) is row and "hosts" in fields and "shares" in fields:
                change = site.group_changes.get(name, MemberChange())
                words = tuple(users.shown(word, site.host_groups) for word in row["HOSTS"].text.split())
                hosts = site.host_groups[name] = change.of(fields["hosts"])
                written = names.changed_words(words, change)
                found.append(HostPartition(name, hosts, Fairshare(fields["shares"]), written))
    return tuple(found)


def with_factors(
    partitions: Iterable[HostPartition], queues: Iterable[Queue], plain: Fields, document: Document, site: Site
) -> tuple[HostPartition, ...]:
    """Give the partitions the factors of lsb.params, and check the queues that use their hosts."""
    cells = {
        row["HPART_NAME"].text: row["HOSTS"]
        for section in document.of("HostPartition")
        for row in section.rows
        if "HPART_NAME" in row and "HOSTS" in row
    }
    factors = {name.removeprefix("fairshare."): value for name, value in plain.items() if name.startswith("fairshare.")}
    served: dict[str, str] = {}
    made = [replace(one, fairshare=replace(one.fairshare, **factors)) for one in partitions]
    for one in made:
        for queue in queues:
            if one.serves(queue):
                _check(one, queue, served, cells[one.name], site)
    return tuple(made)


def _check(one: HostPartition, queue: Queue, served: dict[str, str], cell: Cell, site: Site) -> None:
    """Refuse a queue with shares or an order of its own; warn of one that also uses other hosts."""
    where = f"HostPartition {one.name}: queue {queue.name}"
    own = (
        ("FAIRSHARE", queue.fairshare is not None),
        ("ROUND_ROBIN_POLICY", queue.order is JobOrder.ROUND_ROBIN),
        ("APS_PRIORITY", queue.absolute is not None),
    )
    for word, holds in own:
        if holds:
            site.wrong(cell, f"{where} uses its hosts and has {word}; there can be only one of the two")
    first = served.setdefault(queue.name, one.name)
    if first != one.name:
        site.warn(cell, f"{where} uses hosts of {first}, too, whose shares alone count for its jobs")
    elif not one.holds(queue):
        site.warn(cell, f"{where} also uses other hosts; the shares count for all its jobs")
