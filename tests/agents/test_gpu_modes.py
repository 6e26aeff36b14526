"""GPU compute modes changed for jobs: the previous mode is restored, by this agent or the next."""

import subprocess
import sys
from pathlib import Path

import pytest

from agents.gpus.simulated import SimulatedModes
from agents.gpus.vendor import ModeError
from agents.job_setup.gpu_modes import GpuModes
from tests.fakes.nvml import FakeNvml

A, B = (1, 0, 1), (2, 0, 1)


class Stubborn(SimulatedModes):
    """Devices that do not take a mode."""

    def set(self, uuid: str, mode: str) -> None:
        raise ModeError(f"no {mode} for {uuid}")


def test_the_mode_before_comes_back(tmp_path: Path) -> None:
    """Only devices whose mode was changed for the job are restored; one already in that mode, and other jobs', are
    untouched.
    """
    driver = SimulatedModes()
    driver.set("1", "exclusive_process")
    modes = GpuModes(tmp_path / "modes", driver)
    modes.set(A, [0, 1], "exclusive_process")
    assert driver.read("0") == driver.read("1") == "exclusive_process"
    modes.put_back(B)
    assert driver.read("0") == "exclusive_process"
    modes.put_back(A)
    assert (driver.read("0"), driver.read("1")) == ("shared", "exclusive_process")


def test_jobs_on_one_device(tmp_path: Path) -> None:
    """A second job sets its own mode; at its end the first one's is restored, and finally the original one."""
    driver = SimulatedModes()
    driver.set("0", "prohibited")
    modes = GpuModes(tmp_path / "modes", driver)
    modes.set(A, [0], "exclusive_process")
    modes.set(B, [0], "shared")
    assert driver.read("0") == "shared"
    modes.put_back(B)
    assert driver.read("0") == "exclusive_process"
    modes.put_back(A)
    assert driver.read("0") == "prohibited"


def test_the_next_agent_puts_back_what_nobody_holds(tmp_path: Path) -> None:
    """It reads its predecessor's notes, also if that died between the note and the change."""
    driver = SimulatedModes()
    modes = GpuModes(tmp_path / "modes", driver)
    modes.set(A, [0], "exclusive_process")
    modes.set(B, [1], "exclusive_process")
    modes = GpuModes(tmp_path / "modes", driver)
    modes.adopt([B])
    assert (driver.read("0"), driver.read("1")) == ("shared", "exclusive_process")
    GpuModes(tmp_path / "modes", driver).adopt([])
    assert driver.read("1") == "shared"


def test_only_who_asked_for_a_mode_is_refused(tmp_path: Path) -> None:
    """A device that does not take exclusive_process is no device for such a job; to be shared is no condition."""
    driver = Stubborn()
    SimulatedModes.set(driver, "0", "prohibited")
    modes = GpuModes(tmp_path / "modes", driver)
    modes.set(A, [0], "shared")
    with pytest.raises(
        ModeError, match="compute mode of GPU 0 can't be set to exclusive_process: no exclusive_process"
    ):
        modes.set(B, [0], "exclusive_process")
    (tmp_path / "modes").write_text("{nonsense")
    GpuModes(tmp_path / "modes", driver).adopt([])


ASK = """
from agents.gpus.nvidia import NvmlModes
modes = NvmlModes()
print(modes.can_set(), modes.read(modes.uuid(1)))
"""


@pytest.mark.parametrize(("lines", "said"), [((), "True"), (("gpu 0 set_mode 4",), "False")])
def test_who_may_set_modes(tmp_path: Path, lines: tuple[str, ...], said: str) -> None:
    """Permission is probed by setting the present mode; a device is identified by its UUID."""
    nvml = FakeNvml(tmp_path)
    nvml.describe("devices 2", "gpu 1 mode 3", *lines)
    done = subprocess.run([sys.executable, "-c", ASK], env=nvml.environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [said, "exclusive_process"]
    assert nvml.mode(0) == 0
