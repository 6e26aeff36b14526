"""Orders that wait for the next message to a host, or for the spec of their job."""

import asyncio
from typing import TYPE_CHECKING, cast

import pytest

from lavad.agent_links import links as module
from lavad.agent_links.links import AgentLinks
from lavad.core.model.reasons import NotNow
from protos import agents_pb2 as pb
from protos.jobs_pb2 import JobSpec
from tests.builders import Story, a_cluster, a_host, a_job

if TYPE_CHECKING:
    from lavad.agent_links.spec_cache import SpecShelf


class Shelf:
    """A store that can be read or not."""

    is_readable = True

    async def spec(self, job: int) -> JobSpec:
        """The same spec for each job."""
        if not self.is_readable:
            raise NotNow("the database is away")
        return JobSpec(command="true")


def _connected(story: Story) -> tuple[AgentLinks, Shelf]:
    shelf = Shelf()
    links = AgentLinks(story.cluster, cast("SpecShelf", shelf))
    links.open("n1", 1, 4)
    return links, shelf


def _kinds(message: pb.Orders) -> list[str]:
    return [cast("str", order.WhichOneof("what")) for order in message.orders]


def _kill_the_job(story: Story, links: AgentLinks) -> None:
    job = next(iter(story.cluster.jobs))
    links.send(story.kill(job).orders)


def test_a_job_that_ends_before_its_stage_order_is_sent_is_not_staged() -> None:
    """The host is told to release what it never had, as after a lost message."""

    async def body() -> None:
        story = a_cluster(a_host("n1"), a_host("n2"))
        links, _ = _connected(story)
        story.submit(a_job(8))
        links.send(story.plan())
        _kill_the_job(story, links)
        assert _kinds(await links.message(links.outboxes["n1"])) == ["release"]

    asyncio.run(body())


@pytest.mark.parametrize("ends", [False, True])
def test_a_stage_order_whose_spec_cannot_be_read_is_sent_later(ends: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless the host was told to release the attempt meanwhile."""
    monkeypatch.setattr(module, "RETRY_S", 0.01)

    async def body() -> None:
        story = a_cluster(a_host("n1"), a_host("n2"))
        links, shelf = _connected(story)
        story.submit(a_job(8))
        links.send(story.plan())
        outbox = links.outboxes["n1"]
        shelf.is_readable = False
        assert _kinds(await links.message(outbox)) == []
        shelf.is_readable = True
        if ends:
            _kill_the_job(story, links)
        await asyncio.sleep(0.1)
        assert _kinds(await links.message(outbox)) == ["release" if ends else "stage"]

    asyncio.run(body())
