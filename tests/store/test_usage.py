"""Sums over ended attempts that the database makes: what counts, keys, periods, groups, and who may see them."""

import marshal
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from alembic import command

from lavad.api.history import accounts as answer
from lavad.api.history.answers import Answers
from lavad.api.history.question import ACCOUNTS, USAGE, Question, question_of
from lavad.core import commands as c
from lavad.core.model import HostShare
from lavad.core.model.policy import Policy
from lavad.core.model.rules.names import Names
from lavad.core.model.rules.queues import Queue
from lavad.core.plan import Start, Starts
from lavad.store.database import database, migrate, url
from protos import common_pb2
from protos import jobs_pb2 as pb
from protos.accounts import FIGURES, Tally
from tests.fakes.world import ROOT, new_job
from tests.store.saved import saving
from tests.store.test_accounts import BOB, a_day, run
from tests.store.test_history import ALICE, Told

GROUPS = {"chem": Names(False, frozenset({"alice", "bob"})), "phys": Names(False, frozenset({"bob"}))}
POLICY = Policy(queues=(Queue("normal"), Queue("idle")), clean_period_s=600.0, user_groups=GROUPS)
EVER = (0.0, 1e11)


@pytest.fixture
def told(database_url: str) -> Iterator[Told]:
    """An empty database, and a world that fills it."""
    with saving(database_url) as saved:
        world = Told(saved)
        world.do(c.Reconfigure(POLICY))
        yield world


def pages(told: Told, kind: str, request: Any, caller: c.Caller, policy: Policy, **more: Any) -> list[bytes]:
    """Pages of the answer to a caller under a policy, as the reader process makes them."""
    question = question_of(kind, request, told.world.now, caller, policy)._replace(**more)
    crossed = Question._make(marshal.loads(marshal.dumps(tuple(question))))
    return list(Answers(told.saved.read).pages(crossed))


def rows(told: Told, *keys: int, caller: c.Caller = ROOT, policy: Policy = POLICY, **wanted: Any) -> list[pb.UsageRow]:
    """Rows of a report."""
    owners = wanted.pop("owners", None)
    request = pb.UsageRequest(keys=keys, bounds=wanted.pop("bounds", EVER), **wanted)  # type: ignore[arg-type]
    found = pages(told, USAGE, request, caller, policy, owners=owners)
    return [row for page in found for row in pb.UsagePage.FromString(page).rows]


def test_usage_of_requeued_attempts_counts_and_jobs_count_once(told: Told) -> None:
    """alice: one done, one failed. bob: element 1 done, 2 killed after a requeue whose slot time counts."""
    a_day(told)
    alice, bob = rows(told, pb.USAGE_USER)
    assert (alice.user, alice.done, alice.exited, alice.slot_s, alice.wait_s) == ("alice", 1, 1, 20.0, 25.0)
    assert (bob.user, bob.done, bob.exited) == ("bob", 1, 0)
    spent = told.saved.read(
        lambda connection: connection.exec_driver_sql("SELECT sum(slot_s) FROM accounting").scalar()
    )
    assert alice.slot_s + bob.slot_s == pytest.approx(spent)
    assert bob.slot_s > 2.0  # the element that is done had two seconds


def test_any_combination_of_keys(told: Told) -> None:
    """Sums of a finer report are those of a coarser one; what is no key is empty."""
    a_day(told)
    (whole,) = rows(told)
    assert (whole.user, whole.queue, whole.done, whole.exited) == ("", "", 2, 1)
    every = (pb.USAGE_USER, pb.USAGE_GROUP, pb.USAGE_PROJECT, pb.USAGE_QUEUE, pb.USAGE_PERIOD)
    for keys in (every[:1], every[1:2], every[2:3], every[3:4], every[4:], every[:2], every):
        found = rows(told, *keys)
        assert sum(row.done for row in found) == whole.done
        assert sum(row.slot_s for row in found) == pytest.approx(whole.slot_s)
        assert sum(row.cpu_s for row in found) == pytest.approx(whole.cpu_s)


