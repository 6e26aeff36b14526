"""lshosts: static attributes of hosts: type, model, processors, memory, resources."""

from lavactl.errors import FAILURE
from lavactl.options import FLAG, VALUE, Grammar, answered
from lavactl.text.fields import show_fields
from lavactl.text.render import MISSING, clean
from lavactl.text.units import size
from lavactl.views import resources
from lavactl.views.hosts import fetch_hosts, gpus_of, model_name, topology_text
from protos.gpu_vendors import label as vendor_label

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from lavactl.io import Io
    from protos import cluster_pb2

    Host = cluster_pb2.HostRecord

USAGE = """\
Usage: lshosts [-w | -l | -gpu [-mig] | -T | -o "field ..." [-json]] [-noheader] [-R requirement] [host ...]
       lshosts -s [resource ...]
       lshosts -h | -V
  -mig   the MIG devices of each GPU: number of the device, its GPU instance, compute instance and profile
"""
GRAMMAR = Grammar(
    "lshosts",
    USAGE,
    {
        **dict.fromkeys(("w", "l", "s", "gpu", "T", "json", "noheader", "mig"), FLAG),
        **dict.fromkeys(("R", "o"), VALUE),
        "cname": "there is one cluster only: no host is of another.",
        "a": "hosts that were taken away are forgotten; badmin hhist has them.",
    },
)
HEADER = "HOST_NAME      type    model  cpuf ncpus maxmem maxswp server RESOURCES"
WIDE_HEADER = "HOST_NAME                       type           model  cpuf ncpus maxmem maxswp server RESOURCES"
LONG_HEADER = "type             model  cpuf ncpus ndisks maxmem maxswp maxtmp rexpri server nprocs ncores nthreads"
GPU_HEADER = "HOST_NAME   gpu_id            gpu_model   gpu_driver   gpu_factor   numa_id   vendor"
MIG_HEADER = f"{GPU_HEADER}   devid   gid   cid   inst_name"

# Field of -o: recommended width and reader.
FIELDS: "dict[str, tuple[int, Callable[[Host], str]]]" = {
    "host_name": (20, lambda host: host.facts.name),
    "type": (10, lambda host: host.facts.type or MISSING),
    "model": (10, lambda host: clean(host.facts.model).replace(" ", "_") or MISSING),
    "cpuf": (10, lambda host: f"{host.facts.cpu_factor:.1f}"),
    "ncpus": (10, lambda host: str(host.facts.cpus)),
    "maxmem": (10, lambda host: size(host.facts.memory_mib)),
    "maxswp": (10, lambda host: size(host.facts.swap_mib)),
    "maxtmp": (10, lambda host: size(host.facts.tmp_mib)),
    "server": (10, lambda host: "Yes" if host.facts.server else "No"),
    "resources": (20, lambda host: f"({' '.join(host.facts.resources)})"),
    "ndisks": (10, lambda host: str(host.facts.disks)),
    "nprocs": (10, lambda host: str(host.facts.sockets)),
    "ncores": (10, lambda host: str(host.facts.cores)),
    "nthreads": (10, lambda host: str(host.facts.cpus)),
    "version": (20, lambda host: clean(host.facts.version) or MISSING),  # lava's own: of the agent
    "ngpus": (10, lambda host: str(len(gpus_of(host)))),
}
ALIASES = {"hname": "host_name"}


def main(argv: list[str], io: "Io") -> int:
    """Run lshosts."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    if "s" in options:
        return resources.show_values(options.words, io, dynamic=False)
    forms = [name for name in ("l", "gpu", "T", "o") if name in options]
    if len(forms) > 1:
        raise GRAMMAR.wrong(f"-{forms[0]} and -{forms[1]} cannot be used together")
    form = options.last("o")
    if form is None and not forms and "w" not in options:
        form = io.setting("LSF_LSHOSTS_FORMAT") or None
    if "mig" in options and "gpu" not in options:
        raise GRAMMAR.wrong("-mig needs -gpu")
    if "json" in options and form is None:
        raise GRAMMAR.wrong("-json needs -o")
    requirement = options.last("R") or ""
    hosts, complete = fetch_hosts(
        options.words, io, clients_too=True, unknown="Unknown host name", requirement=requirement
    )
    if not hosts:
        if complete:
            io.error("No hosts found")
        return FAILURE
    if form is not None:
        show_fields(hosts, form, FIELDS, ALIASES, options, io, ("lshosts", "HOSTS"))
    elif "T" in options:
        io.print("".join(topology_text(host) for host in hosts), end="")
    elif "l" in options:
        io.print("\n".join(long_text(host) for host in hosts), end="")
    elif "gpu" in options:
        io.print(MIG_HEADER if "mig" in options else GPU_HEADER)
        io.print("".join(gpu_rows(host, "mig" in options) for host in hosts), end="")
    else:
        wide = "w" in options
        if "noheader" not in options:
            io.print(WIDE_HEADER if wide else HEADER)
        io.print("".join(row(host, wide) for host in hosts), end="")
    return 0 if complete else FAILURE


def row(host: "Host", wide: bool) -> str:
    """One line of the table."""
    facts = host.facts
    name, kind, model = facts.name, clean(facts.type) or "-", clean(facts.model).replace(" ", "_") or "-"
    start = f"{name:<20} {kind:>15} {model:>15}" if wide else f"{name[:11]:<11} {kind[:7]:>7} {model[:8]:>8}"
    return (
        f"{start} {facts.cpu_factor:>5.1f} {facts.cpus:>5} {size(facts.memory_mib):>6} {size(facts.swap_mib):>6} "
        f"{'Yes' if facts.server else 'No':>6} ({clean(' '.join(facts.resources))})\n"
    )


def long_text(host: "Host") -> str:
    """Full description of one host."""
    facts = host.facts
    model = clean(facts.model).replace(" ", "_") or "-"
    return (
        f"HOST_NAME:  {facts.name}\n{LONG_HEADER}\n"
        f"{clean(facts.type) or '-':<6} {model:>15} {facts.cpu_factor:>5.1f} {facts.cpus:>5} {'-':>6} "
        f"{size(facts.memory_mib):>6} {size(facts.swap_mib):>6} {size(facts.tmp_mib):>6} {0:>6} "
        f"{'Yes' if facts.server else 'No':>6} {facts.sockets:>6} {facts.cores:>6} {facts.cpus:>8}\n\n"
        f"RESOURCES: ({clean(' '.join(facts.resources))})\n"
    )


def gpu_rows(host: "Host", with_mig: bool) -> str:
    """A line for each GPU or MIG device; with the marks of MIG devices its id is that of the GPU."""
    lines = []
    name = host.facts.name
    for gpu in gpus_of(host):
        parent = gpu.parent_plus_one - 1 if with_mig and gpu.parent_plus_one else gpu.index
        lines.append(
            f"{name:<11} {parent:>6} {model_name(gpu):>20} {gpu.driver or '-':>12} {'-':>12} "
            f"{gpu.numa_node:>9} {vendor_label(gpu.vendor):>8}{_mig_columns(gpu) if with_mig else ''}\n"
        )
        name = ""
    return "".join(lines)


def _mig_columns(gpu: "cluster_pb2.Gpu") -> str:
    """Device, GPU instance, compute instance and profile of a MIG device; dashes for a whole GPU."""
    if not gpu.mig_profile:
        return f" {'-':>7} {'-':>5} {'-':>5} {'-':>11}"
    return f" {gpu.index:>7} {gpu.gpu_instance:>5} {gpu.compute_instance:>5} {gpu.mig_profile:>11}"
