"""Figures of an independent simulator for seven public traces, and the effect of the order by slowdown on them.

The traces lie in shared/traces beside the checkout, and are too large to be part of it. A few replays are made each
time; LAVA_ALL_TRACES=1 makes all of them, which takes some minutes.
"""

import json
import os
from functools import cache
from pathlib import Path

import pytest

from lavad.core.model.priorities.job_order import JobOrder
from lavad.simulator.replay import policy_choice, textbook
from lavad.simulator.replay.fast_replay import BriefReplay
from lavad.simulator.replay.report import figures
from lavad.simulator.replay.swf import read_trace
from lavad.simulator.replay.workload import Machine, of_trace

HERE = Path(__file__).resolve()
TRACES = next((path for base in HERE.parents if (path := base / "shared" / "traces").is_dir()), None)
LINES = 10_000
PUBLISHED = {  # mean wait s / mean bounded slowdown under fcfs, easy, conservative; utilisation under fcfs, easy
    "lublin_256": ("2388444/66502.48 97156/590.05 131568/489.20", "0.655 0.936"),
    "lublin_256_new2": ("1172120/54575.25 9704/256.63 9659/239.57", "0.412 0.603"),
    "sdsc-sp2-20k": ("25706/218.94 5769/19.74 6048/26.72", "0.708 0.708"),
    "hpc2n-20k": ("14309/226.25 5747/55.91 6739/62.76", "0.564 0.564"),
    "sdsc-blue-20k": ("44459/455.78 3581/18.85 3910/19.91", "0.718 0.723"),
    "wagap-2013": ("14694/187.74 4535/42.19 6179/47.27", "0.567 0.567"),
    "philly-40k": ("2097/29.84 1067/10.81 1157/11.71", "0.193 0.193"),
}
POLICIES = ("fcfs", "easy", "conservative")
SHORT = {("sdsc-sp2-20k", "easy"), ("sdsc-sp2-20k", "conservative"), ("wagap-2013", "fcfs"), ("wagap-2013", "easy")}
ORDERED = ("sdsc-sp2-20k", "wagap-2013")
HAS_ALL = os.environ.get("LAVA_ALL_TRACES") == "1"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(TRACES is None, reason="no shared/traces beside this checkout or above it"),
]


@cache
def replayed(name: str, policy: str, order: JobOrder) -> dict[str, float]:
    """Figures of a trace's first lines on its own number of processors."""
    assert TRACES is not None
    sources = json.loads((TRACES / "SOURCES.json").read_text())
    source = next(one for one in sources if one["file"] == f"{name}.swf.gz")
    trace = read_trace(TRACES / source["file"], source["replay_processors"], LINES)
    chosen = policy_choice.in_order(textbook.policy(policy), order)
    replay = BriefReplay(of_trace(trace.jobs, chosen), Machine(1, trace.processors).facts(), chosen)
    return figures(replay.run(), trace.processors, 1.0)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", PUBLISHED)
def test_the_figures_are_the_published_ones(name: str, policy: str) -> None:
    """To the rounding shown."""
    if not HAS_ALL and (name, policy) not in SHORT:
        pytest.skip("LAVA_ALL_TRACES=1 makes all replays")
    values = replayed(name, policy, JobOrder.SUBMISSION)
    pairs, utilisations = (text.split() for text in PUBLISHED[name])
    place = POLICIES.index(policy)
    assert f"{values['mean_wait_s']:.0f}/{values['mean_bounded_slowdown']:.2f}" == pairs[place]
    if place < len(utilisations):
        assert f"{values['utilisation']:.3f}" == utilisations[place]


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_order_by_slowdown_is_better_and_nobody_waits_much_longer(name: str) -> None:
    """A mean slowdown of at most 0.8 times that of EASY, a longest wait of at most 1.5 times."""
    if not HAS_ALL and name not in ORDERED:
        pytest.skip("LAVA_ALL_TRACES=1 makes all replays")
    easy = replayed(name, "easy", JobOrder.SUBMISSION)
    ordered = replayed(name, "easy", JobOrder.SLOWDOWN)
    assert ordered["mean_bounded_slowdown"] <= 0.8 * easy["mean_bounded_slowdown"]
    assert ordered["max_wait_s"] <= 1.5 * easy["max_wait_s"]
