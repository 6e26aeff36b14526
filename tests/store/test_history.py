"""History from the store: texts in LSF's words, seconds by state, pages, and jobs that have left memory."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection

from lavad.core import commands as c
from lavad.core.model import FINAL, HostShare, JobState, Key
from lavad.core.model.ranges import Ranges
from lavad.core.model.reasons import FOUND_ON_HOST, NotNow
from lavad.core.model.rules.applications import Application
from lavad.core.model.rules.names import Names
from lavad.core.plan import Start, Starts
from lavad.core.state.attempts import JobEnd
from lavad.store.reading import history, history_text, reader
from lavad.store.reading.brief import read_brief
from lavad.store.reading.history import HistoryFilter, HistoryPage, JobHistory, JobRange
from lavad.store.reading.history_text import CpuFactors, Moment
from lavad.store.reading.restore import SharedTexts
from tests.fakes.world import ROOT, new_job
from tests.store.saved import Saved, saving
from tests.store.saving import Submitter, durable, opened

ALICE = c.Caller("alice", 1000)
S = JobState
HOSTS = {"hosts": [["n000", 1]]}


class Told:
    """A world whose events are saved, and its history texts."""

    def __init__(self, saved: Saved) -> None:
        self.saved = saved
        self.world = saved.world

    def do(self, command: c.Command, after_s: float = 0.0) -> None:
        """Carry out a command some seconds later."""
        self.world.now += after_s
        assert self.world.do(command)

    def start(self, job: int, index: int = 0, host: str = "n000", slots: int = 1, after_s: float = 0.0) -> Key:
        """Dispatch a job on one host and start it."""
        self.world.now += after_s
        self.do(c.ApplyPlan(Starts((Start(job, index, (HostShare(host, slots),), "free"),))))
        element = self.world.cluster.element(job, index)
        assert element is not None
        key = element.key
        self.do(c.ReportStarted(host, key, 4101, self.world.now, "/home/alice", "/home/alice/run"))
        return key

    def end(self, key: Key, status: int = 0, host: str = "n000", after_s: float = 0.0) -> None:
        """The attempt ends."""
        self.world.now += after_s
        self.do(c.ReportFinished(host, key, status, self.world.now, "", 1.5, 77, also_released=True))

    def history(self, wanted: HistoryFilter | None = None, **parts: Any) -> HistoryPage:
        """One page."""
        asked = replace(wanted or HistoryFilter(self.world.now), **parts)
        return self.saved.read(lambda connection: history.read_page(connection, asked))

    def all_pages(self, **parts: Any) -> list[JobHistory]:
        """All pages, with a bound on their number."""
        asked = replace(HistoryFilter(self.world.now), **parts)
        found: list[JobHistory] = []
        for _ in range(1000):
            page = self.history(asked)
            found += page.jobs
            assert len(page.jobs) <= asked.limit
            if page.after is None:
                return found
            asked = replace(asked, after=page.after)
        raise AssertionError("the pages never end")


@pytest.fixture
def told(database_url: str) -> Iterator[Told]:
    """``Told`` over an empty database."""
    with saving(database_url) as saved:
        yield Told(saved)


def names(found: list[JobHistory] | tuple[JobHistory, ...]) -> list[tuple[int, int]]:
    """Ids and indices."""
    return [(entry.job.id, entry.job.index) for entry in found]


def test_the_story_of_a_job_in_lsfs_words(told: Told) -> None:
    """Submitted, held, freed, started, stopped, resumed, killed: each line as bhist -l has it, and the seconds."""

    told.do(c.SubmitJob(new_job(slots=2), ALICE))
    told.do(c.StopJob(c.Target(1), ALICE), 3.0)
    told.do(c.ResumeJob(c.Target(1), ALICE), 4.0)
    key = told.start(1, slots=2, after_s=5.0)
    told.do(c.StopJob(c.Target(1), ALICE), 10.0)
    told.do(c.ResumeJob(c.Target(1), ALICE), 20.0)
    told.do(c.KillJob(c.Target(1), ALICE), 30.0)
    told.end(key, 130 << 8, after_s=1.0)
    told.world.now += 1000.0
    (one,) = (told.history(jobs=(JobRange(1),))).jobs
    assert [note.text for note in one.notes] == [
        "Submitted from host <login1>, to Queue <normal>, CWD <$HOME/run>, Output File <out.%J>, "
        "2 Processors Requested",
        "Signal <STOP> requested by user or administrator <alice>",
        "Signal <CONT> requested by user or administrator <alice>",
        "Dispatched to 2 Hosts/Processors <n000> <n000>",
        "Starting (Pid 4101)",
        "Running with execution home </home/alice>, Execution CWD </home/alice/run>, Execution Pid <4101>",
        "Suspended by the user or administrator",
        "Running",
        "Signal <KILL> requested by user or administrator <alice>",
        "Exited with exit code 130. The CPU time used is 1.5 seconds",
        "Completed <exit>; TERM_OWNER: job killed by owner.",
    ]
    assert {name: round(seconds) for name, seconds in one.seconds_by_state.items()} == {
        "PEND": 8, "PSUSP": 4, "RUN": 41, "USUSP": 20, "SSUSP": 0, "UNKWN": 0,
    }  # fmt: skip
    assert one.job.state is S.EXIT
    assert one.job.end is not None
    assert one.job.end.hosts == (HostShare("n000", 2),)


def test_reasons_that_users_give(told: Told) -> None:
    """bkill -C and its kin: before the line of the command, of waiting elements as of running jobs, ended ones too."""
    told.do(c.SubmitJob(new_job(), ALICE))
    told.do(c.SubmitJob(new_job(indices=(range(1, 4),)), ALICE))
    told.do(c.StopJob(c.Target(1), ALICE, "not yet"))
    told.do(c.ResumeJob(c.Target(1), ALICE, "now"))
    told.start(1)
    told.do(c.KillJob(c.Target(1), ROOT, remove=True, reason="the rack\tburns"))
    told.do(c.KillJob(c.Target(2, Ranges.parse("2-3")), ALICE, reason="wrong input"), 5.0)

    def lines(job: int, index: int = 0) -> list[str]:
        one = next(one for one in told.history(jobs=(JobRange(job),)).jobs if one.job.index == index)
        return [note.text for note in one.notes[1:]]

    assert [line for line in lines(1) if "reason" in line or "Signal" in line or "Completed" in line] == [
        "Suspend reason of user or administrator <alice>: not yet",
        "Signal <STOP> requested by user or administrator <alice>",
        "Resume reason of user or administrator <alice>: now",
        "Signal <CONT> requested by user or administrator <alice>",
        "Kill reason of user or administrator <root>: the rack\tburns",
        "Completed <exit>; TERM_FORCE_ADMIN: job killed by root or LSF administrator without time for cleanup.",
    ]
    assert lines(2, 1) == []
    assert lines(2, 3)[0] == "Kill reason of user or administrator <alice>: wrong input"
    assert lines(2, 3)[1].startswith("Signal <KILL>")


def test_cpu_times_of_another_host(told: Told) -> None:
    """Each attempt's by the factor of its own first host; a host without one has the factor of any other."""
    told.do(c.SubmitJob(new_job(), ALICE))
    told.end(told.start(1, after_s=1.0), after_s=1.0)
    for factors, end in ((CpuFactors({"n000": 2.0}, 4.0), "3.0"), (CpuFactors({}, 4.0), "6.0"), (None, "1.5")):
        (one,) = told.history(jobs=(JobRange(1),), factors=factors).jobs
        assert one.notes[-1].text == f"Done successfully. The CPU time used is {end} seconds"
    second = {"hosts": [["n001", 1]]}
    moments = [Moment(1.0, "dispatched", HOSTS), Moment(2.0, "finished", {"cpu_s": 1.0, "status": 9}),
               Moment(3.0, "dispatched", second), Moment(4.0, "finished", {"cpu_s": 1.0, "status": 0})]  # fmt: skip
    changed = history_text.normalized(moments, CpuFactors({"n000": 2.0, "n001": 5.0}))
    assert [one.detail["cpu_s"] for one in changed if one.kind == "finished"] == [2.0, 5.0]


