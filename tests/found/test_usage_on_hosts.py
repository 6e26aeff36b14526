"""Termination reasons found by a job's host, with real shepherds; GPU views of a cluster with simulated GPUs."""

import asyncio

import pytest

from protos.jobs_pb2 import Rlimit
from tests.acceptance.personal import Cluster
from tests.agents.conftest import place, somebody
from tests.agents.hosts import Host, Place, blob

__all__ = ["place", "somebody"]  # fixtures


@pytest.mark.parametrize("command", ["while :; do :; done", "exec sh -c 'while :; do :; done'"])
def test_the_processor_time_limit_is_the_reason_of_its_end(place: Place, command: str) -> None:
    """It was ``-``, and no TERM_CPULIMIT stood in the report: the shell's child and the job itself."""

    async def story() -> None:
        async with Host(place) as host:
            limited = blob(place, 1, command, rlimits=[Rlimit(name="cpu", soft=1)])
            assert (await host.finish(limited)).finished.reason == "TERM_CPULIMIT"
        assert "TERM_CPULIMIT: job killed after reaching LSF CPU usage limit." in place.out().read_text()

    asyncio.run(story())


def test_gpu_views_say_who_has_a_device_for_himself_and_what_memory_is_kept(cluster: Cluster) -> None:
    """j_exclusive was "no" for devices held alone, NGPUS_EXCL_ALLOC and NGPUS_SHARED_ALLOC "-", MRSV 0M.

    NGPUS_EXCL_ALLOC counts devices in mode exclusive_process, as LSF's does.
    """
    host = cluster.hosts()[0]
    alone = cluster.submit("-m", host, "-gpu", "num=1", "sleep", "300")
    cluster.becomes(alone, "RUN")
    shared = cluster.submit("-m", host, "-gpu", "num=1:gmem=4G", "sleep", "300")
    cluster.becomes(shared, "RUN")
    waits = cluster.submit("-H", "-gpu", "num=1:j_exclusive=no", "true")
    told = {job: cluster.says("bjobs", "-noheader", "-o", "j_exclusive", str(job)) for job in (alone, shared, waits)}
    assert told == {alone: "yes", shared: "no", waits: "no"}
    fields = "ngpus_alloc ngpus_excl_alloc ngpus_shared_alloc"
    assert cluster.says("bhosts", "-noheader", "-o", fields, host).split() == ["2", "0", "1"]
    rows = cluster.says("bhosts", "-gpu", host).splitlines()
    at = rows[0].split().index("MRSV") - len(rows[0].split())
    assert sorted(row.split()[at] for row in rows[1:]) == ["0M", "4096M"]
    cluster.clear()
