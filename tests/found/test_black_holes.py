"""Hosts on which jobs cannot be started do not drain the queues: hosts without the user, and hosts failing all jobs."""

from collections import OrderedDict
from dataclasses import replace
from typing import Any

import pytest

from lavad.core import commands as c
from lavad.core import invariants
from lavad.core.cluster import Cluster
from lavad.core.decide.clock.exit_rates import exit_rate_events
from lavad.core.model import JobState
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import PendingReason
from lavad.core.model.rules.hosts import HostRule
from lavad.core.model.rules.queues import Queue
from lavad.core.passes import slice_pass
from lavad.core.queries.pending_reasons import explain
from lavad.core.scheduling.worklist import Worklist
from lavad.core.state.records import Job
from lavad.core.step import step
from tests.builders import ANN, BEGIN, BOB, ROOT, Story, a_host, a_job, each
from tests.task_jobs import TaskStory, a_task_role

S = JobState


@pytest.fixture
def story() -> Story:
    """Two hosts; n2 has more free slots, and no rule prefers it."""
    return Story(a_host("n1", 2), a_host("n2", 4))


def unknown(story: Story, host: str, job: int) -> None:
    """Report of a host that the job's user is unknown."""
    story.do(c.ReportRefused(host, story.key(job), "User ann does not exist on this host.", True, user_unknown=True))
    invariants.check(story.cluster)


def reasons(story: Story, job: int) -> list[PendingReason]:
    """Pending reasons of a job."""
    return explain(story.cluster, story.cluster.jobs[job], 0, story.now)


def driven(story: Story, jobs: list[int], lacking: str) -> dict[int, str]:
    """Plan and refuse until nothing changes; the host of each job."""
    found: dict[int, str] = {}
    for _ in range(4 * len(jobs)):
        story.plan()
        staged = [job for job in jobs if story.state(job) is S.STAGING and job not in found]
        for job in staged:
            (host,) = story.where(job)
            if host == lacking:
                unknown(story, host, job)
            else:
                found[job] = host
    return found


def test_a_user_unknown_on_a_host_waits_for_others(story: Story) -> None:
    """38 of 40 jobs ended as EXIT on the host that lacked the user; now they wait for the other one."""
    jobs = [story.submit(a_job()) for _ in range(6)]
    assert set(driven(story, jobs, "n2").values()) == {"n1"}
    waiting = [job for job in jobs if story.state(job) is S.PEND]
    assert len(waiting) == 4
    told = [one for one in reasons(story, waiting[0]) if "n2" in one.hosts]
    assert [one.text for one in told] == ["The user is not known on the host (User: ann)"]


def test_jobs_of_others_go_on_there(story: Story) -> None:
    """The host is not avoided as one that is out of order is."""
    driven(story, [story.submit(a_job()) for _ in range(3)], "n2")
    others = [story.submit(a_job(caller=BOB)) for _ in range(4)]
    story.plan()
    assert {story.where(job)[0] for job in others} == {"n2"}


def test_the_host_is_tried_again_after_a_while(story: Story) -> None:
    """A directory service that was down for a moment costs its users no more than that."""
    jobs = [story.submit(a_job()) for _ in range(4)]
    driven(story, jobs, "n2")
    (one, other) = (job for job in jobs if story.state(job) is S.PEND)
    story.hear("n1", "n2")
    for _ in range(7):
        story.now += 10
        story.hear("n1", "n2")
        story.do(c.Tick())
    story.plan()
    assert story.where(one) == story.where(other) == ["n2"]
    invariants.check(story.cluster)
    assert not story.cluster.limits


def test_a_parallel_job_is_placed_on_hosts_that_know_its_user() -> None:
    """One of two hosts lacks the user: the job takes a third in its place."""
    story = Story(a_host("n1", 1), a_host("n2", 1), a_host("n3", 1))
    job = story.submit(each(2))
    story.plan()
    key, (lead, lacking) = story.key(job), story.where(job)
    unknown(story, lacking, job)
    story.released(lead, key)
    story.plan()
    assert story.state(job) is S.STAGING
    assert lacking not in story.where(job)


@pytest.mark.parametrize("backfill", [0, 1])
def test_the_short_way_of_the_scheduler_minds_it(backfill: int) -> None:
    """With a queue that backfills, too."""
    queue = Queue("normal", backfill_depth=backfill)
    story = Story(a_host("n1", 2), a_host("n2", 4), policy=Policy(queues=(queue,)))
    jobs = [story.submit(a_job(run_limit_s=100)) for _ in range(6)]
    assert set(driven(story, jobs, "n2").values()) == {"n1"}


