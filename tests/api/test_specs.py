"""A job is started with its present spec: bmod and the start may be in the same commit."""

import asyncio
import tracemalloc
from collections.abc import Callable
from typing import Any, cast

import pytest

from lavad.agent_links.links import AgentLinks
from lavad.agent_links.spec_cache import Packed, SpecShelf, as_admitted
from lavad.api import identity
from lavad.api.jobs.job_service import JobService
from lavad.core import commands as c
from lavad.core.cluster import Cluster
from lavad.core.events import Event, JobModified, JobSubmitted
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import Refused
from lavad.core.order_kinds import SpecDefaults
from lavad.engine import Engine
from protos import jobs_pb2 as pb
from tests.builders import ANN, BOB, ROOT, a_job


class Store:
    """Specs by job as of the newest events; appended rows are durable a turn later."""

    def __init__(self) -> None:
        self.specs: dict[int, bytes] = {}
        self.environments: dict[bytes, bytes] = {}
        self.while_reading: Callable[[], None] = lambda: None

    def append(self, events: list[Event], durable: Callable[[], None]) -> None:
        """Takes a batch."""
        for event in events:
            if isinstance(event, JobSubmitted | JobModified):
                self.specs[event.job.id] = event.job.spec
                if event.job.environment is not None:
                    self.environments[event.job.environment[0]] = event.job.environment[1]
        asyncio.get_running_loop().call_soon(durable)

    def keep(self, packed: Packed) -> None:
        """The spec of job 1, with the environment that it brings."""
        self.specs[1] = packed.spec
        if packed.content is not None:
            self.environments[packed.content[0]] = packed.content[1]

    async def spec(self, job: int) -> bytes:
        """Reading takes a while."""
        spec = self.specs[job]
        await asyncio.sleep(0)
        self.while_reading()
        return spec

    async def environment(self, key: bytes) -> bytes:
        """One of those put here."""
        return self.environments[key]

    def shelf(self) -> SpecShelf:
        """A shelf before this store."""
        return SpecShelf(self.spec, self.environment)


async def _with_anns_job(store: Store) -> JobService:
    """A master to whom ann has submitted her first job."""
    shelf, cluster, unused = store.shelf(), Cluster(Policy()), cast("Any", None)
    engine = Engine(cluster, store.append, lambda orders: None, lambda: 1000.0)
    service = JobService(engine, AgentLinks(cluster, shelf), shelf, unused, unused, unused, unused, unused)
    await engine.execute(c.SubmitJob(a_job(), ANN))
    store.keep(shelf.pack(pb.JobSpec(command="old"), "ann"))
    return service


def test_orders_of_the_commit_that_changed_a_job_bear_the_change() -> None:
    """They leave before bmod is answered, and must not find the spec that was there before."""

    async def body() -> None:
        store = Store()
        service = await _with_anns_job(store)
        engine, shelf = service.engine, service.shelf
        ordered: list[asyncio.Task[pb.JobSpec]] = []
        engine.listeners.append(lambda events: ordered.append(asyncio.create_task(shelf.spec(1))))
        request = pb.ModifyRequest(spec=pb.JobSpec(command="new"), fields=["command"])
        await service._modify(c.Target(1), request, ANN)
        assert [(await spec).command for spec in ordered] == ["new"]

    asyncio.run(body())


def test_nothing_is_kept_of_what_a_stranger_wants_changed() -> None:
    """A stranger's bmod is refused first of all, and the environment it sends is not stored as ann's."""

    async def body() -> None:
        store = Store()
        service = await _with_anns_job(store)
        before = dict(store.environments)
        large = pb.JobSpec(environment=[b"A%d=x" % number for number in range(100)])
        for field in ("environment", "no such field"):
            with pytest.raises(Refused, match="User permission denied"):
                await service._modify(c.Target(1), pb.ModifyRequest(spec=large, fields=[field]), BOB)
        assert store.environments == before

    asyncio.run(body())


def test_the_environment_is_for_the_owner_and_administrators(monkeypatch: pytest.MonkeyPatch) -> None:
    """bjobs -env: as it was submitted, put together from what is stored; others are refused."""

    async def body(caller: c.Caller, job: int = 1) -> pb.EnvironmentReply:
        async def known(context: Any, settings: Any) -> c.Caller:
            return caller

        monkeypatch.setattr(identity, "caller", known)
        store = Store()
        service = await _with_anns_job(store)
        store.keep(service.shelf.pack(pb.JobSpec(command="new", environment=[b"A=1", b"B=2"]), "ann"))
        service.shelf.drop(1)
        request = pb.EnvironmentRequest()
        request.ref.job = job
        return await service.Environment(request, cast("Any", None))

    for caller in (ANN, ROOT):
        assert sorted(asyncio.run(body(caller)).environment) == [b"A=1", b"B=2"]
    assert asyncio.run(body(BOB)) == pb.EnvironmentReply(error="User permission denied")
    assert asyncio.run(body(ANN, 2)) == pb.EnvironmentReply(error="No matching job found")


def test_a_job_group_that_would_be_too_long_is_not_made() -> None:
    """bmod -g with many %p, for a job whose project is long, is refused before the project is put in."""

    async def body() -> None:
        service = await _with_anns_job(Store())
        large = pb.JobSpec(job_group="/" + "%p" * 1000, project="x" * 10_000)
        request = pb.ModifyRequest(spec=large, fields=["job_group", "project"])
        tracemalloc.start()
        try:
            with pytest.raises(Refused, match="Bad job group name: longer than 512 characters"):
                await service._modify(c.Target(1), request, ANN)
            assert tracemalloc.get_traced_memory()[1] < 1 << 20
        finally:
            tracemalloc.stop()

    asyncio.run(body())


def test_a_spec_that_changes_while_it_is_read() -> None:
    """The outdated spec is neither returned nor cached."""

    async def body() -> None:
        store = Store()
        shelf = store.shelf()
        store.keep(shelf.pack(pb.JobSpec(command="old"), "ann"))

        def change() -> None:
            store.while_reading = lambda: None
            store.keep(shelf.pack(pb.JobSpec(command="new"), "ann"))
            shelf.drop(1)

        store.while_reading = change
        assert (await shelf.spec(1)).command == "new"
        assert (await shelf.spec(1)).command == "new"

    asyncio.run(body())


def test_a_job_with_secrets_leaves_no_core_files_unless_it_asks_for_them() -> None:
    """Its secrets would stand in them; what its queue gives to other jobs does not count."""
    queue = SpecDefaults(0, (("core", 1 << 20), ("stack", 1 << 16)), ())

    def limits(spec: pb.JobSpec) -> dict[str, int]:
        return {one.name: one.soft for one in as_admitted(spec, queue).rlimits}

    with_secrets = pb.TaskRules(secrets=[b"TOKEN=x"])
    assert limits(pb.JobSpec()) == {"core": 1 << 20, "stack": 1 << 16}
    assert limits(pb.JobSpec(tasks=with_secrets)) == {"core": 0, "stack": 1 << 16}
    asked = pb.JobSpec(tasks=with_secrets, rlimits=[pb.Rlimit(name="core", soft=1 << 10)])
    assert limits(asked) == {"core": 1 << 10, "stack": 1 << 16}
