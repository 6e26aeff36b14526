"""Acknowledged means durable, as seen by the kernel: the database's log is synced before any reply to a submit is sent.

strace watches the master and its writer, and delays each sync, so that a wrong order cannot pass by luck. Jobs are
submitted on hold, so that only replies are sent.
"""

import contextlib
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.acceptance.personal import BIN, Cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

SYNC_S = 0.3
# Bytes of a TLS record: replies to a submit have 75 to 88, their calls' beginnings and ends less than 50.
SMALL_RECORD = 64
HEARTBEAT_RECORD = 72
LINE = re.compile(r"(\d+\.\d+) (\w+)\((\d+)<(.*?\]|[^>]*)>,? ?(.*)\) += (-?\d+)(?: \(DELAYED\))? <(\d+\.\d+)>$")
TLS_RECORD = re.compile(r'iov_base="\\x17\\x03\\x03\\x(..)\\x(..)')


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
        process.wait(20)


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
    answered = {}
    for name, process in started.items():
        assert process.stdout is not None
        assert "is submitted" in process.stdout.readline()
        answered[name] = time.time()
        process.communicate(timeout=60)
    return answered


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


def _replies(master: list[Call]) -> list[Call]:
    """Replies to submits: the large records of the connection with most of them; other connections carry heartbeats."""
    large = [call for call in master if call.target.startswith("TCP") and _record_bytes(call) > SMALL_RECORD]
    busiest, _ = Counter(call.target for call in large if _record_bytes(call) > HEARTBEAT_RECORD).most_common(1)[0]
    return [call for call in large if call.target == busiest]


def _record_bytes(call: Call) -> int:
    record = TLS_RECORD.search(call.text)
    return int(record[1] + record[2], 16) if record else 0


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
    writer, master_calls = _calls(tmp_path, "writer"), _calls(tmp_path, "master")
    told = {name: _told_at(name, writer, master_calls) for name in names}
    assert all(told[name] < answered[name] for name in names)
    # Replies are encrypted, but can be counted: at no time were there more than durable submissions.
    replies = _replies(master_calls)
    seen = [(call.began, _record_bytes(call)) for call in replies]
    assert len(replies) >= 3, seen  # those that leave together may share a record
    for number, reply in enumerate(replies[: len(names)], 1):  # several ends of calls in one record may follow
        assert sum(moment < reply.began for moment in told.values()) >= number, (seen, told)
    assert cluster.run("bkill", "0").returncode == 0
