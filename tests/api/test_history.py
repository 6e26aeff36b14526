"""Job owners that bhist queries in the store."""

import asyncio
from typing import TYPE_CHECKING, cast

import pytest

from lavad.api.stored import Stored
from lavad.core.commands import Caller
from lavad.core.model.policy import Names, Policy
from lavad.store.history import HistoryFilter, HistoryPage
from protos import common_pb2, jobs_pb2

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
