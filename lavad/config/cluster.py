"""lsf.shared and lsf.cluster.NAME: hosts, host models and resources of a site, and its cluster administrators."""

import re
from collections.abc import Mapping

from lavad.config import hosts, names, queues
from lavad.config import values as v
from lavad.config.grammar import Document
from lavad.config.site import Fate, Fields, Honoured, Ignored, Site, Table, check_sections, required, sets
from lavad.config.values import Wrong
from lavad.core.model.host_config import REVOCABLE
from lavad.core.model.rules.hosts import HostRule
from lavad.core.model.rules.resources import Resource, ResourceInstance, ResourceKind

_RESOURCE_NAME = re.compile(r"[A-Za-z_]\w{0,38}\Z")
_BUILT_IN = frozenset((*queues.INDICES, *queues.ALIASES, "ncpus", "ndisks", "maxmem", "maxswp", "maxtmp", "cpuf",
                       "type", "model", "hname", "status", "rexpri", "server", "slots", "maxslots", "nprocs",
                       "ncores", "nthreads", "ngpus", "ngpus_physical"))  # fmt: skip
# LSF's GPU resources: its installer defines and places them; here agents detect GPUs themselves.
_OF_GPUS = frozenset(("ngpus", "ngpus_physical", "ngpus_shared", "ngpus_excl_t", "ngpus_excl_p", "ngpus_prohibited"))
_GPUS_COUNTED = "agents find GPUs by themselves"
# Boolean resources that LSF's installer writes into lsf.shared: known where there is no such file, though no host has
# them then, so that requirements such as `!mg` mean what they mean there.
INSTALLED = {
    "aix": "AIX",
    "alpha": "Alpha processors",
    "bigmem": "much memory",
    "bluegene": "Blue Gene",
    "cpuset": "sets of processors",
    "craylinux": "Cray's Linux environment",
    "crayx1": "MPI of the Cray X1",
    "crayxt3": "MPI of the Cray XT3",
    "cs": "compute server",
    "define_ncpus_cores": "cores count as processors",
    "define_ncpus_procs": "processors count as processors",
    "define_ncpus_threads": "threads count as processors",
    "diskless": "no disk",
    "dist": "distributed",
    "frame": "licence of FrameMaker",
    "fs": "file server",
    "hpmpi": "MPI of HP",
    "hpux": "HP-UX",
    "ibmmpi": "MPI of IBM's POE",
    "intelmpi": "MPI of Intel",
    "irix": "IRIX",
    "lammpi": "LAM/MPI",
    "linux": "Linux",
    "mg": "management host",
    "mips": "MIPS processors",
    "mpich_gm": "MPICH over GM",
    "mpich_mx": "MPICH over MX",
    "mpichp4": "MPICH with P4",
    "mpichsharemem": "MPICH in shared memory",
    "mvapich": "MPI over InfiniBand",
    "nt": "Windows",
    "openmpi": "Open MPI",
    "pset": "sets of processors of HP-UX",
    "rms": "RMS of Quadrics",
    "sca_mpimon": "MPI of Scali",
    "sgimpi": "MPI of SGI",
    "slurm": "Slurm",
    "solaris": "Solaris",
    "sparc": "SPARC processors",
    "vnode": "node that an integration made up",
}
_PLACE = re.compile(r"\s*(?:([^\s\[\]@]+)\s*@\s*)?\[([^\[\]]*)\]")
RESOURCE_NAME_MAX = 39


def _kind(text: str) -> ResourceKind:
    found = {kind.value.lower(): kind for kind in ResourceKind}.get(text.lower())
    if found is None:
        raise Wrong("expected Boolean, Numeric or String")
    return found


def _factor(text: str) -> float:
    factor = v.decimal(text, 0.0, 1e6)
    if not factor:
        raise Wrong("expected a CPU factor above 0")
    return factor


def _detected(text: str) -> str:
    """Read a model or type; ``!`` leaves it to the agent."""
    return "" if text == "!" else text


def _resources(text: str, site: Site) -> Fields:
    has, exclusive = set(), set()
    for word in text.split():
        name = word.removeprefix("!")
        if name == REVOCABLE:
            has.add(name)
            continue
        if name not in site.resources or site.resources[name].kind is not ResourceKind.BOOLEAN:
            site.asides.append(f"{name}: no Boolean resource of lsf.shared; the host is without it")
            continue
        has.add(name)
        if name != word:
            exclusive.add(name)
    return {"resources": frozenset(has), "exclusive_resources": frozenset(exclusive)}


