"""Cost of a submission: each job of a large batch passes here, whatever it uses of the options."""

import asyncio
import sys
from typing import Any, cast

from lavad.agent_links.spec_cache import SpecShelf
from lavad.api.jobs.submission import Submissions
from lavad.core import commands as c
from lavad.engine import Engine
from protos.common_pb2 import Role
from protos.jobs_pb2 import JobSpec, SubmitBatch, SubmitItem
from tests.builders import a_cluster as a_story
from tests.builders import a_host

JOBS = 100
CALLER = c.Caller("ann", 1000, False, 1000, "login1")


def _batch(first: int) -> SubmitBatch:
    """Jobs with a name, a directory and an environment of their own."""
    environment = [b"VARIABLE_%d=value" % number for number in range(50)]
    roles = [Role(tasks_min=1, tasks_max=1, slots_per_task=1)]
    specs = [
        JobSpec(
            command="true", name=f"case-{n}", cwd=f"/runs/{n}", environment=[*environment, b"N=%d" % n], roles=roles
        )
        for n in range(first, first + JOBS)
    ]
    return SubmitBatch(items=[SubmitItem(request_id=b"%d" % (first + n), spec=one) for n, one in enumerate(specs)])


def test_calls_of_python_for_each_job() -> None:
    """Options that a job does not use are not read one by one, and what jobs have in common is decided once."""
    cluster, unused, calls = a_story(a_host()).cluster, cast("Any", None), 0

    def count(frame: object, what: str, argument: object) -> None:
        nonlocal calls
        calls += what in ("call", "c_call")

    async def body() -> None:
        engine = Engine(cluster, lambda _, durable: durable(), lambda _: None, lambda: 1000.0)
        submissions = Submissions(engine, SpecShelf(unused, unused), unused)
        await (await submissions.post(_batch(0), CALLER))
        batch = _batch(JOBS)
        sys.setprofile(count)
        try:
            replies = await submissions.post(batch, CALLER)
        finally:
            sys.setprofile(None)
        assert all(one.job for one in (await replies).results)

    asyncio.run(body())
    assert calls / JOBS < 310
