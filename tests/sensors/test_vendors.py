"""GPU vendors: the choice of one for a host, and the words by which jobs and commands know it."""

import marshal

import pytest

from agents.gpus import vendors
from agents.gpus.nvidia import Nvidia
from agents.gpus.simulated import Simulated
from agents.job_setup.environment import submitted
from agents.job_setup.host_context import HostContext
from agents.job_setup.task_devices import variables_of_all
from agents.shepherd.messages import GpuDaemon
from agents.shepherd.process import gpu_daemon
from lavactl.submit.job_options import INNER_NAMES
from lavad.core.language.requirements import gpu
from protos import gpu_vendors
from protos.agents_pb2 import GpuSetup, Stage
from protos.common_pb2 import HostShare
from protos.gpu_vendors import GpuVendor, label

OTHER = GpuVendor("other", "Other", "OTHER_DEVICES", (("OTHER_ORDER", "1"),))


class Other(Simulated):
    """Devices of another vendor."""

    words = OTHER


def test_a_hosts_vendor_is_that_whose_driver_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated devices come first; without any driver the first vendor's is awaited."""
    other, nvidia = Other(1), Nvidia()
    monkeypatch.setattr(vendors, "VENDORS", (nvidia, other))
    monkeypatch.setattr(nvidia, "is_present", lambda: False, raising=False)
    assert vendors.vendor() is other
    assert isinstance(vendors.vendor(2), Simulated)
    monkeypatch.setattr(vendors, "VENDORS", (nvidia,))
    assert vendors.vendor() is nvidia


def test_a_job_sees_its_devices_by_its_vendors_variable() -> None:
    """UUIDs, a daemon and the order of devices are that vendor's affair, too."""
    stage = Stage(allocation=[HostShare(host="n1", slots=1, gpus=[1, 3])], gpu=GpuSetup())
    host = HostContext("n1", "/s", "/b", "", has_gpus=True, oversubscribed=False, gpu_vendor=OTHER)
    assert variables_of_all(stage, host) == {"OTHER_DEVICES": "1,3"}


def test_every_part_knows_every_vendor() -> None:
    """No job inherits another's devices; commands name each vendor; -gpu takes its name."""
    for vendor in gpu_vendors.VENDORS:
        assert submitted([f"{vendor.visible}=7".encode(), b"A=1"]) == {b"A": b"1"}
        assert {name.encode() for name in vendor.variables()} <= INNER_NAMES
        assert (label(vendor.name), gpu.parse(f"gvendor={vendor.name}").vendor) == (vendor.label, vendor.name)
    assert {vendor.words for vendor in vendors.VENDORS} == set(gpu_vendors.VENDORS)
    assert label("") == "Nvidia"


def test_shepherds_of_earlier_versions_start_a_daemon() -> None:
    """They take program, base directory and devices from the first three places of the setup's field."""
    assert GpuDaemon._fields[:3] == ("program", "base", "devices")
    daemon = GpuDaemon("/p", "/base", "0,1", "label", "V", ("-d",), (("D", "pipe"),))
    assert GpuDaemon._make(marshal.loads(marshal.dumps(tuple(daemon)))) == daemon
    assert gpu_daemon.directory_of("/base", (7, 0, 1)) == "/base/7-0-1"