HOST_TYPE: Table = {"TYPENAME": sets("name", str, "a host type")}
HOST_MODEL: Table = {
    "MODELNAME": sets("name", str, "a host model"),
    "CPUFACTOR": sets("factor", _factor, "CPU factor of hosts of this model"),
    "ARCHITECTURE": Ignored("agents find out the model by themselves"),
}
RESOURCE: Table = {
    "RESOURCENAME": sets("name", str, "the resource's name; required"),
    "TYPE": sets("kind", _kind, "Boolean, Numeric or String"),
    "INTERVAL": sets("interval_s", v.decimal, "seconds between reports of an elim; empty: static"),
    "INCREASING": sets("is_increasing", v.switch, "Y: a larger value is worse"),
    "RELEASE": Ignored("suspended jobs always keep it"),
    "CONSUMABLE": sets("is_consumable", v.switch, "N: `rusage` can't reserve it"),
    "LAVA_INDEXED": sets("is_indexed", v.switch, "lava's own: Y: numbered devices, a job is told which ones it has"),
    "DESCRIPTION": sets("description", str, "what it is, for readers of the file"),
}
SHARED_SECTIONS: Mapping[str, Table | Ignored] = {
    "Cluster": {
        "CLUSTERNAME": sets("name", str, "the cluster's name: which lsf.cluster file counts"),
        "SERVERS": Ignored("one cluster only"),
    },
    "HostType": HOST_TYPE,
    "HostModel": HOST_MODEL,
    "Resource": RESOURCE,
}

_DAEMON = "agents have their own ways"
ADMINS: Table = {
    "ADMINISTRATORS": sets("names", str, "users and groups who may do everything, beside those of lava.conf")
}
HOST: Table = {
    "HOSTNAME": sets("name", str, "the host's name; required"),
    "MODEL": sets("model", _detected, "host model; `!`: what the agent finds"),
    "TYPE": sets("type", _detected, "host type; `!`: what the agent finds"),
    "SERVER": sets("is_server", v.switch, "0: no jobs run there"),
    "RUNWINDOW": Honoured(hosts.windows, "when jobs may start there"),
    "RESOURCES": Honoured(
        _resources, "Boolean resources the host has; `!name`: only jobs that name it in their `select` run there"
    ),
    "ND": Ignored("disks are not counted"),
    "REXPRI": Ignored("no tasks besides jobs"),
}
RESOURCE_MAP: Table = {
    "RESOURCENAME": sets("name", str, "a resource of lsf.shared; required"),
    "LOCATION": sets("location", str, "`[default]`, `4@[h1 h2]`, `[v@[all ~h3]]`: amounts, and which hosts share each"),
}
CLUSTER_SECTIONS: Mapping[str, Table | Ignored] = {
    "Parameters": dict.fromkeys(
        ("EXINTERVAL", "ELIM_POLL_INTERVAL", "ELIMARGS", "HOST_INACTIVITY_LIMIT", "MASTER_INACTIVITY_LIMIT",
         "PROBE_TIMEOUT", "RETRY_LIMIT", "ADJUST_DURATION", "LSF_ELIM_BLOCKTIME", "LSF_ELIM_RESTARTS",
         "LSF_ELIM_DEBUG", "FLOAT_CLIENTS", "FLOAT_CLIENTS_ADDR_RANGE", "PRODUCTS", "LSF_HOST_ADDR_RANGE"),
        Ignored(_DAEMON)),
    "ClusterAdmins": ADMINS,
    "Host": HOST,
    "ResourceMap": RESOURCE_MAP,
}  # fmt: skip


def cluster_names(document: Document) -> list[str]:
    """Return the clusters that lsf.shared names, in its order."""
    return [
        row["CLUSTERNAME"].text for section in document.of("Cluster") for row in section.rows if "CLUSTERNAME" in row
    ]


def add_installed(site: Site) -> None:
    """Define the resources of a cluster that has no lsf.shared."""
    site.resources.update({name: Resource(name, description=about) for name, about in INSTALLED.items()})


def read_shared(document: Document, site: Site) -> None:
    """Read models and resources into ``site``."""
    check_sections(document, SHARED_SECTIONS, site)
    for name, table in (("Cluster", SHARED_SECTIONS["Cluster"]), ("HostType", HOST_TYPE)):
        for section in document.of(name):
            for row in section.rows:
                found = site.read(row, table if not isinstance(table, Ignored) else {})
                site.host_types.update([found["name"]] if name == "HostType" and "name" in found else [])
    for section in document.of("HostModel"):
        for row in section.rows:
            found = site.read(row, HOST_MODEL)
            name = required(row, "MODELNAME", section, site)
            site.host_models.update([name] if name else [])
            if name and "factor" in found:
                site.cpu_factors[name] = found["factor"]
    for section in document.of("Resource"):
        for row in section.rows:
            name = required(row, "RESOURCENAME", section, site)
            found = site.read(row, RESOURCE)
            if not name:
                continue
            if name in _OF_GPUS:
                site.note(row["RESOURCENAME"], name, Fate.IGNORED, _GPUS_COUNTED)
            elif not _RESOURCE_NAME.match(name) or name in _BUILT_IN:
                site.wrong(row["RESOURCENAME"], f"{name}: expected up to {RESOURCE_NAME_MAX} letters, digits and "
                           "underscores, and no name of a built-in resource")  # fmt: skip
            elif name in site.resources:
                site.wrong(row["RESOURCENAME"], f"{name}: there is a resource of this name already")
            else:
                site.resources[name] = Resource(**found)


