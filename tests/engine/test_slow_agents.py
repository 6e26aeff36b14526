"""An agent that reads no orders costs the master a bounded outbox at most: its session is ended."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from lavad.agent_links.links import WAITING_MAX, WAITING_PER_SLOT_MAX, AgentLinks
from lavad.api.agents import AgentService
from lavad.core.cluster import Cluster
from lavad.core.model import Key
from lavad.core.model.policy import Policy
from lavad.core.orders import ForgetOrder

SLOTS = 4
MOST = WAITING_MAX + WAITING_PER_SLOT_MAX * SLOTS


class Stalled:
    """A stream whose other end neither reads nor writes."""

    def __init__(self) -> None:
        self.writing = asyncio.Event()

    async def read(self) -> object:
        """Block for ever."""
        return await asyncio.Future()

    async def write(self, message: object) -> None:
        """Block for ever."""
        self.writing.set()
        await asyncio.Future()


def orders(count: int) -> list[ForgetOrder]:
    """This number of orders for one host."""
    return [ForgetOrder("n1", Key(job, 0, 1)) for job in range(1, count + 1)]


def test_an_agent_that_takes_no_orders_loses_its_link() -> None:
    """Even with a message in flight that never arrives; its queue is dropped."""

    async def story() -> None:
        cluster = Cluster(Policy())
        links = AgentLinks(cluster, cast("Any", None))
        engine, settings = SimpleNamespace(cluster=cluster), SimpleNamespace(heartbeat_s=60.0)
        service = AgentService(cast("Any", engine), links, cast("Any", settings), b"")
        outbox, stalled = links.open("n1", 1, SLOTS), Stalled()
        session = asyncio.create_task(service._run("n1", outbox, cast("Any", stalled)))
        links.send(orders(1))
        await asyncio.wait_for(stalled.writing.wait(), 10)
        links.send(orders(MOST))
        await asyncio.sleep(0)
        assert not session.done()
        links.send(orders(1))
        await asyncio.wait_for(session, 10)
        links.send(orders(5))
        assert not outbox.orders
        assert links.close(outbox)
        assert not links.open("n1", 2, SLOTS).orders

    asyncio.run(story())


def test_a_burst_for_all_slots_is_no_reason() -> None:
    """All orders of one turn for a full host fit the outbox."""

    async def story() -> None:
        outbox = AgentLinks(Cluster(Policy()), cast("Any", None)).open("n1", 1, 10_000)
        for order in orders(60_000):
            outbox.put(order)
        assert not outbox.is_closed
        assert len(outbox.orders) == 60_000

    asyncio.run(story())
