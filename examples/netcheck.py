"""Latency and bandwidth between every two hosts of an allocation, with every byte checked.

One rank of each host takes part; the pairs are measured one after the other, so that they do not disturb each other.
The exit code is 0 only when every pair answered in time, undamaged, and within the given limits.

    mpirun python netcheck.py [--max-latency MICROSECONDS] [--min-bandwidth MBYTES_PER_S] [--timeout SECONDS]

Needs mpi4py and nothing else.
"""

import argparse
import socket
import sys
import time
from itertools import combinations

from mpi4py import MPI

PINGS = 200
LARGE_BYTES = 1 << 20
LARGE_PINGS = 20
TAG = 7


class PairFailed(Exception):
    """Failed communication between two hosts; the text says how."""


def one_rank_each_host(world: MPI.Intracomm) -> MPI.Comm | None:
    """Communicator of the first rank on each host; None for other ranks."""
    host = socket.gethostname()
    hosts = world.allgather(host)
    first = hosts.index(host) == world.rank
    leaders = world.Split(0 if first else 1, world.rank)
    return leaders if first else None


def wait(request: MPI.Request, deadline: float, what: str) -> None:
    """Wait for a request until the deadline."""
    while not request.Test():
        if time.monotonic() > deadline:
            raise PairFailed(f"{what} timed out")


def ping_pong(world: MPI.Comm, peer: int, begins: bool, size: int, rounds: int, deadline: float) -> float:
    """Seconds for one way of ``size`` bytes, as the mean over ``rounds`` round trips; contents are checked."""
    sent = bytearray((peer + world.rank + place) % 251 for place in range(min(size, 251))) * (size // 251 + 1)
    out, back = memoryview(sent)[:size], bytearray(size)
    began = time.perf_counter()
    for _ in range(rounds):
        for sends in (begins, not begins):
            transfer = world.Isend if sends else world.Irecv
            wait(transfer([out if sends else back, MPI.BYTE], peer, TAG), deadline, f"a message of {size} bytes")
    seconds = time.perf_counter() - began
    if back != out:
        raise PairFailed(f"a message of {size} bytes arrived damaged")
    return seconds / rounds / 2


def measure(leaders: MPI.Comm, peer: int, begins: bool, timeout_s: float) -> tuple[float, float]:
    """Latency in microseconds and bandwidth in MB/s between this host and another."""
    deadline = time.monotonic() + timeout_s
    ping_pong(leaders, peer, begins, 8, 10, deadline)
    latency_s = ping_pong(leaders, peer, begins, 8, PINGS, deadline)
    large_s = ping_pong(leaders, peer, begins, LARGE_BYTES, LARGE_PINGS, deadline)
    return latency_s * 1e6, LARGE_BYTES / large_s / 1e6


def check_pairs(leaders: MPI.Comm, options: argparse.Namespace) -> int:
    """Measure all pairs and print them; the number of failed pairs."""
    hosts = leaders.allgather(socket.gethostname())
    failed = 0
    if leaders.rank == 0:
        print(f"{len(hosts)} hosts, {len(hosts) * (len(hosts) - 1) // 2} pairs")
        print(f"{'FROM':<20} {'TO':<20} {'LATENCY_US':>12} {'MB_PER_S':>12}  VERDICT", flush=True)
    for one, other in combinations(range(len(hosts)), 2):
        if leaders.rank in (one, other):
            verdict = judge(leaders, other if leaders.rank == one else one, leaders.rank == one, options)
            if leaders.rank == one:
                print(f"{hosts[one]:<20} {hosts[other]:<20} {verdict}", flush=True)
                failed += not verdict.endswith("ok")
        leaders.Barrier()
    return failed


def judge(leaders: MPI.Comm, peer: int, begins: bool, options: argparse.Namespace) -> str:
    """Figures of one pair as a row of the table. A pair that does not answer ends the whole program."""
    try:
        latency_us, bandwidth = measure(leaders, peer, begins, options.timeout)
    except PairFailed as failure:
        print(f"{socket.gethostname()} and its peer {peer}: {failure}", file=sys.stderr, flush=True)
        leaders.Abort(1)
        raise
    verdict = "ok"
    if options.max_latency and latency_us > options.max_latency:
        verdict = "TOO SLOW TO ANSWER"
    elif options.min_bandwidth and bandwidth < options.min_bandwidth:
        verdict = "TOO LITTLE BANDWIDTH"
    return f"{latency_us:>12.1f} {bandwidth:>12.1f}  {verdict}"


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Check the network between all hosts of an allocation.")
    parser.add_argument("--max-latency", type=float, default=0.0, metavar="US", help="fail above so many microseconds")
    parser.add_argument("--min-bandwidth", type=float, default=0.0, metavar="MB", help="fail below so many MB/s")
    parser.add_argument("--timeout", type=float, default=30.0, metavar="S", help="for one pair (default: 30)")
    return parser.parse_args()


def main() -> int:
    """Check all pairs; 0 if every pair passes."""
    options = arguments()
    world = MPI.COMM_WORLD
    leaders = one_rank_each_host(world)
    failed = check_pairs(leaders, options) if leaders is not None else 0
    total = world.allreduce(failed)
    if world.rank == 0:
        print("every pair of hosts is well" if not total else f"{total} pairs of hosts are not well", flush=True)
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
