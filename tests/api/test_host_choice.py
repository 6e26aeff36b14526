"""Hosts that -R of lsload, lshosts, bhosts and lsplace selects, and their order."""

import pytest

from lavad.api.cluster.host_choice import chosen
from lavad.core.model import LOAD_INDICES
from lavad.core.model.reasons import Refused
from tests.builders import Story, a_cluster, a_host


def _loaded() -> Story:
    """Three hosts: n1 small and idle, n2 and n10 large, n2 busier than n10."""
    story = a_cluster()
    for name, memory, r1m in (("n1", 4000, 0.0), ("n2", 64000, 3.0), ("n10", 64000, 1.0)):
        story.join(a_host(name, memory_mib=memory))
        story.cluster.observe_load(name, [r1m if index == "r1m" else 0.0 for index in LOAD_INDICES])
    return story


def test_select_keeps_the_order_of_the_names() -> None:
    """lsf.md 3.2: without order[...] hosts come as they were asked for."""
    cluster = _loaded().cluster
    assert chosen(cluster, "maxmem > 5000", ["n1", "n2", "n10"]) == ["n2", "n10"]
    assert chosen(cluster, "select[maxmem > 5000]", ["n1"]) == []


def test_order_sorts_by_load() -> None:
    """lsf.md 3.3: the least loaded host first, with a minus the most loaded; equal ones in the order of their names."""
    cluster = _loaded().cluster
    names = ["n1", "n2", "n10"]
    assert chosen(cluster, "order[r1m]", names) == ["n1", "n10", "n2"]
    assert chosen(cluster, "order[-r1m]", names) == ["n2", "n10", "n1"]
    assert chosen(cluster, "order[maxmem:r1m]", names) == ["n10", "n2", "n1"]


@pytest.mark.parametrize("text", ["nosuch", "select[mem >", "{mem > 1} || {swp > 1}", "2*{mem > 1} + 2*{swp > 1}"])
def test_a_requirement_that_selects_no_host_by_itself(text: str) -> None:
    """One sentence for the user."""
    with pytest.raises(Refused, match="Bad resource"):
        chosen(_loaded().cluster, text, ["n1"])
