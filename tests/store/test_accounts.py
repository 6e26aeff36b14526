"""Accounts of ended jobs from the store: what counts as one, filters, pages, sums, and who may see them."""

import marshal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lavad.api.history.answers import Answers
from lavad.api.history.question import ACCOUNTS, Question, question_of
from lavad.core import commands as c
from lavad.core.language.job_names import name_pattern
from lavad.core.model import FINAL, HostShare, JobState
from lavad.core.model.policy import Policy
from lavad.core.model.ranges import Ranges
from lavad.core.model.rules.names import Names
from lavad.core.model.rules.queues import Queue
from lavad.core.plan import Start, Starts
from lavad.core.state.records import Job
from lavad.store.reading import accounts
from lavad.store.reading.accounts import AccountFilter, Ended, ended
from lavad.store.reading.history import JobRange
from protos import common_pb2
from protos import jobs_pb2 as pb
from protos.accounts import Tally
from tests.fakes.world import ROOT, new_job
from tests.store.saved import saving
from tests.store.test_history import ALICE, Told

BOB = c.Caller("bob", 1000)  # jobs of `new_job` have this uid
SPEC = pb.JobSpec(command="sleep 1").SerializeToString()


@pytest.fixture
def told(database_url: str) -> Iterator[Told]:
    """An empty database, and a world that fills it."""
    with saving(database_url) as saved:
        world = Told(saved)
        world.do(c.Reconfigure(Policy(queues=(Queue("normal"), Queue("idle")), clean_period_s=600.0)))
        yield world


def found(told: Told, **wanted: Any) -> list[Ended]:
    """The selected attempts."""
    return [one for one in ended(told.saved.read, AccountFilter(**wanted)) if one is not None]


def keys(told: Told, **wanted: Any) -> list[tuple[int, int, int]]:
    """Job, index and attempt of the selected ones."""
    return [(one.job, one.index, one.attempt) for one in found(told, **wanted)]


def run(told: Told, job: int, status: int = 0, seconds: float = 10.0, host: str = "n000") -> None:
    """A job waits five seconds and runs."""
    told.end(told.start(job, host=host, after_s=5.0), status, host=host, after_s=seconds)


def a_day(told: Told) -> None:
    """Two jobs of alice (done, failed), one of bob that was killed while it waited, and bob's array.

    Element 1 is done, 2 was requeued and then killed while it waited again, 3 and 4 were never dispatched.
    """
    told.do(c.SubmitJob(new_job(spec=SPEC, name="mesh"), ALICE))
    told.do(c.SubmitJob(new_job(spec=SPEC, name="solve"), ALICE))
    told.do(c.SubmitJob(new_job(spec=SPEC, name="late", user="bob", queue="idle"), BOB))
    told.do(c.SubmitJob(new_job(spec=SPEC, name="sweep", user="bob", indices=(range(1, 5),)), BOB))
    run(told, 1)
    run(told, 2, 3 << 8, host="n001")
    told.do(c.KillJob(c.Target(3), BOB), 1.0)
    told.end(told.start(4, 1), after_s=2.0)
    told.start(4, 2)
    told.do(c.RequeueJob(c.Target(4, Ranges.of(2)), BOB, frozenset({JobState.RUN})), 3.0)
    attempt = told.world.cluster.element(4, 2)
    assert isinstance(attempt, Job)
    told.end(attempt.key, 9, after_s=1.0)
    told.do(c.KillJob(c.Target(4), BOB), 1.0)


def test_each_end_counts_once(told: Told) -> None:
    """In the order of their ends: attempts that ran, a requeued one too, then what was killed while it waited."""
    a_day(told)
    assert keys(told) == [(1, 0, 1), (2, 0, 1), (3, 0, 0), (4, 1, 1), (4, 2, 1), (4, 2, 0), (4, 3, 0), (4, 4, 0)]
    requeued = found(told)[4]
    assert (JobState(requeued.state) in FINAL, requeued.reason.partition(":")[0]) == (False, "TERM_REQUEUE_OWNER")
    killed = found(told)[2]
    assert (killed.dispatched_at, killed.hosts, killed.ended_at - killed.submitted_at) == (0.0, "", 31.0)


