"""bhosts: the server hosts and their slot usage. Jobs are counted in slots, as in LSF."""

from lavactl.errors import FAILURE
from lavactl.options import FLAG, VALUE, Grammar, Options, answered
from lavactl.text.fields import show_fields
from lavactl.text.render import MISSING, clean, limit, long_time
from lavactl.text.units import size
from lavactl.views import resources
from lavactl.views.gpus.host_gpus import gpu_long_text
from lavactl.views.health_checks import check_rows
from lavactl.views.hosts import fetch_hosts, gpu_use, gpus_of, is_down, model_name, topology_text
from lavactl.views.load import HEADER_WITH_IO, load_columns
from lavactl.views.thresholds import bounds_of, threshold_lines
from protos import cluster_pb2
from protos.gpu_vendors import label as vendor_label

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lavactl.io import Io

USAGE = """\
Usage: bhosts [-w | -l | -gpu [-l] | -aff [-l] | -o "field ..." [-json]] [-noheader] [-alloc] [-x] [-R requirement]
              [host ... | host_group ...]
       bhosts -s [resource ...]
       bhosts -h | -V
  -alloc  count all slots of its hosts for an exclusive job
  -aff    sockets, cores and processors of the hosts; those that jobs are bound to have a star
  -x      hosts that were closed because their jobs end abnormally too often
"""
GRAMMAR = Grammar(
    "bhosts",
    USAGE,
    {
        **dict.fromkeys(("w", "l", "s", "gpu", "aff", "alloc", "x", "noheader", "json", "a", "X"), FLAG),
        **dict.fromkeys(("o", "R"), VALUE),
        **dict.fromkeys(("e", "cname"), "there is one cluster only: no host is exported to another, or is of one."),
        **dict.fromkeys(
            ("rc", "rconly"), "there is no resource connector; badmin hclose -revoke is for hosts that go."
        ),
        **dict.fromkeys(("loc", "sl"), "bhosts -s shows the hosts of each resource."),
        "attr": "attributes of hosts are not supported; lsf.shared names resources of hosts.",
        "noinfo": "the manual of LSF's bhosts describes no such option.",
    },
)
HEADER = "HOST_NAME          STATUS       JL/U    MAX  NJOBS    RUN  SSUSP  USUSP    RSV"
WIDE_HEADER = "HOST_NAME          STATUS          JL/U    MAX  NJOBS    RUN  SSUSP  USUSP    RSV"
LONG_HEADER = "STATUS           CPUF  JL/U    MAX  NJOBS    RUN  SSUSP  USUSP    RSV DISPATCH_WINDOW"
GPU_HEADER = (
    "HOST_NAME              GPU_ID                MODEL     MUSED      MRSV  NJOBS    RUN   SUSP    RSV    VENDOR"
)
# Field of -o: recommended width and reader. max and ng are always numbers, as torchx requires.
FIELDS: "dict[str, tuple[int, Callable[[cluster_pb2.HostRecord], str]]]" = {
    "host_name": (20, lambda host: host.facts.name),
    "status": (15, lambda host: host.status),
    "cpuf": (10, lambda host: f"{host.facts.cpu_factor:.1f}"),
    "jl_u": (8, lambda host: per_user(host)),
    "max": (8, lambda host: str(host.slots_max)),
    "njobs": (8, lambda host: str(host.njobs)),
    "run": (8, lambda host: str(host.run)),
    "ssusp": (8, lambda host: str(host.ssusp)),
    "ususp": (8, lambda host: str(host.ususp)),
    "rsv": (8, lambda host: str(host.rsv)),
    "dispatch_window": (50, lambda host: clean(host.dispatch_window) or MISSING),
    "ngpus": (8, lambda host: str(len(gpus_of(host)))),
    "ngpus_alloc": (8, lambda host: str(sum(1 for use in host.gpu_use if use.njobs))),
    "ngpus_excl_alloc": (8, lambda host: str(gpus_alone(host, is_in_mode=True))),
    "ngpus_shared_alloc": (8, lambda host: str(sum(1 for use in host.gpu_use if use.njobs and not use.exclusive))),
    "ngpus_shared_jexcl_alloc": (8, lambda host: str(gpus_alone(host, is_in_mode=False))),
    "ngpus_excl_avail": (8, lambda host: str(len(gpus_of(host)) - sum(1 for use in host.gpu_use if use.njobs))),
    "ngpus_shared_avail": (
        8,
        lambda host: str(len(gpus_of(host)) - sum(1 for use in host.gpu_use if use.njobs and use.exclusive)),
    ),
    "attribute": (50, lambda host: MISSING),
    "comments": (50, lambda host: clean(comments(host)) or MISSING),
}
ALIASES = {"hname": "host_name", "ng": "ngpus", "nga": "ngpus_alloc", "ngea": "ngpus_excl_alloc",
           "ngsa": "ngpus_shared_alloc", "ngu": "ngpus_alloc", "ngx": "ngpus_excl_alloc", "ngs": "ngpus_shared_alloc",
           "ngsjx": "ngpus_shared_jexcl_alloc", "ngfx": "ngpus_excl_avail", "ngfs": "ngpus_shared_avail",
           "attr": "attribute"}  # fmt: skip