def test_jobs_that_were_there_at_a_time(told: Told) -> None:
    """Neither those that ended before, nor those submitted later; of arrays each element counts by itself."""
    begin = told.world.now
    for _ in range(3):
        told.do(c.SubmitJob(new_job(), ALICE))
    told.do(c.SubmitJob(new_job(indices=(range(1, 5),)), ALICE))
    for job, index in ((1, 0), (2, 0), (4, 1), (4, 2)):
        key = told.start(job, index)
        if (job, index) != (2, 0):
            told.end(key, after_s=10.0)
    told.world.now = begin + 1000.0
    told.do(c.SubmitJob(new_job(), ALICE))
    told.end(Key(2, 0, 1), after_s=5.0)
    told.do(c.KillJob(c.Target(4, Ranges.parse("3")), ALICE))

    def there(**times: float) -> list[tuple[int, int]]:
        asked = HistoryFilter(told.world.now, limit=2, **times)  # type: ignore[arg-type]
        found: list[JobHistory] = []
        for part in history.parts(told.saved.read, asked):
            after: tuple[int, int] | None = part.after
            while after is not None:
                page = told.history(replace(part, after=after))
                found, after = [*found, *page.jobs], page.after
        return names(found)

    assert there() == [(1, 0), (2, 0), (3, 0), (4, 1), (4, 2), (4, 3), (4, 4), (5, 0)]
    assert there(since=begin + 500.0) == [(2, 0), (3, 0), (4, 3), (4, 4), (5, 0)]
    assert there(since=begin + 500.0, until=begin + 900.0) == [(2, 0), (3, 0), (4, 3), (4, 4)]
    assert there(since=begin + 1007.0) == [(3, 0), (4, 4), (5, 0)]
    assert there(since=begin + 1.0, until=begin + 2.0) == [(1, 0), (2, 0), (3, 0), (4, 1), (4, 2), (4, 3), (4, 4)]


