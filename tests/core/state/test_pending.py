"""Buckets are found by the shared facts of their jobs, and forgotten when empty."""

from dataclasses import replace
from random import Random

import pytest

from lavad.core.model import Shared
from lavad.core.state import pending
from lavad.core.state.pending import PendingEntry, PendingIndex
from tests.builders import a_job

FIRST, SECOND, THIRD = (replace(a_job().shared, user=user) for user in ("ann", "bob", "eve"))


def an_index(*waiting: Shared) -> PendingIndex:
    index = PendingIndex()
    for job, shared in enumerate(waiting, 1):
        index.add(shared, PendingEntry(0, job, job), is_array=False)
    return index


def test_what_is_equal_waits_together() -> None:
    """Two equal objects, and one that differs."""
    twin = replace(FIRST)
    index = an_index(FIRST, twin, SECOND)
    assert index.key_of(FIRST) is index.key_of(twin) is not index.key_of(SECOND)
    assert [len(bucket) for bucket in index.buckets.values()] == [2, 1]


def test_who_waits_is_found_when_others_were_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than two are cached at a time."""
    monkeypatch.setattr(pending, "_PLACES_KEPT", 2)
    index = an_index(FIRST, SECOND)
    before = index.key_of(FIRST)
    assert index.remove_head(SECOND, 2, is_planned=True)
    index.add(THIRD, PendingEntry(0, 3, 3), is_array=False)
    assert index.key_of(FIRST) is before
    assert index.key_of(SECOND) is None
    assert index.remove_head(FIRST, 1, is_planned=True)
    assert list(index.buckets) == [index.key_of(THIRD)]


def test_an_entry_gets_another_rank_in_its_bucket() -> None:
    """As if it were taken out and entered again, wherever it goes; the bucket is due when its head is another one."""
    rng = Random(7)
    index, entries = an_index(*[FIRST] * 9), [PendingEntry(0, job, job) for job in range(1, 10)]
    assert index.remove_head(FIRST, 1, is_planned=True)
    entries = entries[1:]
    (bucket,) = index.buckets.values()
    for _ in range(200):
        head, old = bucket.head(), rng.choice(entries)
        new = old._replace(rank=rng.randint(-3, 3))
        entries = sorted([*(one for one in entries if one != old), new])
        index.changed_buckets.clear()
        index.move(FIRST, old, new)
        assert list(bucket) == entries
        assert (bucket.key in index.changed_buckets) == (bucket.head() != head)