def gpus_alone(host: cluster_pb2.HostRecord, *, is_in_mode: bool) -> int:
    """Count the devices that a job has for itself, in the compute mode exclusive_process or in another."""
    modes = {gpu.index: gpu.mode for gpu in gpus_of(host)}
    alone = [use.index for use in host.gpu_use if use.njobs and use.exclusive]
    return sum((modes.get(index) == "exclusive_process") is is_in_mode for index in alone)


def main(argv: list[str], io: "Io") -> int:
    """Run bhosts."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    if "s" in options:
        return resources.show_amounts(options.words, io)
    form = chosen_form(options, io)
    if "json" in options and form is None:
        raise GRAMMAR.wrong("-json needs -o")
    if "aff" in options and (form is not None or "w" in options or "gpu" in options):
        raise GRAMMAR.wrong("-aff is a form of its own, or goes with -l")
    hosts, complete = fetch_hosts(
        options.words,
        io,
        clients_too=False,
        unknown="Bad host name, host group name or cluster name",
        requirement=options.last("R") or "",
        allocated="alloc" in options,
        processors="aff" in options,
    )
    if "x" in options:
        hosts = [host for host in hosts if host.is_exceptional]
        if not hosts and complete:
            io.print("There is no exceptional host found")
            return 0
    if form is not None:
        show_fields(hosts, form, FIELDS, ALIASES, options, io, ("bhosts", "HOSTS"))
    elif "l" in options and "gpu" in options:
        io.print("\n".join(gpu_long_text(host) for host in hosts), end="")
    elif "l" in options:
        own = resources.of_hosts(io.client().resources().resources)
        shown = (long_text(host, own.get(host.facts.name, {})) + affinity(host, options) for host in hosts)
        io.print("\n".join(shown), end="")
    elif "aff" in options:
        io.print("".join(map(topology_text, hosts)), end="")
    elif hosts:
        show_table(hosts, options, io)
    if not hosts and complete:
        io.error("No hosts found")
    if all(map(is_down, hosts)) and (hosts or "R" not in options):
        show_problems(io)
    return 0 if hosts and complete else FAILURE


def show_problems(io: "Io") -> None:
    """Report problems of the master that keep all hosts unavailable."""
    for problem in io.client().status().problems:
        io.error(clean(problem))


def chosen_form(options: Options, io: "Io") -> str | None:
    """The -o format; without another form, LSB_BHOSTS_FORMAT."""
    form = options.last("o")
    if form is None and not any(name in options for name in ("w", "l", "gpu")):
        form = io.setting("LSB_BHOSTS_FORMAT") or None
    return form


def show_table(hosts: list[cluster_pb2.HostRecord], options: Options, io: "Io") -> None:
    """Default, -w and -gpu."""
    if "gpu" in options:
        header, text = GPU_HEADER, "".join(gpu_rows(host) for host in hosts)
    elif "w" in options:
        header, text = (
            WIDE_HEADER,
            "".join(f"{host.facts.name:<18} {host.status:<14} {counts(host)}\n" for host in hosts),
        )
    else:
        header, text = HEADER, "".join(row(host) for host in hosts)
    if "noheader" not in options:
        io.print(header)
    io.print(text, end="")


def row(host: cluster_pb2.HostRecord) -> str:
    """One line of the default table, which omits the reason for a closed host."""
    status = host.status.partition("_")[0] if host.status.startswith("closed") else host.status
    return f"{host.facts.name[:18]:<18} {status:<11} {counts(host)}\n"


def comments(host: cluster_pb2.HostRecord) -> str:
    """Comment of the administrator, then those of lock IDs behind the ID."""
    return "; ".join(
        filter(None, (host.comment, *(f"{one.id}: {one.comment}".removesuffix(": ") for one in host.lock_ids)))
    )


def per_user(host: cluster_pb2.HostRecord) -> str:
    """JL/U."""
    return str(host.per_user) if host.HasField("per_user") else MISSING


def counts(host: cluster_pb2.HostRecord) -> str:
    """JL/U to RSV."""
    return (
        f"{per_user(host):>5} {limit(host.slots_max):>6} {host.njobs:>6} {host.run:>6} {host.ssusp:>6} "
        f"{host.ususp:>6} {host.rsv:>6}"
    )


def gpu_rows(host: cluster_pb2.HostRecord) -> str:
    """A line for each GPU."""
    lines = []
    name = host.facts.name
    for gpu in gpus_of(host):
        use = gpu_use(host, gpu.index)
        lines.append(
            f"{name:<22} {gpu.index:>6} {model_name(gpu):>20} {size(gpu.memory_used_mib):>9} "
            f"{size(use.memory_reserved_mib):>9} {use.njobs:>6} {use.run:>6} {use.susp:>6} {0:>6} "
            f"{vendor_label(gpu.vendor):>9}\n"
        )
        name = ""
    return "".join(lines)


def long_text(host: cluster_pb2.HostRecord, own: dict[str, cluster_pb2.ResourceInstance]) -> str:
    """Full description of one host. ``own``: its site-defined resources."""
    lines = [
        f"HOST  {host.facts.name}",
        LONG_HEADER,
        f"{host.status:<15} {host.facts.cpu_factor:>5.1f} {counts(host)} {clean(host.dispatch_window) or '      -'}",
        "",
        " CURRENT LOAD USED FOR SCHEDULING:",
        f"           {HEADER_WITH_IO}",
        f" Total     {load_columns(host.load, with_io=True)}" if not is_down(host) else " Total         -",
        f" Reserved  {reserved(host)}",
        *resources.own_table(own),
        "",
        " LOAD THRESHOLD USED FOR SCHEDULING:",
        *threshold_lines(bounds_of(host.thresholds)),
    ]
    if host.HasField("migration_s"):
        lines += ["", f"Migration threshold is {host.migration_s / 60:.0f} min "]
    if host.revoked_at:
        lines += ["", f"WILL BE TAKEN AWAY:  {long_time(host.revoked_at)}"]
    if host.comment:
        lines += ["", f"ADMIN ACTION COMMENT:  {clean(host.comment)}"]
    if host.lock_ids:
        lines += ["", "ADMIN ACTION COMMENTS:", *lock_id_rows(host)]
    if host.checks:
        lines += ["", " HEALTH CHECKS:", *(f" {' '.join(row[1:])}" for row in check_rows(host))]
    return "\n".join(lines) + "\n"


def lock_id_rows(host: cluster_pb2.HostRecord) -> "Iterator[str]":
    """Table of the lock IDs that the host is closed with."""
    yield f" {'LOCK_ID':<15} {'TIME':<24} {'ADMIN':<11} COMMENT"
    for one in host.lock_ids:
        said = clean(one.comment) or MISSING
        yield f" {clean(one.id):<15} {long_time(one.time):<24} {clean(one.by):<11} {said}"


def affinity(host: cluster_pb2.HostRecord, options: Options) -> str:
    """Part of -l that -aff adds."""
    return f"\n AFFINITY: Enabled\n{topology_text(host)}" if "aff" in options else ""


def reserved(host: cluster_pb2.HostRecord) -> str:
    """Amounts reserved by jobs: memory only."""
    load = cluster_pb2.Load(mem_mib=host.memory_reserved_mib)
    return load_columns(load, with_io=True)