def read_cluster(document: Document, site: Site) -> Fields:
    """Read hosts into ``site``, resources by location. Administrators are read later, when groups are known."""
    check_sections(document, CLUSTER_SECTIONS, site)
    parameters = CLUSTER_SECTIONS["Parameters"]
    assert not isinstance(parameters, Ignored)
    for section in document.of("Parameters"):
        for row in section.rows:
            site.read(row, parameters)
    for section in document.of("Host"):
        for row in section.rows:
            name = required(row, "HOSTNAME", section, site)
            found = site.read(row, HOST, extra=lambda word: queues.threshold_of(word, site))
            found.pop("name", None)
            if found.get("model"):
                site.warn_of_missing(row["MODEL"], found["model"], site.host_models, "host model")
            if found.get("type"):
                site.warn_of_missing(row["TYPE"], found["type"], site.host_types, "host type")
            if name in site.hosts:
                site.wrong(row["HOSTNAME"], f"{name}: there is a row for it already")
            elif name:
                site.hosts[name] = HostRule(**found)
    return {"resource_map": tuple(_resource_map(document, site))}


def read_administrators(document: Document, site: Site) -> frozenset[str]:
    """Read ClusterAdmins: users, and members of groups."""
    found: frozenset[str] = frozenset()
    for section in document.of("ClusterAdmins"):
        for row in section.rows:
            site.read(row, ADMINS)
            cell = row.get("ADMINISTRATORS")
            if cell is None or not cell.text:
                continue
            try:
                users = names.users(cell.text, site)
                if users.is_all:
                    raise Wrong("expected users and groups; all can't administer the cluster")
                found |= users.names
            except Wrong as error:
                site.wrong(cell, f"ADMINISTRATORS = {cell.text}: {error}")
            site.warn_of_strangers(cell)
    return found


def _resource_map(document: Document, site: Site) -> list[ResourceInstance]:
    instances: list[ResourceInstance] = []
    for section in document.of("ResourceMap"):
        for row in section.rows:
            site.read(row, RESOURCE_MAP)
            name = required(row, "RESOURCENAME", section, site)
            location = required(row, "LOCATION", section, site)
            if not name or not location:
                continue
            if name in _OF_GPUS:
                site.note(row["RESOURCENAME"], name, Fate.IGNORED, _GPUS_COUNTED)
                continue
            try:
                instances += instances_of(name, location, site)
            except Wrong as error:
                site.wrong(row["LOCATION"], f"{name}: LOCATION = {location}: {error}")
            site.warn_of_strangers(row["LOCATION"])
    return instances


def instances_of(name: str, location: str, site: Site) -> list[ResourceInstance]:
    """Read a LOCATION: ``[default]`` is an instance for each host, any other brackets one shared by their hosts.

    Raises:
        Wrong: no such resource, or no such form.
    """
    if name not in site.resources:
        raise Wrong("no resource of lsf.shared")
    text = location.strip()
    found, at = [], 0
    while text[at:].strip():
        place, at = _place(text, at)
        value, where = place
        if site.resources[name].kind is ResourceKind.NUMERIC and value:
            v.decimal(value, 0.0, 1e12)
        if where.split() == ["default"]:
            found.append(ResourceInstance(name, value))
        else:
            found.append(ResourceInstance(name, value, names.hosts(where or "all", site), is_shared=True))
    if not found:
        raise Wrong("expected [default], or value@[host ...] one after another")
    return found


def _place(text: str, at: int) -> tuple[tuple[str, str], int]:
    """Return (value, hosts) at this position, and the next position; ``[v@[h1]]`` is the same as ``v@[h1]``."""
    outer = re.match(r"\s*\[\s*(?=[^\[\]]*@\s*\[)", text[at:])
    begin = at + (outer.end() if outer else 0)
    found = _PLACE.match(text, begin)
    if not found:
        raise Wrong("expected [default], or value@[host ...] one after another")
    end = found.end()
    if outer:
        closing = re.match(r"\s*\]", text[end:])
        if closing:
            end += closing.end()
    return ((found[1] or "").strip("\"'"), found[2]), end
