"""Histories of elements of arrays that were changed by themselves."""

from collections.abc import Iterator

import pytest

from lavad.core import commands as c
from lavad.core.model.policy import Policy
from lavad.core.model.ranges import Ranges
from lavad.core.model.rules.queues import Queue
from lavad.store.reading.history import JobRange
from tests.fakes.world import new_job
from tests.store.saved import saving
from tests.store.test_history import ALICE, Told, names


@pytest.fixture
def told(database_url: str) -> Iterator[Told]:
    """``Told`` over an empty database."""
    with saving(database_url) as saved:
        yield Told(saved)


def test_a_change_of_some_elements(told: Told) -> None:
    """Told of these alone, one of the whole array once of each; bhist -q finds elements by their own queue."""
    told.do(c.Reconfigure(Policy(queues=(Queue("normal"), Queue("night")))))
    told.do(c.SubmitJob(new_job(indices=(range(1, 5),)), ALICE))
    night, fields = new_job(queue="night"), frozenset({"queues"})
    some = Ranges([range(2, 4)])
    told.do(c.ModifyJob(c.Target(1, some), night, ALICE, "first", fields))
    told.do(c.ModifyJob(c.Target(1), new_job(), ALICE, "second", fields))
    told.do(c.ModifyJob(c.Target(1), night, ALICE, "second", fields, elements=some, is_whole=True))
    changes = {
        entry.job.index: [note.text for note in entry.notes if note.text.startswith("Parameters")]
        for entry in told.history(jobs=(JobRange(1),)).jobs
    }
    first, second = (f"Parameters of Job are changed: {word}" for word in ("first", "second"))
    assert changes == {1: [second], 2: [first, second], 3: [first, second], 4: [second]}
    told.end(told.start(1, 2), after_s=1.0)
    assert names(told.history(queue="night").jobs) == [(1, 2), (1, 3)]
    brief = told.history(queue="night", is_brief=True, jobs=(JobRange(1),)).jobs
    assert [(entry.job.index, entry.job.shared.queue) for entry in brief] == [(2, "night"), (3, "night")]