def test_what_is_lost_is_not_a_failure_of_a_job(story: Story) -> None:
    """A host that went down was closed because of its jobs: none of them had failed there."""
    types = frozenset({"JOBEXIT"})
    story.do(c.Reconfigure(Policy(global_exit_rate=2, exit_rate_types=types, exit_rate_period_s=60.0)))
    for why in ("supervisor lost: it was killed", "host rebooted: the host went down") * 2:
        job = story.submit(a_job(hosts=("n1",)))
        story.plan()
        key = story.key(job)
        story.started("n1", key)
        story.do(c.ReportFinished("n1", key, 9, story.now, why, lost=True, also_released=True))
        assert story.state(job) is S.EXIT
    assert closed(story) == {}


def test_a_signal_from_elsewhere_is_a_failure_and_an_end_by_the_master_is_none(story: Story) -> None:
    """As LSF counts: only ends that the master did not order."""
    story.do(c.Reconfigure(Policy(global_exit_rate=2, exit_rate_period_s=60.0)))
    for reason, found in (("TERM_RUNLIMIT: x", 0), ("TERM_EXTERNAL_SIGNAL: x", 1)):
        for _ in range(3):
            job = story.submit(a_job(hosts=("n1",)))
            story.plan()
            story.started("n1", story.key(job))
            story.do(c.ReportFinished("n1", story.key(job), 9, story.now, reason, also_released=True))
        assert len(closed(story)) == found, reason


def failing(story: Story, job: int, index: int = 0, *, started: bool = False, code: int = 2) -> str:
    """The job, which is staging, ends at once on its host; gives that host."""
    key, (host,) = story.key(job, index), story.where(job, index)
    detail = "" if started else "The working directory /home/ann cannot be entered: No such file or directory."
    reason = "" if started else "TERM_CWD_NOTEXIST"
    began = story.now if started else 0.0
    end = c.ReportFinished(host, key, code << 8, story.now, reason, started_at=began, detail=detail, also_released=True)
    story.do(end)
    return host


def closed(story: Story) -> dict[str, str]:
    """Closed hosts, with the messages about them."""
    story.hear(*story.cluster.hosts)
    story.do(c.Tick())
    return {name: host.comment for name, host in story.cluster.hosts.items() if host.closed_by}


def run_through(story: Story, jobs: list[tuple[int, int]], *bad: str, started: bool = False) -> None:
    """Start all jobs; on bad hosts they end at once, on others they run for ever."""
    done: set[tuple[int, int]] = set()
    for _ in range(2 * len(jobs)):
        story.plan()
        for job, index in jobs:
            if (job, index) not in done and story.state(job, index) is S.STAGING:
                (host,) = story.where(job, index)
                done.add((job, index))
                if host in bad:
                    failing(story, job, index, started=started)
                else:
                    story.started(host, story.key(job, index))


def test_a_host_on_which_no_job_can_be_started_is_closed(story: Story) -> None:
    """Jobs of two users end before they begin; the reason is shown, and kept through restarts with the host's row."""
    jobs = [story.submit(a_job(caller=who, hosts=("n2",))) for who in (ANN, BOB) for _ in range(5)]
    run_through(story, [(job, 0) for job in jobs], "n2")
    found = closed(story)
    assert list(found) == ["n2"]
    assert found["n2"].startswith(
        "10 jobs could not be started here (The working directory /home/ann cannot be entered"
    )


def test_an_array_that_starts_elsewhere_shows_that_the_host_is_the_cause(story: Story) -> None:
    """Of one user alone: 38 of 40 elements ended on the host that lacked something, and it stayed ok."""
    array = story.submit(a_job(array="1-14"))
    run_through(story, [(array, index) for index in range(1, 15)], "n2")
    assert list(closed(story)) == ["n2"]


def test_many_hosts_that_fail_jobs_cost_one_look_at_what_has_ended(story: Story) -> None:
    """One scan of ended jobs for each host and array took hours, with a thousand failing hosts and a million ended
    jobs.
    """
    array = story.submit(a_job(array="1-30"))
    run_through(story, [(array, index) for index in range(1, 31)], "n1", "n2")
    looks = 0

    class Ended(OrderedDict[tuple[int, int], Job]):
        def items(self) -> Any:
            nonlocal looks
            looks += 1
            return super().items()

    story.cluster.finished = Ended(story.cluster.finished)
    looks = 0
    assert not list(exit_rate_events(story.cluster, story.now))
    assert looks == 1