def test_nothing_has_no_rows(told: Told) -> None:
    """Neither a report of everything nor one by user has a row where nothing has ended."""
    assert rows(told) == rows(told, pb.USAGE_USER) == []


def test_periods_part_at_their_bounds(told: Told) -> None:
    """An end at a bound belongs to the period that begins there, the last bound to none; many bounds as few."""
    for job in range(1, 8):
        told.do(c.SubmitJob(new_job(), ALICE))
        run(told, job)
    ends = told.saved.read(
        lambda connection: (
            connection.exec_driver_sql("SELECT ended_at FROM accounting ORDER BY ended_at").scalars().all()
        )
    )
    found = rows(told, pb.USAGE_PERIOD, bounds=[ends[1], ends[3], ends[4], ends[6]])
    assert [(row.period, row.done) for row in found] == [(0, 2), (1, 1), (2, 2)]
    found = rows(told, pb.USAGE_PERIOD, bounds=[ends[0] + 0.5 * step for step in range(-8, 400)])
    assert [row.done for row in found] == [1] * len(ends)
    assert [row.period for row in found] == [int(2 * (end - ends[0]) + 8) for end in ends]


def test_a_job_counts_for_the_group_it_named_else_for_its_users_first(told: Told) -> None:
    """-G phys counts there; without, the first group of lsb.users that has the user; of none, nothing is named."""
    named = new_job(user="bob")
    told.do(c.SubmitJob(named._replace(shared=replace(named.shared, user_group="phys")), BOB))
    told.do(c.SubmitJob(new_job(user="bob"), BOB))
    told.do(c.SubmitJob(new_job(user="carol"), c.Caller("carol", 1000)))
    for job in (1, 2, 3):
        run(told, job)
    assert [(row.group, row.done) for row in rows(told, pb.USAGE_GROUP)] == [("", 1), ("chem", 1), ("phys", 1)]
    assert [(row.user, row.done) for row in rows(told, pb.USAGE_USER, groups=["phys"])] == [("bob", 1)]


def test_filters_select(told: Told) -> None:
    """By user, queue and project."""
    a_day(told)
    assert [row.done for row in rows(told, owners=(False, ["alice"]))] == [1]
    assert [row.done for row in rows(told, owners=(True, ["alice"]))] == [1]
    assert rows(told, queues=["idle"]) == []
    assert [row.done for row in rows(told, projects=["default"])] == [2]
    assert rows(told, projects=["other"]) == []


def test_gpu_time_is_that_of_the_devices_a_job_had(told: Told) -> None:
    """Devices times seconds from the dispatch to the end."""
    told.do(c.SubmitJob(new_job(), ALICE))
    told.do(c.ApplyPlan(Starts((Start(1, 0, (HostShare("n000", 1, 0, (0, 1), (1,)),), "free"),))), 1.0)
    job = told.world.cluster.element(1, 0)
    assert job is not None
    told.do(c.ReportStarted("n000", job.key, 4101, told.world.now, "/home/alice", "/home/alice/run"))
    told.end(job.key, after_s=30.0)
    (row,) = rows(told)
    assert row.gpu_s == 2 * row.slot_s > 0


def test_others_usage_is_hidden_where_their_jobs_are(told: Told) -> None:
    """At a secure level a user sees what is his own, whichever keys he asks for; an administrator sees all."""
    a_day(told)
    secret = Policy(job_info_level=4, history_access="G", user_groups=GROUPS)
    assert [row.user for row in rows(told, pb.USAGE_USER, caller=ALICE, policy=secret)] == ["alice"]
    assert [(row.done, row.exited) for row in rows(told, caller=ALICE, policy=secret)] == [(1, 1)]
    assert [(row.done, row.exited) for row in rows(told, caller=ROOT, policy=secret)] == [(2, 1)]


def tally(told: Told, request: pb.AccountsRequest, caller: c.Caller = ROOT, **more: Any) -> Tally:
    """bacct's sums."""
    found = Tally()
    for page in pages(told, ACCOUNTS, request, caller, Policy(), **more):
        found.join(pb.AccountPage.FromString(page).summary)
    return found


