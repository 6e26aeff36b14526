"""bmod of running jobs: other limits, which their hosts are told, and told again if they were away."""

from dataclasses import replace
from typing import Any

import pytest

from lavad.core import commands as c
from lavad.core.events import NewJob
from lavad.core.model import JobState, Key, OutputFiles, RunChange, SpecialOptions, pack_text
from lavad.core.model.policy import Policy
from lavad.core.model.ranges import Ranges
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.queues import JobDefaults, Queue
from lavad.core.orders import LimitsOrder, Order
from lavad.simulator.cluster.restart import reborn
from tests.builders import ANN, Story, a_cluster, a_host, a_job


def modify(story: Story, job: int, field: str, **limits: object) -> list[Order]:
    """Change one parameter by bmod; return the orders that follow."""
    new = a_job(array="1-3" if story.cluster.jobs[job].shared.queue == "short" else "")
    new = new._replace(shared=replace(story.cluster.jobs[job].shared, **limits))  # type: ignore[arg-type]
    return story.do(c.ModifyJob(c.Target(job), new, ANN, field, frozenset({field}))).orders


def limits_of(orders: list[Order]) -> list[tuple[str, int, int]]:
    """Host, version and run limit of each limits order."""
    assert all(isinstance(one, LimitsOrder) for one in orders)
    return [(one.host, one.version, one.run_limit_s) for one in orders if isinstance(one, LimitsOrder)]


def hello(story: Story, host: str, key: Key, version: int) -> list[Order]:
    """Begin a session of a host that has limits of that version."""
    return story.back(host, replace(story.runs_there(host, key), limits=version))


def test_all_hosts_of_a_running_job_get_its_new_limits() -> None:
    """They get them once; a change without effect is not sent, and a host that was away gets them at its hello."""
    story = a_cluster(a_host("n1", 1), a_host("n2", 1))
    key = story.run(a_job(2, run_limit_s=60))
    assert sorted(limits_of(modify(story, key.job, "run_limit_s", run_limit_s=600))) == [
        ("n1", 1, 600), ("n2", 1, 600)
    ]  # fmt: skip
    attempt = story.cluster.attempts[key]
    modify(story, key.job, "description")
    assert attempt.limits_version == 1
    assert limits_of(hello(story, "n1", key, 0)) == [("n1", 1, 600)]
    assert hello(story, "n1", key, 1) == []


def test_the_period_of_checkpoints_is_changed_as_a_limit() -> None:
    """bchkpnt -p: other options of few jobs stay; of one that an earlier version stored no period is told."""
    story = a_cluster(a_host("n1", 1))
    job = a_job(run_limit_s=60)
    key = story.run(job._replace(shared=replace(job.shared, special=SpecialOptions("77", checkpointable=True))))
    orders = modify(story, key.job, "run_limit_s", run_limit_s=600)
    assert [one.checkpoint_period_s for one in orders if isinstance(one, LimitsOrder)] == [None]
    changed = SpecialOptions(checkpointable=True, checkpoint_period_s=300.0)
    orders = modify(story, key.job, "checkpoint.period_s", special=changed)
    assert [(one.version, one.checkpoint_period_s) for one in orders if isinstance(one, LimitsOrder)] == [(2, 300.0)]
    assert story.job(key.job).shared.special == replace(changed, requeue_exit_values="77")


def switch(story: Story, key: Key, queue: str, own_s: int = 0) -> list[Order]:
    """Switch a job submitted with this run limit by bswitch; return the orders that follow."""
    new = a_job(queue=queue, run_limit_s=own_s)
    return story.do(c.ModifyJob(c.Target(key.job), new, ANN, "", frozenset({"queues"}), is_switch=True)).orders


def test_a_running_job_gets_the_run_limit_of_its_new_queue() -> None:
    """Unless it has its own; a job whose own is above the new queue's is refused. Other limits stay."""
    short = Queue("short", 40, run_limit_s=600, defaults=JobDefaults(run_limit_default_s=300, memory_limit_mib=10))
    queues = (Queue("normal", 30, run_limit_s=3600), short, Queue("endless", 20))
    story = a_cluster(a_host("n1", 3), policy=Policy(queues))
    plain, own, long = (story.run(a_job(queue="normal", run_limit_s=limit_s)) for limit_s in (0, 120, 900))
    assert story.job(plain.job).shared.run_limit_s == 3600
    assert [one[2] for one in limits_of(switch(story, plain, "short"))] == [300]
    assert story.job(plain.job).shared.memory_limit_mib == 0
    assert [one[2] for one in limits_of(switch(story, plain, "endless"))] == [0]
    assert switch(story, own, "short", 120) == []
    with pytest.raises(Refused, match="RUNLIMIT: Cannot exceed queue's hard limit"):
        switch(story, long, "short", 900)


def test_a_waiting_job_and_one_that_only_others_changed_tell_nobody() -> None:
    """A pending job has no host to tell."""
    story = a_cluster(a_host("n1", 1))
    running, waiting = story.run(a_job()), story.submit(a_job())
    assert modify(story, waiting, "run_limit_s", run_limit_s=60) == []
    assert story.cluster.attempts[running].limits_version == 0


