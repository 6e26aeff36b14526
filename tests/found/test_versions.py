"""Masters and agents of different versions: unsupported messages are not sent, or are ignored."""

from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from agents.master.session import Session
from lavad.api.agents import AgentService
from lavad.core.cluster import Cluster
from lavad.core.model.policy import Policy
from protos.agents_pb2 import LimitReached, Report, Reports, Started, Welcome


def _session() -> Session:
    keeper = Mock()
    unused = cast("Any", None)
    watch, checkpoints = Mock(take_news=lambda: ([], [])), Mock(take_news=list)
    return Session(unused, unused, 1, keeper, unused, unused, watch, checkpoints)


@pytest.mark.parametrize(
    ("settings", "told"), [({}, ["started"]), ({"LAVA_REPORTS": "limit_reached later"}, ["limit_reached", "started"])]
)
def test_an_older_master_is_not_told_what_it_does_not_understand(settings: dict[str, str], told: list[str]) -> None:
    """A task limit reached ended the session between the host and the master."""
    session = _session()
    session.say(Report(limit_reached=LimitReached(reason="TERM_MEMLIMIT")))
    session._take_welcome(Welcome(settings=settings))
    session.say(Report(started=Started(pid=1)))
    assert [one.WhichOneof("what") for one in session._next_message().reports] == told


def test_a_report_of_a_later_kind_does_not_end_the_session() -> None:
    """It is empty for this version, and the rest of the message is used."""
    posted: list[object] = []
    cluster = Cluster(Policy())
    cluster.hosts["n1"] = cast("Any", SimpleNamespace(seen_at=0.0, is_silent=False))
    engine = SimpleNamespace(cluster=cluster, clock=lambda: 1.0, post=posted.extend)
    service = AgentService(cast("Any", engine), cast("Any", None), cast("Any", None), b"")
    outbox = SimpleNamespace(hear=lambda *_: None)
    message = Reports(reports=[Report(), Report(started=Started(pid=4711))])
    service._take("n1", cast("Any", outbox), message)
    assert [getattr(one, "pid", 0) for one in posted] == [4711]