def figures(one: Tally) -> list[float]:
    """All figures of a tally."""
    spreads = [getattr(one, name) for name in FIGURES]
    numbers = [value for spread in spreads for value in (spread.count, spread.total, spread.least, spread.most)]
    return [one.done, one.exited, one.first_end, one.last_end, one.slot_s, one.revocable_slot_s, *numbers]


REQUESTS: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    ({}, {}),
    ({}, {"owners": (False, ["alice"])}),
    ({"states": [common_pb2.DONE]}, {}),
    ({"queues": ["normal"]}, {}),
    ({"completed": pb.TimeRange(first=1.0)}, {}),
    ({"dispatched": pb.TimeRange(first=1.0)}, {}),
    ({"refs": [{"job": 4}]}, {}),
    ({"hung": True}, {}),
)


@pytest.mark.parametrize(("wanted", "more"), REQUESTS)
def test_the_databases_sums_are_those_of_the_rows(
    told: Told, monkeypatch: pytest.MonkeyPatch, wanted: dict[str, Any], more: dict[str, Any]
) -> None:
    """Of a world that lived at random, and for each filter that the database alone can answer."""
    a_day(told)
    told.world.live(random.Random(5).randrange(300, 600))
    request = pb.AccountsRequest(**wanted)
    summed = tally(told, request, **more)
    monkeypatch.setattr(answer, "can_sum", lambda _wanted: False)
    assert figures(summed) == pytest.approx(figures(tally(told, request, **more)))


def test_a_million_rows_are_not_fetched_for_a_sum(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """bacct's summary reads no attempt; a filter by name does."""
    a_day(told)

    def fetched(*_given: Any) -> Iterator[Any]:
        raise AssertionError("rows were fetched")

    monkeypatch.setattr(answer, "ended", fetched)
    assert tally(told, pb.AccountsRequest()).done == 2
    with pytest.raises(AssertionError):
        tally(told, pb.AccountsRequest(name="mesh"))


def test_a_caller_who_may_not_see_all_has_sums_of_what_he_sees(told: Told) -> None:
    """His own are summed by the database; all others row by row, since each is looked at."""
    a_day(told)
    secret = Policy(job_info_level=4, history_access="G")
    for owners in (None, (False, ["alice"])):
        found = Tally()
        for page in pages(told, ACCOUNTS, pb.AccountsRequest(), ALICE, secret, owners=owners):
            found.join(pb.AccountPage.FromString(page).summary)
        assert (found.done, found.exited) == (1, 1)


def test_an_older_database_knows_gpu_time_and_groups_of_what_it_has(told: Told, database_url: str) -> None:
    """The migration finds both for the attempts of older versions: the report is as if they had always been kept."""
    named = new_job(user="bob")
    told.do(c.SubmitJob(named._replace(shared=replace(named.shared, user_group="phys")), BOB))
    told.do(c.SubmitJob(new_job(), ALICE))
    for job, gpus in ((1, (0, 1)), (2, ())):
        told.do(c.ApplyPlan(Starts((Start(job, 0, (HostShare("n000", 1, 0, gpus, (1,)),), "free"),))), 1.0)
        element = told.world.cluster.element(job, 0)
        assert element is not None
        told.do(c.ReportStarted("n000", element.key, 4101, told.world.now, "/home", "/home"))
        told.end(element.key, after_s=30.0)
    before = rows(told, pb.USAGE_GROUP, pb.USAGE_USER)
    assert [(row.user, row.group, bool(row.gpu_s)) for row in before] == [
        ("alice", "chem", False),
        ("bob", "phys", True),
    ]
    engine = database.writing_engine(url.parse(database_url))
    with engine.begin() as connection:
        command.downgrade(migrate.alembic_config(connection), "0015")
    with engine.begin() as connection:
        migrate.upgrade(connection)
    engine.dispose()
    assert rows(told, pb.USAGE_GROUP, pb.USAGE_USER) == before
