"""Requeued jobs: by exit code or by brequeue; switched, forced and modified meanwhile."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lavad.core import commands as c
from lavad.core.decide.clock.tick import wake_at
from lavad.core.language.exit_values import parse
from lavad.core.model import NO_RETRY, JobState, Key, SpecialOptions
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.applications import Application
from lavad.core.model.rules.queues import JobDefaults, Queue
from lavad.core.orders import StageOrder
from lavad.core.queries.pending_reasons import explain
from lavad.simulator.cluster.restart import reborn
from tests.builders import ANN, BOB, ROOT, Story, a_cluster, a_host, a_job

S = JobState
AT_ONCE = Policy(requeue_pause_s=0.0)
RUNNING = frozenset({S.STAGING, S.RUN, S.USUSP, S.SSUSP, S.UNKWN})


def again(story: Story, job: int, indices: str = "", hold: bool = False, states: frozenset[S] = RUNNING) -> None:
    """brequeue."""
    story.do(c.RequeueJob(story.target(job, indices), ANN, states, hold))


@pytest.mark.parametrize(
    ("text", "codes", "excluding"),
    [
        ("30", {30}, set()),
        ("30 99 EXCLUDE(20 21)", {30, 99, 20, 21}, {20, 21}),
        ("1-3", {1, 2, 3}, set()),
        ("all ~0 ~128-255", set(range(1, 128)), set()),
        ("EXCLUDE(all ~0)", set(range(1, 256)), set(range(1, 256))),
        ("", set(), set()),
    ],
)
def test_exit_values_are_read(text: str, codes: set[int], excluding: set[int]) -> None:
    """The forms of LSF."""
    found = parse(text)
    assert (found.codes, found.excluding) == (codes, excluding)


@pytest.mark.parametrize("text", ["x", "300", "5-2", "EXCLUDE(1", "1)", "~all", "EXCLUDE(EXCLUDE(1))", "1,2"])
def test_bad_exit_values_are_refused_with_the_place(text: str) -> None:
    """The refusal is one sentence."""
    with pytest.raises(Refused, match="Bad requeue exit values at character"):
        parse(text)


@given(st.text("al ~0129-EXCLUDE()", max_size=20))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No other error is raised."""
    try:
        found = parse(text)
    except Refused:
        return
    assert found.excluding <= found.codes


def test_an_exit_code_requeues_a_job() -> None:
    """It keeps its id and place, as its next attempt; other codes, signals and kills end it."""
    story = a_cluster(policy=AT_ONCE)
    key = story.run(a_job(requeue="3"))
    story.finished("n1", key, 3 << 8)
    assert story.state(key.job) is S.PEND
    story.plan()
    second = story.key(key.job)
    assert second.attempt == 2
    story.started("n1", second)
    story.finished("n1", key, 0)  # a late report of the first attempt
    assert story.state(key.job) is S.RUN
    story.finished("n1", second, 4 << 8)
    assert story.state(key.job) is S.EXIT
    killed = story.run(a_job(requeue="all"))
    story.kill(killed.job)
    story.finished("n1", killed, 130 << 8)
    assert story.state(killed.job) is S.EXIT
    crashed = story.run(a_job(requeue="all"))
    story.finished("n1", crashed, 11)
    assert story.state(crashed.job) is S.EXIT


@pytest.mark.parametrize("index", [0, 2])
@pytest.mark.parametrize("restarts", [False, True])
def test_an_exit_code_requeues_after_a_pause(index: int, restarts: bool) -> None:
    """A job that fails at once doesn't start over and over: a dispatch turn passes first, over a restart, too."""
    story = a_cluster(a_host("n1", 4))
    job = story.submit(a_job(array="1-2" if index else "", requeue="7"))
    story.plan()
    key = story.key(job, index)
    story.started("n1", key)
    story.finished("n1", key, 7 << 8)
    ended = story.now
    if restarts:
        story.cluster = reborn(story.cluster)
        story.back("n1")
    story.plan()
    assert story.state(job, index) is S.PEND
    (reason,) = explain(story.cluster, story.cluster.jobs[job], index, story.now)
    assert reason.text.endswith("(exit code 7 requeues the job)")
    assert reason.advice.startswith("next start after ")
    assert ended + 10 <= wake_at(story.cluster, story.now) <= ended + 11
    story.now = ended + 11
    story.hear("n1")
    story.do(c.Tick())
    story.plan()
    assert story.state(job, index) is S.STAGING
    story.started("n1", story.key(job, index))
    assert story.job(job, index).retry == NO_RETRY


