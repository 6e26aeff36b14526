"""Advance reservations: rights to create them, capacity that they take from other jobs, their begin and end."""

from dataclasses import replace

import pytest

from lavad.core import commands as c
from lavad.core import events as e
from lavad.core.model import JobState
from lavad.core.model import reasons as r
from lavad.core.model.advance_reservation import ReservationKind, ReservationRule, ReservationTimes
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.names import Names
from lavad.core.model.windows import Window
from lavad.core.queries.pending_reasons import explain
from lavad.core.step import Outcome
from tests.builders import ANN, BEGIN, BOB, ROOT, Story, a_cluster, a_host, a_job

HOUR = 3600.0
MONDAY_AFTERNOON = Window(1440 + 14 * 60, 1440 + 16 * 60)  # the tests begin on a Monday, 13:46:40


def one_host(slots: int = 4, **facts: int) -> Story:
    """A cluster of one host."""
    return a_cluster(a_host("n1", slots=slots, **facts))


def later(story: Story, seconds: float) -> Outcome:
    """Advance the time; all hosts are heard."""
    story.now += seconds
    story.hear(*story.cluster.hosts)
    return story.do(c.Tick())


def reasons(story: Story, job: int) -> list[str]:
    """Pending reasons of the job."""
    return [one.text for one in explain(story.cluster, story.cluster.jobs[job], 0, story.now)]


class TestMaking:
    def test_the_first_of_a_user_is_number_0_and_numbers_are_not_used_again(self) -> None:
        """Names are the holder and a number, so that an old name never denotes another reservation."""
        story = one_host()
        assert story.reserve(1).name == "ann#0"
        assert story.reserve(1, users=("bob", "ann")).name == "bob#0"
        story.do(c.RemoveReservation("ann#0", ROOT))
        assert story.reserve(1).name == "ann#1"
        assert (
            story.reserve(kind=ReservationKind.SYSTEM, users=(), begin=2 * HOUR, end=3 * HOUR, is_whole=True).name
            == "system#0"
        )

    def test_a_name_of_its_own(self) -> None:
        """-N; names are unique."""
        story = one_host()
        assert story.reserve(1, name="course").name == "course"
        with pytest.raises(Refused, match="already exists"):
            story.reserve(1, name="course")

    def test_slots_are_taken_in_the_order_of_hosts(self) -> None:
        """The first hosts come first, until the number is reached."""
        story = a_cluster(a_host("n1"), a_host("n2"))
        assert story.reserve(6, hosts=("n2", "n1")).hosts == (("n2", 4), ("n1", 2))
        assert story.reserve(2).hosts == (("n1", 2),)

    def test_only_hosts_that_satisfy_the_requirement(self) -> None:
        """-R."""
        story = a_cluster(a_host("n1"), a_host("n2", memory_mib=64_000))
        assert story.reserve(2, select="select[maxmem>10000]").hosts == (("n2", 2),)
        with pytest.raises(Refused, match="satisfies"):
            story.reserve(2, select="select[maxmem>100000]")

    def test_no_more_than_there_is_beside_others(self) -> None:
        """The refusal says how many there would be; another time is no conflict."""
        story = one_host()
        story.reserve(3, begin=0, end=HOUR)
        with pytest.raises(Refused, match="asks for 2 slots; 1 are not reserved"):
            story.reserve(2, begin=HOUR / 2, end=2 * HOUR)
        assert story.reserve(4, begin=HOUR, end=2 * HOUR).slots == 4

    def test_the_most_that_is_reserved_at_one_moment_counts(self) -> None:
        """Two in succession need slots only once; a third one beside both gets the rest."""
        story = one_host()
        story.reserve(3, begin=0, end=HOUR)
        story.reserve(3, begin=HOUR, end=2 * HOUR)
        assert story.reserve(1, begin=0, end=2 * HOUR).hosts == (("n1", 1),)

    def test_recurring_ones_meet_single_ones(self) -> None:
        """A one-time reservation in three weeks conflicts with the window of that day."""
        story = one_host()
        story.reserve(3, windows=(MONDAY_AFTERNOON,))
        later = 21 * 24 * HOUR
        with pytest.raises(Refused, match="1 are not reserved"):
            story.reserve(2, begin=later, end=later + HOUR)
        assert story.reserve(2, begin=later + 5 * HOUR, end=later + 6 * HOUR).slots == 2

    def test_whole_hosts(self) -> None:
        """-unit host: hosts without other reservations; all their slots."""
        story = a_cluster(a_host("n1"), a_host("n2"))
        story.reserve(1, hosts=("n1",))
        assert story.reserve(1, is_whole=True).hosts == (("n2", 4),)
        with pytest.raises(Refused, match="none of these is wholly free of others at that time"):
            story.reserve(1, is_whole=True)

    def test_times_that_make_no_sense(self) -> None:
        """It must end after it begins, and not in the past."""
        story = one_host()
        with pytest.raises(Refused, match="before it ends"):
            story.reserve(1, begin=HOUR, end=HOUR)
        with pytest.raises(Refused, match="over already"):
            story.reserve(1, begin=-2 * HOUR, end=-HOUR)

    def test_users_need_a_rule(self) -> None:
        """Administrators may create any; other users what lsb.resources allows: hosts and windows."""
        rule = ReservationRule("r", Names(False, frozenset({"ann"})), Names(False, frozenset({"n1"})))
        story = a_cluster(policy=Policy(reservation_rules=(rule,)))
        with pytest.raises(Refused, match="permission denied"):
            story.reserve(1, caller=BOB)
        with pytest.raises(Refused, match="permission denied"):
            story.reserve(1, hosts=("n2",), caller=ANN)
        assert story.reserve(1, hosts=("n1",), caller=ANN).by == "ann"
        with pytest.raises(Refused, match="permission denied"):
            story.do(c.RemoveReservation("ann#0", BOB))

    def test_a_rule_with_windows(self) -> None:
        """Begin and end must be in one window."""
        rule = ReservationRule("r", Names(False, frozenset({"ann"})), windows=(MONDAY_AFTERNOON,))
        story = a_cluster(policy=Policy(reservation_rules=(rule,)))
        with pytest.raises(Refused, match="permission denied"):
            story.reserve(1, caller=ANN)
        assert story.reserve(1, begin=0.5 * HOUR, end=2 * HOUR, caller=ANN).slots == 1


