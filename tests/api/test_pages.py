"""Long listings come in pages that fit a frame of the local socket, however large the jobs are."""

import asyncio
from pathlib import Path
from typing import Any

from lavad.api import identity
from lavad.api.jobs.job_service import JobService
from lavad.core import commands as c
from lavad.core.cluster import Cluster
from lavad.core.model import pack_text
from lavad.core.model.policy import Policy
from lavad.core.scheduling.worklist import Worklist
from lavad.core.step import step
from lavad.settings import Settings
from protos import frames
from protos.jobs_pb2 import JobFilter, JobPage, ListJobsRequest
from tests.fakes.world import ROOT, new_job

JOBS = 600


def test_a_page_is_bounded_in_bytes(monkeypatch: Any) -> None:
    """Six hundred jobs of about a hundred thousand bytes each: sixty megabytes, and no page above a mebibyte."""
    cluster = Cluster(Policy())
    long = "\N{GRINNING FACE}" * 4000
    words = pack_text(name=long, command=long, cwd=long, output=long, error=long, description=long)
    for _ in range(JOBS):
        job = new_job()._replace(text=words)
        step(cluster, c.SubmitJob(job, ROOT), 1000.0)

    async def somebody(context: Any, settings: Settings) -> c.Caller:
        return ROOT

    monkeypatch.setattr(identity, "caller", somebody)
    engine: Any = type("Engine", (), {"cluster": cluster, "clock": staticmethod(lambda: 1000.0)})
    nothing: Any = None
    settings = Settings(Path("/"), "", "", "", "", Path("/"), frozenset(), frozenset(), master_host="m")
    service = JobService(engine, nothing, nothing, nothing, nothing, settings, nothing, Worklist())

    async def pages() -> list[bytes]:
        pages = service.List(ListJobsRequest(filter=JobFilter(user="all")), nothing)
        return [page.SerializeToString() if isinstance(page, JobPage) else page async for page in pages]

    found = asyncio.run(pages())
    assert sum(len(JobPage.FromString(page).jobs) for page in found) == JOBS
    assert max(map(len, found)) < 1 << 20 < frames.MAX_PAYLOAD