def test_a_running_job_keeps_its_size_and_its_queues_limits() -> None:
    """Each refusal says what can be changed, or which limit is the queue's."""
    story = a_cluster(a_host("n1", 1), policy=Policy((Queue("normal", 30, run_limit_s=3600),)))
    key = story.run(a_job())
    for field in ("roles.tasks", "rlimits.stack", "input", "cwd"):
        with pytest.raises(Refused, match="only -W, -We, -M"):
            modify(story, key.job, field)
    with pytest.raises(Refused, match="RUNLIMIT"):
        modify(story, key.job, "run_limit_s", run_limit_s=7200)
    assert story.cluster.attempts[key].limits_version == 0


FILES = OutputFiles("new.out", "new.err", True, False)


def give(story: Story, job: int, field: str, run: RunChange, index: str = "") -> list[Order]:
    """Change what a running job has beside its limits; return the orders that follow."""
    record = story.cluster.jobs[job]
    text = pack_text("", "run", "/home", output=run.files.output) if run.files else record.text
    new = a_job(array="1-3" if index else "")._replace(shared=record.shared, text=text)
    target = story.target(job, index)
    return story.do(c.ModifyJob(target, new, ANN, field, frozenset({field}), run=run)).orders


def with_output(name: str, **more: Any) -> NewJob:
    """A job that writes a file."""
    return a_job(**more)._replace(text=pack_text("", "run", "/home", output=name))


def test_a_running_job_gets_a_cpu_limit_and_other_files() -> None:
    """Its hosts get both with its limits, the newest of each, also after they were away; a requeue ends that."""
    queues = (Queue("normal", 30, defaults=JobDefaults(rlimits=(("cpu", 90, 600),))),)
    story = a_cluster(a_host("n1", 2), policy=Policy(queues))
    key = story.run(with_output("old.out"))
    first = give(story, key.job, "rlimits.cpu", RunChange(60))
    assert [one.run for one in first if isinstance(one, LimitsOrder)] == [RunChange(60)]
    second = give(story, key.job, "output", RunChange(files=FILES))
    assert [(one.version, one.run) for one in second if isinstance(one, LimitsOrder)] == [(2, RunChange(60, FILES))]
    assert story.job(key.job).words["output"] == "new.out"
    assert [one.run for one in hello(story, "n1", key, 1) if isinstance(one, LimitsOrder)] == [RunChange(60, FILES)]
    third = give(story, key.job, "rlimits.cpu", RunChange(0))
    assert [one.run.cpu_limit_s for one in third if isinstance(one, LimitsOrder)] == [90], (
        "the queue's, without its own"
    )
    with pytest.raises(Refused, match="CPULIMIT: Cannot exceed queue's hard limit"):
        give(story, key.job, "rlimits.cpu", RunChange(601))
    assert reborn(story.cluster).attempts[key].changed == RunChange(90, FILES)
    story.do(c.RequeueJob(story.target(key.job), ANN, frozenset({JobState.RUN}), False))
    story.finished("n1", key, 15)
    story.plan()
    again = story.key(key.job)
    assert again != key
    assert story.cluster.attempts[again].changed is None


def test_one_element_gets_another_file(story_of_array: tuple[Story, Key]) -> None:
    """The others keep theirs."""
    story, key = story_of_array
    orders = give(story, key.job, "output", RunChange(files=FILES), index="1")
    assert [(one.key, one.run.files) for one in orders if isinstance(one, LimitsOrder)] == [(key, FILES)]
    assert story.array(key.job).words["output"] == "old.out"
    other = story.key(key.job, 2)
    assert story.cluster.attempts[other].changed is None
    whole = c.ModifyJob(
        story.target(key.job), with_output("third.out", array="1-3"), ANN, "output", frozenset({"output"}),
        elements=Ranges.of(1), is_whole=True, run=RunChange(files=FILES._replace(output="third.out")),
    )  # fmt: skip
    story.do(whole)
    assert story.cluster.attempts[key].changed == RunChange(files=FILES), "a change of the array is for those that wait"


@pytest.fixture
def story_of_array() -> tuple[Story, Key]:
    """Two elements of an array run; the key of the first."""
    story = a_cluster(a_host("n1", 2))
    job = story.submit(with_output("old.out", array="1-3"))
    story.plan()
    for index in (1, 2):
        story.started("n1", story.key(job, index))
    return story, story.key(job, 1)


def test_files_that_a_running_job_has_not_cannot_change() -> None:
    """Without an output file it has a report and a mail of its own; an interactive job writes to its client."""
    story = a_cluster(a_host("n1", 3))
    without, asked, plain = story.run(a_job()), story.run(a_job(interactive="pipes")), story.run(with_output("old.out"))
    for key, files in ((without, FILES), (plain, FILES._replace(output=""))):
        with pytest.raises(Refused, match="neither added nor taken away"):
            give(story, key.job, "output", RunChange(files=files))
    with pytest.raises(Refused, match="where its output goes"):
        give(story, asked.job, "output", RunChange(files=FILES))


def test_elements_that_run_get_the_limits_of_their_array() -> None:
    """As those that wait do."""
    story = a_cluster(a_host("n1", 1))
    job = story.submit(a_job(array="1-3", queue="short"))
    story.plan()
    story.started("n1", story.key(job, 1))
    assert limits_of(modify(story, job, "run_limit_s", run_limit_s=60)) == [("n1", 1, 60)]