def test_the_mistakes_of_one_user_close_no_host(story: Story) -> None:
    """Neither a directory that does not exist, nor a program that fails by itself however often."""
    jobs = [story.submit(a_job()) for _ in range(20)]
    run_through(story, [(job, 0) for job in jobs], "n1", "n2")
    assert closed(story) == {}
    others = [story.submit(a_job(caller=who)) for who in (ANN, BOB) for _ in range(20)]
    run_through(story, [(job, 0) for job in others], "n1", "n2", started=True)
    assert closed(story) == {}


def test_a_rate_of_the_files_counts_what_it_says(story: Story) -> None:
    """EXIT_RATE of lsb.hosts above GLOBAL_EXIT_RATE; killed jobs do not count; hopen resets the count."""
    rules = {"n1": HostRule(exit_rate=3)}
    story.do(c.Reconfigure(Policy(host_rules=rules, global_exit_rate=5, exit_rate_period_s=60.0)))
    for number, host in enumerate(("n1", "n1", "n1", "n2", "n2", "n2", "n2", "n2")):
        job = story.submit(a_job(hosts=(host,)))
        story.plan()
        failing(story, job, started=True)
        assert closed(story) == {}, number
    job = story.submit(a_job(hosts=("n1",)))
    story.plan()
    story.kill(job)
    failing(story, job, started=True)
    assert closed(story) == {}
    for host in ("n1", "n2"):
        job = story.submit(a_job(hosts=(host,)))
        story.plan()
        failing(story, job, started=True)
    said = "exit rate {} above {}: jobs ended abnormally here within 1 minutes; open it by badmin hopen"
    assert closed(story) == {"n1": said.format(4, 3), "n2": said.format(6, 5)}
    story.do(c.OpenHost("n1", ROOT))
    assert list(closed(story)) == ["n2"]


def test_the_host_closes_with_the_end_that_exceeds_its_rate(story: Story) -> None:
    """Not a tick later: a host that fails a job in a millisecond would draw hundreds until then."""
    story.do(c.Reconfigure(Policy(global_exit_rate=2)))
    for number in range(3):
        job = story.submit(a_job(hosts=("n1",)))
        story.plan()
        failing(story, job, started=True)
        assert bool(story.cluster.hosts["n1"].closed_by) == (number == 2)
    job = story.submit(a_job(hosts=("n1",)))
    story.plan()
    assert story.state(job) is S.PEND
    story.do(c.OpenHost("n1", ROOT))
    story.plan()
    assert story.where(job) == ["n1"]


def test_failed_tasks_count_on_their_own_host_and_those_that_were_stopped_do_not() -> None:
    """Of a job of tasks on two hosts, those on n2 fail again and again."""
    story = TaskStory(a_host("n1", 4), a_host("n2", 4), policy=Policy(global_exit_rate=3))
    key = story.begin(a_task_role(tasks=8))
    story.runs(key)
    of_n2 = [one for one, record in story._all(key) if record.host == "n2"]
    assert len(of_n2) == 4
    for number, (role, index) in enumerate(of_n2):
        assert not story.cluster.hosts["n2"].closed_by, number
        story.ends(key, role, index, code=3)
    closed_by_rate = {name: host.comment for name, host in story.cluster.hosts.items() if host.closed_by}
    assert list(closed_by_rate) == ["n2"]
    assert closed_by_rate["n2"].startswith("exit rate 4 above 3: jobs ended abnormally here")
    story.kill(key.job)
    story.stops(key)
    assert not story.cluster.hosts["n1"].closed_by


def test_one_bad_host_of_a_hundred_fails_at_most_ten_of_ten_thousand_jobs() -> None:
    """Its jobs end at once, so that it has free slots at each pass; with EXIT_RATE it has failed few when it closes."""
    lost, done = _through_a_bad_host(Policy(global_exit_rate=5))
    assert lost <= 10
    assert lost + done == 10_000


def test_without_a_rate_the_bad_host_draws_the_jobs() -> None:
    """So that the test above shows something: a tenth of the jobs, with ten times the others' free slots."""
    lost, _ = _through_a_bad_host(Policy())
    assert lost > 100


