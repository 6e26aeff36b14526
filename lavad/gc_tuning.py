"""Tuning of Python's cycle collector: the cluster's state has no reference cycles, so collections rarely pay."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG_MAX = 50_000  # new objects between collections of the youngest generation
_OLDER = (50, 1000)


def collect_seldom() -> None:
    """Freeze the present objects and collect new ones rarely from now on."""
    gc.collect()
    _search_seldom()


def _search_seldom() -> None:
    gc.freeze()
    gc.set_threshold(YOUNG_MAX, *_OLDER)


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Collect rarely until the block ends, without a first collection."""
    before = gc.get_threshold()
    _search_seldom()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
