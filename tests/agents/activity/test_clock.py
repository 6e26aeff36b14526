"""Inactivity of a part of a job, sample by sample."""

from itertools import count
from typing import Any

import pytest

from agents.activity.clock import PartClock, Sample
from agents.activity.rule import Rule, rule_of
from protos.jobs_pb2 import HangRule, JobSpec

RULE = Rule(after_s=300.0, first_s=1800.0)
STEP_S = 10.0


class Part:
    """A part that is looked at every ten seconds; what it uses is said by rates."""

    def __init__(self, rule: Rule = RULE) -> None:
        self.clock = PartClock(rule, 0.0)
        self.now = self.cpu_s = 0.0
        self.network = self.output = self.progress = 0
        self.pass_by(0)

    def pass_by(self, seconds: float, cpus: Any = 0.0, network: float = 0.0, **more: Any) -> float:
        """Time passes; the inactivity then."""
        rates = iter(cpus) if not isinstance(cpus, float) else (cpus for _ in count())
        for _ in range(max(1, int(seconds / STEP_S))):
            self.now += STEP_S
            self.cpu_s += next(rates) * STEP_S
            self.network += int(network * STEP_S)
            self.clock.take(Sample(self.now, self.cpu_s, self.network, self.output, self.progress, **more))
        return self.clock.inactive_s()

    def write(self, size: int = 1) -> None:
        self.output += size
        self.pass_by(STEP_S)


def test_the_first_period_is_longer() -> None:
    """Programs load data and compile before they say a word; from then on the shorter one holds."""
    part = Part()
    assert part.pass_by(1700) == 0
    assert part.pass_by(110) >= 1800
    part.write()
    assert part.pass_by(290) == 0
    assert part.pass_by(10) == 300


@pytest.mark.parametrize("use", [{"cpus": 0.2}, {"network": 1e6}, {"gpu_power": 0.6}, {"is_stopped": True}])
def test_any_use_is_activity(use: dict[str, Any]) -> None:
    """Of processors, network or devices; and a part that is stopped does not hang."""
    part = Part()
    part.write()
    assert part.pass_by(1000, **use) == 0
    assert part.pass_by(310) >= 300


def test_output_that_cannot_be_looked_at_is_no_news() -> None:
    """Neither when it is known no more, nor when it is again, nor when it is gone; what was written meanwhile is."""
    part = Part()
    part.write(100)
    for size in (-1, 100, 0):
        part.output = size
        part.pass_by(100)
    assert part.clock.inactive_s() == 300
    for size in (-1, 1):
        part.output = size
        part.pass_by(STEP_S)
    assert part.clock.inactive_s() == 0


@pytest.mark.parametrize("use", [{"cpus": 0.02}, {"network": 1e3}, {"gpu_power": 0.2}])
def test_a_little_use_is_none(use: dict[str, Any]) -> None:
    """Threads that wake up now and then, and the traffic of the host's own services."""
    part = Part()
    part.write()
    assert part.pass_by(310, **use) >= 300


def test_progress_is_activity() -> None:
    """A report of it is as good as output."""
    part = Part()
    part.write()
    part.pass_by(290)
    part.progress += 1
    assert part.pass_by(290) == 0


def test_gpus_that_wait_count_by_their_power() -> None:
    """All is wedged in a collective operation: threads spin at 100 %, and so would the devices' utilisation."""
    part = Part()
    part.write()
    assert part.pass_by(310, cpus=8.0, gpu_power=0.2) >= 300
    assert part.pass_by(310, cpus=8.0, gpu_power=0.7) == 0


def test_processors_that_work_beside_idle_gpus_are_activity() -> None:
    """Their use varies; that of threads that spin does not."""
    part = Part()
    part.write()
    assert part.pass_by(600, cpus=iter([1.0, 2.0, 1.5, 4.0] * 15), gpu_power=0.1) == 0


def test_without_a_known_power_spinning_is_work() -> None:
    """A processor-bound program looks the same: it is left alone unless its rule says otherwise."""
    part = Part()
    part.write()
    assert part.pass_by(600, cpus=1.0) == 0
    spinning = Part(RULE._replace(cpus=1.1))
    spinning.write()
    assert spinning.pass_by(310, cpus=1.0) >= 300


def test_what_is_not_known_makes_no_hang() -> None:
    """Output that cannot be looked at is no output; a part that is not looked at at all has no time."""
    part = Part()
    part.write()
    part.output = -1
    assert part.pass_by(310) >= 300
    silent = Part()
    silent.write()
    assert silent.clock.inactive_s() == 0


def test_what_saves_stacks_is_not_the_part() -> None:
    """The debugger uses processors in the job's own control group."""
    part = Part()
    part.write()
    assert part.pass_by(310) >= 300
    part.clock.skip()
    part.cpu_s += 20
    assert part.pass_by(STEP_S) >= 310
    assert part.pass_by(STEP_S) >= 320


def test_new_processes_begin_anew() -> None:
    """With the first period: they load and compile again."""
    part = Part()
    part.write()
    part.pass_by(310)
    part.clock.begin(part.now)
    assert part.pass_by(1000) == 0
    assert part.pass_by(900) >= 1800


def test_a_rule_is_that_of_the_job() -> None:
    """For the slots of the part; the first period is never the shorter one."""
    assert rule_of(JobSpec(), 4) is None
    rule = rule_of(JobSpec(hang=HangRule(after_s=60, first_s=10, cpus=0.5, no_stacks=True)), 4)
    assert rule is not None
    assert (rule.after_s, rule.first_s, rule.cpus, rule.saves_stacks) == (60, 60, 2.0, False)
