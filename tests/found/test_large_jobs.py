"""Jobs with scripts of several MiB, submitted by one user in any number."""

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from lavad.agent_links.links import AgentLinks
from lavad.api.checks import SPEC_BYTES_MAX
from lavad.api.jobs.job_service import JobService
from lavad.core import commands as c
from lavad.core.cluster import Cluster
from lavad.core.model import HostFacts, HostShare, Key
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import Refused
from lavad.core.orders import ForgetOrder, stage_orders
from lavad.engine import Engine
from protos import agents_pb2
from protos import jobs_pb2 as pb
from protos.wire import AGENT_MESSAGE_MAX
from tests.builders import ANN, Story, a_job

if TYPE_CHECKING:
    from lavad.agent_links.spec_cache import SpecShelf

JOBS = 20
SCRIPT = "x" * (SPEC_BYTES_MAX - 4096)


class _Shelf:
    """Jobs with a large script each."""

    async def spec(self, job: int) -> pb.JobSpec:
        """Another one for each."""
        return pb.JobSpec(command=f"{job} {SCRIPT}")


def test_large_scripts_for_one_host_go_in_several_messages() -> None:
    """A message above the agent's limit ended its session repeatedly: no job of any user reached it."""
    story = Story(HostFacts("n1", JOBS))
    links = AgentLinks(story.cluster, cast("SpecShelf", _Shelf()))
    outbox = links.open("n1", 1, JOBS)
    jobs = [story.submit(a_job()) for _ in range(JOBS)]
    for job in jobs:
        key, share = Key(job, 0, 1), HostShare("n1", 1)
        story.do(c.RecoverAttempt(key, None, (share,), started_at=story.now))
        links.send(stage_orders(story.cluster, story.cluster.attempts[key]))
    outbox.put(ForgetOrder("n1", Key(1000, 0, 1)))

    async def messages() -> list[agents_pb2.Orders]:
        found = []
        while outbox.orders:
            async with asyncio.timeout(60.0):
                await outbox.wait(1000.0)
            found.append(await links.message(outbox))
        return found

    sent = asyncio.run(messages())
    assert [order.key.job for message in sent for order in message.orders] == jobs
    assert [spec.job for message in sent for spec in message.specs] == jobs
    assert [len(message.forget) for message in sent] == [0] * (len(sent) - 1) + [1]
    assert max(message.ByteSize() for message in sent) < AGENT_MESSAGE_MAX // 2


def test_a_job_grows_no_larger_by_bmod() -> None:
    """Than it could have been submitted."""

    async def body() -> None:
        shelf, cluster, unused = _Shelf(), Cluster(Policy()), cast("Any", None)
        engine = Engine(cluster, lambda _, durable: durable(), lambda _: None, lambda: 1000.0)
        links = AgentLinks(cluster, cast("SpecShelf", shelf))
        service = JobService(engine, links, cast("SpecShelf", shelf), unused, unused, unused, unused, unused)
        await engine.execute(c.SubmitJob(a_job(), ANN))
        more = pb.ModifyRequest(spec=pb.JobSpec(environment=[b"A=" + bytes(8192)]), fields=["environment"])
        with pytest.raises(Refused, match="together are larger than 4 MiB"):
            await service._modify(c.Target(1), more, ANN)

    asyncio.run(body())
