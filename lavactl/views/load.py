"""Load indices as columns: one layout for lsload and bhosts -l."""

from lavactl.text.units import size
from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

HEADER = "  r15s   r1m  r15m   ut    pg  ls    it   tmp   swp   mem"
HEADER_WITH_IO = "   r15s   r1m  r15m   ut    pg    io  ls    it   tmp   swp   mem"


def load_columns(load: cluster_pb2.Load, *, with_io: bool) -> str:
    """Values under ``HEADER``, or ``HEADER_WITH_IO``."""
    io = f"{load.io:>6.0f}" if with_io else ""
    lead = " " if with_io else ""
    return (
        f"{lead}{load.r15s:>6.1f}{load.r1m:>6.1f}{load.r15m:>6.1f}{load.ut * 100:>4.0f}%{load.pg:>6.1f}{io}"
        f"{load.ls:>4}{load.it:>6}{size(load.tmp_mib):>6}{size(load.swp_mib):>6}{size(load.mem_mib):>6}"
    )


# Index: width of its column and reader.
INDICES: "dict[str, tuple[int, Callable[[cluster_pb2.Load], str]]]" = {
    "r15s": (6, lambda load: f"{load.r15s:.1f}"),
    "r1m": (6, lambda load: f"{load.r1m:.1f}"),
    "r15m": (6, lambda load: f"{load.r15m:.1f}"),
    "ut": (5, lambda load: f"{load.ut * 100:.0f}%"),
    "pg": (6, lambda load: f"{load.pg:.1f}"),
    "io": (6, lambda load: f"{load.io:.0f}"),
    "ls": (4, lambda load: str(load.ls)),
    "it": (6, lambda load: str(load.it)),
    "tmp": (6, lambda load: size(load.tmp_mib)),
    "swp": (6, lambda load: size(load.swp_mib)),
    "mem": (6, lambda load: size(load.mem_mib)),
}
ALIASES = {"cpu": "r1m", "login": "ls", "idle": "it", "swap": "swp"}
QUEUE_LENGTHS = ("r15s", "r1m", "r15m")


def adjust(host: cluster_pb2.HostRecord, *, by_speed: bool) -> None:
    """Replace run queue lengths: effective ones (-E), or normalized by the CPU factor (-N).

    The effective length leaves out a process for each processor but one: an idle processor takes another process at
    once. The normalized one is the relative time of a process that is started now: that length and the process itself,
    over the CPU factor.
    """
    for name in QUEUE_LENGTHS:
        effective = max(0.0, getattr(host.load, name) - max(0, host.facts.cpus - 1))
        setattr(host.load, name, (effective + 1) / (host.facts.cpu_factor or 1.0) if by_speed else effective)
