"""All figures in one run on one machine; see docs for what each means. `make bench` runs this."""

import sys

from benchmarks import array_jobs, latency, peer_hyperqueue, pending, schedule, simulate, spawn_rate
from benchmarks.figures import Figures


def main() -> int:
    """Measure everything, keep the JSON."""
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
