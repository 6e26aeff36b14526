"""lshosts: static attributes of hosts: type, model, processors, memory, resources."""

from lavactl.errors import FAILURE
from lavactl.options import FLAG, Grammar, answered
from lavactl.text.render import clean
from lavactl.text.units import size
from lavactl.views import resources
from lavactl.views.hosts import fetch_hosts, gpus_of, model_name
from protos.gpu_vendors import label as vendor_label

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io
    from protos import cluster_pb2

    Host = cluster_pb2.HostRecord

USAGE = """\
Usage: lshosts [-w | -l | -gpu] [host ...]
       lshosts -s [resource ...]
       lshosts -h | -V
"""
GRAMMAR = Grammar(
    "lshosts",
    USAGE,
    {
        **dict.fromkeys(("w", "l", "s", "gpu"), FLAG),
        **dict.fromkeys(("R", "mig", "T", "o", "json", "cname", "a"), "not supported yet."),
    },
)
HEADER = "HOST_NAME      type    model  cpuf ncpus maxmem maxswp server RESOURCES"
WIDE_HEADER = "HOST_NAME                       type           model  cpuf ncpus maxmem maxswp server RESOURCES"
LONG_HEADER = "type             model  cpuf ncpus ndisks maxmem maxswp maxtmp rexpri server nprocs ncores nthreads"
GPU_HEADER = "HOST_NAME   gpu_id            gpu_model   gpu_driver   gpu_factor   numa_id   vendor"


def main(argv: list[str], io: "Io") -> int:
    """Run lshosts."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    if "s" in options:
        return resources.show_values(options.words, io, dynamic=False)
    hosts, complete = fetch_hosts(options.words, io, clients_too=True, unknown="Unknown host name")
    if not hosts:
        if complete:
            io.error("No hosts found")
        return FAILURE
    if "l" in options:
        io.print("\n".join(long_text(host) for host in hosts), end="")
    elif "gpu" in options:
        io.print(GPU_HEADER)
        io.print("".join(gpu_rows(host) for host in hosts), end="")
    else:
        wide = "w" in options
        io.print(WIDE_HEADER if wide else HEADER)
        io.print("".join(row(host, wide) for host in hosts), end="")
    return 0 if complete else FAILURE


def row(host: "Host", wide: bool) -> str:
    """One line of the table."""
    facts = host.facts
    name, kind, model = facts.name, facts.type or "-", clean(facts.model).replace(" ", "_") or "-"
    start = f"{name:<20} {kind:>15} {model:>15}" if wide else f"{name[:11]:<11} {kind[:7]:>7} {model[:8]:>8}"
    return (
        f"{start} {facts.cpu_factor:>5.1f} {facts.cpus:>5} {size(facts.memory_mib):>6} {size(facts.swap_mib):>6} "
        f"{'Yes' if facts.server else 'No':>6} ({' '.join(facts.resources)})\n"
    )


def long_text(host: "Host") -> str:
    """Full description of one host."""
    facts = host.facts
    model = clean(facts.model).replace(" ", "_") or "-"
    return (
        f"HOST_NAME:  {facts.name}\n{LONG_HEADER}\n"
        f"{facts.type or '-':<6} {model:>15} {facts.cpu_factor:>5.1f} {facts.cpus:>5} {'-':>6} "
        f"{size(facts.memory_mib):>6} {size(facts.swap_mib):>6} {size(facts.tmp_mib):>6} {0:>6} "
        f"{'Yes' if facts.server else 'No':>6} {facts.sockets:>6} {facts.cores:>6} {facts.cpus:>8}\n\n"
        f"RESOURCES: ({' '.join(facts.resources)})\n"
    )


def gpu_rows(host: "Host") -> str:
    """A line for each GPU."""
    lines = []
    name = host.facts.name
    for gpu in gpus_of(host):
        lines.append(
            f"{name:<11} {gpu.index:>6} {model_name(gpu):>20} {gpu.driver or '-':>12} {'-':>12} "
            f"{gpu.numa_node:>9} {vendor_label(gpu.vendor):>8}\n"
        )
        name = ""
    return "".join(lines)
