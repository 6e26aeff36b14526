"""Kinds of pending reasons: their numbers, and which rule a host out."""

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