@pytest.mark.parametrize("is_brief", [False, True])
def test_jobs_by_what_happened_at_a_time(told: Told, is_brief: bool) -> None:
    """Submitted, dispatched, completed between two times, both included; an open end is 0."""
    begin = told.world.now
    for number in range(4):
        told.world.now = begin + 100.0 * number
        told.do(c.SubmitJob(new_job(), ALICE))
        if number < 3:
            told.end(told.start(number + 1, after_s=10.0), after_s=20.0 + 100.0 * number)

    def found(**times: tuple[float, float]) -> list[int]:
        asked = HistoryFilter(told.world.now, is_brief=is_brief, **times)  # type: ignore[arg-type]
        return [one.job.id for part in history.parts(told.saved.read, asked) for one in told.history(part).jobs]

    assert found(submitted=(begin + 100.0, begin + 200.0)) == [2, 3]
    assert found(dispatched=(begin + 10.0, begin + 110.0)) == [1, 2]
    assert found(dispatched=(begin + 111.0, 0.0)) == [3]
    assert found(completed=(0.0, begin + 30.0)) == [1]
    assert found(completed=(begin + 31.0, 0.0)) == [2, 3]
    assert found(submitted=(begin, begin), completed=(begin + 31.0, 0.0)) == []


def test_more_named_jobs_than_a_page_has(told: Told) -> None:
    """All of them are found, also if another condition leaves few on each page."""
    for number in range(9):
        told.do(c.SubmitJob(new_job(user="alice" if number % 4 else "bob"), c.Caller("bob", 1001)))
    asked = HistoryFilter(told.world.now, tuple(JobRange(job) for job in range(1, 10)), user="bob", limit=2)
    found = [one for part in history.parts(told.saved.read, asked) for one in told.history(part).jobs]
    assert names(found) == [(1, 0), (5, 0), (9, 0)]


def test_an_unfinished_job_is_told_up_to_now(told: Told) -> None:
    """The seconds of the present state run until the time of the question."""

    told.do(c.SubmitJob(new_job(), ALICE))
    told.world.now += 12.0
    (one,) = (told.history()).jobs
    assert one.seconds_by_state["PEND"] == pytest.approx(12.0)