def test_the_pause_counts_when_the_last_host_has_gone() -> None:
    """A job on two hosts waits for them, and then for the pause."""
    story = a_cluster(a_host("n1", 2), a_host("n2", 2))
    key = story.run(a_job(slots=2, ptile=1, requeue="3"))
    story.finished("n1", key, 3 << 8)
    story.now += 100
    story.finished("n2", key, 130 << 8)
    story.plan()
    assert story.state(key.job) is S.PEND
    story.now += 11
    story.hear("n1")
    story.hear("n2")
    story.do(c.Tick())
    story.plan()
    assert story.state(key.job) is S.STAGING


def test_the_queue_says_which_and_how_often() -> None:
    """REQUEUE_EXIT_VALUES and MAX_JOB_REQUEUE; -Q overrides."""
    queue = Queue("normal", defaults=JobDefaults(requeue_exit_values="5"), requeue_limit=1)
    story = Story(a_host("n1"), policy=Policy(queues=(queue,), requeue_pause_s=0.0))
    job = story.run(a_job()).job
    for state in (S.PEND, S.EXIT):
        story.finished("n1", story.key(job), 5 << 8)
        assert story.state(job) is state
        if state is S.PEND:
            story.plan()
            story.started("n1", story.key(job))
    own = story.run(a_job(requeue="7"))
    story.finished("n1", own, 5 << 8)
    assert story.state(own.job) is S.EXIT


def test_exit_codes_that_mean_success() -> None:
    """SUCCESS_EXIT_VALUES: the job is DONE and keeps its code, for dependants, elements and after a restart; those of
    REQUEUE_EXIT_VALUES come first, and a signal or bkill is no success."""
    profile = Application("md", defaults=JobDefaults(success_exit_values="3 5-7", requeue_exit_values="7"))
    policy = Policy(applications={"md": profile}, requeue_pause_s=0.0)
    story = Story(a_host("n1", 9), policy=policy)
    job = replace(a_job().shared, application="md")
    ended = {}
    for status in (3 << 8, 6 << 8, 4 << 8, 9, 7 << 8):
        key = story.run(a_job()._replace(shared=job))
        story.finished("n1", key, status)
        ended[status] = key.job
    assert [story.state(one) for one in ended.values()] == [S.DONE, S.DONE, S.EXIT, S.EXIT, S.PEND]
    killed = story.run(a_job()._replace(shared=job))
    story.kill(killed.job)
    story.finished("n1", killed, 3 << 8)
    assert story.state(killed.job) is S.EXIT
    array = story.submit(a_job(array="1-2")._replace(shared=job))
    story.plan()
    for index, status in ((1, 5 << 8), (2, 8 << 8)):
        story.started("n1", story.key(array, index))
        story.finished("n1", story.key(array, index), status)
    record = story.array(array)
    assert (record.state_of(1), record.code_of(1), record.state_of(2)) == (S.DONE, 5, S.EXIT)
    end = story.job(ended[3 << 8]).end
    assert end is not None
    assert (end.status, end.reason) == (3 << 8, "SUCCESS_EXIT_VALUES: exit code 3 means success.")
    after = story.submit(a_job(dependency=f"done({ended[3 << 8]}) && done({array}[1])"))
    story.plan()
    assert story.state(after) is S.STAGING
    story.cluster = reborn(story.cluster)
    assert (story.state(ended[3 << 8]), story.state(array, 1)) == (S.DONE, S.DONE)


