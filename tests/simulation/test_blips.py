"""Short silences of hosts under leases: no job of tasks ends, restarts or moves for one."""

from random import Random

import pytest

from lavad.core import commands as c
from lavad.core.events import NewJob
from lavad.core.model import JobState, Key, Launch, Request, RoleRequest, Shared, pack_text
from lavad.core.model.task_rules import Policy, RoleRules, TaskAction, TaskEvent, TaskRules
from lavad.simulator.cluster.fleet import Behaviour
from lavad.simulator.cluster.site_policy import a_policy
from lavad.simulator.cluster.world import World

LEASE_S = 120.0
LONGEST_S = 60.0
JOBS, BLIPS, PERIOD_S = 2, 250, 1800.0
EAGER = TaskRules(
    (RoleRules(),), policies=(Policy(TaskAction.RESTART_JOB, frozenset({TaskEvent.ANY})),), restarts_max=9
)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_no_blip_below_the_lease_ends_a_job(seed: int) -> None:
    """A thousand in all, in one direction or both, also of several hosts at a time, with the masters restarted."""
    rng, world = Random(seed), World(seed, hosts=6, faults=False, policy=a_policy(seed, fence_after_s=LEASE_S))
    world.begin()
    world.run_until(world.now + 3.0)
    for number in range(JOBS):
        request = Request((RoleRequest(3, 3, name="w", launch=Launch.EACH),), is_of_tasks=True)
        shared = Shared("u1000", 1000, 1000, "normal", "p", request, tasks=EAGER)
        name = f"tasks-{number}".encode()
        world.behaviour_of_request[name] = Behaviour(1e6, 0, of_tasks={})
        job = NewJob(0, shared, pack_text(name="t"), b"", name)
        world.master.ask(c.SubmitJob(job, c.Caller("u1000", 1000)))
    world.run_until(world.now + 5.0)
    for _ in range(BLIPS):
        host = world.hosts[rng.choice(sorted(world.hosts))]
        directions = rng.choice((("up", "down"), ("up",), ("down",)))
        length_s = rng.uniform(0.5, LONGEST_S)
        world.after(
            rng.uniform(0, PERIOD_S), lambda host=host, where=directions, s=length_s: world.partition(host, where, s)
        )
    for at in (400.0, 1300.0):
        world.after(at, world.master.crash)
        world.after(at + 2.0, world.master.start)
    world.run_until(world.now + PERIOD_S + 4 * LONGEST_S)
    cluster = world.master.cluster
    jobs = [cluster.element(number, 0) for number in range(1, JOBS + 1)]
    assert [(job.key, job.state) for job in jobs if job is not None] == [
        (Key(number, 0, 1), JobState.RUN) for number in range(1, JOBS + 1)
    ]
    assert {run for *_, run in world.history.task_runs} == {1}
    assert len(world.history.task_runs) == 3 * JOBS
