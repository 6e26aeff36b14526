"""Hosts and queues as nodes and partitions: which hosts a queue has, and what sinfo and scontrol show of them."""

import re

from lavactl.slurm.words.states import host_state
from lavactl.views.hosts import gpus_of
from protos import cluster_pb2
from protos.slurm_words import expanded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

    Host = cluster_pb2.HostRecord
    Queue = cluster_pb2.QueueRecord

EVERY = ("all", "others", "allremote")


class Site:
    """Hosts and queues of the cluster, asked for once."""

    def __init__(self, io: "Io") -> None:
        self._io = io
        self.hosts = self._asked([])
        self.by_name = {host.facts.name: host for host in self.hosts}
        self.queues = list(io.client().queues(cluster_pb2.QueuesRequest()).queues)
        self._members: dict[str, list[Host]] = {}
        self._queues: dict[str, list[str]] = {}

    def _asked(self, names: list[str]) -> "list[Host]":
        request = cluster_pb2.HostsRequest(names=names)
        return [host for page in self._io.client().hosts(request) for host in page.hosts]

    def hosts_of(self, queue: "Queue") -> "list[Host]":
        """Hosts of a queue, in the cluster's order."""
        text = queue.parameters.get("HOSTS", "all")
        if text not in self._members:
            self._members[text] = self._resolved(text)
        return self._members[text]

    def _resolved(self, text: str) -> "list[Host]":
        words = [re.sub(r"(\+\d*|!)$", "", word) for word in text.split()]
        taken, left_out = self._named([word for word in words if not word.startswith("~")]), set[str]()
        if excluded := [word[1:] for word in words if word.startswith("~")]:
            left_out = self._named(excluded)
        members = taken - left_out
        return [host for host in self.hosts if host.facts.name in members]

    def _named(self, words: list[str]) -> set[str]:
        if any(word in EVERY for word in words):
            return set(self.by_name)
        names = [name for word in words for name in (expanded(word) if "[" in word else [word])]
        found = {name for name in names if name in self.by_name}
        groups = [name for name in names if name not in self.by_name]
        return found | ({host.facts.name for host in self._asked(groups)} if groups else set())

    def queues_of(self, host: str) -> list[str]:
        """Names of the queues that use a host."""
        if not self._queues and self.queues:
            for queue in self.queues:
                for one in self.hosts_of(queue):
                    self._queues.setdefault(one.facts.name, []).append(queue.name)
        return self._queues.get(host, [])


def availability(queue: "Queue") -> str:
    """up, down (takes jobs and starts none), drain (starts jobs and takes none), inact."""
    if queue.open:
        return "up" if queue.active else "down"
    return "drain" if queue.active else "inact"


def time_limit_s(queue: "Queue") -> int:
    """Run limit of a queue; 0 for none."""
    text = queue.parameters.get("RUNLIMIT", "")
    found = re.search(r"(\d+)(?::(\d+))?", text.split()[-1]) if text.split() else None
    if not found:
        return 0
    return (int(found[1]) * 60 + int(found[2])) * 60 if found[2] else int(found[1]) * 60


def gres_text(host: "Host") -> str:
    """gpu:a100:2; (null) without GPUs."""
    counts: dict[str, int] = {}
    for gpu in gpus_of(host):
        model = re.sub(r"[^a-z0-9._-]", "", (gpu.model or "").lower().replace(" ", "_")) or "gpu"
        counts[model] = counts.get(model, 0) + 1
    return ",".join(f"gpu:{model}:{count}" for model, count in counts.items()) or "(null)"


def cpus_text(hosts: "list[Host]") -> str:
    """Slots as allocated/idle/other/total."""
    used = sum(min(host.njobs, host.slots_max) for host in hosts)
    total = sum(host.slots_max for host in hosts)
    other = sum(host.slots_max - min(host.njobs, host.slots_max) for host in hosts if host_state(host) in OTHER)
    return f"{used}/{total - used - other}/{other}/{total}"


OTHER = ("down", "drain", "drng")