def test_a_jobs_own_codes_that_mean_success() -> None:
    """LSB_SUCCESS_EXIT_VALUES in place of those of the profile and the queue, also where the queue is gone."""
    queue = Queue("normal", defaults=JobDefaults(success_exit_values="3"))
    story = Story(a_host("n1", 9), policy=Policy(queues=(queue,)))
    job = a_job()
    own = job._replace(shared=replace(job.shared, special=SpecialOptions(success_exit_values="4 6-7")))
    ended = []
    for new, code in ((own, 3), (own, 4), (own, 6), (job, 3), (job, 4)):
        ended.append(story.run(new))
        story.finished("n1", ended[-1], code << 8)
    assert [story.state(key.job) for key in ended] == [S.EXIT, S.DONE, S.DONE, S.DONE, S.EXIT]
    last = story.run(own)
    story.do(c.Reconfigure(Policy(queues=(Queue("other"),), default_queue="other")))
    story.finished("n1", last, 7 << 8)
    assert story.state(last.job) is S.DONE


def test_a_jobs_own_codes_go_to_its_hosts() -> None:
    """For the report in its output file."""
    story = Story(a_host("n1", 9), policy=AT_ONCE)
    job = a_job()
    story.submit(job._replace(shared=replace(job.shared, special=SpecialOptions(success_exit_values="4 6-7"))))
    (order,) = [one for one in story.plan() if isinstance(one, StageOrder)]
    assert order.setup.success_codes == (4, 6, 7)


def test_an_interactive_job_is_not_requeued_by_its_exit_code() -> None:
    """Its client has had the code, and has left."""
    queue = Queue("normal", defaults=JobDefaults(requeue_exit_values="5"))
    story = Story(a_host("n1"), policy=Policy(queues=(queue,)))
    job = a_job()
    key = story.run(job._replace(shared=replace(job.shared, special=SpecialOptions(interactive="pipes"))))
    story.finished("n1", key, 5 << 8)
    assert story.state(key.job) is S.EXIT


def test_a_job_is_kept_from_the_host_where_it_failed() -> None:
    """EXCLUDE: also after a restart; all elements of an array avoid the host."""
    story = a_cluster(a_host("n1", 4), a_host("n2", 1), policy=AT_ONCE)
    key = story.run(a_job(requeue="EXCLUDE(9)"))
    array = story.submit(a_job(array="1-3", requeue="EXCLUDE(9)", limit=1))
    story.finished("n1", key, 9 << 8)
    story.plan()
    assert story.where(key.job) == ["n2"]
    story.started("n1", story.key(array, 1))
    story.finished("n1", story.key(array, 1), 9 << 8)
    story.cluster = reborn(story.cluster)
    story.join(a_host("n1", 4))
    story.join(a_host("n2", 1), (story.runs_there("n2", story.key(key.job)),))
    story.worklist.look_at_everything(story.cluster)
    story.plan()
    assert not story.array(array).live
    story.finished("n2", story.key(key.job))
    story.plan()
    assert story.where(array, 1) == ["n2"]


def test_a_requeued_job_waits_until_nothing_is_left_of_it() -> None:
    """It waits for all of its hosts: two attempts never overlap."""
    story = a_cluster(a_host("n1", 2), a_host("n2", 2), policy=AT_ONCE)
    key = story.run(a_job(slots=2, ptile=1, requeue="3"))
    story.finished("n1", key, 3 << 8)
    assert story.state(key.job) is S.RUN
    story.released("n2", key)
    assert story.state(key.job) is S.PEND
    story.plan()
    assert story.key(key.job).attempt == 2


def test_brequeue_ends_a_running_job_and_lets_it_wait_again() -> None:
    """With -H into PSUSP; other users are refused; a kill meanwhile takes precedence."""
    story = a_cluster()
    key = story.run(a_job())
    with pytest.raises(Refused, match="permission"):
        story.do(c.RequeueJob(story.target(key.job), BOB, RUNNING))
    again(story, key.job, hold=True)
    assert story.state(key.job) is S.RUN
    story.finished("n1", key, 130 << 8)
    assert story.state(key.job) is S.PSUSP
    killed = story.run(a_job())
    again(story, killed.job)
    story.kill(killed.job)
    story.finished("n1", killed, 130 << 8)
    assert story.state(killed.job) is S.EXIT


