"""Acknowledged means durable, as seen by the kernel: the database's log is synced before any submit is answered.

strace watches the master and its writer, and delays each sync, so that a wrong order cannot pass by luck. What the
master sends is encrypted, and replies share records with other frames: an answer is timed where it arrives, at bsub.
"""

import contextlib
import re
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.acceptance.personal import BIN, Cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

SYNC_S = 0.3
LINE = re.compile(r"(\d+\.\d+) (\w+)\((\d+)<(.*?\]|[^>]*)>,? ?(.*)\) += (-?\d+)(?: \(DELAYED\))? <(\d+\.\d+)>$")


@dataclass(frozen=True, slots=True)
class Call:
    """A system call: when it began and was over, its descriptor's target, the rest of its arguments."""

    began: float
    over: float
    name: str
    target: str
    text: str
    result: int


def _calls(directory: Path, prefix: str) -> list[Call]:
    """System calls in strace's output, of all threads, by start time."""
    found = []
    for path in directory.glob(f"{prefix}.*"):
        for line in path.read_text(errors="replace").splitlines():
            if match := LINE.match(line):
                began, name, _, target, text, result, lasted = match.groups()
                found.append(Call(float(began), float(began) + float(lasted), name, target, text, int(result)))
    return sorted(found, key=lambda call: call.began)


@contextlib.contextmanager
def _watched(directory: Path, prefix: str, pid: int, calls: str, *options: str) -> Iterator[None]:
    """Trace these calls of a process that runs already."""
    words = ["strace", "-ff", "-ttt", "-T", "-yy", "-x", "-s", "20000", "-e", f"trace={calls}", *options]
    log = directory / f"strace-{prefix}"
    with log.open("wb") as stderr:
        process = subprocess.Popen([*words, "-o", str(directory / prefix), "-p", str(pid)], stderr=stderr)
    try:
        wait_for(lambda: "attached" in log.read_text() or process.poll() is not None, 60, "strace to attach")
        assert process.poll() is None, log.read_text()
        yield
    finally:
        process.terminate()  # it detaches from the traced process
        process.wait(60)


def _writer_of(master: int) -> int:
    children = Path(f"/proc/{master}/task/{master}/children").read_text().split()
    return next(int(pid) for pid in children if Path(f"/proc/{pid}/comm").read_text() == "lavad-writer\n")


def _hex(text: str) -> str:
    """As strace -x shows it within bytes that are no text."""
    return "".join(f"\\x{byte:02x}" for byte in text.encode())


def _submit(cluster: Cluster, names: list[str]) -> dict[str, float]:
    """bsub of all these at once: when each had its answer."""
    words = [str(BIN / "bsub"), "-H", "-J"]
    started = {
        name: subprocess.Popen([*words, name, "sleep 1"], env=cluster.environment, stdout=subprocess.PIPE, text=True)
        for name in names
    }

    def answer(name: str) -> tuple[str, float]:
        process = started[name]
        assert process.stdout is not None
        assert "is submitted" in process.stdout.readline()
        at = time.time()
        process.communicate(timeout=60)
        return name, at

    with ThreadPoolExecutor(len(names)) as threads:
        return dict(threads.map(answer, names))


def _told_at(name: str, writer: list[Call], master: list[Call]) -> float:
    """Time at which the writer reported this submission durable to the master: after hand-over, write and sync."""
    mark = _hex(name)
    handed = next(call for call in master if call.target.startswith("UNIX") and mark in call.text)
    written = next(call for call in writer if call.name == "pwrite64" and mark in call.text)
    assert written.target.endswith("lava.db-wal")
    synced = next(call for call in writer if call.name in ("fdatasync", "fsync") and call.began >= written.over)
    assert (synced.target, synced.result) == (written.target, 0)
    told = next(call for call in writer if call.name == "sendto" and call.began >= synced.over)
    assert handed.began < written.began < synced.began < told.began
    assert told.began - synced.began >= SYNC_S
    return told.began


def test_the_log_is_synced_before_a_submit_is_answered(cluster: Cluster, tmp_path: Path) -> None:
    """One client after the other, then several at once: written, synced, reported, answered, in this order."""
    master = cluster.pid("lavad")
    syncs = ("-e", f"inject=fdatasync,fsync:delay_exit={int(SYNC_S * 1e6)}")
    names = [f"proof{number}." for number in range(7)]
    with (
        _watched(tmp_path, "writer", _writer_of(master), "pwrite64,fdatasync,fsync,sendto", *syncs),
        _watched(tmp_path, "master", master, "sendto,sendmsg,write,writev"),
    ):
        answered = {}
        for name in names[:2]:
            answered.update(_submit(cluster, [name]))
        answered.update(_submit(cluster, names[2:]))
        time.sleep(3 * SYNC_S)  # a sync that an answer did not wait for is seen, too
    writer, master_calls = _calls(tmp_path, "writer"), _calls(tmp_path, "master")
    told = {name: _told_at(name, writer, master_calls) for name in names}
    assert all(told[name] < answered[name] for name in names), (told, answered)
    assert cluster.run("bkill", "0").returncode == 0
