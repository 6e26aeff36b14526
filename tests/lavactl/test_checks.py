"""lavactl checks: newest results of health checks."""

from protos import cluster_pb2
from tests.lavactl.scripted import Desk, at


def a_host(name: str, *verdicts: int) -> cluster_pb2.HostRecord:
    """A host whose checks ended so."""
    host = cluster_pb2.HostRecord(facts=cluster_pb2.HostFacts(name=name))
    for verdict in verdicts:
        host.checks.add(
            command="/site/check", time=at("09:00:00"), verdict=verdict, text="disk is full" * (verdict > 0)
        )
    return host


def test_results_by_host(desk: Desk) -> None:
    """All of them, or those that are not good."""
    desk.client.host_records = [a_host("n1", 0), a_host("n2", 2)]
    header = "HOST  VERDICT  TIME             PROGRAM      REASON\n"
    bad = "n2    bad      Nov 21 09:00:00  /site/check  disk is full\n"
    assert desk.type("lavactl", "checks").out == f"{header}n1    ok       Nov 21 09:00:00  /site/check  -\n{bad}"
    assert desk.type("lavactl", "checks", "-bad").out == header + bad
    assert (
        desk.type("lavactl", "checks", "-noheader", "-bad").out
        == "n2  bad  Nov 21 09:00:00  /site/check  disk is full\n"
    )


def test_nothing_to_show(desk: Desk) -> None:
    """Each reason has its sentence: no check yet, no bad one, no such host."""
    desk.client.host_records = [a_host("n1")]
    assert desk.type("lavactl", "checks", "-bad").err == "No health check has ended since the master began.\n"
    desk.client.host_records = [a_host("n1", 0)]
    assert desk.type("lavactl", "checks", "-bad").err == "No health check warns, or found a host bad.\n"
    result = desk.type("lavactl", "checks", "n9")
    assert (result.code, result.out, result.err) == (255, "", "n9: No such host.\n")