class TestKeepingOff:
    def test_while_it_holds_others_have_what_is_left(self) -> None:
        """Three of four slots are reserved."""
        story = one_host()
        story.reserve(3)
        first, second = story.submit(a_job(caller=BOB)), story.submit(a_job(caller=BOB))
        story.plan()
        assert (story.state(first), story.state(second)) == (JobState.STAGING, JobState.PEND)
        assert reasons(story, second) == [r.RESERVED.text]

    def test_its_jobs_have_its_slots_and_no_others(self) -> None:
        """-U: as many as it has there."""
        story = one_host()
        name = story.reserve(2).name
        jobs = [story.submit(a_job(reservation=name)) for _ in range(3)]
        story.plan()
        assert [story.state(job) for job in jobs] == [JobState.STAGING, JobState.STAGING, JobState.PEND]
        assert reasons(story, jobs[2]) == [r.NO_SLOTS.text]

    def test_a_job_without_run_limit_does_not_start_before_it(self) -> None:
        """Without a run limit it would not end before."""
        story = one_host()
        story.reserve(4, begin=HOUR, end=2 * HOUR)
        endless, long, short = (story.submit(a_job(run_limit_s=limit)) for limit in (0, 4000, 3600))
        story.plan()
        assert [story.state(job) for job in (endless, long, short)] == [
            JobState.PEND,
            JobState.PEND,
            JobState.STAGING,
        ]

    def test_what_runs_until_then_counts(self) -> None:
        """A job that runs beyond the beginning leaves less for others that would."""
        story = one_host()
        story.run(a_job(2))
        story.reserve(2, begin=HOUR, end=2 * HOUR)
        long, short = story.submit(a_job(run_limit_s=7200)), story.submit(a_job(2, run_limit_s=60))
        story.plan()
        assert (story.state(long), story.state(short)) == (JobState.PEND, JobState.STAGING)

    def test_it_begins_by_the_clock_even_without_a_tick(self) -> None:
        """A pass respects a reservation that has begun since the last tick."""
        story = one_host()
        story.reserve(4, begin=HOUR, end=2 * HOUR)
        job = story.submit(a_job(run_limit_s=60))
        story.now += HOUR
        story.plan()
        assert story.state(job) is JobState.PEND

    def test_others_start_when_it_is_over(self) -> None:
        """Jobs that waited for the end start."""
        story = one_host()
        story.reserve(4)
        job = story.submit(a_job())
        story.plan()
        later(story, HOUR)
        story.plan()
        assert story.state(job) is JobState.STAGING
        assert not story.cluster.reserved

    def test_its_jobs_wait_for_the_beginning(self) -> None:
        """The pending reason says so."""
        story = one_host()
        name = story.reserve(4, begin=HOUR, end=2 * HOUR).name
        job = story.submit(a_job(reservation=name))
        story.plan()
        assert reasons(story, job)[0] == r.RESERVATION_INACTIVE.text
        later(story, HOUR)
        story.plan()
        assert story.state(job) is JobState.STAGING

    def test_its_jobs_start_whatever_their_run_limit(self) -> None:
        """They are killed at its end."""
        story = one_host()
        name = story.reserve(4).name
        job = story.submit(a_job(reservation=name, run_limit_s=100_000))
        story.plan()
        assert story.state(job) is JobState.STAGING

    def test_nothing_runs_in_one_of_the_system(self) -> None:
        """No job can be submitted to it."""
        story = one_host()
        name = story.reserve(kind=ReservationKind.SYSTEM, users=(), is_whole=True).name
        job = story.submit(a_job())
        story.plan()
        assert story.state(job) is JobState.PEND
        with pytest.raises(Refused, match="for the system"):
            story.submit(a_job(reservation=name))

    def test_a_host_for_itself_is_none_of_which_a_part_is_reserved(self) -> None:
        """-x, now and until the job ends."""
        story = a_cluster(a_host("n1"), a_host("n2"))
        story.reserve(1, hosts=("n1",), begin=HOUR, end=2 * HOUR)
        jobs = [story.submit(a_job(exclusive=True)) for _ in range(2)]
        story.plan()
        assert (story.where(jobs[0]), story.state(jobs[1])) == (["n2"], JobState.PEND)

    def test_queues_that_may_stay(self) -> None:
        """-q: jobs of these queues use the hosts until it begins."""
        story = one_host()
        story.reserve(4, begin=HOUR, end=2 * HOUR, queues=("idle",))
        normal, idle = story.submit(a_job()), story.submit(a_job(queue="idle"))
        story.plan()
        assert (story.state(normal), story.state(idle)) == (JobState.PEND, JobState.STAGING)

    def test_recurring(self) -> None:
        """It recurs every week, except when it is disabled."""
        story = one_host()
        story.reserve(4, windows=(MONDAY_AFTERNOON,))
        job = story.submit(a_job(run_limit_s=600))
        later(story, HOUR)
        story.plan()
        assert story.state(job) is JobState.PEND
        day = BEGIN - BEGIN % 86400
        story.do(c.ChangeReservation("ann#0", ROOT, skips=(day, day + 86400)))
        story.plan()
        assert story.state(job) is JobState.STAGING


