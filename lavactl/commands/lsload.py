"""lsload: load indices of hosts."""

from lavactl.errors import FAILURE, CommandError
from lavactl.options import FLAG, VALUE, Grammar, Options, answered, printable
from lavactl.text.fields import show_fields
from lavactl.text.render import MISSING
from lavactl.text.units import is_digits, size
from lavactl.views import resources
from lavactl.views.hosts import GPU_MODES, fetch_hosts, gpus_of, is_down, model_name
from lavactl.views.load import ALIASES as LOAD_ALIASES
from lavactl.views.load import HEADER, HEADER_WITH_IO, INDICES, adjust, load_columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lavactl.io import Io
    from protos import cluster_pb2

    Host = cluster_pb2.HostRecord

USAGE = """\
Usage: lsload [-w | -l | -I index[:index ...] | -gpu | -gpuload | -o "field ..." [-json]] [-noheader]
              [-E | -N] [-R requirement] [-n number] [host ...]
       lsload -s [resource ...]
       lsload -h | -V
  -E  run queue lengths without a process for each processor but one
  -N  the length that one more process would find, over the CPU factor
"""
GRAMMAR = Grammar(
    "lsload",
    USAGE,
    {
        **dict.fromkeys(("w", "l", "s", "gpu", "gpuload", "E", "N", "json", "noheader"), FLAG),
        **dict.fromkeys(("I", "n", "R", "o"), VALUE),
        "a": "there are no virtual hosts of a dynamic cluster that it could add.",
        "cname": "there is one cluster only: no host is of another.",
    },
)
FIELD_ALIASES = {"hname": "host_name", **LOAD_ALIASES}
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
    check(options)
    requirement = options.last("R") or ""
    hosts, complete = fetch_hosts(
        options.words, io, clients_too=True, unknown="Unknown host name", requirement=requirement
    )
    hosts = best(hosts, options)
    if not hosts:
        if complete:
            io.error("No hosts found")
        return FAILURE
    if "E" in options or "N" in options:
        for host in hosts:
            adjust(host, by_speed="N" in options)
    form = chosen_form(options, io)
    if form is not None:
        records = io.client().resources().resources
        show_fields(hosts, form, fields_of(records), FIELD_ALIASES, options, io, ("lsload", "HOSTS"))
    elif "gpuload" in options:
        wide = "w" in options
        io.print(GPU_LOAD_HEADER.replace("gpu_mut ", "gpu_mut gpu_power ") if wide else GPU_LOAD_HEADER)
        io.print("".join(gpu_load_rows(host, with_power=wide) for host in hosts), end="")
    elif "gpu" in options:
        io.print(GPU_HEADER)
        io.print("".join(gpu_row(host) for host in hosts), end="")
    else:
        show_table(hosts, io, options)
    return 0 if complete else FAILURE


def check(options: Options) -> None:
    """Refuse options that exclude one another, and a bad number of hosts."""
    forms = [name for name in ("l", "gpu", "gpuload", "I", "o") if name in options]
    if len(forms) > 1:
        raise GRAMMAR.wrong(f"-{forms[0]} and -{forms[1]} cannot be used together")
    if "E" in options and "N" in options:
        raise GRAMMAR.wrong("-E and -N cannot be used together")
    if "json" in options and "o" not in options:
        raise GRAMMAR.wrong("-json needs -o")
    number = options.last("n")
    if number is not None and not is_digits(number):
        raise GRAMMAR.wrong(f"-n takes a number of hosts, not {number}")


def chosen_form(options: Options, io: "Io") -> str | None:
    """The -o format; without another form, LSF_LSLOAD_FORMAT."""
    form = options.last("o")
    if form is None and not any(name in options for name in ("w", "l", "gpu", "gpuload", "I")):
        form = io.setting("LSF_LSLOAD_FORMAT") or None
    return form


def best(hosts: "list[Host]", options: Options) -> "list[Host]":
    """With -R only hosts whose load is known; with -n so many at most (0: all)."""
    if "R" in options:
        hosts = [host for host in hosts if not is_down(host)]
    number = int(options.last("n") or 0)
    return hosts[:number] if number else hosts


