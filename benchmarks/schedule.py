"""Scheduling passes on the pure core: their duration on a large cluster with many pending jobs.

Mixed slots and memory, a fifth of the hosts with 8 GPUs, 200 users, many buckets, among them parallel jobs on 2 to 64
hosts. The first pass fills the cluster; then one job after the other ends and the pass that follows is timed. Passes
are planned and applied in slices, as the pacer sizes them; the rows and orders that follow from the starts are timed
separately (rows_s, orders_s). longest_slice_cpu_ms is the most CPU time of one slice: on a shared machine the wall time
also includes other processes.

With --four-sizes the jobs are those of the measurement of Slurm in docs/reference/benchmarks.md: 1, 8, 64 and 256
slots. With --backfill the first pending jobs hold reservations, and jobs have run limits of 1 to 2.65 hours.

    python -m benchmarks.schedule --hosts 10000 --pending 1000000 [--buckets 1000]
    python -m benchmarks.schedule --hosts 5000 --pending 20000 --four-sizes
    python -m benchmarks.schedule --hosts 200 --pending 20000 --backfill 100
"""

import argparse
import gc
import random
import sys
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.figures import Figures
from lavad.core import commands as c
from lavad.core.cluster import Cluster
from lavad.core.events import AttemptDispatched, NewJob
from lavad.core.model import HostFacts, Key, Request, RoleRequest, Shared, pack_text
from lavad.core.model.policy import Policy
from lavad.core.model.rules.queues import Queue
from lavad.core.orders import orders_for
from lavad.core.passes import slice_pass
from lavad.core.scheduling.worklist import Worklist
from lavad.core.step import Outcome, step
from lavad.pacer import Tempo
from lavad.store.rows.rows import RowMaker

SLOTS, MEMORY_MIB, GPUS = 64, 256_000, 8
USERS = 200
MEMORIES = 1000
FOUR_SIZES = (1, 8, 64, 256)
ENDS = 300
BETWEEN_ENDS_S = 0.1


def a_cluster(hosts: int, backfill: int = 0) -> Cluster:
    """Hosts of 64 slots, every fifth with 8 GPUs; the queue's backfill depth is ``backfill``."""
    cluster = Cluster(Policy(queues=(Queue("normal", backfill_depth=backfill),)))
    for number in range(hosts):
        gpus = GPUS if number % 5 == 0 else 0
        facts = HostFacts(f"n{number:05d}", SLOTS, MEMORY_MIB, gpus)
        step(cluster, c.AgentHello(facts, 1), 0.0)
    return cluster


def requests(buckets: int, rng: random.Random) -> list[Shared]:
    """``buckets`` kinds of jobs: 90 % on one host, 8 % with GPUs, 2 % parallel on 2 to 64 hosts."""
    return [_shared(number, _role(number, rng)) for number in range(buckets)]


def _role(number: int, rng: random.Random) -> RoleRequest:
    kind = rng.random()
    memory = 500 + number % MEMORIES  # makes requests different
    if kind < 0.90:
        return RoleRequest(slots_per_task=rng.choice([1, 1, 1, 1, 1, 2]), memory_mib=memory)
    if kind < 0.98:
        return RoleRequest(slots_per_task=2, memory_mib=memory, gpus=rng.choice([1, 2]))
    tasks = rng.choice([2, 4, 8, 16, 32, 64])
    return RoleRequest(tasks_min=tasks, tasks_max=tasks, ptile=1, memory_mib=memory)


