"""Rows of allocations."""

from lavad.core.model import HostShare, ResourceShare
from lavad.store.rows.values import decode_hosts, hosts_text

FPGAS = (ResourceShare("fpga", 2000, (0, 1)),)


def test_the_store_keeps_roles_and_reads_rows_without() -> None:
    """A row of an earlier version is a share whose GPUs are for all tasks."""
    resources = (ResourceShare("fpga", 2000, (0, 1), (0, 1)), ResourceShare("lic", 1000))
    kept = HostShare("n1", 3, 0, (0, 2), (1, 2), resources, gpu_roles=(0, 1))
    assert decode_hosts(hosts_text((kept,))) == (kept,)
    old = '[["n1",3,0,[0,2],[1,2],{"resources":[["fpga",2000,[0,1]]],"gpu_memory_mib":[512,512]}]]'
    assert decode_hosts(old) == (HostShare("n1", 3, 0, (0, 2), (1, 2), FPGAS, (512, 512)),)
    assert hosts_text(decode_hosts(old)) == old