@pytest.mark.parametrize(
    ("moment", "lines"),
    [
        (Moment(0.0, "finished", {"status": 0, "cpu_s": 2.0}), ["Done successfully. The CPU time used is 2.0 seconds"]),
        (
            Moment(0.0, "finished", {"status": 0, "cpu_s": 2.0, "reason": "TERM_RUNLIMIT: long."}),
            ["Done successfully. The CPU time used is 2.0 seconds", "Completed <done>; TERM_RUNLIMIT: long."],
        ),
        (Moment(0.0, "finished", {"status": 9}), ["Exited by signal 9. The CPU time used is 0.0 seconds"]),
        (Moment(0.0, "dispatched", {"hosts": [["n1", 1, 0, [], []]]}), ["Dispatched to <n1>"]),
        (Moment(0.0, "requeued", {"reason": "n1 refused"}), ["Pending: Job has been requeued: n1 refused"]),
        (Moment(0.0, "posted", {"state": "DONE"}), ["Post job process done successfully"]),
        (Moment(0.0, "posted", {"state": "ERR"}), ["Post job process failed"]),
        (Moment(0.0, "lost"), ["Unknown; unable to reach the execution host"]),
        (
            Moment(0.0, "signalled", {"signal": 10, "by": "bob"}),
            ["Signal <USR1> requested by user or administrator <bob>"],
        ),
        (
            Moment(0.0, "signalled", {"signal": 99, "by": "bob"}),
            ["Signal <99> requested by user or administrator <bob>"],
        ),
        (Moment(0.0, "suspended", {"state": "SSUSP", "by": "load"}), ["Suspended: load"]),
        (Moment(0.0, "modified", {"by": "bob", "changes": "Queue <q>"}), ["Parameters of Job are changed: Queue <q>"]),
    ],
)
def test_the_words_of_single_events(moment: Moment, lines: list[str]) -> None:
    """Events that need a special history are worded like the others."""
    shared = new_job().shared
    assert [note.text for note in history_text.notes([(moment, S.RUN)], shared, b"")] == lines


def test_a_lost_job_goes_on_in_the_state_it_was_in() -> None:
    """Unknown and found again: the seconds in between count as UNKWN, those after as before."""
    moments = [
        Moment(0.0, "submitted"),
        Moment(1.0, "started"),
        Moment(2.0, "suspended", {"state": "USUSP"}),
        Moment(4.0, "lost"),
        Moment(8.0, "found"),
    ]
    seconds = history_text.seconds_by_state(history_text.walk(moments), 16.0)
    assert seconds == {"PEND": 1.0, "PSUSP": 0.0, "RUN": 1.0, "USUSP": 10.0, "SSUSP": 0.0, "UNKWN": 4.0}


def test_an_attempt_that_was_found_on_its_host_follows_the_one_before(told: Told) -> None:
    """It began before the database, which is older, was adopted: no line is earlier than the one above, and no second
    counts twice.
    """
    told.do(c.SubmitJob(new_job(), ALICE))
    told.start(1, after_s=5.0)
    started_at = told.world.now + 60.0
    told.do(c.RecoverAttempt(Key(1, 0, 2), None, (HostShare("n001", 1),), started_at=started_at), 600.0)
    told.do(c.ReportStarted("n001", Key(1, 0, 2), 7, started_at, "/home/alice", "/home/alice/run"))
    told.end(Key(1, 0, 2), host="n001", after_s=100.0)
    (one,) = told.history(jobs=(JobRange(1),)).jobs
    times = [note.at for note in one.notes]
    assert times == sorted(times)
    assert [note.at for note in one.notes if note.text.startswith(("Pending", "Dispatched to <n001>"))] == [
        started_at
    ] * 2
    assert {name: round(seconds) for name, seconds in one.seconds_by_state.items() if seconds} == {
        "PEND": 5,
        "RUN": 700,
    }


def test_a_host_that_comes_late_takes_no_time_back() -> None:
    """Its job had been requeued meanwhile, because another host did not know it any more."""
    moments = [
        Moment(0.0, "submitted"),
        Moment(1.0, "started"),
        Moment(189.0, "requeued", {"reason": "lava1 no longer knows the job"}),
        Moment(66.0, "dispatched", {**HOSTS, "reason": FOUND_ON_HOST}),
        Moment(66.0, "started", {"pid": 7}),
        Moment(541.0, "finished", {"status": 0}),
    ]
    told = history_text.in_order(moments)
    assert [moment.at for moment in told] == [0.0, 1.0, 189.0, 189.0, 189.0, 541.0]
    assert history_text.seconds_by_state(history_text.walk(told), 541.0)["RUN"] == 540.0
    assert history_text.in_order(moments[:3]) == moments[:3]


