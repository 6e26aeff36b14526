"""Listings with details: common parts are read once, other calls are served meanwhile, and permissions apply."""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from lavad.api import slices
from lavad.api.jobs import listing
from lavad.api.jobs.dependencies import dependencies_reply
from lavad.api.jobs.pages import JobLists
from lavad.api.privacy import LEVELS, Sight
from lavad.api.records.array_records import array_message
from lavad.core import commands as c
from lavad.core.apply.reconfigure import take_policy
from lavad.core.model import JobState, pack_text
from lavad.core.model.policy import Policy
from lavad.core.model.rules.names import Names
from lavad.core.model.rules.queues import Queue
from lavad.core.queries.pending_reasons import PendingReasons, explain
from lavad.core.state.records import ArrayRecord
from protos import common_pb2
from protos import jobs_pb2 as pb
from tests.builders import ANN, BOB, ROOT, Story, a_cluster, a_host, a_job

MANY = 3000


class _Store:
    """Specs of all jobs; counts the questions."""

    def __init__(self) -> None:
        self.asked: Counter[int] = Counter()

    async def messages(self, jobs: Collection[int]) -> list[Any]:
        """No job has any."""
        return []

    async def specs(self, jobs: Collection[int]) -> dict[int, bytes]:
        """One query."""
        self.asked.update(jobs)
        await asyncio.sleep(0)
        spec = pb.JobSpec(
            command="./solve", environment=[b"A=b"], environment_base=b"h", roles=[pb.JobSpec().roles.add()]
        )
        return {job: spec.SerializeToString() for job in jobs}


def listed(story: Story, store: _Store, caller: c.Caller = ANN, **wanted: Any) -> list[pb.JobRecord]:
    """All records of a listing; other calls run whenever it yields."""
    engine: Any = SimpleNamespace(cluster=story.cluster, clock=lambda: story.now)
    stored: Any = SimpleNamespace(store=store)
    request = pb.ListJobsRequest(**{"filter": pb.JobFilter(user="all"), "details": True, **wanted})

    async def pages() -> list[pb.JobRecord]:
        lists = JobLists(engine, stored, story.worklist)
        return [record async for page in lists.pages(request, caller) for record in page_of(page).jobs]

    return asyncio.run(pages())


def page_of(page: pb.JobPage | bytes) -> pb.JobPage:
    """A page, which may be serialised."""
    return pb.JobPage.FromString(page) if isinstance(page, bytes) else page


def rows_of(page: pb.JobPage | bytes) -> Iterator[pb.JobRecord]:
    """Records of a page by columns."""
    columns = page_of(page).columns
    figures = zip(columns.start_time, columns.end_time, columns.cpu_s, strict=True)
    for at, (job, submit_time, kind, name) in enumerate(
        zip(columns.job, columns.submit_time, columns.kind, columns.name, strict=True)
    ):
        index = columns.index[at] if columns.index else 0
        for more in range(columns.count[at] if columns.count else 1):
            record = pb.JobRecord(job=job if index else job + more, submit_time=submit_time, name=columns.names[name])
            record.MergeFrom(columns.kinds[kind])
            if index:
                record.index = index + more
                record.name += f"[{record.index}]"
            if kind in columns.ended:
                record.start_time, record.end_time, record.usage.cpu_s = next(figures)
            yield record


def test_the_spec_of_an_array_is_read_once_and_told_once() -> None:
    """However many elements there are; a client without support for it gets the spec with each of them."""
    story, store = a_cluster(), _Store()
    array, single = story.submit(a_job(array=f"1-{MANY}")), story.submit(a_job())
    records = listed(story, store, shares_details=True, reasons=True)
    assert store.asked.keys() == {array, single}
    assert store.asked[array] <= 1 + MANY // 2000
    assert [(one.job, one.index) for one in records if one.HasField("spec")] == [(array, 1), (single, 0)]
    assert records[0].spec.command == "./solve"
    assert not records[0].spec.environment
    assert not records[0].spec.environment_base
    assert all(one.HasField("spec") for one in listed(story, store))


def test_others_are_served_during_a_long_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """After each slice, were it as short as one record."""
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    story, turns = a_cluster(), 0
    story.submit(a_job(array=f"1-{MANY}"))
    engine: Any = SimpleNamespace(cluster=story.cluster, clock=lambda: story.now)
    stored: Any = SimpleNamespace(store=_Store())

    async def body() -> None:
        nonlocal turns

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        request = pb.ListJobsRequest(filter=pb.JobFilter(user="all"), details=True, reasons=True)
        async for _ in JobLists(engine, stored, story.worklist).pages(request, ANN):
            pass
        counting.cancel()

    asyncio.run(body())
    assert turns >= MANY


