"""Only the owner or an administrator: what the others are told."""

import pytest

from lavad.core.commands import Caller
from lavad.core.model.reasons import Refused
from tests.builders import a_cluster, a_host, a_job


@pytest.mark.parametrize(
    ("caller", "sentence"),
    [
        (Caller("bob", 1001, host="n1"), "User permission denied$"),
        (Caller("root", 0, host="n1", would_administer=True), "denied: n1 is not a host that administrators are"),
    ],
)
def test_strangers_are_refused_with_the_reason(caller: Caller, sentence: str) -> None:
    """An administrator who sits at the wrong host learns that it is the host."""
    story = a_cluster(a_host("n1"))
    job = story.submit(a_job())
    with pytest.raises(Refused, match=sentence):
        story.kill(job, caller=caller)