def test_an_end_without_a_start_is_told_as_such() -> None:
    """Its exit code is that of what kept it from starting, and it has used no time."""
    shared, ended = new_job().shared, Moment(2.0, "finished", {"status": 256, "reason": "No input file."})
    dispatched, started = Moment(1.0, "dispatched", HOSTS), Moment(1.0, "started", {"pid": 7})

    def last_lines(*moments: Moment) -> list[str]:
        return [note.text for note in history_text.notes(history_text.walk(moments), shared, b"")][-2:]

    reason = "Completed <exit>; No input file."
    never = "Exited with exit code 1; the job ended before it started"
    assert last_lines(dispatched, ended) == [never, reason]
    assert last_lines(dispatched, started, Moment(1.5, "requeued"), dispatched, ended) == [never, reason]
    assert last_lines(dispatched, started, ended) == [
        "Exited with exit code 1. The CPU time used is 0.0 seconds", reason
    ]  # fmt: skip


def test_an_exit_code_that_means_success_is_told_as_success() -> None:
    """SUCCESS_EXIT_VALUES, whatever they are now: the record of the end says so."""
    reason = "SUCCESS_EXIT_VALUES: exit code 3 means success."
    ended = Moment(2.0, "finished", {"status": 3 << 8, "reason": reason})
    moments = (Moment(1.0, "dispatched", HOSTS), Moment(1.0, "started", {"pid": 7}), ended)
    notes = history_text.notes(history_text.walk(moments), new_job().shared, b"")
    assert [note.text for note in notes][-2:] == [
        "Done successfully. The CPU time used is 0.0 seconds", f"Completed <done>; {reason}"
    ]  # fmt: skip


@pytest.mark.parametrize("earlier", [[], [Moment(1.0, "dispatched", HOSTS), Moment(2.0, "requeued")]])
def test_a_job_whose_end_told_its_start_has_one_in_its_story(earlier: list[Moment]) -> None:
    """Start and end of a short job come in one report; its history has both, once."""
    moments = [Moment(0.0, "submitted"), *earlier, Moment(3.0, "dispatched", HOSTS), Moment(5.0, "finished")]
    told = history_text.with_start(moments, JobEnd(5.0, 0, started_at=4.0, pid=77))
    assert told == [*moments[:-1], Moment(4.0, "started", {"pid": 77}), moments[-1]]
    assert history_text.with_start(told, JobEnd(5.0, 0, started_at=4.0, pid=77)) == told
    assert history_text.with_start(moments, JobEnd(5.0, 9)) == moments
    assert history_text.with_start(moments[:-1], None) == moments[:-1]
    posted = Moment(6.0, "posted", {"state": "DONE"})
    assert history_text.with_start([*moments, posted], JobEnd(5.0, 0, started_at=4.0, pid=77)) == [*told, posted]


def test_elements_of_an_array_have_stories_of_their_own(told: Told) -> None:
    """Ended, running, pending, held and killed elements: each with its own events."""

    told.do(c.SubmitJob(new_job(name="sweep", indices=(range(1, 7),)), ALICE))
    told.end(told.start(1, 1, after_s=1.0), after_s=2.0)
    told.start(1, 2)
    told.do(c.StopJob(c.Target(1, Ranges.of(5, 6)), ALICE), 1.0)
    told.do(c.KillJob(c.Target(1, Ranges.of(3, 6)), ALICE), 1.0)
    found = (told.history()).jobs
    assert names(found) == [(1, index) for index in range(1, 7)]
    assert [entry.job.state for entry in found] == [S.DONE, S.RUN, S.EXIT, S.PEND, S.PSUSP, S.EXIT]
    killed = found[5]
    assert [note.text for note in killed.notes][1:] == [
        "Signal <STOP> requested by user or administrator <alice>",
        "Signal <KILL> requested by user or administrator <alice>",
        "Exited",
        "Completed <exit>; TERM_OWNER: job killed by owner.",
    ]
    assert killed.job.end is not None
    assert killed.job.end.at == told.world.now
    assert killed.seconds_by_state["PSUSP"] == pytest.approx(1.0)
    unfinished = frozenset(S) - {S.DONE, S.EXIT}
    assert names((told.history(states=unfinished)).jobs) == [(1, 2), (1, 4), (1, 5)]
    assert names((told.history(jobs=(JobRange(1, Ranges.of(2, 3, 77)),))).jobs) == [(1, 2), (1, 3)]


