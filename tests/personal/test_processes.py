"""Identifying and ending exactly the intended processes."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from lavactl.personal import processes
from lavactl.personal.processes import Process

STUBBORN = "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(60)"


@contextmanager
def a_child(*argv: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A child that is gone afterwards."""
    child = subprocess.Popen(argv or ("sleep", "60"), stdout=subprocess.PIPE)
    try:
        yield child
    finally:
        child.kill()
        child.wait()
        assert child.stdout
        child.stdout.close()


def known(pid: int) -> Process:
    """The process of this pid, which must be there."""
    found = processes.identify(pid)
    assert found is not None
    return found


def test_a_process_is_known_by_more_than_its_pid() -> None:
    """Another start time or another boot is another process, and an unreaped exit status is none."""
    with a_child() as child:
        process = known(child.pid)
        assert processes.is_alive(process)
        assert not processes.is_alive(replace(process, start_ticks=process.start_ticks - 1))
        assert not processes.is_alive(replace(process, boot_id="earlier"))
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not processes.is_alive(process)
    assert processes.identify(child.pid) is None


def test_a_reused_pid_is_not_signalled() -> None:
    """The stranger that has the pid now lives on."""
    with a_child() as child:
        stranger = known(child.pid)
        processes.end([replace(stranger, start_ticks=stranger.start_ticks - 1)], 0.0)
        assert processes.is_alive(stranger)


@pytest.mark.slow
def test_a_process_that_ignores_terminate_is_killed() -> None:
    """After the patience, not before; and one that obeys is gone at once."""
    with a_child(sys.executable, "-c", STUBBORN) as stubborn, a_child() as obedient:
        assert stubborn.stdout
        stubborn.stdout.readline()
        begun = time.monotonic()
        processes.end([known(stubborn.pid), known(obedient.pid)], 0.5)
        assert time.monotonic() - begun >= 0.5
        assert processes.identify(stubborn.pid) is None
        assert processes.identify(obedient.pid) is None


def test_a_stopped_process_is_ended() -> None:
    """SIGTERM alone would wait for ever."""
    with a_child() as child:
        child.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, child.pid, os.WSTOPPED)
        processes.end([known(child.pid)], 5.0)
        assert processes.identify(child.pid) is None


@pytest.mark.slow
def test_a_sweep_ends_what_forks_while_it_is_swept() -> None:
    """Every process in the group dies, also those forked after the first scan."""
    forker = (
        "import os,time\nos.setpgid(0,0)\nprint(flush=True)\n"
        "for _ in range(5000):\n    if os.fork(): break\ntime.sleep(60)"
    )
    with a_child(sys.executable, "-c", forker) as child:
        assert child.stdout
        child.stdout.readline()

        def group() -> list[int]:
            return [pid for pid in processes.all_pids() if _group(pid) == child.pid]

        try:
            processes.sweep(group)
            assert not [pid for pid in group() if processes.identify(pid)]
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)


def _group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return -1


def test_a_foreign_name_with_blanks_and_brackets_confuses_nobody() -> None:
    """The command name in /proc/PID/stat may contain any character."""
    rename = "import ctypes,time; ctypes.CDLL(None).prctl(15, b') R 1 (x', 0, 0, 0); print(flush=True); time.sleep(60)"
    with a_child(sys.executable, "-c", rename) as child:
        assert child.stdout
        child.stdout.readline()
        assert known(child.pid).start_ticks > 0
        assert processes.is_alive(known(child.pid))