def _shared(number: int, role: RoleRequest) -> Shared:
    user = (number + number // MEMORIES) % USERS  # a different user for equal requests
    return Shared(f"user{user}", 1000 + user, 1000, "normal", "default", Request((role,), exclusive=False))


def four_sizes() -> list[Shared]:
    """Slots-only jobs of four sizes."""
    roles = [RoleRequest(tasks_min=slots, tasks_max=slots) for slots in FOUR_SIZES]
    return [_shared(number, role) for number, role in enumerate(roles)]


def with_run_limits(kinds: list[Shared]) -> list[Shared]:
    """The same kinds, each with one of a hundred run limits."""
    return [replace(one, run_limit_s=3600 + 60 * (number % 100)) for number, one in enumerate(kinds)]


def submit(cluster: Cluster, kinds: list[Shared], pending: int, rng: random.Random) -> None:
    """Submit jobs of random kinds, each with its own name, command and directory."""
    caller = c.Caller("user", 1000)
    for number in range(pending):
        text = pack_text(f"case{number}", f"/opt/run --case {number}", f"/scratch/{number}")
        shared = kinds[rng.randrange(len(kinds))]
        step(cluster, c.SubmitJob(NewJob(0, shared, text, b"", b""), caller), 1.0)


class Passes:
    """Runs passes and records their cost."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.worklist = Worklist()
        self.rows = RowMaker()
        self.apply_s = self.orders_s = self.rows_s = 0.0
        self.now = 2.0
        self.tempo = Tempo()
        self.slices: list[tuple[float, float]] = []  # wall time and CPU time of each
        self.started: list[Key] = []

    def run(self) -> float:
        """Run one whole pass; seconds of planning and applying."""
        took_s = 0.0
        while True:
            began, busy = time.perf_counter(), time.thread_time()
            plan = slice_pass(self.cluster, self.worklist, self.tempo.steps, self.now)
            planned = time.perf_counter()
            outcome = step(self.cluster, c.ApplyPlan(plan), self.now, has_agents=False) if plan.starts else Outcome()
            ended = time.perf_counter()
            took_s += ended - began
            self.apply_s += ended - planned
            self.slices.append((ended - began, time.thread_time() - busy))
            self.tempo.note(plan.steps, ended - began)
            self._pass_on(outcome)
            if plan.is_complete:
                return took_s

    def _pass_on(self, outcome: Outcome) -> None:
        """Make the rows and orders for the store and the agents."""
        began = time.perf_counter()
        for event in outcome.events:
            for _ in orders_for(self.cluster, event):
                pass
        ordered = time.perf_counter()
        self.rows.rows_for(outcome.events, self.cluster)
        self.rows_s += time.perf_counter() - ordered
        self.orders_s += ordered - began
        self.started.extend(event.key for event in outcome.events if isinstance(event, AttemptDispatched))


def end(cluster: Cluster, key: Key, now: float) -> None:
    """End the job and release every host of it."""
    attempt = cluster.attempts[key]
    hosts = [share.host for share in attempt.allocation]
    for host in hosts if not attempt.launched else ():
        step(cluster, c.ReportStaged(host, key), now)
    step(cluster, c.ReportFinished(attempt.lead, key, 0, now), now)
    for host in hosts:
        step(cluster, c.ReportReleased(host, key), now)


def resident_bytes() -> int:
    """Resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def run(figures: Figures, hosts: int, pending: int, buckets: int, prefix: str = "", backfill: int = 0) -> None:
    """Print the figures of one size. ``buckets`` 0: jobs of four sizes."""
    rng = random.Random(1)
    cluster = a_cluster(hosts, backfill)
    kinds = requests(buckets, rng) if buckets else four_sizes()
    if backfill:
        kinds = with_run_limits(kinds)
    gc.collect()
    gc.disable()
    before = resident_bytes()
    submit(cluster, kinds, pending, rng)
    figures.put(f"{prefix}buckets", len(cluster.pending.buckets))
    figures.put(f"{prefix}bytes_per_pending_job", (resident_bytes() - before) / pending)
    gc.freeze()
    passes = Passes(cluster)
    figures.put(f"{prefix}first_pass_s", passes.run())
    figures.put(f"{prefix}starts", len(passes.started))
    figures.put(f"{prefix}apply_s", passes.apply_s)
    figures.put(f"{prefix}orders_s", passes.orders_s)
    figures.put(f"{prefix}rows_s", passes.rows_s)
    samples = []
    for key in rng.sample(passes.started, min(ENDS, len(passes.started))):
        passes.now += BETWEEN_ENDS_S
        end(cluster, key, passes.now)
        samples.append(passes.run())
    figures.put_percentiles(f"{prefix}pass_ms", samples, 50, 99)
    for name, times in zip(("longest_slice", "longest_slice_cpu"), zip(*passes.slices, strict=True), strict=True):
        figures.put(f"{prefix}{name}_ms", max(times) * 1000)
    gc.enable()
    gc.unfreeze()


def measure(figures: Figures) -> None:
    """schedule_ms: the pass after one job ended, with 1,000 hosts and 100,000 pending jobs."""
    run(figures, 1000, 100_000, 1000, "schedule_1000_")
    figures.put("schedule_ms", float(figures.values["schedule_1000_pass_ms_p50"]))


def main(argv: list[str]) -> int:
    """Measure the size given on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--pending", type=int, default=100_000)
    parser.add_argument("--buckets", type=int, default=1000)
    parser.add_argument("--four-sizes", action="store_true", help="jobs of 1, 8, 64 and 256 slots")
    parser.add_argument("--backfill", type=int, default=0, help="how many jobs of the queue hold reservations")
    chosen = parser.parse_args(argv)
    buckets = 0 if chosen.four_sizes else chosen.buckets
    run(Figures(), chosen.hosts, chosen.pending, buckets, backfill=chosen.backfill)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