def test_jobs_of_a_profile_are_told(told: Told) -> None:
    """By its whole name, in which no letter stands for others."""
    profiles = ("md_1", "md11", "md_12", "md.1")
    cluster = told.world.cluster
    cluster.policy = replace(cluster.policy, applications={name: Application(name) for name in profiles})
    told.do(c.SubmitJob(new_job(), ALICE))
    for number, name in enumerate(profiles, 2):
        job = new_job()
        told.do(c.SubmitJob(job._replace(shared=replace(job.shared, application=name)), ALICE))
        assert names(told.history(application=name).jobs) == [(number, 0)]
    assert names(told.history(application="md").jobs) == []


def test_only_what_matches_is_told(told: Told) -> None:
    """User, queue, name, host, state and ids choose; an id that does not exist is no error."""

    told.do(c.SubmitJob(new_job("md_npt"), ALICE))
    told.do(c.SubmitJob(new_job("md_nvt", user="bob"), c.Caller("bob", 1001)))
    told.do(c.SubmitJob(new_job("prep", queue="short"), ALICE))
    told.start(1, host="n001")
    told.end(told.start(2))
    assert names((told.history(user="alice")).jobs) == [(1, 0), (3, 0)]
    assert names((told.history(user="labs", group=Names(False, frozenset({"bob", "carol"})))).jobs) == [(2, 0)]
    assert names((told.history(user="rest", group=Names(True, frozenset({"bob"})))).jobs) == [(1, 0), (3, 0)]
    assert names((told.history(queue="short")).jobs) == [(3, 0)]
    assert names((told.history(name="md_*")).jobs) == [(1, 0), (2, 0)]
    assert names((told.history(host="n001")).jobs) == [(1, 0)]
    assert names((told.history(project="none")).jobs) == []
    assert names((told.history(states=frozenset({S.DONE}))).jobs) == [(2, 0)]
    assert names((told.history(states=frozenset({S.PEND, S.RUN}))).jobs) == [(1, 0), (3, 0)]
    assert names((told.history(jobs=(JobRange(3), JobRange(99)))).jobs) == [(3, 0)]


def test_a_job_without_a_name_is_chosen_by_its_command(told: Told) -> None:
    """As lists show it; the element of an array, too, and no job that was given a name."""
    told.do(c.SubmitJob(new_job(""), ALICE))
    told.do(c.SubmitJob(new_job("md"), ALICE))
    told.do(c.SubmitJob(new_job("", indices=(range(1, 4),)), ALICE))
    assert names(told.all_pages(name="sleep*", limit=1)) == [(1, 0), (3, 1), (3, 2), (3, 3)]
    assert names((told.history(name="sleep 1[2]")).jobs) == [(3, 2)]