class TestRights:
    def test_only_its_users(self) -> None:
        """Others are refused, as is a name that does not exist."""
        story = one_host()
        name = story.reserve(1).name
        for job, what in ((a_job(caller=BOB, reservation=name), "not for bob"), (a_job(reservation="x#1"), "No such")):
            with pytest.raises(Refused, match=what):
                story.submit(job)

    def test_members_of_its_groups(self) -> None:
        """-g: group members may use it."""
        groups = {"team": Names(False, frozenset({"bob"}))}
        story = a_cluster(policy=Policy(user_groups=groups))
        name = story.reserve(1, users=("team",), kind=ReservationKind.GROUP).name
        assert name == "team#0"
        assert story.submit(a_job(caller=BOB, reservation=name))
        with pytest.raises(Refused, match="not for ann"):
            story.submit(a_job(reservation=name))


class TestTheEnd:
    def test_a_closed_one_ends_its_jobs(self) -> None:
        """The kill has the deadline as its reason, and the usual sequence."""
        story = one_host()
        name = story.reserve(2).name
        key = story.run(a_job(reservation=name))
        outcome = later(story, HOUR)
        (signalled,) = [one for one in outcome.events if isinstance(one, e.JobSignalled)]
        assert (signalled.key, signalled.signal, signalled.reason) == (key, 0, r.TERM_DEADLINE)
        assert name not in story.cluster.reserved.by_name

    def test_of_a_recurring_one_jobs_are_ended_each_time(self) -> None:
        """The reservation stays, and its next jobs wait for the next occurrence."""
        story = one_host()
        name = story.reserve(2, windows=(MONDAY_AFTERNOON,)).name
        later(story, HOUR)
        key = story.run(a_job(reservation=name))
        later(story, 2 * HOUR)
        assert story.cluster.attempts[key].kill_reason == r.TERM_DEADLINE
        assert name in story.cluster.reserved.by_name

    def test_jobs_of_an_open_one_go_on_and_others_are_freed_of_it(self) -> None:
        """Its pending jobs are scheduled like any other."""
        story = one_host()
        name = story.reserve(1, is_open=True).name
        key = story.run(a_job(reservation=name))
        waiting, array = story.submit(a_job(reservation=name)), story.submit(a_job(array="1-2", reservation=name))
        later(story, HOUR)
        story.plan()
        assert story.state(key.job) is JobState.RUN
        assert story.state(waiting) is JobState.STAGING
        assert story.state(array, 2) is JobState.STAGING

    def test_a_job_staged_at_the_end_is_over_at_once(self) -> None:
        """Nothing of it was launched."""
        story = a_cluster(a_host("n1"), a_host("n2"))
        name = story.reserve(8).name
        job = story.submit(a_job(8, reservation=name, ptile=4))
        story.plan()
        later(story, HOUR)
        assert story.state(job) in (JobState.EXIT, JobState.PEND)

    def test_deleted_while_jobs_run(self) -> None:
        """Only with -f; then the jobs are like any others."""
        story = one_host()
        name = story.reserve(2).name
        key = story.run(a_job(reservation=name))
        with pytest.raises(Refused, match="has running jobs"):
            story.do(c.RemoveReservation(name, ROOT))
        story.do(c.RemoveReservation(name, ROOT, is_forced=True))
        later(story, HOUR)
        assert story.state(key.job) is JobState.RUN
        assert story.job(key.job).shared.request.reservation == ""

    def test_deleted_while_jobs_wait(self) -> None:
        """They stay pending, and the reason says so."""
        story = one_host()
        name = story.reserve(2, begin=HOUR, end=2 * HOUR).name
        job = story.submit(a_job(reservation=name))
        story.do(c.RemoveReservation(name, ROOT))
        story.plan()
        assert story.state(job) is JobState.PEND
        assert r.RESERVATION_GONE.text in reasons(story, job)