def test_an_element_counts_in_its_own_queue(told: Told) -> None:
    """One that was changed by itself, whether it ran or ended while it waited; with its own texts."""
    told.do(c.SubmitJob(new_job(spec=SPEC, name="sweep", user="bob", indices=(range(1, 5),)), BOB))
    own = new_job(spec=SPEC, name="own", user="bob", queue="idle")
    told.do(c.ModifyJob(c.Target(1, Ranges([range(2, 4)])), own, BOB, "", frozenset({"queues"})))
    told.end(told.start(1, 1), after_s=2.0)
    told.end(told.start(1, 2), after_s=2.0)
    told.do(c.KillJob(c.Target(1), BOB), 1.0)
    assert keys(told, queues=("idle",)) == [(1, 2, 1), (1, 3, 0)]
    assert [(one.index, one.name, one.part) for one in found(told)] == [
        (1, "sweep", 0), (2, "own", 1), (3, "own", 1), (4, "sweep", 0),
    ]  # fmt: skip


@pytest.mark.parametrize("index", [0, 1])
def test_a_job_that_ended_and_is_killed_when_it_waits_again_ended_twice(told: Told, index: int) -> None:
    """After brequeue -H of an ended job the kill is an end of its own: with LSF's logs bacct has both."""
    told.do(c.SubmitJob(new_job(spec=SPEC, indices=(range(1, 3),) if index else ()), ALICE))
    told.end(told.start(1, index), 3 << 8, after_s=5.0)
    target = c.Target(1, Ranges.of(index) if index else None)
    told.do(c.RequeueJob(target, ALICE, frozenset({JobState.EXIT}), hold=True), 2.0)
    told.do(c.KillJob(target, ALICE), 4.0)
    assert keys(told) == [(1, index, 1), (1, index, 0)]
    assert [one.ended_at - one.submitted_at for one in found(told)] == [5.0, 11.0]


def test_a_job_that_is_killed_before_its_start_ended_once(told: Told) -> None:
    """Its attempt never ran, and its end is that of the job."""
    told.do(c.SubmitJob(new_job(spec=SPEC), ALICE))
    told.do(c.ApplyPlan(Starts((Start(1, 0, (HostShare("n000", 1),), "free"),))), 1.0)
    told.do(c.KillJob(c.Target(1), ALICE), 1.0)
    attempt = told.world.cluster.element(1, 0)
    assert attempt is not None
    told.end(attempt.key, 9, after_s=1.0)
    assert keys(told) == [(1, 0, 1)]


def test_an_element_that_is_killed_again_counts_once(told: Told) -> None:
    """After brequeue -e it ends a second time; its last end is told."""
    told.do(c.SubmitJob(new_job(indices=(range(1, 3),)), ALICE))
    told.do(c.KillJob(c.Target(1), ALICE), 1.0)
    told.do(c.RequeueJob(c.Target(1, Ranges.of(2)), ALICE, states=frozenset({JobState.EXIT})), 1.0)
    told.do(c.KillJob(c.Target(1), ALICE), 5.0)
    assert [(one.index, one.ended_at - one.submitted_at) for one in found(told)] == [(1, 1.0), (2, 7.0)]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"users": Names(False, frozenset({"alice"}))}, [1, 2]),
        ({"users": Names(True, frozenset({"alice"}))}, [3, 4, 4, 4, 4, 4]),
        ({"queues": ("idle",)}, [3]),
        ({"projects": ("other",)}, []),
        ({"states": frozenset({JobState.DONE})}, [1, 4]),
        ({"states": frozenset({JobState.EXIT})}, [2, 3, 4, 4, 4, 4]),
        ({"jobs": (JobRange(2), JobRange(4, Ranges.of(1, 3)))}, [2, 4, 4]),
        ({"hosts": Names(False, frozenset({"n001"}))}, [2]),
        ({"hung": True}, []),
    ],
)
def test_what_is_selected(told: Told, wanted: dict[str, Any], expected: list[int]) -> None:
    """By owner, queue, project, end, id, host."""
    a_day(told)
    assert [job for job, _, _ in keys(told, **wanted)] == expected


def test_a_job_without_a_name_is_selected_by_its_command(told: Told) -> None:
    """As the records show it; neither one that was given a name, nor an element that the pattern leaves out."""
    for name, indices in (("", ()), ("md", ()), ("", (range(1, 3),))):
        told.do(c.SubmitJob(new_job(name, spec=SPEC, indices=indices), ALICE))
        told.do(c.KillJob(c.Target(told.world.cluster.next_job - 1), ALICE), 1.0)
    assert keys(told, name=name_pattern("sleep*")) == [(1, 0, 0), (3, 1, 0), (3, 2, 0)]
    assert keys(told, name=name_pattern("sleep 1[2]")) == [(3, 2, 0)]


