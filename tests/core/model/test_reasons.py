"""Kinds of pending reasons: their numbers, and which rule a host out."""

from collections import defaultdict

from lavad.core.model import reasons
from lavad.core.model.reasons import Reason

KINDS = {name: one for name, one in vars(reasons).items() if isinstance(one, Reason)}


def test_a_host_that_lacks_something_is_ruled_out() -> None:
    """As one that is closed or away: it takes the job at no time, however idle it is."""
    lacking = [name for name in KINDS if name.startswith(("LACKS_", "NOT_", "NO_TOPOLOGY", "UNKNOWN_"))]
    assert len(lacking) >= 7
    assert [name for name in lacking if not KINDS[name].rules_out] == []
    assert reasons.CLOSED.rules_out
    assert reasons.UNREACHABLE.rules_out
    assert reasons.REQUIREMENT.rules_out
    assert not reasons.NO_SLOTS.rules_out


# Sentences of one reason of LSF: a threshold of the host's or of the queue's, and why a host rests.
SHARED = {2001: {"BUSY", "QUEUE_BUSY"}, 1314: {"JUST_STARTED", "RECENT_FAILURE"}}


def test_each_reason_has_a_number_of_its_own() -> None:
    """A number that two reasons share tells a program nothing."""
    names = defaultdict(set)
    for name, one in KINDS.items():
        names[one.code].add(name)
    assert {code: some for code, some in names.items() if len(some) > 1} == SHARED


def test_reasons_of_resources_have_numbers_of_their_own() -> None:
    """LSF numbers them from 2601, up to 300 of them."""
    assert reasons.MEMORY.code == reasons.RESERVING + 10
    own = [one.code for one in KINDS.values() if one is not reasons.MEMORY]
    assert not set(own) & set(range(reasons.RESERVING, reasons.RESERVING + 300))
