"""Rows of allocations."""

from types import SimpleNamespace

import pytest

from lavad.core.model import HostShare, OutputFiles, ResourceShare, RunChange
from lavad.store.rows.values import allocation_row, decode_attempt, decode_hosts, hosts_text
from lavad.store.schema import allocations
from tests.builders import a_cluster, a_host, a_job

FPGAS = (ResourceShare("fpga", 2000, (0, 1)),)


def test_the_store_keeps_roles_and_reads_rows_without() -> None:
    """A row of an earlier version is a share whose GPUs are for all tasks."""
    resources = (ResourceShare("fpga", 2000, (0, 1), (0, 1)), ResourceShare("lic", 1000))
    kept = HostShare("n1", 3, 0, (0, 2), (1, 2), resources, gpu_roles=(0, 1))
    assert decode_hosts(hosts_text((kept,))) == (kept,)
    old = '[["n1",3,0,[0,2],[1,2],{"resources":[["fpga",2000,[0,1]]],"gpu_memory_mib":[512,512]}]]'
    assert decode_hosts(old) == (HostShare("n1", 3, 0, (0, 2), (1, 2), FPGAS, (512, 512)),)
    assert hosts_text(decode_hosts(old)) == old


@pytest.mark.parametrize(
    "changed",
    [
        None,
        RunChange(0),
        RunChange(60, OutputFiles("o", "", True, False)),
        RunChange(None, OutputFiles(*"oe", False, True)),
    ],
)
def test_the_store_keeps_what_a_running_job_was_given(changed: RunChange | None) -> None:
    """A CPU limit, and the files in which its output is at its end."""
    story = a_cluster(a_host())
    attempt = story.cluster.attempts[story.run(a_job())]
    attempt.changed, attempt.limits_version = changed, int(changed is not None)
    names = [column.name for column in allocations.columns]
    row = SimpleNamespace(**dict(zip(names, allocation_row(attempt), strict=True)))
    assert decode_attempt(row).changed == changed  # type: ignore[arg-type]
