"""Settings that reach agents as soon as the files are in force: commands on their hosts read them from there."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from lavad.agent_links.links import AgentLinks
from lavad.api.agents import AgentService
from lavad.core.cluster import Cluster
from lavad.core.model.policy import Policy
from lavad.settings import Settings
from protos import agents_pb2 as pb


class Agent:
    """A stream of an agent that only listens."""

    def __init__(self) -> None:
        self.heard: asyncio.Queue[pb.Orders] = asyncio.Queue()

    async def read(self) -> object:
        """Block for ever."""
        return await asyncio.Future()

    async def write(self, message: pb.Orders) -> None:
        """Hear a message."""
        self.heard.put_nowait(message)


def test_agents_hear_of_new_settings_before_their_next_heartbeat(tmp_path: Path) -> None:
    """lsf.conf reached the commands of a host up to a heartbeat after `Reconfiguration initiated`."""

    async def story() -> None:
        cluster = Cluster(Policy())
        links = AgentLinks(cluster, cast("Any", None))
        settings = Settings(
            tmp_path, "", "", "", "", tmp_path, frozenset(), frozenset(), master_host="m", heartbeat_s=600.0
        )
        service = AgentService(cast("Any", SimpleNamespace(cluster=cluster)), links, settings, b"")
        service.installation = cast("Any", SimpleNamespace(settings={}, shared={}, default_queues=""))
        outbox, agent = links.open("n1", 1, 4), Agent()
        session = asyncio.create_task(service._run("n1", outbox, cast("Any", agent)))
        service.tell_settings()
        assert not (await asyncio.wait_for(agent.heard.get(), 10)).HasField("welcome")  # nothing is new
        service.installation = cast("Any", SimpleNamespace(settings={}, shared={"LSB_X": "y"}, default_queues=""))
        service.tell_settings()
        told = await asyncio.wait_for(agent.heard.get(), 10)
        assert dict(told.welcome.lsf_conf) == {"LSB_X": "y"}
        outbox.close()
        await session

    asyncio.run(story())
