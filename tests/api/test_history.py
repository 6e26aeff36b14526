"""bhist's answers: the owners that are queried in the store, and the details of the jobs found."""

import asyncio
from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, cast

import pytest

from lavad.api.details import READ_AT_ONCE
from lavad.api.jobs.history import Stored
from lavad.core.commands import Caller
from lavad.core.model import JobState
from lavad.core.model.policy import Names, Policy
from lavad.core.state.records import Job
from lavad.store.reading.history import HistoryFilter, HistoryPage, JobHistory
from protos import common_pb2, jobs_pb2
from tests.fakes.world import new_job

if TYPE_CHECKING:
    from lavad.store.store import Store

ANN = Caller("ann", 1000)
LAB = Names(False, frozenset({"bob", "carol"}))
NOBODY = Names(False)


class _Asked:
    """A store without jobs that records its queries."""

    def __init__(self) -> None:
        self.wanted: list[HistoryFilter] = []

    async def history(self, wanted: HistoryFilter) -> HistoryPage:
        self.wanted.append(wanted)
        return HistoryPage((), None)


@pytest.mark.parametrize(
    ("wanted", "user", "group"),
    [
        (jobs_pb2.JobFilter(), "ann", NOBODY),
        (jobs_pb2.JobFilter(user="bob"), "bob", NOBODY),
        (jobs_pb2.JobFilter(user="lab"), "lab", LAB),
        (jobs_pb2.JobFilter(user="all"), "", NOBODY),
        (jobs_pb2.JobFilter(refs=[common_pb2.JobRef(job=7)]), "", NOBODY),
    ],
)
def test_whose_jobs_are_asked_for(wanted: jobs_pb2.JobFilter, user: str, group: Names) -> None:
    """The caller's, one user's, those of a group's members, all users', or any owner's for jobs named by id."""
    store = _Asked()

    async def ask() -> None:
        policy = Policy(user_groups={"lab": LAB})
        async for _ in Stored(cast("Store", store)).history(jobs_pb2.HistoryRequest(filter=wanted), ANN, policy):
            pass

    asyncio.run(ask())
    assert [(one.user, one.group) for one in store.wanted] == [(user, group)]


class _Holder:
    """A store with these jobs, each with a spec; counts the specs read together."""

    def __init__(self, jobs: Collection[tuple[int, int]]) -> None:
        new = new_job(user="ann")
        made = [Job(job, index, new.shared, new.text, 1.0, JobState.PEND) for job, index in jobs]
        self._page = HistoryPage(tuple(JobHistory(job, (), {}) for job in made), None)
        self.read: list[Counter[int]] = []

    async def history(self, wanted: HistoryFilter) -> HistoryPage:
        return self._page

    async def specs(self, jobs: Collection[int]) -> dict[int, bytes]:
        self.read.append(Counter(jobs))
        spec = jobs_pb2.JobSpec(command="./solve", dependency="ended(1)", environment=[b"A=b"])
        return {job: spec.SerializeToString() for job in jobs}


def _told(store: _Holder, **wanted: Any) -> list[jobs_pb2.JobRecord]:
    async def ask() -> list[jobs_pb2.JobRecord]:
        pages = Stored(cast("Store", store)).history(jobs_pb2.HistoryRequest(**wanted), ANN, Policy())
        return [job.record async for page in pages for job in page.jobs]

    return asyncio.run(ask())


def test_long_histories_have_what_was_submitted() -> None:
    """The whole submission without its environment; specs are read for some jobs at a time, and only if asked for."""
    store = _Holder([(job, 0) for job in range(1, 2 * READ_AT_ONCE)])
    records = _told(store, details=True)
    assert {(one.spec.command, one.spec.dependency, len(one.spec.environment)) for one in records} == {
        ("./solve", "ended(1)", 0)
    }
    assert [len(read) for read in store.read] == [READ_AT_ONCE, READ_AT_ONCE - 1]
    store.read.clear()
    assert len(_told(store)) == len(records)
    assert not store.read


def test_elements_share_what_was_submitted() -> None:
    """The first tells it for all, if the client can share it."""
    store = _Holder([(3, 1), (3, 2), (3, 3), (4, 0)])
    shared = [one.index for one in _told(store, details=True, shares_details=True) if one.HasField("spec")]
    assert shared == [1, 0]
    assert all(one.spec.dependency for one in _told(store, details=True))
    assert [sorted(read) for read in store.read] == [[3, 4], [3, 4]]
