"""Traces as they are found: out of order, with gaps, repeats and comments. The twin gets an independent reading."""

from pathlib import Path
from random import Random

import pytest

from lavad.simulator.replay import textbook
from lavad.simulator.replay.fast_replay import BriefReplay
from lavad.simulator.replay.swf import read_trace
from lavad.simulator.replay.workload import Machine, Overrun, of_trace
from tests.simulator.twin import TwinJob, replay

PROCESSORS = 6
HUGE = 10**14


def a_line(chance: Random, submit_max: int) -> str:
    """Any field may be unknown; numbers are repeated, or huge."""
    number = chance.choice([1, 2, 7, HUGE + 1, -1])
    run = chance.choice([-1, 0, 1, 3, 8, "4.7"])
    allocated, requested = chance.choice([-1, 0, 1, 2, 5, PROCESSORS + 3]), chance.choice([-1, -1, 0, 2, 4])
    estimate, who = chance.choice([-1, 0, 2, 9]), chance.choice([-1, 3, HUGE])
    submit = chance.randint(-5, submit_max)
    line = f"{number} {submit}\t-1 {run} {allocated} -1 -1 {requested} {estimate} -1 1 {who} {who} -1 {who} -1 -1 -1"
    return line if chance.random() < 0.8 else " ".join(line.split()[:9])


def a_file(seed: int) -> str:
    """Jobs in no order of time, with remarks and empty lines between them."""
    chance = Random(seed)
    lines = [a_line(chance, 40) for _ in range(60)]
    for at in chance.sample(range(60), 8):
        lines.insert(at, chance.choice(["; a remark", "", "   ", ";", "; MaxProcs: none"]))
    return chance.choice(["\n", "\r\n"]).join(lines)


def own_reading(text: str) -> list[TwinJob]:
    """The jobs to replay, by an independent reading. A job's name is its position, for numbers are repeated."""
    jobs = []
    for line in text.splitlines():
        words = line.split()
        if not words or words[0].startswith(";"):
            continue
        submit, run, allocated, requested, estimate = (int(float(words[at])) for at in (1, 3, 4, 7, 8))
        width = requested if requested > 0 else allocated
        if run > 0 and 0 < width <= PROCESSORS:
            jobs.append(TwinJob(0, submit, run, width, estimate if estimate > 0 else run))
    jobs.sort(key=lambda job: job.submit)
    for place, job in enumerate(jobs):
        job.name = place
    return jobs


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
@pytest.mark.parametrize("seed", range(8))
def test_odd_traces_are_replayed_as_the_twin_replays_them(tmp_path: Path, seed: int, policy: str) -> None:
    """Also with submissions before time zero, and with jobs of one number."""
    text = a_file(seed)
    file = tmp_path / "odd.swf"
    file.write_bytes(text.encode())
    rules, overrun = textbook.policy(policy), list(Overrun)[seed % 3]
    trace = read_trace(file, PROCESSORS)
    ran = BriefReplay(of_trace(trace.jobs, rules, overrun), Machine(2, 3).facts(), rules).run()
    expected = replay(own_reading(text), PROCESSORS, policy, overrun.value)
    assert [job.start_s for job in ran] == [expected[place] for place in range(len(expected))]
    assert len(ran) + sum(trace.dropped.values()) == trace.lines == 60