def test_an_element_is_named_with_its_array(told: Told) -> None:
    """sweep[3] of every array of that name that has it; a plain job has no elements, and brackets are no pattern."""

    told.do(c.SubmitJob(new_job("sweep", indices=(range(1, 6),)), ALICE))
    told.do(c.SubmitJob(new_job("sweep"), ALICE))
    told.do(c.SubmitJob(new_job("sweep3"), ALICE))
    told.do(c.SubmitJob(new_job("sweeper", indices=(range(3, 5),)), ALICE))
    assert names((told.history(name="sweep[3]")).jobs) == [(1, 3)]
    assert names(told.all_pages(name="sweep*[3]", limit=1)) == [(1, 3), (4, 3)]
    assert names((told.history(name="sweep[9]")).jobs) == []
    assert names((told.history(name="sweep[0]")).jobs) == []
    named = JobRange(1, Ranges.of(2, 3))
    assert names((told.history(name="sweep[3]", jobs=(named,))).jobs) == [(1, 3)]
    assert names((told.history(name="sweep[4]", jobs=(named,))).jobs) == []


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_pages_neither_repeat_nor_forget(told: Told, limit: int) -> None:
    """For any page size, all pages together are all jobs and elements in order."""

    for number in range(12):
        indices = (range(1, 6), range(10, 16, 2)) if number % 3 == 1 else ()
        told.do(c.SubmitJob(new_job(f"j{number}", indices=indices, hold=number % 2 == 0), ALICE))
    told.do(c.KillJob(c.Target(2, Ranges.of(1, 2)), ALICE))
    told.do(c.KillJob(c.Target(5), ALICE))
    elements = [1, 2, 3, 4, 5, 10, 12, 14]
    everything = [(job, index) for job in range(1, 13) for index in (elements if (job - 1) % 3 == 1 else [0])]
    assert names(told.all_pages(limit=limit)) == everything
    unended = [(job, index) for job, index in everything if job != 5 and (job, index) not in {(2, 1), (2, 2)}]
    assert names(told.all_pages(limit=limit, states=frozenset({S.PEND, S.PSUSP}))) == unended
    assert names(told.all_pages(limit=limit, name="j1*")) == [
        (job, index) for job, index in everything if job in (2, 11, 12)
    ]


def test_jobs_that_left_memory_are_found(told: Told) -> None:
    """Ended long ago: the store still has the record, its spec and its story."""

    told.do(c.SubmitJob(new_job(spec=b"one"), ALICE))
    told.do(c.SubmitJob(new_job(indices=(range(1, 4),), spec=b"two"), ALICE))
    told.do(c.SubmitJob(new_job(), ALICE))
    told.end(told.start(1), 256)
    told.end(told.start(2, 2))
    told.do(c.KillJob(c.Target(2), ROOT))
    told.world.now += 10_000.0
    told.world.tick()
    assert list(told.world.cluster.jobs) == [3]
    found = [entry.job for entry in told.all_pages(jobs=(JobRange(1), JobRange(2), JobRange(3)), states=FINAL, limit=2)]
    assert [(job.id, job.index, job.state) for job in found] == [
        (1, 0, S.EXIT), (2, 1, S.EXIT), (2, 2, S.DONE), (2, 3, S.EXIT),
    ]  # fmt: skip
    assert [job.end.status for job in found if job.end] == [256, 0, 0, 0]
    assert told.saved.read(lambda connection: reader.read_specs(connection, [1, 2, 77])) == {1: b"one", 2: b"two"}


def test_specs_and_environments_come_back_from_the_database(database_url: str) -> None:
    """Also after a restart, without the cache; a missing one raises KeyError."""

    async def run() -> None:
        async with opened(database_url) as store:
            first, second = (b"\1" * 32, b"HOME=/home/alice"), (b"\3" * 32, b"HOME=/")
            submitter = Submitter(store)
            for environment in (first, first, second):
                await durable(store, submitter.submit(new_job(spec=b"spec")._replace(environment=environment)))
            assert await store.environment_keys(b"", 1) == [b"\1" * 32]
            assert await store.environment_keys(b"\1" * 32, 9) == [b"\3" * 32]
            store.forget_environments([b"\3" * 32])
            await store.flush()
        async with opened(database_url) as store:
            assert await store.spec(1) == b"spec"
            assert await store.environment(b"\1" * 32) == b"HOME=/home/alice"
            for gone in (2, 3):
                with pytest.raises(KeyError):
                    await store.environment(bytes([gone]) * 32)
            with pytest.raises(KeyError):
                await store.spec(4)

    asyncio.run(run())


