"""The end of a child process: its own, or by force."""

import asyncio
import signal
import subprocess
import sys

import pytest

from lavad.store import child_process


@pytest.mark.parametrize(
    ("program", "timeout_s", "returned"),
    [("raise SystemExit(3)", 60.0, 3), ("import time; time.sleep(60)", 0.1, -signal.SIGKILL)],
)
def test_a_process_is_waited_for_and_killed_only_if_it_goes_on(program: str, timeout_s: float, returned: int) -> None:
    """Either way it is reaped."""
    process = subprocess.Popen([sys.executable, "-c", program])
    asyncio.run(child_process.end(process, timeout_s))
    assert process.returncode == returned
