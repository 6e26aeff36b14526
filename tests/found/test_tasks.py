"""Tasks of parallel jobs while agents are restarted, connections are cut, and callers vanish."""

import hashlib
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.shepherd.tasks.streams import KEPT_MAX
from tests.fakes.site import Site
from tests.gateway.test_tasks import SLOTS, command, finish, is_alive, until

pytestmark = pytest.mark.slow

# Lines that show a gap, a repetition and a change of order.
LINES = "i=0; while [ $i -lt 60 ]; do echo $i; i=$((i + 1)); sleep 0.02; done; exit 7"
NUMBERS = "".join(f"{number}\n" for number in range(60))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Two hosts that hold job 7."""
    with Site(tmp_path, "n1", "n2") as site:
        site.allocate(7, *SLOTS)
        yield site


def restart(site: Site, host: str, gap_s: float = 0.1) -> None:
    """Stop the agent of a host and start it again."""
    site.call(site.agents[host].leave())
    time.sleep(gap_s)
    site.call(site.agents[host].come_back())


def pid_of_first_task(site: Site, host: str) -> int:
    """Process id of the first task of a host, once it exists."""
    until(lambda: site.agents[host].attempts.handles, "the task to start")
    return site.agents[host].attempts.handles[0].pid


@pytest.mark.parametrize("host", ["n1", "n2"])
def test_blaunch_goes_on_when_agents_are_restarted(site: Site, host: str) -> None:
    """Its own host's agent and the other one, in turn: every line once, in order, and the task's own exit code."""
    process = command(site, "blaunch", host, LINES)
    pid = pid_of_first_task(site, host)
    for restarted in ("n1", "n2", "n1", "n2"):
        restart(site, restarted)
    assert finish(process) == (7, NUMBERS, "")
    assert [handle.pid for handle in site.agents[host].attempts.handles] == [pid]


def test_tasks_on_every_slot_go_on_when_all_agents_are_restarted_at_once(site: Site) -> None:
    """Both agents are away together, and whole lines stay whole."""
    process = command(site, "blaunch", "for i in 1 2 3 4 5 6 7 8; do echo $LSF_PM_TASKID.$i; sleep 0.1; done")
    until(lambda: sum(len(agent.attempts.handles) for agent in site.agents.values()) == 4, "all tasks to start")
    for agent in site.agents.values():
        site.call(agent.leave())
    for agent in site.agents.values():
        site.call(agent.come_back())
    code, out, err = finish(process)
    assert (code, err) == (0, "")
    assert sorted(out.split()) == sorted(f"{task}.{line}" for task in range(1, 5) for line in range(1, 9))


def test_input_reaches_the_task_whole_through_restarts(site: Site) -> None:
    """Bytes in transit are sent again, acknowledged ones are not."""
    data = os.urandom(4_000_000)
    # It reads slowly, so that much is in transit whenever an agent stops.
    reader = "import hashlib, sys, time\nd = hashlib.sha256()\nwhile b := sys.stdin.buffer.read1(100000):\n"
    reader += " d.update(b); time.sleep(0.02)\nprint(d.hexdigest())"
    process = command(site, "blaunch", "n2", f"python3 -c '{reader}'", stdin=subprocess.PIPE)
    pid_of_first_task(site, "n2")
    restarts = threading.Thread(target=lambda: [restart(site, host) for host in ("n1", "n2", "n1")])
    restarts.start()
    code, out, err = finish(process, data)
    restarts.join()
    assert (code, out, err) == (0, hashlib.sha256(data).hexdigest() + "\n", "")


def test_a_task_waits_while_nobody_listens_and_loses_nothing(site: Site) -> None:
    """It writes more than the buffer holds, so it blocks until its caller is back."""
    size = 8 * KEPT_MAX
    script = f"import sys\nfor i in range({size} // 8): sys.stdout.write('%07d\\\\n' % i)"
    process = command(site, "blaunch", "n2", f'echo up; sleep 0.5; exec python3 -c "{script}"')
    pid = pid_of_first_task(site, "n2")
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    site.call(site.agents["n1"].leave())
    time.sleep(1.5)
    assert is_alive(pid), "it has written all, and nobody has read it"
    site.call(site.agents["n1"].come_back())
    assert finish(process) == (0, "".join(f"{number:07}\n" for number in range(size // 8)), "")


def test_a_signal_sent_while_the_agent_is_away_arrives_once(site: Site) -> None:
    """The caller keeps it until the task can have it."""
    script = "trap 'echo caught' USR1; trap 'exit 9' TERM; echo up; while :; do sleep 0.05; done"
    process = command(site, "blaunch", "n2", script)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    site.call(site.agents["n1"].leave())
    process.send_signal(signal.SIGUSR1)
    time.sleep(0.2)
    site.call(site.agents["n1"].come_back())
    assert process.stdout.readline() == b"caught\n"
    restart(site, "n2")
    process.send_signal(signal.SIGTERM)
    assert finish(process)[:2] == (9, "")


def test_the_end_of_a_task_is_kept_for_its_caller(site: Site) -> None:
    """A task that ends while its caller's agent is away keeps its exit code."""
    process = command(site, "blaunch", "n2", "echo up; sleep 0.5; echo last; exit 3")
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    site.call(site.agents["n1"].leave())
    pid = pid_of_first_task(site, "n2")
    until(lambda: not is_alive(pid), "the task to end")
    restart(site, "n2")
    site.call(site.agents["n1"].come_back())
    assert finish(process) == (3, "last\n", "")