def _through_a_bad_host(policy: Policy) -> tuple[int, int]:
    """Numbers of jobs that failed and ended, of 10,000 on 100 hosts of 4 slots, of which n001 fails all at once."""
    cluster, worklist, now = Cluster(policy=policy), Worklist(), BEGIN
    for number in range(100):
        step(cluster, c.AgentHello(a_host(f"n{number:03}", 4), number + 1), now)
    step(cluster, c.SubmitJob(a_job(array="1-10000"), ANN), now)
    lost, done = 0, 0
    while lost + done < 10_000:
        for _ in range(10):  # the others' jobs take as long as ten turns of the bad host
            now += 0.1
            _pass(cluster, worklist, now)
            lost += _ends(cluster, "n001", 2 << 8, now)
        for name in list(cluster.hosts):
            done += 0 if name == "n001" else _ends(cluster, name, 0, now)
            cluster.heard(name, now)
        step(cluster, c.Tick(), now)
    invariants.check(cluster)
    return lost, done


def _pass(cluster: Cluster, worklist: Worklist, now: float) -> None:
    """One whole scheduling pass."""
    while True:
        plan = slice_pass(cluster, worklist, 100_000, now)
        step(cluster, c.ApplyPlan(plan), now)
        if plan.is_complete:
            return


def _ends(cluster: Cluster, host: str, status: int, now: float) -> int:
    """All jobs of the host end; their number."""
    keys = list(cluster.hosts[host].attempts)
    for key in keys:
        end = c.ReportFinished(host, key, status, now, started_at=now - 0.05, also_released=True)
        step(cluster, end, now)
    return len(keys)


HOME = "working directory /home/ann"


def lacks(story: Story, job: int, index: int = 0, *, ends: bool = False) -> str:
    """Report of the job's host that it has no such directory; ``ends``: the job itself asked for it."""
    (host,) = story.where(job, index)
    sentence = "The working directory /home/ann cannot be entered: No such file or directory."
    end = (2 << 8, "TERM_CWD_NOTEXIST") if ends else (0, "")
    report = c.ReportRefused(host, story.key(job, index), sentence, True, lacking=HOME, lacking_status=end[0])
    story.do(replace(report, lacking_term=end[1]))
    invariants.check(story.cluster)
    return host


def test_a_home_that_is_missing_on_one_host_costs_no_job() -> None:
    """A5: 60 elements ended in 20 s; an array of 10,000 loses none, and starts no more there than it has slots."""
    story = Story(*[a_host(f"n{number}", 4) for number in range(1, 11)])
    array = story.submit(a_job(array="1-10000", rerunnable=True))
    left, refused = 10_000, 0
    while left:
        story.plan()
        for name, host in story.cluster.hosts.items():
            for key in list(host.attempts):
                if name == "n3":
                    lacks(story, array, key.index)
                    refused += 1
                else:
                    step(story.cluster, c.ReportFinished(name, key, 0, story.now, also_released=True), story.now)
                    left -= 1
    assert refused == 4
    assert {job.state for job in story.cluster.finished.values()} == {S.DONE}


def test_a_host_without_the_home_says_so(story: Story) -> None:
    """bjobs -p names the directory; other users' jobs start there."""
    jobs = [story.submit(a_job(hosts=("n2",))) for _ in range(2)]
    story.plan()
    for job in jobs:
        lacks(story, job)
    story.plan()
    assert {story.state(job) for job in jobs} == {S.PEND}
    told = [one.text for one in reasons(story, jobs[0]) if "n2" in one.hosts]
    assert told == [f"The host lacks what the job needs to start ({HOME})"]
    other = story.submit(a_job(caller=BOB, hosts=("n2",)))
    story.plan()
    assert story.where(other) == ["n2"]


def test_a_directory_that_no_host_has_ends_the_job_that_asked_for_it(story: Story) -> None:
    """A mistake in -cwd is told after each host was tried once, and keeps the user's other jobs off no host."""
    job = story.submit(a_job())
    for count in (1, 2):
        story.plan()
        assert story.state(job) is S.STAGING, count
        lacks(story, job, ends=True)
    assert story.state(job) is S.EXIT
    ended = story.cluster.finished[(job, 0)]
    assert ended.end is not None
    assert ended.end.reason == "TERM_CWD_NOTEXIST"
    story.now += 1
    story.hear("n1", "n2")
    story.do(c.Tick())
    others = [story.submit(a_job()) for _ in range(6)]
    story.plan()
    assert {story.where(other)[0] for other in others} == {"n1", "n2"}


def test_it_waits_for_a_host_that_is_down_meanwhile(story: Story) -> None:
    """The host that is left may have the directory."""
    story.do(c.CloseHost("n1", ROOT))
    job = story.submit(a_job())
    story.plan()
    lacks(story, job, ends=True)
    assert story.state(job) is S.PEND
    story.do(c.OpenHost("n1", ROOT))
    story.plan()
    assert story.where(job) == ["n1"]