class TestChanging:
    def test_longer_and_shorter(self) -> None:
        """Its jobs are killed at the new end."""
        story = one_host()
        name = story.reserve(2).name
        key = story.run(a_job(reservation=name))
        story.do(c.ChangeReservation(name, ROOT, times=ReservationTimes(0.0, BEGIN + 2 * HOUR)))
        later(story, HOUR)
        assert not story.cluster.attempts[key].kill_reason
        later(story, HOUR)
        assert story.cluster.attempts[key].kill_reason

    def test_not_over_others(self) -> None:
        """The change is refused as a whole."""
        story = one_host()
        name = story.reserve(3).name
        story.reserve(3, begin=HOUR, end=2 * HOUR)
        with pytest.raises(Refused, match="too few slots"):
            story.do(c.ChangeReservation(name, ROOT, times=ReservationTimes(0.0, BEGIN + 2 * HOUR)))

    def test_the_beginning_of_what_has_begun_stays(self) -> None:
        """It can't be changed, as in LSF."""
        story = one_host()
        name = story.reserve(3).name
        with pytest.raises(Refused, match="is active"):
            story.do(c.ChangeReservation(name, ROOT, times=ReservationTimes(BEGIN + 60, 0.0)))

    def test_more_and_fewer_slots(self) -> None:
        """addhost and rmhost."""
        story = a_cluster(a_host("n1"), a_host("n2"))
        name = story.reserve(3).name
        story.reserve(2, hosts=("n2",))
        more = story.do(c.ChangeReservation(name, ROOT, adds=True, units=3)).reply
        assert more.hosts == (("n1", 4), ("n2", 2))
        with pytest.raises(Refused, match="0 are not reserved"):
            story.do(c.ChangeReservation(name, ROOT, adds=True, units=1))
        less = story.do(c.ChangeReservation(name, ROOT, takes=True, units=5)).reply
        assert less.hosts == (("n2", 1),)

    def test_a_job_is_moved_into_it_and_out(self) -> None:
        """bmod -U, bmod -Un."""
        story = one_host()
        name = story.reserve(4).name
        job = story.submit(a_job())
        story.plan()
        assert story.state(job) is JobState.PEND
        fields = frozenset({"reservation"})
        story.do(c.ModifyJob(story.target(job), a_job(reservation=name), ANN, "", fields))
        story.plan()
        assert story.state(job) is JobState.STAGING
        with pytest.raises(Refused, match="is active"):
            story.do(c.ModifyJob(story.target(job), a_job(), ANN, "", fields))


