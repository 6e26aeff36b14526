"""Python's search for reference cycles, which the cluster's state holds none of: it is rarely worth its time."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG_MAX = 50_000  # new objects between searches among the youngest
_OLDER = (50, 1000)


def collect_seldom() -> None:
    """From now on what there is already is never searched again, and what comes is searched now and then."""
    gc.collect()
    _search_seldom()


def _search_seldom() -> None:
    gc.freeze()
    gc.set_threshold(YOUNG_MAX, *_OLDER)


@contextmanager
def seldom_collected() -> Iterator[None]:
    """The same until the block ends, without a search to begin with."""
    before = gc.get_threshold()
    _search_seldom()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