def test_the_requirement_of_job_and_queue() -> None:
    """Both together, as placement uses them."""
    story = a_cluster()
    job = story.submit(a_job())
    shared = replace(story.cluster.jobs[job].shared, requirement="select[mem > 5] rusage[mem=10]")
    story.cluster.jobs[job].shared = shared
    assert [one.effective_requirement for one in listed(story, _Store())] == ["select[mem > 5] rusage[mem=10]"]


def test_processors_that_tasks_are_bound_to() -> None:
    """In lists with details, of each task on its host; a job that waits has none."""
    story = a_cluster(a_host("n1", 4, cpus=4, cores=4, topology="0 0 0 0,1 1 0 0,2 2 0 0,3 3 0 0"))
    story.run(a_job(2, affinity="core(2)"))
    story.submit(a_job(9))
    bound, waiting = listed(story, _Store())
    assert [[list(task.cpus) for task in share.cpus] for share in bound.hosts] == [[[0, 1], [2, 3]]]
    assert not waiting.hosts


def test_reasons_of_many_are_those_of_each() -> None:
    """Reasons computed once for all equal jobs are those of each job alone."""
    story = a_cluster()
    for job in (a_job(array="1-4", limit=1), a_job(9), a_job(9), a_job(hold=True), a_job(array="1-3", hosts=("n1",))):
        story.submit(job)
    story.plan()
    reasons = PendingReasons(story.cluster, story.now, story.worklist.reservation_table)
    for record in story.cluster.jobs.values():
        for index in record.indices if isinstance(record, ArrayRecord) else (0,):
            alone = explain(story.cluster, record, index, story.now, story.worklist.reservation_table)
            assert reasons.of(record, index) == alone


def test_reasons_that_rule_hosts_out_say_so() -> None:
    """A host that is full may become free; one that is closed, away or not named is no candidate however idle it is."""
    story = a_cluster(*(a_host(name, 2) for name in ("closed", "away", "other", "full")))
    story.do(c.CloseHost("closed", ROOT))
    story.do(c.AgentGone("away", story.incarnations["away"]))
    story.run(a_job(2, hosts=("full",)))
    job = story.submit(a_job(2, hosts=("full", "closed", "away")))
    message = pb.JobRecord()
    listing.add_reasons(message, explain(story.cluster, story.cluster.jobs[job], 0, story.now), host_names=True)
    told = {name: one.rules_out for one in message.pending_reasons for name in one.host_names}
    assert told == {"closed": True, "away": True, "other": True, "full": False}


def test_reasons_that_make_a_job_ineligible_say_so() -> None:
    """One that is to begin later, or waits for another, is ineligible; one that lacks slots is not."""
    story = a_cluster(a_host("n1", 2))
    first = story.run(a_job(2)).job
    later = story.submit(a_job(begin_at=story.now + 60))
    behind = story.submit(a_job(dependency=f"done({first})"))
    full = story.submit(a_job(2))

    def is_ineligible(job: int) -> list[bool]:
        message = pb.JobRecord()
        listing.add_reasons(message, explain(story.cluster, story.cluster.jobs[job], 0, story.now), host_names=False)
        return [one.is_ineligible for one in message.pending_reasons]

    assert (is_ineligible(later), is_ineligible(behind), is_ineligible(full)) == ([True], [True], [False])
    take_policy(story.cluster, Policy(queues=(Queue("normal", active=False),)))
    assert is_ineligible(full)[0]


GROUPS = {"lab": Names(False, frozenset({"ann", "bob"})), "other": Names(False, frozenset({"eve"}))}
EVE = c.Caller("eve", 1002)


def seen(story: Story, caller: c.Caller, level: int, **wanted: Any) -> set[str]:
    """Owners of the jobs that the caller is shown."""
    take_policy(story.cluster, replace(story.cluster.policy, job_info_level=level, user_groups=GROUPS))
    return {record.user for record in listed(story, _Store(), caller, **wanted)}


