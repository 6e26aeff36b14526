"""Entries leave the due queue in the order of a sorted list, however many there are and whenever they are pushed."""

import random

from lavad.core.model import Request, RoleRequest
from lavad.core.scheduling.queueing.due_queue import DueQueue
from lavad.core.scheduling.queueing.ordering import QueueEntry
from lavad.core.state.pending import BucketKey, SchedulingClass

KIND = SchedulingClass("normal", "ann", "", Request((RoleRequest(),)))
MANY = 20_000


def an_entry(rng: random.Random, number: int) -> QueueEntry:
    """An entry of one of few queues and priorities; now and then of a job before all others."""
    position = float("-inf") if rng.random() < 0.001 else rng.choice([float, int])(rng.randrange(10 * MANY))
    return rng.choice([-30, -1]), rng.choice([0, 0, 0, -5]), position, number, BucketKey(KIND, number)


def test_many_turns_come_in_order() -> None:
    """All entries, with others pushed meanwhile; in the end none is left."""
    rng = random.Random(1)
    expected, entries = [], DueQueue()
    for number in range(MANY):
        expected.append(an_entry(rng, number))
        entries.push(expected[-1])
    found = [entries.pop() for _ in range(MANY // 2)]
    assert found == sorted(expected)[: MANY // 2]
    for number in range(MANY, 2 * MANY):
        later = an_entry(rng, number)
        found.append(entries.push_pop(later))
        expected.append(later)
        assert found[-1] <= later
    rest = []
    while entries:
        rest.append(entries.first)
        assert entries.pop() is rest[-1]
    assert rest == sorted(rest)
    found += rest
    assert sorted(found) == sorted(expected)
    assert not entries


def test_what_was_divided_is_one_heap_again_when_all_are_gone() -> None:
    """The order holds from the beginning."""
    rng = random.Random(2)
    entries = DueQueue(an_entry(rng, number) for number in range(100))
    for number in range(100, MANY):
        entries.push(an_entry(rng, number))
    first = [entries.pop() for _ in range(MANY)]
    assert first == sorted(first)
    again = [an_entry(rng, number) for number in range(MANY)]
    for entry in again:
        entries.push(entry)
    assert [entries.pop() for _ in again] == sorted(again)