def test_a_blaunch_that_begins_while_the_agent_is_restarted_waits_for_it(site: Site) -> None:
    """It does not fail for lack of an agent."""
    site.call(site.agents["n1"].leave())
    process = command(site, "blaunch", "n2", "echo here")
    time.sleep(1.0)
    site.call(site.agents["n1"].come_back())
    assert finish(process) == (0, "here\n", "")


def test_tasks_end_when_their_caller_dies_while_the_other_agent_is_away(site: Site) -> None:
    """The caller's agent notifies the other as soon as that is back."""
    # Enough output that some of it has been acknowledged.
    process = command(site, "blaunch", "n2", "seq 1 50000; echo up; exec sleep 1000")
    pid = pid_of_first_task(site, "n2")
    assert process.stdout is not None
    assert b"up\n" in iter(process.stdout.readline, b"")
    site.call(site.agents["n2"].leave())
    process.kill()
    finish(process)
    site.call(site.agents["n2"].come_back())
    until(lambda: not is_alive(pid), "the task to end")


@pytest.mark.parametrize("host", ["n1", "n2"])
def test_tasks_end_in_time_when_nobody_says_that_their_caller_died(site: Site, host: str) -> None:
    """It died while its own agent was away: the task waits for its configured time, and no longer."""
    site.agents[host].attempts.patience_s = 0.3
    process = command(site, "blaunch", host, "trap '' TERM; echo up; sleep 1000")
    pid = pid_of_first_task(site, host)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    site.call(site.agents["n1"].leave())
    process.kill()
    finish(process)
    site.call(site.agents["n1"].come_back())
    until(lambda: not is_alive(pid), "the task to end")


def test_a_start_that_is_repeated_starts_one_task(site: Site) -> None:
    """The agents are restarted while many tasks are being started: none is missing, none is started twice."""
    processes = [command(site, "blaunch", "n2", f"echo task{number}") for number in range(6)]
    for host in ("n2", "n1", "n2"):
        restart(site, host, gap_s=0.0)
    assert [finish(process) for process in processes] == [(0, f"task{number}\n", "") for number in range(6)]
    assert len(site.agents["n2"].attempts.handles) == 6


def test_a_host_that_stays_away_is_given_up(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not before the task would have been ended there, and with a message that names the host."""
    site.agents["n2"].attempts.patience_s = 0.3
    process = command(site, "blaunch", "n2", "echo up; sleep 1000")
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    monkeypatch.setattr("agents.peers.CONNECT_S", 1.0)
    site.call(site.agents["n2"].leave())
    code, _, err = finish(process)
    assert code == 255
    assert re.fullmatch(r"blaunch: n2: the (connection to the )?agent of n2 .*\n", err), err


def test_tasks_that_read_nothing_of_their_input_end(site: Site) -> None:
    """Input crosses with the end of the task, repeatedly."""
    for _ in range(8):
        process = command(site, "blaunch", "n1", "exit 4", stdin=subprocess.PIPE)
        assert finish(process, b"unread" * 1000) == (4, "", "")