@pytest.mark.parametrize(
    ("level", "summary", "details"),
    [
        (0, {"ann", "bob", "eve"}, {"ann", "bob", "eve"}),
        (1, {"ann", "bob", "eve"}, {"ann", "bob"}),
        (2, {"ann", "bob"}, {"ann", "bob"}),
        (3, {"ann", "bob"}, {"ann"}),
        (4, {"ann"}, {"ann"}),
        (5, {"ann", "bob", "eve"}, {"ann"}),
    ],
)
def test_what_each_level_shows(level: int, summary: set[str], details: set[str]) -> None:
    """A user sees his own jobs; SECURE_JOB_INFO_LEVEL decides on the rest. An administrator sees all."""
    assert level < len(LEVELS)
    story = a_cluster()
    for caller in (ANN, BOB, EVE):
        story.submit(a_job(caller=caller))
    assert seen(story, ANN, level, details=False) == summary
    assert seen(story, ANN, level) == details
    assert seen(story, ROOT, level) == {"ann", "bob", "eve"}
    both = listed(story, _Store(), ANN, basic_too=True)
    assert {one.user for one in both} == summary
    assert {one.user for one in both if one.HasField("spec")} == details


def test_a_job_of_a_group_is_that_groups_alone() -> None:
    """Not of the other groups of its user."""
    policy = Policy(job_info_level=2, user_groups={**GROUPS, "eves": Names(False, frozenset({"bob", "eve"}))})
    shared = replace(a_job(caller=BOB).shared, user_group="lab")
    assert Sight(ANN, policy).has_details(shared)
    assert not Sight(EVE, policy).has_summary(shared)
    assert Sight(EVE, policy).has_summary(replace(shared, user_group=""))
    assert Sight(EVE, policy, of_history=True).has_details(shared)
    assert not Sight(EVE, replace(policy, history_access="Y"), of_history=True).has_summary(shared)
    assert not Sight(EVE, replace(policy, history_access="G"), of_history=True).has_summary(shared)


@pytest.mark.parametrize(("caller", "level"), [(ANN, 0), (BOB, 1)])
def test_columns_tell_what_records_do(caller: c.Caller, level: int) -> None:
    """Both show every job as it is: waiting, running, ended, of an array, of another user."""
    story = a_cluster(a_host(slots=4))
    ended, running = story.run(a_job(name="ended")), story.run(a_job(2, name="läuft"))
    story.finished("n1", ended, 256)
    half = story.submit(a_job(array="1-3", name="half"))
    story.plan()
    story.finished("n1", story.key(half, 1))
    for job in (a_job(9), a_job(hold=True), a_job(array="5-300:5"), a_job(array="1-2", hold=True)):
        story.submit(job)
    take_policy(story.cluster, replace(story.cluster.policy, user_priority_max=1000))
    for command in ("  ./solve  ", "#!/bin/sh\n# löse\n./solve\n", "# nothing\x85#", ""):
        story.submit(a_job(9)._replace(text=pack_text("", command, "/home")))
    story.do(c.RequeueJob(story.target(running.job), ANN, frozenset({JobState.RUN}), False))
    story.finished("n1", running, 15)
    take_policy(story.cluster, replace(story.cluster.policy, job_info_level=level))
    lists = JobLists(_engine(story), SimpleNamespace(store=_Store()), story.worklist)  # type: ignore[arg-type]
    request = pb.ListJobsRequest(filter=pb.JobFilter(user="all", finished_too=True))
    by_columns = pb.ListJobsRequest(filter=request.filter, columns=True)
    in_units = pb.ListJobsRequest(filter=request.filter, columns=True, time_unit_s=60)

    async def both() -> None:
        selection = listing.Selection(request.filter, caller, story.cluster)
        sight, expected = Sight(caller, story.cluster.policy), []
        async for item in selection.items([]):
            expected.append(listing.record_message(story.cluster, item, story.now, False, None))
            if not sight.has_details(item[0].shared):
                listing.hide_details(expected[-1])
        found = [record async for page in lists.pages(request, caller) for record in page_of(page).jobs]
        assert found == expected
        assert [record async for page in lists.pages(by_columns, caller) for record in rows_of(page)] == expected
        assert [record async for page in lists.pages(in_units, caller) for record in rows_of(page)] == expected
        assert len(found) > 60
        assert sorted(record.name for record in found if record.priority) == ["", "# nothing", "./solve", "./solve"]

    asyncio.run(both())
    assert running


