"""Messages of jobs in the database: one row each, the newest of a number, told in the history, gone with the job."""

from lavad.core import commands as c
from lavad.core.cluster import Cluster
from lavad.core.model.ranges import Ranges
from lavad.store import schema
from tests.fakes.world import new_job
from tests.store.saved import saving
from tests.store.saving import rows
from tests.store.test_history import ALICE, Told
from tests.store.test_retention import DAY_S, Kept, kept


def test_messages_are_kept_until_their_job_is_removed(database_url: str) -> None:
    """Another message of the same number takes the place of the first; elements have their own."""

    def post(job: int, number: int, text: str, data: bytes = b"", index: int = 0) -> c.PostMessage:
        target = c.Target(job, Ranges.parse(str(index)) if index else None)
        return c.PostMessage(target, ALICE, number, text, "INFO" if data else "", data)

    async def story(one: Kept) -> None:
        await one.do(c.SubmitJob(new_job(), ALICE), c.SubmitJob(new_job(indices=(range(1, 3),)), ALICE))
        await one.do(post(1, 0, "begun"), post(1, 5, "half", b"\0x"), post(2, 0, "second", index=2))
        await one.do(post(1, 0, "done it\0 all"))
        found = [
            (row.job, row.idx, row.number, row.text, row.size, row.level) for row in await one.store.messages([1, 2])
        ]
        assert found == [
            (1, 0, 0, "done it all", 0, ""),
            (1, 0, 5, "half", 2, "INFO"),
            (2, 2, 0, "second", 0, ""),
        ]
        kept_row = await one.store.message(1, 0, 5)
        assert kept_row is not None
        assert (kept_row.data, kept_row.user_name) == (b"\0x", ALICE.user)
        assert await one.store.message(1, 0, 6) is None
        told = [row.detail for row in rows(database_url, schema.job_events) if (row.job, row.kind) == (1, "message")]
        assert len(told) == 3
        again = Cluster(one.cluster.policy)
        one.store.restore(again, 0.0)
        assert sorted(again.external_statuses) == [(1, 0, "done"), (2, 2, "second")]
        await one.run(1)
        assert await one.sweep(40 * DAY_S) == 1
        assert [row.job for row in rows(database_url, schema.job_messages)] == [2]

    kept(database_url, story)


def test_a_message_to_an_ended_job_is_told_last(database_url: str) -> None:
    """It adds no time to what the job spent in its states, in long and brief histories."""
    with saving(database_url) as saved:
        told = Told(saved)
        told.do(c.SubmitJob(new_job(), ALICE))
        told.end(told.start(1), after_s=10.0)
        told.do(c.PostMessage(c.Target(1), ALICE, 3, "late", "", b""), 100.0)
        for is_brief in (True, False):
            (one,) = told.history(is_brief=is_brief).jobs
            assert {state: seconds for state, seconds in one.seconds_by_state.items() if seconds} == {"RUN": 10.0}
            assert is_brief or "late" in one.notes[-1].text
