"""Long listings yield to other calls, however few jobs match and for every caller."""

import asyncio

import pytest

from lavad.api.jobs import listing
from lavad.core import commands as c
from lavad.core.model import HostShare, Key, pack_text
from lavad.core.model.policy import Policy
from lavad.core.model.ranges import Ranges
from lavad.core.model.rules.hosts import HostRule
from lavad.core.model.rules.names import Names
from lavad.core.model.rules.queues import Queue, Threshold
from lavad.core.state.attempts import JobEnd
from lavad.core.state.records import Job
from protos import common_pb2
from protos import jobs_pb2 as pb
from tests.builders import ANN, BOB, ROOT, Story, a_cluster, a_host, a_job

MANY = listing.LOOKED_AT * 2


def turns_while(story: Story, wanted: pb.JobFilter) -> tuple[int, int]:
    """Number of items found, and number of turns of other tasks meanwhile."""

    async def body() -> tuple[int, int]:
        turns, found = 0, 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        await asyncio.sleep(0)
        turns = 0
        async for _ in listing.Selection(wanted, ROOT, story.cluster).items([]):
            found += 1
        counting.cancel()
        return found, turns

    return asyncio.run(body())


def test_a_search_that_finds_nothing() -> None:
    """All jobs are examined, a part at a time."""
    story = a_cluster()
    number = story.submit(a_job(hold=True))
    record = story.cluster.jobs[number]
    story.cluster.jobs |= dict.fromkeys(range(number, MANY), record)
    assert turns_while(story, pb.JobFilter(user="nobody")) == (0, 1)
    assert turns_while(story, pb.JobFilter(user="all")) == (MANY - number, 1)


def test_the_elements_of_an_array() -> None:
    """Also of one that is named; an array that is over costs a list of unfinished jobs nothing."""
    story = a_cluster()
    array = story.submit(a_job(array=f"1-{MANY}", hold=True))
    story.kill(array)
    assert turns_while(story, pb.JobFilter(user="all")) == (0, 0)
    assert turns_while(story, pb.JobFilter(user="all", finished_too=True)) == (MANY, 2)
    named = pb.JobFilter()
    named.refs.add(job=array)
    assert turns_while(story, named) == (MANY, 2)
    assert story.array(array).killed == Ranges.parse(f"1-{MANY}")


def test_jobs_are_listed_by_their_numbers() -> None:
    """Also those that hosts gave back to an older database, in whatever order they did."""
    story = a_cluster(a_host("n1"))
    held = story.submit(a_job(hold=True))
    story.cluster.next_job = held + 10  # as at a start on an older database, which leaves room for what it lacks
    story.cluster.lost_jobs = [range(held + 1, held + 10)]
    for number in (held + 7, held + 3):
        given_back = a_job()._replace(id=number)
        story.do(c.RecoverAttempt(Key(number, 0, 1), given_back, (HostShare("n1", 1),), started_at=story.now))
    last = story.submit(a_job(hold=True))

    async def body() -> list[int]:
        selection = listing.Selection(pb.JobFilter(user="all"), ROOT, story.cluster)
        return [record.id async for record, _, _ in selection.items([])]

    assert asyncio.run(body()) == [held, held + 3, held + 7, last]


def details(story: Story, job: int) -> pb.JobRecord:
    """Record of a job for bjobs -l."""
    record = story.cluster.jobs[job]
    assert isinstance(record, Job)
    return listing.record_message(story.cluster, (record, 0, record), story.now, True, None)


def test_load_thresholds_of_a_job() -> None:
    """Those of its queue; when it has hosts, the strictest of these and theirs."""
    queue = Queue("normal", thresholds=(Threshold("r1m", 2.0, 4.0), Threshold("mem", 100.0, None)))
    rules = {"n1": HostRule(thresholds=(Threshold("r1m", 3.0, 3.5), Threshold("mem", 200.0, 50.0)))}
    story = a_cluster(a_host("n1"), policy=Policy(queues=(queue,), host_rules=rules))
    job = story.submit(a_job(hosts=("n1",)))
    bounds = [pb.LoadBound(index="r1m", sched=2.0, stop=4.0, has_sched=True, has_stop=True),
              pb.LoadBound(index="mem", sched=100.0, has_sched=True)]  # fmt: skip
    assert list(details(story, job).load_bounds) == bounds
    story.cluster.observe_load("n1", [0.0] * 10 + [1000.0])
    story.plan()
    assert story.where(job) == ["n1"]
    bounds = [pb.LoadBound(index="r1m", sched=2.0, stop=3.5, has_sched=True, has_stop=True),
              pb.LoadBound(index="mem", sched=200.0, stop=50.0, has_sched=True, has_stop=True)]  # fmt: skip
    assert list(details(story, job).load_bounds) == bounds