class TestMakingRoom:
    def test_who_is_there_is_suspended_when_the_slots_are_needed(self) -> None:
        """As few jobs as suffice, and only when a job of the reservation is pending."""
        story = one_host()
        old = story.run(a_job(2, caller=BOB))
        new = story.run(a_job(2, caller=BOB))
        name = story.reserve(2).name
        later(story, 1)
        story.plan()
        assert story.state(new.job) is JobState.RUN
        key = story.run(a_job(reservation=name))
        suspended = [story.state(one.job) for one in (old, new)]
        assert sorted(suspended) == [JobState.RUN, JobState.SSUSP]
        story.finished("n1", key)
        story.plan()
        assert JobState.SSUSP in [story.state(one.job) for one in (old, new)], "the slots are still set apart"
        later(story, HOUR)
        story.plan()
        assert [story.state(one.job) for one in (old, new)] == [JobState.RUN, JobState.RUN]

    def test_not_where_it_is_not_wanted(self) -> None:
        """-nosusp: the reservation's jobs wait."""
        story = one_host()
        old = story.run(a_job(4, caller=BOB))
        name = story.reserve(2, suspends=False).name
        job = story.submit(a_job(reservation=name))
        story.plan()
        assert (story.state(old.job), story.state(job)) == (JobState.RUN, JobState.PEND)

    def test_nobody_preempts_into_it(self) -> None:
        """A preemptive queue gets no reserved slots either."""
        policy = Policy()
        queues = tuple(
            replace(one, preempts=(("idle", 0),)) if one.name == "priority" else replace(one, is_preemptable=True)
            for one in policy.queues
        )
        story = a_cluster(a_host("n1"), policy=replace(policy, queues=queues))
        low = story.run(a_job(4, queue="idle"))
        story.reserve(4)
        job = story.submit(a_job(queue="priority", caller=BOB))
        story.plan()
        assert (story.state(low.job), story.state(job)) == (JobState.RUN, JobState.PEND)
