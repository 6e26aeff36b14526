"""GPU device files that jobs could open: those of other jobs."""

import asyncio
import dataclasses
import os
import subprocess
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.gpus.device_files import device_numbers
from agents.gpus.vendors import vendor
from agents.shepherd.confinement.device_filter import FilterV2
from protos.common_pb2 import HostShare
from tests.agents.conftest import place, somebody
from tests.agents.hosts import NAME, Host, Place, blob, lines, stage

__all__ = ["place", "somebody"]

pytestmark = [pytest.mark.slow, pytest.mark.root]
UNIFIED = Path("/sys/fs/cgroup/unified")
# Two devices that every machine has serve as GPUs.
GPUS = ("/dev/urandom", "/dev/zero")
OPEN_EACH = "for d in /dev/urandom /dev/zero /dev/full; do head -c0 $d 2>/dev/null && echo $d; done; true"


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run one test in an event loop of its own."""
    asyncio.run(coroutine)


def test_a_job_opens_its_own_gpus_only(place: Place) -> None:
    """Whatever its environment; the next job of the same shepherd opens its own, and one without GPUs none."""

    async def story() -> None:
        host = Host(place, slots=1, has_gpus=True)
        host._context = dataclasses.replace(host._context, gpu_devices=device_numbers(vendor(), GPUS))
        async with host:
            if not host.base.version or (host.base.version == 1 and "devices" not in dict(host.base.paths)):
                pytest.skip("no control groups for devices on this machine")
            cases = (([0], GPUS[:1]), ([1], GPUS[1:]), ([], ()), ([0, 1], GPUS))
            for number, (gpus, expected) in enumerate(cases, start=1):
                where = stage(HostShare(host=NAME, slots=1, gpus=gpus))
                output = place.out(f"out{number}")
                end = (await host.finish(blob(place, number, OPEN_EACH, output=str(output)), where)).finished
                assert end.status == 0
                assert lines(output) == [*expected, "/dev/full"]

    run(story())


@pytest.fixture
def group() -> Iterator[Path]:
    """A real group of version 2."""
    path = UNIFIED / f"lava-test-{os.getpid()}"
    try:
        path.mkdir()
    except OSError:
        pytest.skip("no group of version 2 can be made here")
    yield path
    path.rmdir()


def _opened_in(group: Path) -> list[str]:
    words = ["/bin/sh", "-c", f"echo $$ > {group}/cgroup.procs; {OPEN_EACH}"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()


def test_version_2_asks_a_program(group: Path) -> None:
    """The kernel's verifier takes it; the next one takes its place, also one of another shepherd."""
    urandom, zero = device_numbers(vendor(), GPUS)
    devices = FilterV2(str(group))
    try:
        devices.deny([urandom], [zero])
    except OSError as error:
        pytest.skip(f"this kernel takes no such program: {error.strerror}")
    assert _opened_in(group) == ["/dev/zero", "/dev/full"]
    devices.deny([zero], [urandom])
    assert _opened_in(group) == ["/dev/urandom", "/dev/full"]
    FilterV2(str(group)).deny([], [urandom, zero])
    assert _opened_in(group) == [*GPUS, "/dev/full"]


def test_files_that_are_no_devices(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """No access is restricted then, and the log gives the reason."""
    assert device_numbers(vendor(), [str(tmp_path)]) == ()
    assert "is no character device" in caplog.text
