"""A world in which everything happens at once: windows, loads, silences, reconfigurations, and false reports of agents.

No report of an agent, and no order of events, may end the master: any exception of ``step`` except a refusal fails the
test.
"""

from dataclasses import replace
from datetime import UTC, datetime

from lavad.core import commands as c
from lavad.core import invariants
from lavad.core.cluster import Cluster
from lavad.core.model import LOAD_INDICES, Key
from lavad.core.model.policy import Policy
from lavad.core.model.rules.queues import JobDefaults, Queue, Threshold
from lavad.core.model.windows import Window
from lavad.core.state.records import ArrayRecord
from lavad.simulator.cluster.restart import reborn
from tests.fakes.world import ROOT, World, new_job

MINUTES = 60


def windows(now: float, every: int, open_for: int) -> tuple[Window, ...]:
    """Time windows of this length and period in minutes, from now on."""
    moment = datetime.fromtimestamp(now, UTC)
    minute = moment.isoweekday() % 7 * 1440 + moment.hour * 60 + moment.minute
    starts = range(minute - 1, min(minute + 600, 7 * 1440 - open_for), every)
    return tuple(Window(start, start + open_for) for start in starts)


class Lawless(World):
    """A world whose queues have windows and load thresholds; ``lies`` lets agents send false reports."""

    lies = False

    def __post_init__(self) -> None:
        super().__post_init__()
        bounds, defaults = (Threshold("r1m", 1.0, 2.0),), JobDefaults(requeue_exit_values="1")
        ends = frozenset({"WINDOW", "LOAD"} if self.seed % 2 else ())
        normal = Queue("normal", run_windows=windows(self.now, 11, 6), thresholds=bounds, defaults=defaults)
        other = Queue("other", run_windows=windows(self.now, 7, 4), thresholds=bounds, terminate_when=ends)
        rules = Policy(clean_period_s=600.0, fence_after_s=40.0, queues=(normal, other, Queue("free")))
        self.rules = (rules, replace(rules, queues=(normal, Queue("free"))))
        self.cluster = Cluster(rules)

    def do(self, command: c.Command) -> bool:
        """Carry out one command, with the invariants checked after it."""
        is_done = super().do(command)
        invariants.check(self.cluster)
        return is_done

    def live(self, steps: int) -> None:
        """Make this number of random events."""
        deeds = [self.submit] * 6 + [self.start] * 20 + [self.report] * 30 + [self.control] * 8 + [self.resize] * 6
        deeds += [self.observe] * 6 + [self.switch] * 4 + [self.pass_time] * 6 + [self.return_] * 2 + [self.hear] * 3
        deeds += [self.change_elements] * 5
        deeds += [self.administer, self.reconfigure, self.restart]
        if self.lies:
            deeds += [self.lie] * 8 + [self.lying_hello] * 2
        for _ in range(steps):
            self.now += self.random.random()
            self.random.choice(deeds)()

    def control(self) -> None:
        """As in any world, but only while every remaining attempt's job is known."""
        if all(key.job in self.cluster.jobs for key in self.cluster.attempts):
            super().control()

    def observe(self) -> None:
        """A host reports its load."""
        load = [self.random.choice([0.0, 1.5, 5.0]) if name == "r1m" else 0.0 for name in LOAD_INDICES]
        self.cluster.observe_load(self._a_host(), load)

    def switch(self) -> None:
        """bswitch of some job."""
        if not self._live:
            return
        number, queue = self.random.choice(self._live), self.random.choice(["normal", "other", "free"])
        record = self.cluster.jobs[number]
        limit = record.limit if isinstance(record, ArrayRecord) else 0
        job = new_job(name="switched", user=record.shared.user, queue=queue, limit=limit)
        self.do(c.ModifyJob(c.Target(number), job, ROOT, "", frozenset({"queues"}), is_switch=True))

    def pass_time(self) -> None:
        """Let time pass in which some hosts are silent."""
        self.now += self.random.choice([5.0, 1 * MINUTES, 5 * MINUTES])
        for host in self.cluster.hosts.values():
            host.seen_at = self.now if self.random.random() < 0.7 else 0.0
        self.do(c.Tick())
        self.do(c.EndLeases())

    def hear(self) -> None:
        """Let silent hosts report again within their session."""
        for name, host in sorted(self.cluster.hosts.items()):
            if host.is_silent and self.random.random() < 0.5 and self.cluster.heard(name, self.now):
                self.do(c.AgentHeard(name))

    def reconfigure(self) -> None:
        """badmin reconfig: remove a queue, or add it again."""
        self.do(c.Reconfigure(self.random.choice(self.rules)))

    def restart(self) -> None:
        """Restart the master; due timers fire at once."""
        self.cluster = reborn(self.cluster)
        self.do(c.Tick())
        self.do(c.EndLeases())

    # -- lies ------------------------------------------------------------------------------------------------------

    def lie(self) -> None:
        """Any report of any host about any attempt, existing or not."""
        if self.cluster.attempts:
            self.do(self._anything(self._a_host(), self._a_key()))

    def lying_hello(self) -> None:
        """A hello with arbitrary held attempts, some of them twice."""
        if not self.cluster.attempts:
            return
        attempt = self.random.choice(list(self.cluster.attempts.values()))
        name, keys, held = self.random.choice(sorted(attempt.unreleased)), (attempt.key, self._a_key()), []
        for _ in range(self.random.randint(1, 5)):
            word = self._anything(name, self.random.choice(keys))
            resized = word if isinstance(word, c.ReportResized) else None
            last = None if resized else word
            launched, version = self.random.random() < 0.5, self.random.choice([1, 2, 9])
            held.append(c.HeldAttempt(word.key, last, launched, version, resized))
        self.join(int(name[1:]), tuple(held))

    def _a_host(self) -> str:
        return self.random.choice(sorted(self.cluster.hosts))

    def _a_key(self) -> Key:
        rng, key = self.random, self.random.choice(list(self.cluster.attempts))
        if rng.random() < 0.7:
            return key
        return Key(key.job, rng.choice([0, 1, 2, key.index]), rng.randint(0, 3))

    def _anything(self, host: str, key: Key) -> c.AgentReport:
        rng, version = self.random, self.random.choice([0, 1, 1, 2, 3, 9])
        released, lost = rng.random() < 0.5, rng.random() < 0.3
        status = rng.choice([0, 256, 9])
        words: list[c.AgentReport] = [
            c.ReportStaged(host, key, version),
            c.ReportRefused(host, key, "no", rng.random() < 0.5, version),
            c.ReportStarted(host, key, 4711, self.now),
            c.ReportFinished(host, key, status, self.now, also_released=released, lost=lost, version=version),
            c.ReportReleased(host, key, version),
            c.ReportResized(host, key, version, rng.random() < 0.5),
        ]
        return rng.choice(words)
