"""Jobs of several roles under a stream of others: every role keeps its bounds, and no job waits for a growth."""

from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lavad.core import commands as c
from lavad.core.language.requirements.parts import sizes_of
from lavad.core.model import JobState, Key, Request, RoleRequest
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import Refused
from lavad.core.scheduling.capacity.free_resources import FreeResources
from lavad.core.scheduling.placement.place import place
from tests.builders import ANN, Story, a_host, a_job
from tests.properties.test_preemption import HIGH, LOW, QUEUES, start


def a_role(rng: Random, name: str) -> RoleRequest:
    """A role, mostly with a range."""
    least = rng.choice((0, 1, 1, 2))
    gpus, memory = rng.choice((0, 0, 1)), rng.choice((0, 0, 300))
    way = rng.choice(({}, {}, {"ptile": 2}, {"stripe": -1}, {"rusage": "mem=100/task"}))
    return RoleRequest(
        least,
        max(1, least) + rng.choice((0, 1, 3)),
        rng.choice((1, 1, 2)),
        memory,
        gpus,
        bool(gpus and rng.random() < 0.7),
        name=name,
        **way,  # type: ignore[arg-type]
    )


def a_gang(rng: Random) -> Request:
    """A request of two or three roles, one of which is needed."""
    roles = [a_role(rng, name) for name in ("chief", "ps", "worker")[: rng.choice((2, 3))]]
    roles[0] = RoleRequest(1, 1, name="chief")
    return Request(tuple(roles), is_of_tasks=True)


def settle(story: Story, rng: Random) -> None:
    """Let hosts carry out what they were told, or some of it."""
    for key, attempt in list(story.cluster.resizable.items()):
        change = attempt.resizing
        for share in change.growth:
            if attempt.share_on(share.host) is None and rng.random() < 0.8:
                story.staged(share.host, key)
        if change.due and not change.growth and rng.random() < 0.8:
            story.do(c.ReportResized(attempt.lead, key, change.version))
        for share in attempt.resizing.leaving:
            if attempt.is_leaving(share.host) and attempt.resizing.is_told:
                story.released(share.host, key)


def resize(story: Story, key: Key, rng: Random) -> None:
    """A user asks for some size; it may be refused."""
    role = rng.choice(story.job(key.job).shared.request.roles)
    target = c.Target(key.job)
    host = rng.choice(story.where(key.job))
    words = rng.choice((f"{role.name}={role.tasks_min}", host, f"1*{host}", "all"))
    try:
        if rng.random() < 0.5:
            story.do(c.ScaleJob(target, ((role.name, rng.randint(0, role.tasks_max)),), ANN, True))
        else:
            story.do(c.ShrinkJob(target, words, ANN))
    except Refused:
        pass


def look_at(story: Story) -> None:
    """Check bounds; the invariants, checked after each step, see to what is booked."""
    for key, attempt in story.cluster.resizable.items():
        roles = story.job(key.job).shared.request.roles
        for role, tasks in zip(roles, sizes_of(attempt.allocation, len(roles)), strict=True):
            assert role.tasks_min <= tasks <= role.tasks_max
        for share in attempt.allocation:
            gpus = sum(
                role.gpus * (tasks if role.gpus_per_task else bool(tasks))
                for role, tasks in zip(roles, share.tasks_by_role, strict=True)
            )
            assert len(share.gpus) == gpus, f"{share} has other GPUs than its tasks need"
            memory = sum(
                role.memory_mib * bool(tasks) + 100 * tasks * bool(role.rusage)
                for role, tasks in zip(roles, share.tasks_by_role, strict=True)
            )
            assert share.memory_mib == memory, f"{share} has other memory than its tasks need"


def check_growth(story: Story) -> None:
    """Check that a pass which made a job grow left no pending job what it could have started with."""
    growing = [attempt for attempt in story.cluster.resizable.values() if attempt.resizing.growth]
    if not growing:
        return
    for number, job in story.cluster.jobs.items():
        if story.state(number) is JobState.PEND:
            table = story.cluster.table.copy()
            for attempt in growing:
                for share in attempt.resizing.growth:
                    table.give_back(table.rows[share.host], share, False)
            fits = place(FreeResources(table), job.shared.request)
            assert fits is None, f"job {number} waits for what another has grown into"


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**9))
@example(1719876)  # a host whose slots are lent has less than none free
def test_roles_keep_their_bounds_and_growth_delays_no_job(seed: int) -> None:
    """Growth, shrink by users and for others, starts and ends in any order; at the end all is given back."""
    rng = Random(seed)
    hosts = [a_host(f"n{n}", rng.choice((1, 2, 4)), 2000, rng.choice((0, 2))) for n in range(1, rng.randint(4, 6))]
    story = Story(*hosts, policy=Policy(QUEUES, default_queue=LOW))
    gangs = [story.submit(a_job(queue=LOW, request=a_gang(rng))) for _ in range(rng.randint(1, 3))]
    others = list[int]()
    for _ in range(12):
        story.now += 1
        before = {key: attempt.resizing.growth for key, attempt in story.cluster.resizable.items()}
        story.plan()
        if not any(before.values()):
            check_growth(story)
        for number in (*gangs, *others):
            if story.state(number) is JobState.STAGING:
                start(story, number)
        settle(story, rng)
        look_at(story)
        running = [key for key in story.cluster.resizable if story.state(key.job) is JobState.RUN]
        if running and rng.random() < 0.4:
            resize(story, rng.choice(running), rng)
        if rng.random() < 0.4:
            others.append(story.submit(a_job(rng.choice((1, 2, 3)), queue=rng.choice((LOW, HIGH)))))
        ended = [number for number in others if story.state(number) is JobState.RUN]
        if ended and rng.random() < 0.5:
            number = rng.choice(ended)
            for host in story.where(number):
                story.finished(host, story.key(number))