def many_lives(told: Told) -> None:
    """Jobs and elements with ordinary lives, short ones among them, and with all kinds of others."""
    for number in range(10):
        told.do(c.SubmitJob(new_job(f"j{number}" if number % 2 else "", hold=number == 9), ALICE), 1.0)
    told.do(c.SubmitJob(new_job("sweep", indices=(range(1, 6),)), ALICE))
    for job in (1, 2, 3):
        told.end(told.start(job, after_s=2.5), job % 2, after_s=7.25)
    key = told.start(4, host="n001", after_s=3.0)
    told.do(c.StopJob(c.Target(4), ALICE), 10.0)
    told.do(c.ResumeJob(c.Target(4), ALICE), 20.0)
    told.end(key, host="n001", after_s=5.0)
    for job, index in ((5, 0), (6, 0), (11, 1)):
        told.world.now += 1.0
        told.do(c.ApplyPlan(Starts((Start(job, index, (HostShare("n000", 1),), "free"),))))
        element = told.world.cluster.element(job, index)
        assert element is not None
        started_at = told.world.now + (0.75 if job != 6 else 0.0)
        report = c.ReportFinished(
            "n000", element.key, 0, told.world.now + 4.0, "", 1.5, 77, also_released=True, started_at=started_at
        )
        told.do(report, 4.0)
    told.do(c.KillJob(c.Target(7), ALICE), 3.0)
    told.start(8, after_s=2.0)
    told.end(told.start(11, 2, after_s=2.0), after_s=3.0)
    told.start(11, 3, after_s=2.0)
    told.do(c.KillJob(c.Target(11, Ranges.of(4)), ALICE), 3.0)
    for job, index in ((9, 0), (11, 5)):
        key = told.start(job, index, after_s=5.0)
        told.world.now -= 20.0  # the clock is set back while it runs
        told.end(key, after_s=3.0)
    told.world.now += 100.0


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"limit": 3},
        {"states": FINAL},
        {"states": frozenset({S.PEND, S.PSUSP, S.RUN}), "limit": 2},
        {"host": "n001"},
        {"jobs": (JobRange(3), JobRange(11, Ranges.of(1, 2, 4)))},
    ],
)
def test_brief_histories_tell_the_same_seconds(told: Told, parts: dict[str, Any]) -> None:
    """Of the same jobs in the same states, whether the life was an ordinary one or not."""
    many_lives(told)

    def outline(found: list[JobHistory]) -> list[tuple[Any, ...]]:
        return [
            (
                job.id,
                job.index,
                job.state,
                job.shared,
                job.words,
                {name: some for name, some in seconds.items() if some},
            )
            for job, _, seconds in found
        ]

    assert outline(told.all_pages(is_brief=True, **parts)) == outline(told.all_pages(**parts))


def test_an_ordinary_life_is_found_in_the_database(told: Told) -> None:
    """Also of a short job; one that was stopped, killed, found again or back in time has its events read one by one."""
    many_lives(told)
    found = told.saved.read(lambda connection: list(read_brief(connection, range(1, 11), SharedTexts())))
    assert [job.id for job, life in found if life is not None] == [1, 2, 3, 5, 6]


@pytest.mark.postgres
def test_a_database_that_can_not_be_read_is_not_now(postgres_url: str) -> None:
    """A failed query raises "not now" to its caller, and the next one may succeed."""

    async def run() -> None:
        async with opened(postgres_url) as store:
            await durable(store, Submitter(store).submit(new_job()))

            def too_slow(connection: Connection) -> None:
                connection.exec_driver_sql("SET LOCAL statement_timeout = 1")
                connection.exec_driver_sql("SELECT pg_sleep(5)")

            with pytest.raises(NotNow, match="can't be read"):
                await store._reading.run(too_slow)
            assert await store.find_request(b"none", "alice") == []

    asyncio.run(run())


def test_nothing_that_other_hosts_told_later_counts_after_the_end() -> None:
    """A parallel job that ended while the master was away: another host was back before the first one told the end."""
    told = [
        Moment(0.0, "submitted", {}), Moment(1.0, "dispatched", {}), Moment(1.0, "started", {"pid": 7}),
        Moment(90.0, "unused", {}), Moment(16.0, "finished", {}), Moment(95.0, "posted", {}),
    ]  # fmt: skip
    ordered = history_text.in_order(told)
    assert [moment.at for moment in ordered] == [0.0, 1.0, 1.0, 16.0, 16.0, 95.0]
    seconds = history_text.seconds_by_state(history_text.walk(ordered), 16.0)
    assert (seconds["PEND"], seconds["RUN"]) == (1.0, 15.0)
