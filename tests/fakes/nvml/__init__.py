"""A fake libnvidia-ml.so.1, built by gcc into a directory of the test's own; a text file there describes its hardware.

The loader reads LD_LIBRARY_PATH when a program starts, so the fake is seen by programs started with `environment`, not
by the test's own process.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("nvml.c")
LIBRARY = "libnvidia-ml.so.1"


class FakeNvml:
    """The library in a directory, and the answers it gives."""

    def __init__(self, directory: Path) -> None:
        compiler = shutil.which("gcc")
        if compiler is None:
            pytest.skip("gcc is not installed")
        self._state = directory / "state"
        self._library = directory
        command = [
            compiler,
            "-shared",
            "-fPIC",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-o",
            str(directory / LIBRARY),
            str(SOURCE),
        ]
        subprocess.run(command, check=True)
        self.describe()

    @property
    def environment(self) -> dict[str, str]:
        """The present environment, with the fake found before any real library."""
        return {**os.environ, "LD_LIBRARY_PATH": str(self._library), "FAKE_NVML_STATE": str(self._state)}

    def describe(self, *lines: str) -> None:
        """Replace the hardware: lines as in the head of nvml.c. Running programs see it at their next question."""
        fresh = self._state.with_suffix(".new")
        fresh.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")
        fresh.replace(self._state)

    def mode(self, index: int) -> int:
        """The device's compute mode as it is now: 0 shared, 3 exclusive_process."""
        lines = [line.split() for line in self._state.read_text(encoding="ascii").splitlines()]
        found = [words[3] for words in lines if words[:3] == ["gpu", str(index), "mode"]]
        return int(found[-1]) if found else 0