def fields_of(records: "Iterable[cluster_pb2.ResourceRecord]") -> "dict[str, tuple[int, Callable[[Host], str]]]":
    """Fields of -o: LSF's indices, and those that elims report."""
    own = resources.of_hosts(records)

    def reported(name: str) -> "Callable[[Host], str]":
        return lambda host: resources.load_of(name, own.get(host.facts.name, {}))

    def index(read: "Callable[[cluster_pb2.Load], str]") -> "Callable[[Host], str]":
        return lambda host: MISSING if is_down(host) else read(host.load)

    return {
        "host_name": (20, lambda host: host.facts.name),
        "status": (15, status),
        **{name: (10, index(read)) for name, (_, read) in INDICES.items()},
        "ngpus": (10, lambda host: str(len(gpus_of(host)))),
        "ngpus_physical": (14, lambda host: str(len(gpus_of(host)))),
        **{name: (10, reported(name)) for name in resources.load_names(records)},
    }


def status(host: "Host") -> str:
    """``ok``, ``lockU`` if an administrator has locked the host, or ``unavail`` if the load is unknown."""
    if is_down(host):
        return "unavail"
    return "lockU" if host.status == "closed_Lock" else "ok"


def show_table(hosts: "list[Host]", io: "Io", options: Options) -> None:
    """Default, -w with whole names, -l also with io and the indices that elims report; -I with those named."""
    is_long, chosen = "l" in options, options.last("I")
    is_wide = "w" in options
    if chosen is not None:
        return show_indices(hosts, chosen, io, options)
    records = io.client().resources().resources if is_long else ()
    names, own = resources.load_names(records), resources.of_hosts(records)
    width = max(15, *(len(host.facts.name) for host in hosts)) if is_wide or is_long else 15
    header = HEADER_WITH_IO[1:] + resources.load_header(names) if is_long else HEADER
    if "noheader" not in options:
        io.print(f"{'HOST_NAME':<{width}} status{header}")
    for host in hosts:
        more = "" if is_down(host) else resources.load_values(names, own.get(host.facts.name, {}))
        io.print(row(host, width, is_long) + more)
    return None


def show_indices(hosts: "list[Host]", chosen: str, io: "Io", options: Options) -> None:
    """-I: the named indices in the order of their names on the command line."""
    records = io.client().resources().resources
    known, own = resources.load_names(records), resources.of_hosts(records)
    names = [LOAD_ALIASES.get(name, name) for name in chosen.replace(":", " ").split()]
    for name in names:
        if name not in INDICES and name not in known:
            raise CommandError(f"lsload: {printable(name)}: Unknown load index name", FAILURE)
    widths = [INDICES[name][0] if name in INDICES else len(name) + 2 for name in names]
    width = max(15, *(len(host.facts.name) for host in hosts)) if "w" in options else 15
    if "noheader" not in options:
        columns = "".join(f"{name:>{room}}" for name, room in zip(names, widths, strict=True))
        io.print(f"{'HOST_NAME':<{width}} status{columns}")
    for host in hosts:
        mine = own.get(host.facts.name, {})
        values = [INDICES[name][1](host.load) if name in INDICES else resources.load_of(name, mine) for name in names]
        columns = "".join(f"{value:>{room}}" for value, room in zip(values, widths, strict=True))
        io.print(f"{host.facts.name[:width]:<{width}} {status(host):>6}{'' if is_down(host) else columns}")


def row(host: "Host", width: int, with_io: bool) -> str:
    """One line of the table; a host that is down has no values."""
    name = host.facts.name if width > 15 else host.facts.name[:15]
    if is_down(host):
        return f"{name:<{width}} {'unavail':>6}"
    columns = load_columns(host.load, with_io=with_io)
    return f"{name:<{width}} {status(host):>6}{columns[1:] if with_io else columns}"


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
    return f"{name:<15} {status(host):>6}{len(gpus):>7}{shares}{len(gpus):>16}\n"


def gpu_load_rows(host: "Host", *, with_power: bool) -> str:
    """Lines of -gpuload: one for each GPU; with -w also what it draws, in watts."""
    lines = []
    name = host.facts.name
    for gpu in [] if is_down(host) else gpus_of(host):
        good = gpu.status in ("", "ok")
        power = f" {gpu.power_w:>9.1f}" if with_power else ""
        lines.append(
            f"{name:<15} {gpu.index:>5} {model_name(gpu):>11} {GPU_MODES.get(gpu.mode, '0.0'):>10} "
            f"{f'{gpu.temperature_c}C':>9} {float(gpu.ecc_errors):>9.1f} {f'{gpu.utilisation * 100:.0f}%':>7} "
            f"{f'{gpu.memory_utilisation * 100:.0f}%':>8}{power} {size(gpu.memory_mib):>10} "
            f"{size(gpu.memory_used_mib):>9} {'-':>12} "
            f"{'ok' if good else 'error':>12} {'-' if good else gpu.status:>11}\n"
        )
        name = ""
    return "".join(lines)
