"""Hosts disconnected for any time, and no other fault: no command is killed."""

import pytest

from lavad.simulator.cluster.checkers import check
from lavad.simulator.cluster.scenario import HEALED_S, Trouble
from lavad.simulator.cluster.submitters import TROUBLE_S, Users
from lavad.simulator.cluster.world import World

CUTS, DURATIONS_S = 12, (1.0, 9.0, 14.0, 40.0, 75.0)
# Worlds without preemption, pools and leases: a job ended there is ended because a host was silent.
SEEDS = [seed for seed in range(4, 200, 4) if seed % 3]


def ended_by_others(seed: int) -> list[str]:
    """Commands of a world that were killed without a user's request."""
    world = World(seed, check_every=20)
    users, trouble = Users(world, 14), Trouble(world)
    world.begin()
    for number in range(users.jobs):
        world.after(world.rng.uniform(0, 0.7 * TROUBLE_S), lambda number=number: users._submit_new(number))  # type: ignore[misc]
    for _ in range(CUTS):
        world.after(
            world.rng.uniform(1, TROUBLE_S),
            lambda: world.partition(trouble._a_host(), ("up", "down"), world.rng.choice(DURATIONS_S)),
        )
    world.run_until(world.now + TROUBLE_S)
    world.faults, end = False, world.now + HEALED_S
    while world.now < end and not world.is_idle():
        world.run_until(min(end, world.now + 40.0), world.is_idle)
        users.resume_everything()
        master = world.master
        if not master.cluster.attempts and not master.worklist.has_work(master.cluster, world.now):
            users.give_up_impossible()
    check(world.history, world.ended(), healed=world.is_idle())
    commands = [one for one in world.history.processes if one.is_command]
    assert commands
    return [f"{one.key} on {one.host}: {one.status}" for one in commands if one.status in (2, 9)]


@pytest.mark.slow
def test_no_silence_ends_a_job() -> None:
    """A silence of any length, of any host of a job."""
    assert {seed: ended for seed in SEEDS if (ended := ended_by_others(seed))} == {}