def test_the_devices_of_a_job() -> None:
    """Tasks of each host, and the job's memory of a shared GPU; a job without GPUs needs neither in listings."""
    story = a_cluster()
    job = story.cluster.jobs[story.submit(a_job())]
    assert isinstance(job, Job)
    shared = HostShare("n1", 2, gpus=(1,), tasks_by_role=(2,), gpu_memory_mib=(512,))
    job.end = JobEnd(story.now, 0, hosts=(shared, HostShare("n2", 1, tasks_by_role=(1,))))
    with_gpu, without = details(story, job.id).hosts
    assert (with_gpu.gpus, with_gpu.tasks_by_role, with_gpu.gpu_memory_mib) == ([1], [2], [512])
    assert without.tasks_by_role == [1], "else nobody could tell which task is the first on the next host"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sweep", [(1, 1), (1, 2), (1, 3), (2, 0)]), ("sweep[3]", [(1, 3)]), ("sw*[2]", [(1, 2)]), ("sweep[4]", []),
        ("sweep[0]", []), ("*[00]", []),
        ("sweep3", [(3, 0)]), ("*", [(1, 1), (1, 2), (1, 3), (2, 0), (3, 0)]),
    ],
)  # fmt: skip
def test_jobs_of_a_name(name: str, expected: list[tuple[int, int]]) -> None:
    """-J: an array element with its index in brackets, which are no pattern."""
    story = a_cluster()
    for job in (a_job(array="1-3", name="sweep"), a_job(name="sweep"), a_job(name="sweep3")):
        story.submit(job)

    async def found() -> list[tuple[int, int]]:
        missing: list[common_pb2.JobRef] = []
        items = listing.Selection(pb.JobFilter(name=name), ANN, story.cluster).items(missing)
        chosen = [(record.id, index) async for record, index, _ in items]
        assert not missing
        return chosen

    assert asyncio.run(found()) == expected


def test_a_job_without_a_name_is_called_as_its_command() -> None:
    """As lists show it: `bsub sleep 60` is what `bjobs -J "sleep*"` finds, beside no job that was given a name."""
    story = a_cluster()
    for name, command in (("", "sleep 60"), ("nap", "sleep 60"), ("", "#!/bin/sh\n# rest\nsleep 5\n")):
        story.submit(a_job()._replace(text=pack_text(name, command, "/home")))
    chosen = listing.Selection(pb.JobFilter(name="sleep*"), ANN, story.cluster)
    assert [job.id for portion in chosen.portions([]) for job in portion.jobs] == [1, 3]  # type: ignore[union-attr]
    assert chosen.narrowed(c.Target(1)) is not None
    assert chosen.narrowed(c.Target(2)) is None


@pytest.mark.parametrize(("user", "expected"), [("art", [1, 2]), ("ann", [1]), ("", [3]), ("all", [1, 2, 3])])
def test_jobs_of_a_group_of_users(user: str, expected: list[int]) -> None:
    """-u takes a group of users, too; without it they are the caller's own."""
    groups = {"art": Names(False, frozenset({"ann", "bob"}))}
    story = a_cluster(policy=Policy(user_groups=groups))
    for owner in (ANN, BOB, ROOT):
        story.submit(a_job(caller=owner))

    async def found() -> list[int]:
        selection = listing.Selection(pb.JobFilter(user=user), ROOT, story.cluster)
        return [record.id async for record, _, _ in selection.items([])]

    assert asyncio.run(found()) == expected


def test_the_name_of_the_cluster_is_all_its_jobs() -> None:
    """`bjobs -m CLUSTER` lists those that wait for a host, too; a host of that name comes first."""
    story = a_cluster()
    story.submit(a_job(hold=True))
    wanted = pb.JobFilter(user="all", host=story.cluster.name)
    assert turns_while(story, wanted)[0] == 1
    story.join(a_host(story.cluster.name))
    assert turns_while(story, wanted)[0] == 0


@pytest.mark.parametrize(
    ("queue", "listed", "chosen"),
    [("night", [2, 3, 4], "2-4"), ("normal", [1, 5, 6], "1,5-6"), ("", [*range(1, 7)], None)],
)
def test_elements_of_a_queue(queue: str, listed: list[int], chosen: str | None) -> None:
    """Those that were switched by themselves, waiting, running or ended, or the others; commands reach no more."""
    rules = Policy(queues=(Queue("normal", priority=1), Queue("night", priority=2)))
    story = a_cluster(a_host("n1", 1), policy=rules)
    array = story.submit(a_job(array="1-6"))
    changed = a_job(array="1-6", queue="night")
    story.do(c.ModifyJob(story.target(array, "2-4"), changed, ANN, "", frozenset({"queues"})))
    story.plan()
    story.kill(array, "3")
    selection = listing.Selection(pb.JobFilter(queue=queue, finished_too=True), ANN, story.cluster)
    assert selection.elements_of(array) == (Ranges.parse(chosen) if chosen is not None else None)

    async def found() -> list[tuple[int, str]]:
        return [(index, record.shared.queue) async for record, index, _ in selection.items([])]

    own = {2: "night", 3: "night", 4: "night"}
    assert asyncio.run(found()) == [(index, own.get(index, "normal")) for index in listed]
    narrowed = selection.narrowed(c.Target(array, Ranges.parse("2-5")))
    assert narrowed is not None
    assert narrowed.indices == Ranges.parse("2-5").intersection(Ranges.from_sorted(listed))
