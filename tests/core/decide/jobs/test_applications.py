"""Application profiles (lsf.md 6.4): their settings, those of the queue, and the job's own."""

from dataclasses import replace

import pytest

from lavad.core import commands as c
from lavad.core.model import RoleAsked, Shared
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.applications import Application
from lavad.core.model.rules.queues import JobDefaults, Queue
from lavad.core.order_kinds import spec_defaults
from lavad.core.orders import StageOrder
from tests.builders import ANN, ROOT, Story, a_host, a_job

QUEUE = Queue(
    "normal",
    run_limit_s=7200,
    nice=5,
    job_controls=(("SUSPEND", "SIGTSTP"), ("TERMINATE", "SIGTERM")),
    defaults=JobDefaults(
        requirement="select[mem>10]",
        run_limit_default_s=3600,
        memory_limit_mib=1000,
        job_starter="queue %USRCMD",
        requeue_exit_values="30",
        rlimits=(("core", 0, 0), ("cpu", 60, 600)),
    ),
)
PROFILE = Application(
    "md",
    run_limit_s=600,
    nice=0,
    rerunnable=True,
    job_controls=(("SUSPEND", "SIGSTOP"),),
    environment=(("MD_HOME", "/opt/md"),),
    defaults=JobDefaults(
        requirement="select[mem>20] rusage[mem=7]",
        memory_limit_mib=4000,
        memory_limit_default_mib=500,
        job_starter="md",
        requeue_exit_values="40",
        rlimits=(("cpu", 0, 1200),),
        tasks_min=2,
        tasks_default=2,
        tasks_max=4,
    ),
)
BESIDE = Application("plain")


def _story(*, requires: bool = True) -> Story:
    """One host; without ``requires`` neither queue nor profile has a RES_REQ."""
    queue, profile = QUEUE, PROFILE
    if not requires:
        queue = replace(queue, defaults=replace(queue.defaults, requirement=""))
        profile = replace(profile, defaults=replace(profile.defaults, requirement=""))
    profiles = {one.name: one for one in (profile, BESIDE)}
    return Story(a_host("n1", 8), policy=Policy(queues=(queue,), default_queue="normal", applications=profiles))


def _shared(story: Story, application: str, requirement: str = "", **job: int) -> Shared:
    asked = c.Asked(is_size_given=False, roles=(RoleAsked(requirement=requirement),))
    reply = story.do(c.SubmitJob(a_job(application=application, **job), ANN, asked)).reply
    return story.cluster.jobs[reply.job].shared


def test_a_profile_comes_before_the_queue() -> None:
    """Its limits are defaults where the job has none; the smaller maximum holds; requirements are joined."""
    shared = _shared(_story(), "md")
    assert shared.run_limit_s == 600
    assert shared.memory_limit_mib == 500
    assert shared.rerunnable
    assert shared.requirement == "select[(mem > 10) && (mem > 20)] rusage[mem=7]"
    role = shared.request.roles[0]
    assert (role.tasks_min, role.tasks_max, role.memory_mib) == (2, 2, 7)


def test_without_a_profile_or_in_an_empty_one_the_queue_holds() -> None:
    """Each job has what its queue says."""
    story = _story()
    for name in ("", "plain"):
        shared = _shared(story, name)
        assert (shared.run_limit_s, shared.memory_limit_mib, shared.rerunnable) == (3600, 1000, False)


def test_the_job_comes_first() -> None:
    """Within the maxima of both."""
    shared = _shared(_story(), "md", run_limit_s=60, requirement="select[mem>30]")
    assert shared.run_limit_s == 60
    assert "mem > 30" in shared.requirement
    with pytest.raises(Refused, match="RUNLIMIT"):
        _shared(_story(), "md", run_limit_s=700)


def test_hosts_are_told_what_the_profile_says() -> None:
    """Job starter, nice value, controls, process limits and variables."""
    story = _story(requires=False)
    _shared(story, "md")
    order = next(one for one in story.plan() if isinstance(one, StageOrder))
    queue = order.setup.queue
    assert (queue.nice, queue.defaults.job_starter, queue.environment) == (0, "md", (("MD_HOME", "/opt/md"),))
    assert dict(queue.job_controls) == {"SUSPEND": "SIGSTOP", "TERMINATE": "SIGTERM"}
    assert dict(spec_defaults(order.setup.shared, queue).process_limits) == {"core": 0, "cpu": 600}


def test_an_unknown_profile_is_refused() -> None:
    """At the submission and by bmod; a job whose profile is gone runs as its queue says."""
    story = _story(requires=False)
    with pytest.raises(Refused, match="nope: No such application profile"):
        _shared(story, "nope")
    job = story.submit(a_job(2, application="md"))
    other = a_job(2, application="nope")
    with pytest.raises(Refused, match="nope: No such application profile"):
        story.do(c.ModifyJob(c.Target(job), other, ANN, "", frozenset({"application"})))
    story.do(c.Reconfigure(replace(story.cluster.policy, applications={})))
    order = next(one for one in story.plan() if isinstance(one, StageOrder))
    assert order.setup.queue.defaults.job_starter == "queue %USRCMD"


def test_slots_are_counted_by_profile() -> None:
    """Pending, running, and none when the job has ended."""
    story = _story(requires=False)
    job = story.submit(a_job(3, application="plain"))
    counted = story.cluster.counters.slots_by_application
    assert sum(counted.values()) == 3
    story.do(c.KillJob(c.Target(job), ROOT))
    assert not any(story.cluster.counters.slots_by_application.values())
