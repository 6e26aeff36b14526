"""All figures in one run on one machine; docs/reference/benchmarks.md explains each. `make bench` runs this."""

import sys

from benchmarks import array_jobs, latency, peer_hyperqueue, pending, schedule, simulate, spawn_rate
from benchmarks.figures import Figures


def main() -> int:
    """Run all benchmarks and write the JSON."""
    figures = Figures()
    spawn_rate.measure(figures)
    array_jobs.measure(figures)
    peer_hyperqueue.measure(figures)
    latency.measure(figures)
    pending.measure(figures)
    schedule.measure(figures)
    simulate.measure(figures)
    sys.stderr.write(f"kept in {figures.keep()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