def test_a_rerunnable_job_is_migrated() -> None:
    """bmig: it runs again, but not on the host where it ran; any other job is refused."""
    story = a_cluster(a_host("h1"), a_host("h2"), policy=AT_ONCE)
    plain, movable = story.submit(a_job()), story.submit(a_job(rerunnable=True))
    waiting = story.submit(a_job(rerunnable=True, hold=True))
    story.plan()
    for job in (plain, movable):
        story.started(story.where(job)[0], story.key(job))
    host, key = story.where(movable)[0], story.key(movable)

    def migrate(job: int) -> None:
        story.do(c.RequeueJob(story.target(job), ANN, RUNNING, migrates=True))

    with pytest.raises(Refused, match="neither rerunnable"):
        migrate(plain)
    with pytest.raises(Refused, match="Job has not started yet"):
        migrate(waiting)
    migrate(movable)
    story.finished(host, key, 15)
    story.plan()
    assert story.state(movable) is S.STAGING
    assert story.where(movable) != [host]


def test_brequeue_of_jobs_that_have_ended() -> None:
    """-d and -e: done and exited jobs and elements run again, with the next attempt's number."""
    story = a_cluster(a_host("n1", 8))
    key = story.run(a_job())
    story.finished("n1", key)
    with pytest.raises(Refused, match="already finished"):
        again(story, key.job)
    again(story, key.job, states=frozenset({S.DONE}))
    array = story.submit(a_job(array="1-4"))
    story.plan()
    assert story.key(key.job) == Key(key.job, 0, 2)
    for index, status in ((1, 0), (2, 256)):
        story.started("n1", story.key(array, index))
        story.finished("n1", story.key(array, index), status)
    for index in (3, 4):
        story.started("n1", story.key(array, index))
        story.finished("n1", story.key(array, index))
    assert story.array(array).is_over
    again(story, array, states=frozenset({S.EXIT}))
    assert story.array(array).pending.text() == "2"
    story.plan()
    assert story.key(array, 2).attempt == 2
    story.started("n1", story.key(array, 2))
    story.finished("n1", story.key(array, 2))
    assert (story.array(array).done, story.array(array).exited) == (4, 0)


def test_bswitch_moves_waiting_and_running_jobs() -> None:
    """A running one goes on; the switch is in the event, for the history."""
    story = a_cluster(a_host("n1", 1))
    key = story.run(a_job())
    waits = story.submit(a_job())
    for job in (key.job, waits):
        story.do(c.ModifyJob(story.target(job), a_job(queue="idle"), ANN, "", frozenset({"queues"}), is_switch=True))
        assert story.cluster.jobs[job].shared.queue == "idle"
    assert story.state(key.job) is S.RUN
    with pytest.raises(Refused, match="No such queue"):
        story.do(c.ModifyJob(story.target(waits), a_job(queue="x"), ANN, "", frozenset({"queues"})))


def test_what_can_not_be_changed_is_refused() -> None:
    """The size of a running job; an element limit of a plain job; the name of a single element."""
    story = a_cluster()
    key, array = story.run(a_job()), story.submit(a_job(array="1-3", hold=True))

    def change(job: int, *fields: str, indices: str = "") -> None:
        story.do(c.ModifyJob(story.target(job, indices), a_job(), ANN, "", frozenset(fields)))

    with pytest.raises(Refused, match="already started"):
        change(key.job, "roles.tasks")
    with pytest.raises(Refused, match="The job is not an array"):
        change(key.job, "array_limit")
    with pytest.raises(Refused, match="-J is the same for all elements of a job array: change it without an index"):
        change(array, "name", indices="2")


def test_all_elements_that_have_not_ended_can_be_changed_by_their_indices() -> None:
    """bmod "5[1-3]" when only those are left is as without an index."""
    story = a_cluster(a_host("n1", 1))
    array = story.submit(a_job(array="1-4"))
    story.plan()  # element 1 runs
    story.do(c.KillJob(story.target(array, "4"), ANN))

    def switch(indices: str) -> None:
        changed = a_job(array="1-4", queue="idle")
        story.do(c.ModifyJob(story.target(array, indices), changed, ANN, "", frozenset({"queues"})))

    for indices, why in (("4", "already finished"), ("9", "No matching job found")):
        with pytest.raises(Refused, match=why):
            switch(indices)
    assert story.cluster.jobs[array].shared.queue == "normal"
    switch("1-3")
    assert {story.cluster.jobs[array].shared.queue, story.cluster.element(array, 1).shared.queue} == {"idle"}
    story.do(c.KillJob(story.target(array), ANN, remove=True))
    with pytest.raises(Refused, match="already finished"):
        switch("1-4")


