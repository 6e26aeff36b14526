"""QUEUE_GROUP of lsb.queues: queues whose pending jobs are ordered with those of the queue that names them."""

from collections.abc import Mapping
from dataclasses import replace

from lavad.config.grammar import Row
from lavad.config.site import Site
from lavad.core.model.rules.queues import Queue


def join_queues(
    queues: dict[str, Queue], groups: Mapping[str, tuple[str, ...]], rows: Mapping[str, Row], site: Site
) -> None:
    """Give the members of each group the absolute priority and the place of the queue that names them."""
    owners: dict[str, str] = {}
    for name, members in groups.items():
        cell, first = rows[name]["QUEUE_GROUP"], queues[name]
        if first.absolute is None:
            site.warn(cell, "QUEUE_GROUP: it has no effect without APS_PRIORITY")
            continue
        for other in dict.fromkeys(members):
            if other == name:
                continue
            if other in groups or other in owners:
                site.wrong(cell, f"QUEUE_GROUP: queue {other} is in another group, or names one of its own")
                continue
            owners[other] = name
            if queues[other].absolute is not None:
                site.warn(cell, f"QUEUE_GROUP: APS_PRIORITY of queue {other} does not count, but that of {name}")
            queues[other] = replace(queues[other], absolute=first.absolute, group_priority=first.priority)