def test_jobs_alike_have_one_entry() -> None:
    """As far as a table shows no difference; a caller that wants an entry of each gets it, with its own time."""
    story = a_cluster()
    story.now = 6000.0
    alike = [story.submit(a_job(hold=True)) for _ in range(60)]
    story.now = 6059.5
    alike += [story.submit(a_job(hold=True)) for _ in range(2)]
    story.now = 6060.5  # the next minute
    later = [story.submit(a_job(hold=True)) for _ in range(3)]
    story.do(c.KillJob(story.target(alike[10]), ANN))
    story.do(c.ResumeJob(story.target(alike[20]), ANN))
    array = story.submit(a_job(array="1-30,50", hold=True))
    lists = JobLists(_engine(story), SimpleNamespace(store=_Store()), story.worklist)  # type: ignore[arg-type]
    wanted = pb.ListJobsRequest(filter=pb.JobFilter(user="all"), columns=True, hosts_alone=True, time_unit_s=60)

    async def told(request: pb.ListJobsRequest) -> list[pb.JobColumns]:
        return [page_of(page).columns async for page in lists.pages(request, ANN)]

    (page,) = asyncio.run(told(wanted))
    numbers = (alike[0], alike[11], alike[20], alike[21], later[0], array, array)
    assert list(zip(page.job, page.index, page.count, strict=True)) == list(
        zip(numbers, (0, 0, 0, 0, 0, 1, 50), (10, 9, 1, 41, 3, 30, 1), strict=True)
    )
    wanted.time_unit_s = 0
    (page,) = asyncio.run(told(wanted))
    assert not page.count
    assert list(page.job[:-31]) == [job for job in (*alike, *later) if job != alike[10]]
    assert list(page.submit_time[:-31]) == [story.cluster.jobs[job].submitted_at for job in page.job[:-31]]


OF_RUNS = (
    "start_time", "end_time", "exit_status", "exit_reason", "usage", "usage_by_host", "exec_cwd", "exec_home",
    "suspend_reason", "start_reason", "progress", "post", "posted_at",
)  # fmt: skip


@pytest.mark.parametrize("wanted", ["hosts_alone", "end_columns"])
def test_columns_tell_of_runs_what_a_table_shows(wanted: str) -> None:
    """Hosts, and with the figures of -W start, end and CPU time of ended jobs; all else is as in records."""
    story = a_cluster(a_host(slots=4))
    for minute in range(3):  # on the same host, with figures of their own
        story.now = 60.0 * minute
        key = story.run(a_job(name="brief"))
        story.now += 7
        story.do(c.ReportFinished("n1", key, 256 * minute, story.now, cpu_s=minute + 0.5, also_released=True))
    half = story.submit(a_job(array="1-3", name="half"))
    story.plan()
    story.finished("n1", story.key(half, 1))
    waits = story.submit(a_job(9))
    story.do(c.KillJob(story.target(story.submit(a_job(9))), ANN))
    lists = JobLists(_engine(story), SimpleNamespace(store=_Store()), story.worklist)  # type: ignore[arg-type]
    request = pb.ListJobsRequest(filter=pb.JobFilter(user="all", finished_too=True))
    by_columns = pb.ListJobsRequest(filter=request.filter, columns=True, **{wanted: True})  # type: ignore[arg-type]

    async def both() -> None:
        expected = [record async for page in lists.pages(request, ANN) for record in page_of(page).jobs]
        for record in expected:
            has_ended, figures = record.end_time > 0, (record.start_time, record.end_time, record.usage.cpu_s)
            if wanted == "hosts_alone" or has_ended:
                for field in OF_RUNS:
                    record.ClearField(field)
            if wanted == "end_columns" and has_ended:
                record.start_time, record.end_time, record.usage.cpu_s = figures
        pages = [page_of(page) async for page in lists.pages(by_columns, ANN)]
        assert [record for page in pages for record in rows_of(page)] == expected
        assert {record.job for record in expected} >= {half, waits}
        # Jobs of one host, state and queue are of one kind.
        assert sum(len(page.columns.kinds) for page in pages) < len(expected)

    asyncio.run(both())


def test_elements_looked_at_together_have_the_states_of_each() -> None:
    """Waiting ones of several parts, held, running, ended and killed ones, and indices that the array has not."""
    story = a_cluster(a_host(slots=2))
    number = story.submit(a_job(array="1-20,40-60:2,100"))
    story.plan()
    story.finished("n1", story.key(number, 1))
    story.do(c.StopJob(story.target(number, "5-6"), ANN))
    story.do(c.SignalJob(story.target(number, "8"), 9, ANN))
    record = story.array(number)
    states = listing.ElementStates(record)
    told = [states.of(index) for index in range(110)]
    assert told == [record.state_of(index) for index in range(110)]
    assert {JobState.PEND, JobState.PSUSP, JobState.DONE, JobState.EXIT, None} < set(told)


