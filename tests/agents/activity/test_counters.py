"""Counters of activity."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from agents.activity import counters
from protos.cluster_pb2 import Gpu

NET_DEV = """\
Inter-|   Receive                                               |  Transmit
 face |bytes   packets errs drop fifo frame compressed multicast|bytes   packets errs drop fifo colls carrier compressed
    lo: 9000000      9    0    0    0     0          0         0 9000000       9    0    0    0     0       0          0
  eth0:    1000     10    0    0    0     0          0         0     200       2    0    0    0     0       0          0
   ib0:      30      1    0    0    0     0          0         0       4       1    0    0    0     0       0          0
"""


def test_network_bytes_are_those_of_all_interfaces_but_the_loopback() -> None:
    """In the namespace of the processes; in that of the agent if none is left."""
    assert counters.interface_bytes(NET_DEV) == 1234
    assert 0 <= counters.network_bytes([os.getpid()]) <= counters.network_bytes([1 << 22])


def test_infiniband_is_counted_by_its_ports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's interfaces do not see what goes by RDMA."""
    port = tmp_path / "mlx5_0" / "ports" / "1" / "counters"
    port.mkdir(parents=True)
    (port / "port_rcv_data").write_text("100\n")
    (port / "port_xmit_data").write_text("25\n")
    monkeypatch.setattr(counters, "INFINIBAND", tmp_path)
    assert counters.port_bytes() == 500


def test_files_that_are_missing_have_no_size(tmp_path: Path) -> None:
    """A file that was removed is no error."""
    (tmp_path / "out").write_bytes(b"12345")
    assert counters.size_of([str(tmp_path / "out"), str(tmp_path / "no"), ""]) == 5


def test_a_part_is_stopped_if_all_its_processes_are() -> None:
    """Those that have ended meanwhile do not count, and no process is not stopped."""
    process = subprocess.Popen(["sleep", "60"])
    try:
        assert not counters.are_stopped([process.pid])
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        assert counters.are_stopped([process.pid, 1 << 22])
        assert not counters.are_stopped([process.pid, os.getpid()])
        assert not counters.are_stopped([])
    finally:
        process.kill()
        process.wait()


def test_power_counts_as_a_part_of_the_limit() -> None:
    """The highest of the part's devices; not known if that of any is not."""
    gpus = [
        Gpu(index=0, status="ok", power_w=70, power_limit_w=700),
        Gpu(index=1, status="ok", power_w=350, power_limit_w=700),
        Gpu(index=2, status="GPU is lost"),
        Gpu(index=3, status="ok", power_w=60),
    ]
    assert counters.power_of(gpus, [0]) == pytest.approx(0.1)
    assert counters.power_of(gpus, [0, 1]) == pytest.approx(0.5)
    assert counters.power_of(gpus, [0, 2]) is None
    assert counters.power_of(gpus, [3]) is None
    assert counters.power_of(gpus, []) is None
