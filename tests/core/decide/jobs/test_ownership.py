"""Refusals of users who neither own the job nor administer the cluster."""

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
    """An administrator on a host without the right learns that the host is the reason."""
    story = a_cluster(a_host("n1"))
    job = story.submit(a_job())
    with pytest.raises(Refused, match=sentence):
        story.kill(job, caller=caller)
