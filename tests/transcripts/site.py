"""Site resources, groups and racks of a transcript, and its hosts in full, from words."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from lavad.core.model import LOAD_INDICES, Device, HostFacts
from lavad.core.model.policy import Policy
from lavad.core.model.rules.names import Names
from lavad.core.model.rules.resources import ComputeUnit, Resource, ResourceInstance, ResourceKind
from tests.builders import a_host

NUMBERS = {"memory", "cpus", "cores", "swap", "tmp", "gpu_memory"}


def policy(words: Iterable[str], before: Policy) -> Policy:
    """``lic=4@all`` (shared), ``scratch=100@each``, ``fast=@n1,n2`` (boolean), ``fpga=2@n1#`` (indexed),

    ``group.big=n1,n2``, ``rack.r1=n1,n2``.
    """
    resources, where = dict(before.resources), list(before.resource_map)
    groups, units = dict(before.host_groups), list(before.compute_units)
    for word in words:
        name, _, value = word.partition("=")
        kind, dot, own = name.partition(".")
        if dot and kind == "group":
            groups[own] = Names(False, frozenset(value.split(",")))
        elif dot:
            units.append(ComputeUnit(own, kind, Names(False, frozenset(value.split(",")))))
        else:
            amount, _, hosts = value.partition("@")
            resources[name] = _resource(name, amount, hosts.endswith("#"))
            where.append(_instance(name, amount, hosts.removesuffix("#")))
    types = tuple(dict.fromkeys(unit.type for unit in units))
    return replace(
        before,
        resources=resources,
        resource_map=tuple(where),
        host_groups=groups,
        compute_units=tuple(units),
        compute_unit_types=types,
    )


def _resource(name: str, amount: str, is_indexed: bool) -> Resource:
    if not amount:
        return Resource(name)
    if amount == "elim":
        return Resource(name, ResourceKind.NUMERIC, interval_s=10)
    kind = ResourceKind.NUMERIC if amount.replace(".", "").isdigit() else ResourceKind.STRING
    return Resource(name, kind, is_indexed=is_indexed)


def _instance(name: str, amount: str, hosts: str) -> ResourceInstance:
    if hosts in ("all", "each"):
        return ResourceInstance(name, amount, is_shared=hosts == "all")
    return ResourceInstance(name, amount, Names(False, frozenset(hosts.split(","))), is_shared="," in hosts)


def host(name: str, slots: str, words: Iterable[str]) -> HostFacts:
    """``memory=8000 cores=8 model=epyc type=ARM has=ib,fast``; ``gpus=8 links=4`` makes groups of linked GPUs.

    ``can_set_gpu_mode=yes has_mps=yes`` are capabilities of its agent.
    """
    values: dict[str, Any] = {}
    for word in words:
        key, _, value = word.partition("=")
        values[key] = int(value) if key in NUMBERS or key in ("gpus", "links") else value
    memory = values.pop("memory", 8000)
    gpus, links = values.pop("gpus", 0), values.pop("links", 0)
    devices = _devices(gpus, links, values.pop("gpu_model", "A100"), values.pop("gpu_memory", 80000)) if gpus else ()
    cores = values.pop("cores", 0)
    topology = ",".join(f"{cpu} {cpu} {cpu * 2 // cores} {cpu * 2 // cores}" for cpu in range(cores))
    facts: dict[str, Any] = {"cores": cores, "topology": topology, "cpus": cores or 1, "devices": devices}
    facts |= {"resources": frozenset(values.pop("has", "").split(",")) - {""}}
    facts |= {key: values.pop(key) == "yes" for key in ("can_set_gpu_mode", "has_mps") if key in values}
    facts |= {f"{key}_mib": values.pop(key) for key in ("swap", "tmp") if key in values}
    return a_host(name, int(slots), memory, gpus, **facts, **values)


def _devices(gpus: int, links: int, model: str, memory_mib: int) -> tuple[Device, ...]:
    """GPUs in linked groups of ``links``; the first half is on node 0."""
    found = []
    for number in range(gpus):
        peers = [peer for peer in range(gpus) if links and peer // links == number // links and peer != number]
        found.append(Device(model, memory_mib, number * 2 // gpus, sum(1 << peer for peer in peers)))
    return tuple(found)


def load(words: Iterable[str]) -> tuple[list[float], dict[str, float]]:
    """``r15s=0.5 mem=4000 scratch=12``: load indices in their order, and elim values."""
    values = {name: float(value) for name, _, value in (word.partition("=") for word in words)}
    indices = [values.pop(name, 0.0) for name in LOAD_INDICES]
    return indices, values