def test_times_select(told: Told) -> None:
    """Both ends of an interval are part of it; what was never dispatched was not dispatched at any time."""
    a_day(told)
    ends = [one.ended_at for one in found(told)]
    assert keys(told, completed=(ends[1], ends[2])) == [(2, 0, 1), (3, 0, 0)]
    assert keys(told, completed=(ends[-1], 0.0)) == [(4, 2, 0), (4, 3, 0), (4, 4, 0)]
    assert keys(told, dispatched=(0.0, ends[0])) == [(1, 0, 1)]
    assert not keys(told, submitted=(ends[0], 0.0))


def test_arrays_that_ended_before_are_not_looked_through(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their history is long: of the killed elements only those of arrays that ended within the time are looked for."""
    for _ in range(2):
        told.do(c.SubmitJob(new_job(indices=(range(1, 3),)), ALICE))
    told.do(c.KillJob(c.Target(1), ALICE), 1.0)
    told.do(c.KillJob(c.Target(2, Ranges.of(1)), ALICE), 100.0)
    looked_at: list[int] = []
    kills = accounts._ends_waiting

    def looking(connection: Any, row: Any) -> Any:
        looked_at.append(row.job)
        return kills(connection, row)

    monkeypatch.setattr(accounts, "_ends_waiting", looking)
    assert keys(told, completed=(told.world.now - 10.0, 0.0)) == [(2, 1, 0)]
    assert looked_at == [2]


def test_pages_end_where_the_next_begin(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """However small they are, and in a world that lived at random; a mark is left for each page."""
    told.world.live(900)
    whole = found(told)
    assert len(whole) > 20
    monkeypatch.setattr(accounts, "PAGE", 3)
    assert found(told) == whole
    marks = [one for one in ended(told.saved.read, AccountFilter()) if one is None]
    assert len(marks) == len(whole) // 3


def _asked(
    told: Told, caller: c.Caller, policy: Policy, request: pb.AccountsRequest, **more: Any
) -> list[pb.AccountPage]:
    question = question_of(ACCOUNTS, request, told.world.now, caller, policy)._replace(**more)
    crossed = Question._make(marshal.loads(marshal.dumps(tuple(question))))
    return [pb.AccountPage.FromString(page) for page in Answers(told.saved.read).pages(crossed)]


def test_the_sums_are_those_of_the_visible_jobs(told: Told) -> None:
    """At a secure level others' jobs are not even counted; an administrator sees all."""
    a_day(told)
    secret = Policy(job_info_level=4, history_access="G")
    for caller, done, exited in ((ALICE, 1, 1), (ROOT, 2, 6)):
        tally = Tally()
        for page in _asked(told, caller, secret, pb.AccountsRequest()):
            assert not page.jobs
            tally.join(page.summary)
        assert (tally.done, tally.exited) == (done, exited)
    assert tally.run_s.most == pytest.approx(10.0)
    assert tally.wait_s.least == pytest.approx(5.0)


def test_records_say_what_became_of_each(told: Told) -> None:
    """A requeued attempt has ended as EXIT with its reason; CPU times are normalized by the factor of its host."""
    a_day(told)
    request = pb.AccountsRequest(form=pb.ACCOUNT_LONG)
    pages = _asked(told, ROOT, Policy(), request, cpu_factors={"n000": 2.0})
    records = [one.record for page in pages for one in page.jobs]
    assert [(one.job, one.index, one.state) for one in records[:5]] == [
        (1, 0, common_pb2.DONE), (2, 0, common_pb2.EXIT), (3, 0, common_pb2.EXIT), (4, 1, common_pb2.DONE),
        (4, 2, common_pb2.EXIT),
    ]  # fmt: skip
    assert [one.usage.cpu_s for one in records[:3]] == [3.0, 1.5, 0.0]
    assert records[3].name == "sweep[1]"
    assert records[4].exit_reason.startswith("TERM_REQUEUE_OWNER")
    assert [share.host for share in records[1].hosts] == ["n001"]
    assert records[1].spec.command == "sleep 1"


def test_a_host_that_left_has_the_factor_one(told: Told) -> None:
    """CPU times are normalized for jobs that ran there, too."""
    a_day(told)
    request = pb.AccountsRequest(form=pb.ACCOUNT_LONG)
    pages = _asked(told, ROOT, Policy(), request, cpu_factors={}, other_factor=0.5)
    assert [one.record.usage.cpu_s for page in pages for one in page.jobs][:3] == [0.75, 0.75, 0.0]


def test_only_one_database_is_needed(tmp_path: Path) -> None:
    """An empty database has an answer: one empty page."""
    with saving(f"sqlite:///{tmp_path}/lava.db") as saved:
        assert _asked(Told(saved), ALICE, Policy(), pb.AccountsRequest()) == [pb.AccountPage()]