def test_an_array_that_waits_for_another_job_is_pending() -> None:
    """In the line of bjobs -A, and for bjdepinfo: its elements are all pending, and none is done."""
    story = a_cluster(a_host(slots=2))
    first = story.submit(a_job(9))
    array = story.submit(a_job(array="1-4", dependency=f"done({first})"))
    counts = array_message(story.array(array)).array
    assert (counts.total, counts.pend, counts.psusp, counts.run, counts.done) == (4, 4, 0, 0, 0)
    asked = pb.DependenciesRequest(ref=common_pb2.JobRef(job=first), children=True)
    assert [link.status for link in dependencies_reply(story.cluster, asked, ANN).links] == ["PEND"]


def test_elements_told_together_end_before_an_object_and_a_gap() -> None:
    """And are none where they are few, or of another step than those that wait."""
    story = a_cluster()
    record = story.array(story.submit(a_job(array="1-100,201-300:2")))
    states = listing.ElementStates(record)
    states.of(20)
    assert states.alike(range(20, 90)) == range(20, 90)
    assert states.alike(range(20, 90, 2)) == range(20, 90, 2)
    assert states.alike(range(20, 150)) == range(20, 101)
    record.live[50] = story.job(story.submit(a_job()))
    assert states.alike(range(20, 90)) == range(20, 50)
    assert not states.alike(range(45, 90))
    assert not states.alike(range(200, 300))
    states.of(201)
    assert states.alike(range(201, 301, 2)) == range(201, 301, 2)
    assert not states.alike(range(201, 301))


@pytest.mark.parametrize(
    ("wanted", "shown"),
    [
        ({}, set(JobState) - {JobState.EXIT}),
        ({"finished_too": True}, set(JobState)),
        ({"states": [common_pb2.PEND]}, {JobState.PEND}),
        ({"states": [common_pb2.PSUSP]}, {JobState.PSUSP}),
        ({"host": "n1"}, {JobState.RUN, JobState.STAGING}),
    ],
)
def test_a_long_array_is_listed_element_by_element(wanted: dict[str, Any], shown: set[JobState]) -> None:
    """However many of its neighbours wait alike: running, held and killed ones between them are as they are."""
    story = a_cluster(a_host(slots=3))
    number = story.submit(a_job(array="1-2000,3000-5000:2,6001-6004"))
    story.plan()
    for first, last in ((700, 700), (900, 905), (1500, 1550), (3004, 3004)):
        story.do(c.StopJob(story.target(number, f"{first}-{last}"), ANN))
    story.do(c.SignalJob(story.target(number, "1200"), 9, ANN))
    record = story.array(number)
    expected = [index for index in record.indices if record.state_of(index) in shown]
    lists = JobLists(_engine(story), SimpleNamespace(store=_Store()), story.worklist)  # type: ignore[arg-type]

    async def told(columns: bool) -> list[tuple[int, int]]:
        request = pb.ListJobsRequest(filter=pb.JobFilter(user="all", **wanted), columns=columns)
        pages = [page async for page in lists.pages(request, ANN)]
        return [(row.index, row.state) for page in pages for row in (rows_of(page) if columns else page_of(page).jobs)]

    for columns in (False, True):
        rows = asyncio.run(told(columns))
        assert [index for index, _ in rows] == expected
        assert [state for _, state in rows] == [record.state_of(index) for index in expected]
    assert expected


@pytest.mark.parametrize("columns", [False, True])
def test_others_are_served_during_a_plain_list(columns: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """After each slice, and a job that changes meanwhile is shown as it is then."""
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    story = a_cluster()
    array = story.submit(a_job(array="1-5000", hold=True))
    lists = JobLists(_engine(story), SimpleNamespace(store=_Store()), story.worklist)  # type: ignore[arg-type]

    async def body() -> list[int]:
        request, found = pb.ListJobsRequest(filter=pb.JobFilter(user="all"), columns=columns), list[int]()
        async for page in lists.pages(request, ANN):
            found += [record.priority for record in (rows_of(page) if columns else page_of(page).jobs)]
            story.array(array).priority = 7
        return found

    assert asyncio.run(body())[-1] == 7


def _engine(story: Story) -> Any:
    return SimpleNamespace(cluster=story.cluster, clock=lambda: story.now)