def test_brun_of_an_element_that_there_is_not() -> None:
    """It has not finished: it does not exist."""
    story = a_cluster()
    array = story.submit(a_job(array="1-3"))
    with pytest.raises(Refused, match="No matching job found"):
        story.do(c.ForceJob(story.target(array, "7"), ROOT, (("n1", 0),)))


def test_brun_leaves_alone_what_a_job_has_for_itself() -> None:
    """Neither onto the host of an exclusive job, nor an exclusive job onto a used host; idle hosts are accepted."""
    story = a_cluster(a_host("n1", 2), a_host("n2", 2), a_host("n3", 2))
    exclusive = story.run(a_job(exclusive=True, hosts=("n1",)))
    story.run(a_job(hosts=("n2",)))
    plain, other = story.submit(a_job(hold=False)), story.submit(a_job(exclusive=True))

    def force(job: int, host: str) -> None:
        story.do(c.ForceJob(story.target(job), ROOT, ((host, 0),)))

    for job, host, sentence in (
        (plain, "n1", "n1: Running an exclusive job"),
        (other, "n2", "n2: Job's requirement for exclusive execution not satisfied"),
    ):
        with pytest.raises(Refused, match=sentence):
            force(job, host)
    force(other, "n3")
    story.finished("n1", exclusive)
    force(plain, "n1")
    assert [story.where(job) for job in (plain, other)] == [["n1"], ["n3"]]


def test_brun_starts_a_job_over_all_limits() -> None:
    """Whatever its pending reason, on full hosts; only by administrators; as a whole."""
    story = a_cluster(a_host("n1", 1), a_host("n2", 1))
    story.run(a_job())
    held = story.submit(a_job(hold=True))
    job = story.submit(a_job(slots=2, dependency=f"done({held})", begin_at=story.now + 9e9))

    def force(caller: c.Caller, *hosts: tuple[str, int]) -> None:
        story.do(c.ForceJob(story.target(job), caller, hosts, True))

    for caller, hosts, sentence in (
        (ANN, [("n1", 0)], "permission denied"),
        (ROOT, [("n9", 0)], "n9: Bad host name"),
        (ROOT, [("n1", 1)], "needs 2 slots; 1 were named"),
    ):
        with pytest.raises(Refused, match=sentence):
            force(caller, *hosts)
    force(ROOT, ("n1", 1), ("n2", 1))
    assert story.where(job) == ["n1", "n2"]
    with pytest.raises(Refused, match="already started"):
        force(ROOT, ("n1", 2))
    key = story.key(job)
    for host in ("n1", "n2"):
        story.staged(host, key)
    story.started("n1", key)
    story.finished("n1", key)
    story.released("n2", key)
    assert story.state(job) is S.DONE
    assert not story.cluster.dependants.conditions


def test_a_job_that_is_lost_for_ever_ends() -> None:
    """A rerunnable job that kills its shepherd is not requeued for ever."""
    story = a_cluster(a_host("n1", 1))
    job = story.submit(a_job(rerunnable=True))
    runs = 0
    while story.state(job) is S.PEND:
        story.plan()
        key = story.key(job)
        story.started("n1", key)
        story.do(c.ReportFinished("n1", key, 9, story.now, also_released=True, lost=True))
        runs += 1
        assert runs <= 100
    assert story.state(job) is S.EXIT
    end = story.job(job).end
    assert end is not None
    assert "run 100 times" in end.reason


@pytest.mark.parametrize("reason", ["TERM_RUNLIMIT: job killed after reaching LSF run time limit.", ""])
def test_a_job_that_ends_well_at_its_limit_is_done_and_keeps_the_reason(reason: str) -> None:
    """The program took its chance to end: nothing has failed, and it isn't requeued."""
    story = a_cluster(a_host("n1", 1))
    key = story.run(a_job(rerunnable=True))
    story.started("n1", key)
    story.do(c.ReportFinished("n1", key, 0, story.now, also_released=True, reason=reason))
    assert story.state(key.job) is S.DONE
    end = story.job(key.job).end
    assert end is not None
    assert (end.status, end.reason) == (0, reason)
