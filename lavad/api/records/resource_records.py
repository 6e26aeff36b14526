"""Shared resources of lsf.shared as users see them: total, hosts, and amounts reserved by jobs."""

from collections.abc import Iterator, Mapping

from lavad.core.cluster import Cluster
from lavad.core.model import PARTS
from lavad.core.model.rules.resources import Resource, ResourceKind
from lavad.core.state.hosts.site_resources import ResourceAmounts
from lavad.core.state.hosts.table import natural
from protos import cluster_pb2 as pb


def resources_reply(cluster: Cluster, loads: Mapping[str, pb.Load]) -> pb.ResourcesReply:
    """List each numeric or string resource of lsf.shared that a host has. ``loads``: newest elim values, by host."""
    reply = pb.ResourcesReply()
    for resource in cluster.policy.resources.values():
        record = pb.ResourceRecord(name=resource.name, dynamic=resource.interval_s > 0)
        record.instances.extend(_instances(cluster, resource, loads))
        if record.instances:
            reply.resources.append(record)
    return reply


def definitions_reply(cluster: Cluster) -> pb.ResourcesReply:
    """List the site's resources, and the types and models of hosts with their CPU factors."""
    reply = pb.ResourcesReply()
    for one in cluster.policy.resources.values():
        reply.definitions.add(
            name=one.name,
            kind=one.kind.value,
            increasing=one.is_increasing,
            description=one.description,
            interval_s=one.interval_s,
            consumable=one.is_consumable,
        )
    facts = cluster.table.facts
    reply.types.extend(sorted({host.type for host in facts if host.type}))
    known = {name: (factor, "") for name, factor in cluster.policy.cpu_factors.items()}
    known |= {host.model: (host.cpu_factor, host.type) for host in facts if host.model}
    for name, (factor, kind) in sorted(known.items()):
        reply.models.add(name=name, cpu_factor=factor, type=kind)
    return reply


def _instances(cluster: Cluster, resource: Resource, loads: Mapping[str, pb.Load]) -> Iterator[pb.ResourceInstance]:
    if resource.kind is ResourceKind.STRING:
        yield from _strings(cluster, resource.name)
    elif resource.kind is ResourceKind.NUMERIC:
        amounts = cluster.table.site.amounts(resource.name)
        if amounts is not None:
            yield from _amounts(cluster, amounts, resource.interval_s > 0, loads)


def _strings(cluster: Cluster, name: str) -> Iterator[pb.ResourceInstance]:
    for one in cluster.policy.resource_map:
        hosts = _servers(cluster, [host for host in cluster.hosts if host in one.hosts]) if one.resource == name else []
        if hosts:
            yield pb.ResourceInstance(hosts=hosts, shared=one.is_shared, value=one.value)


def _amounts(
    cluster: Cluster, amounts: ResourceAmounts, is_dynamic: bool, loads: Mapping[str, pb.Load]
) -> Iterator[pb.ResourceInstance]:
    for store in amounts.stores:
        hosts = _servers(cluster, [cluster.table.names[row] for row in store.rows])
        if not hosts:
            continue
        found = pb.ResourceInstance(hosts=hosts, shared=store.is_shared, reserved=store.taken / PARTS)
        if not is_dynamic or any(host in loads and amounts.name in loads[host].external for host in hosts):
            found.total = store.total / PARTS
        yield found


def _servers(cluster: Cluster, hosts: list[str]) -> list[str]:
    """Return the hosts that run jobs: ``all`` in a ResourceMap means these."""
    return sorted((name for name in hosts if (host := cluster.hosts.get(name)) and host.facts.server), key=natural)
