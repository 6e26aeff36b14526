"""A child process: forked before it is needed or executed, and its end, its own or by force."""

import asyncio
import errno
import json
import os
import select
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


# A master with two kinds of children, which say how they live; the second kind is a real program when executed.
MASTER = """
import json, os, socket, sys
from lavad.store import child_process

def main(descriptor):
    with socket.socket(fileno=descriptor) as link:
        said = {
            "leads its session": os.getsid(0) == os.getpid(),
            "directory": os.getcwd(),
            "input": os.readlink("/proc/self/fd/0"),
            "open": [one for one in map(int, os.listdir("/proc/self/fd")) if one > 2 and is_open(one)],
            "its end": descriptor,
            "parent": os.getppid(),
        }
        link.sendall(json.dumps(said).encode())
        link.recv(1)

def is_open(descriptor):
    try:
        return bool(os.fstat(descriptor))
    except OSError:  # the one that listed them
        return False

WRITER = "lavad.store.writer_process"
inherited = open("/dev/zero")
child_process.prepare({"first": main, WRITER: main})
"""


def talk(words: str) -> subprocess.Popen[str]:
    """Run a master that prints lines."""
    return subprocess.Popen([sys.executable, "-c", MASTER + words], stdout=subprocess.PIPE, text=True)


def test_a_forked_child_has_nothing_of_its_master_but_its_end_of_the_socket() -> None:
    """Neither a descriptor, nor the session, the directory or the input; and it is the master's own child."""
    with talk("""
for name in ("first", WRITER):
    process, ours = child_process.start(name)
    print(ours.recv(1 << 16).decode())
print(os.getpid())
""") as master:
        assert master.stdout is not None
        *children, pid = map(json.loads, master.stdout)
    assert len(children) == 2
    for said in children:
        assert said["leads its session"]
        assert (said["directory"], said["input"]) == ("/", "/dev/null")
        assert said["open"] == [said["its end"]]
        assert said["parent"] == pid


def test_forked_children_end_with_a_killed_master_also_before_they_are_used() -> None:
    """Each sees the end of its own socket, which no other holds."""
    with talk("""
process, ours = child_process.start("first")
print(process.pid, child_process._prepared[WRITER][0].pid, flush=True)
sys.stdin.read()
""") as master:
        assert master.stdout is not None
        ends = [os.pidfd_open(int(pid)) for pid in master.stdout.readline().split()]
        master.kill()
    for end in ends:
        assert select.select([end], [], [], 60)[0]
        os.close(end)


def test_a_child_is_executed_after_the_forked_one_has_ended_used_or_not() -> None:
    """The exit codes are those of the processes."""
    with talk("""
process, ours = child_process.start("first")
process.kill()
print(process.wait(), process.poll())
unused = child_process._prepared[WRITER][0]
unused.kill()
unused.wait()
for _ in range(2):
    process, ours = child_process.start(WRITER)
    ours.close()
    print(type(process).__name__, process.wait())
""") as master:
        assert master.stdout is not None
        assert master.stdout.read() == "-9 -9\nPopen 0\nPopen 0\n"


def test_the_master_forks_with_one_thread_and_before_grpc() -> None:
    """A process with threads must never fork: a lock that one of them holds would stay locked in the child."""
    program = """
import os, sys
from lavad import main
from lavad.store import child_process

def prepare(mains):
    print(len(os.listdir("/proc/self/task")), "grpc" in sys.modules, len(mains))
    raise SystemExit

child_process.prepare = prepare
main.main([])
"""
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "1 False 3\n")


def test_a_process_that_may_not_give_way_works_all_the_same(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A sandbox without setpriority ended the reader and the writer of LSF's logs; now it is an error in the log."""

    def refuse(increment: int) -> int:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "nice", refuse)
    monkeypatch.setattr(child_process.Path, "write_text", lambda *words, **more: 0)
    child_process.give_way(5)
    assert "priority=not_lowered reason='Operation not permitted: the service must allow setpriority.'" in caplog.text


@pytest.mark.slow
def test_a_process_gives_way() -> None:
    """Its priority is lower by so much."""
    code = (
        "import os; from lavad.store.child_process import give_way; a = os.nice(0); give_way(3); print(os.nice(0) - a)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "3\n"
