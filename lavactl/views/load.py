"""Load indices as columns: one layout for lsload and bhosts -l."""

from lavactl.text.units import size
from protos import cluster_pb2

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
