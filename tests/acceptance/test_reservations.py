"""An advance reservation with real processes: it excludes others, runs its own jobs, outlives the master, and ends."""

import contextlib
import os
import pwd
import time
from collections.abc import Iterator

import pytest

from lavactl.io import Io
from protos import cluster_pb2 as pb
from tests.acceptance.personal import Cluster, a_cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One host of two slots."""
    with a_cluster(
        tmp_path_factory.mktemp("reserve") / "D", 1, 2, LAVA_TERMINATE_INTERVAL="1", LAVA_HEARTBEAT="1"
    ) as made:
        yield made


def _is_from_to(cluster: Cluster, name: str, begin: float, end: float) -> None:
    """As brsvmod -b -e does, which counts in minutes, one of which may be over before the command is read."""
    request = pb.ReserveRequest(action=pb.CHANGE_RESERVATION, name=name, fields=["times"], begins_at=begin, ends_at=end)
    entries = [f"{key}={value}".encode() for key, value in cluster.environment.items()]
    with contextlib.closing(Io(raw_environ=entries).client()) as client:
        client.reserve(request)


def test_a_reservation_from_its_beginning_to_its_end(cluster: Cluster) -> None:
    """Two slots, all of them reserved from this moment on."""
    (host,) = cluster.hosts()
    user = pwd.getpwuid(os.getuid()).pw_name
    begin, end = (time.strftime("%H:%M", time.localtime(time.time() + later)) for later in (3600, 7200))
    made = cluster.run("brsvadd", "-n", "2", "-m", host, "-u", user, "-N", "course", "-b", begin, "-e", end)
    assert made.stdout == 'Reservation "course" is created\n', made.stderr
    began = time.time()
    _is_from_to(cluster, "course", began, began + 3600)
    other = cluster.submit("sleep", "1000")
    inside = cluster.submit("-U", "course", "sleep", "1000")
    cluster.becomes(inside, "RUN")
    assert cluster.state(other) == "PEND"
    reason = "Job slots reserved by an advance reservation"
    wait_for(lambda: reason in cluster.run("bjobs", "-p", str(other)).stdout, 60, "the reason")
    assert "Reservation <course>" in cluster.run("bjobs", "-l", str(inside)).stdout.replace("\n" + " " * 21, "")
    assert "1/2" in cluster.run("brsvs").stdout

    cluster.kill("lavad")
    cluster.up()
    assert "course" in cluster.run("brsvs").stdout
    assert (cluster.state(inside), cluster.state(other)) == ("RUN", "PEND")

    _is_from_to(cluster, "course", began, time.time() + 2)
    cluster.becomes(inside, "EXIT")
    cluster.becomes(other, "RUN")
    assert "TERM_DEADLINE" in cluster.run("bhist", "-l", str(inside)).stdout
    assert cluster.run("brsvs").stderr == "No reservation found\n"
