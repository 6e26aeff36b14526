"""lsload: load indices of hosts."""

from lavactl.errors import FAILURE
from lavactl.options import FLAG, Grammar, answered
from lavactl.text.units import size
from lavactl.views import resources
from lavactl.views.hosts import GPU_MODES, fetch_hosts, gpus_of, is_down, model_name
from lavactl.views.load import HEADER, HEADER_WITH_IO, load_columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io
    from protos import cluster_pb2

    Host = cluster_pb2.HostRecord

USAGE = """\
Usage: lsload [-w | -l | -gpu | -gpuload] [host ...]
       lsload -s [resource ...]
       lsload -h | -V
"""
GRAMMAR = Grammar(
    "lsload",
    USAGE,
    {
        **dict.fromkeys(("w", "l", "s", "gpu", "gpuload"), FLAG),
        **dict.fromkeys(("N", "E", "I", "n", "R", "o", "json", "a", "cname"), "not supported yet."),
    },
)
GPU_HEADER = "HOST_NAME       status  ngpus  gpu_shared_avg_mut  gpu_shared_avg_ut  ngpus_physical"
GPU_LOAD_HEADER = (
    "HOST_NAME       gpuid   gpu_model   gpu_mode  gpu_temp   gpu_ecc  gpu_ut  gpu_mut gpu_mtotal gpu_mused   "
    "gpu_pstate   gpu_status   gpu_error"
)


def main(argv: list[str], io: "Io") -> int:
    """Run lsload."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    if "s" in options:
        return resources.show_values(options.words, io, dynamic=True)
    hosts, complete = fetch_hosts(options.words, io, clients_too=True, unknown="Unknown host name")
    if not hosts:
        if complete:
            io.error("No hosts found")
        return FAILURE
    if "gpuload" in options:
        io.print(GPU_LOAD_HEADER)
        io.print("".join(gpu_load_rows(host) for host in hosts), end="")
    elif "gpu" in options:
        io.print(GPU_HEADER)
        io.print("".join(gpu_row(host) for host in hosts), end="")
    else:
        show_table(hosts, io, is_wide="w" in options, is_long="l" in options)
    return 0 if complete else FAILURE


def show_table(hosts: "list[Host]", io: "Io", *, is_wide: bool, is_long: bool) -> None:
    """Default, -w with whole names, -l also with io and the indices that elims report."""
    records = io.client().resources().resources if is_long else ()
    names, own = resources.load_names(records), resources.of_hosts(records)
    width = max(15, *(len(host.facts.name) for host in hosts)) if is_wide or is_long else 15
    header = HEADER_WITH_IO[1:] + resources.load_header(names) if is_long else HEADER
    io.print(f"{'HOST_NAME':<{width}} status{header}")
    for host in hosts:
        more = "" if is_down(host) else resources.load_values(names, own.get(host.facts.name, {}))
        io.print(row(host, width, is_long) + more)


def row(host: "Host", width: int, with_io: bool) -> str:
    """One line of the table; a host that is down has no values."""
    name = host.facts.name if width > 15 else host.facts.name[:15]
    if is_down(host):
        return f"{name:<{width}} {'unavail':>6}"
    columns = load_columns(host.load, with_io=with_io)
    return f"{name:<{width}} {'ok':>6}{columns[1:] if with_io else columns}"


def gpu_row(host: "Host") -> str:
    """One line of -gpu: totals over the host's GPUs."""
    name = host.facts.name
    if is_down(host):
        return f"{name:<15} {'unavail':>6}\n"
    gpus = gpus_of(host)
    usable = [gpu for gpu in gpus if gpu.mode in ("", "shared")]
    memory = 100 * sum(gpu.memory_utilisation for gpu in usable) / (len(usable) or 1)
    compute = 100 * sum(gpu.utilisation for gpu in usable) / (len(usable) or 1)
    shares = f"{f'{memory:.0f}%':>20}{f'{compute:.0f}%':>19}" if usable else f"{'-':>20}{'-':>19}"
    return f"{name:<15} {'ok':>6}{len(gpus):>7}{shares}{len(gpus):>16}\n"


def gpu_load_rows(host: "Host") -> str:
    """Lines of -gpuload: one for each GPU."""
    lines = []
    name = host.facts.name
    for gpu in [] if is_down(host) else gpus_of(host):
        good = gpu.status in ("", "ok")
        lines.append(
            f"{name:<15} {gpu.index:>5} {model_name(gpu):>11} {GPU_MODES.get(gpu.mode, '0.0'):>10} "
            f"{f'{gpu.temperature_c}C':>9} {float(gpu.ecc_errors):>9.1f} {f'{gpu.utilisation * 100:.0f}%':>7} "
            f"{f'{gpu.memory_utilisation * 100:.0f}%':>8} {size(gpu.memory_mib):>10} {size(gpu.memory_used_mib):>9} "
            f"{'-':>12} {'ok' if good else 'error':>12} {'-' if good else gpu.status:>11}\n"
        )
        name = ""
    return "".join(lines)
