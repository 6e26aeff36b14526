"""Limits as shown to users: the usage of each, by the consumers counted together."""

from dataclasses import dataclass

import numpy as np

from lavad.core.cluster_view import ClusterView
from lavad.core.model.rules.names import Names
from lavad.core.state.limits import Counter, LimitKind


@dataclass(frozen=True, slots=True)
class LimitUsage:
    """Usage of one limit by some consumers; the columns of ``blimits``."""

    kind: LimitKind
    name: str  # of the Limit section, or of the row in lsb.users
    what: str  # slots, jobs, mem (MiB) or a resource
    user: str  # the user it is counted for; empty: all users it names together
    queue: str
    project: str
    host: str
    used: float
    most: float
    users: Names
    queues: Names
    projects: Names
    hosts: Names | None
    application: str
    applications: Names


def limit_usage(cluster: ClusterView) -> tuple[LimitUsage, ...]:
    """Every limit of the configuration with usage, in its order; ``bjgroup`` shows those of job groups."""
    rules = {rule: place for place, rule in enumerate(cluster.limits.rules)}
    found: list[LimitUsage] = []
    configured = [one for one in cluster.limits.counters if one.rule.kind is not LimitKind.JOB_GROUP]
    for counter in sorted(configured, key=lambda one: (rules[one.rule], one.members)):
        if counter.rule.each_host:
            found.extend(_on_hosts(cluster, counter))
        elif counter.used:
            found.append(_usage(counter, "", counter.used, counter.rule.amount))
    return tuple(found)


def _on_hosts(cluster: ClusterView, counter: Counter) -> list[LimitUsage]:
    table = cluster.table
    used, most = counter.on_rows(len(table)), cluster.limits.ceilings_on(counter.rule)
    rows = np.flatnonzero(used).tolist()
    return [_usage(counter, table.names[row], float(used[row]), float(most[row])) for row in rows]


def _usage(counter: Counter, host: str, used: float, most: float) -> LimitUsage:
    rule, (user, queue, project, application) = counter.rule, counter.members
    return LimitUsage(
        rule.kind, rule.name, rule.what, user, queue, project, host, used, most,
        rule.users, rule.queues, rule.projects, rule.hosts, application, rule.applications,
    )  # fmt: skip
