"""Golden output of bhpart."""

from protos import cluster_pb2
from tests.lavactl.scripted import Desk


def _partition() -> cluster_pb2.HostPartitionRecord:
    one = cluster_pb2.HostPartitionRecord(name="p1", hosts=["thin/", "fat01"])
    one.share_tree.add(name="chem", shares=20, priority=3.333, started=2, reserved=1, cpu_s=1204.5, run_s=480)
    one.share_tree.add(path="/chem", name="alice", shares=1, priority=0.5)
    return one


def test_partitions_with_their_shares(desk: Desk) -> None:
    """lsf.md 1.5: HOST_PARTITION_NAME, HOSTS, SHARE_INFO_FOR with the column ADJUST; -r shows the whole tree."""
    desk.client.host_partitions_reply.partitions.extend([_partition(), _partition()])
    desk.client.host_partitions_reply.partitions[1].name = "rest"
    del desk.client.host_partitions_reply.partitions[1].share_tree[:]
    desk.client.host_partitions_reply.partitions[1].hosts[:] = ["all"]
    top = (
        "HOST_PARTITION_NAME: p1\n"
        "HOSTS: thin/ fat01\n"
        "\nSHARE_INFO_FOR: p1/\n"
        "USER/GROUP      SHARES    PRIORITY   STARTED  RESERVED    CPU_TIME  RUN_TIME   ADJUST\n"
        " chem               20       3.333         2         1      1204.5       480    0.000\n"
    )
    inner = (
        "\nSHARE_INFO_FOR: p1/chem/\n"
        "USER/GROUP      SHARES    PRIORITY   STARTED  RESERVED    CPU_TIME  RUN_TIME   ADJUST\n"
        " alice               1       0.500         0         0         0.0         0    0.000\n"
    )
    rest = "\nHOST_PARTITION_NAME: rest\nHOSTS: all hosts\n"
    assert desk.type("bhpart").out == top + rest
    assert desk.type("bhpart", "-r").out == top + inner + rest


def test_partitions_that_are_not_there(desk: Desk) -> None:
    """A name that is none is told, with exit code 255; so is a cluster without any."""
    assert (result := desk.type("bhpart")).err == "No host partition found\n"
    assert result.code == 255
    desk.client.host_partitions_reply.partitions.append(_partition())
    desk.client.host_partitions_reply.missing.append("p9")
    result = desk.type("bhpart", "p1", "p9")
    assert (result.code, result.err) == (255, "p9: No such host partition\n")
    assert list(desk.client.asked[-1].names) == ["p1", "p9"]
