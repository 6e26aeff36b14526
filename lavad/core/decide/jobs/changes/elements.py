"""Parts of an array that a bmod changes: elements by themselves, where it does not name all that have not ended."""

from collections.abc import Iterator
from typing import NamedTuple

from lavad.core.model import WAITING, JobState
from lavad.core.model.ranges import Ranges
from lavad.core.model.reasons import Refused
from lavad.core.state.records import ArrayRecord

ELEMENTS_MAX = 10_000  # changed by themselves at once: each becomes an object and a row of its own
AT_ONCE = 1000  # of these in one step
# What an array has in common whatever is changed: its name and group, its limit, and what it waits for.
_OF_ALL = {
    "name": "-J",
    "array_limit": "-J %",
    "job_group": "-g",
    "dependency": "-w",
    "ends_orphan": "-ti",
    "begin_time": "-b",
    "terminate_time": "-t",
    "reservation": "-U",
    "absolute_priority": "-aps",
}


class Part(NamedTuple):
    """Elements to change by themselves that have the same spec; None: the array, without elements changed before."""

    indices: Ranges | None
    spec_number: int


def parts_of(array: ArrayRecord, named: Ranges | None) -> list[Part]:
    """Parts of a change of these elements (None: of all), the array itself first.

    Raises:
        Refused: none of them is left to change, or they are too many.
    """
    unended = _unended(array)
    chosen = unended if named is None else unended.intersection(named)
    if len(chosen) == len(unended):
        changed = Ranges.from_sorted(sorted(array.changed)).intersection(unended)
        return [Part(None, array.spec_number), *_by_spec(array, changed)]
    if not chosen:
        is_known = any(index in array.indices for index in named or ())
        raise Refused("Job has already finished" if is_known else "No matching job found")
    if len(chosen) > ELEMENTS_MAX:
        raise Refused(
            f"{len(chosen)} elements of a job array can't be changed at once, the most is {ELEMENTS_MAX}; without an "
            "index all of them are changed"
        )
    return list(_by_spec(array, chosen))


def _unended(array: ArrayRecord) -> Ranges:
    found = array.all_waiting(JobState.PEND)
    found.update(array.all_waiting(JobState.PSUSP))
    found.update(Ranges.from_sorted(sorted(array.live)))
    return found


def _by_spec(array: ArrayRecord, indices: Ranges) -> Iterator[Part]:
    """Divide elements by their specs, and into as many as one step changes in few milliseconds.

    Each one that holds hosts is a part by itself, as these may differ.
    """
    waiting: dict[int, list[int]] = {}
    for index in indices:
        job = array.job_of(index)
        number = array.spec_number if job is None else job.spec_number
        if index in array.live:
            yield Part(Ranges.of(index), number)
        else:
            waiting.setdefault(number, []).append(index)
    for number, some in waiting.items():
        for first in range(0, len(some), AT_ONCE):
            yield Part(Ranges.from_sorted(some[first : first + AT_ONCE]), number)


def left_of(array: ArrayRecord, indices: Ranges) -> Ranges:
    """Those of these elements that have not ended since the command was given.

    Raises:
        Refused: all of them have.
    """
    left = Ranges.from_sorted(index for index in indices if index in array.live or array.state_of(index) in WAITING)
    if not left:
        raise Refused("Job has already finished")
    return left


def without_common(fields: frozenset[str]) -> frozenset[str]:
    """The fields of a change of all elements that those changed by themselves take part in."""
    return fields - _OF_ALL.keys()


def check_fields(fields: frozenset[str]) -> None:
    """Refuse to change by themselves what all elements have in common.

    Raises:
        Refused: names the option.
    """
    common = [option for name, option in _OF_ALL.items() if name in fields]
    if common:
        raise Refused(f"{common[0]} is the same for all elements of a job array: change it without an index")
