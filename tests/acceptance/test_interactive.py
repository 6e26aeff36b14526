"""Interactive jobs as people have them: at a terminal, on another host, through restarts and losses."""

import re
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, wait_for
from tests.acceptance.terminals import Terminal

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

SHELL = ("bash", "--norc", "-i")
LOST = "; trying again, Ctrl-C leaves"
FOLD = "\n" + 21 * " "
LOGIN = f"agent-{socket.gethostname().partition('.')[0]}"  # the agent of the tests' own host
ROLES = """\
name: two
roles:
  worker:
    tasks: 2
    command: sleep 1000
"""
# One process that starts no other: a shell that has just called vfork for a command can't be stopped before it runs.
GOING = (
    f"{sys.executable} -ISc 'import os, signal as s; s.signal(2, s.SIG_DFL); "
    's.signal(s.SIGCONT, lambda *_: os.write(1, b"again\\n")); os.write(1, b"going\\n"); '
    "[s.pause() for _ in iter(int, 1)]'\r"
)


@pytest.fixture(autouse=True)
def _no_jobs_left(shared_cluster: Cluster) -> Iterator[None]:
    yield
    shared_cluster.clear()


def started(terminal: Terminal, host: str = "lava2") -> int:
    """Wait for the job's start; its number."""
    terminal.read("Job <")
    job = int(terminal.read("> is submitted to default queue <normal>.\r\n"))
    terminal.read("<<Waiting for dispatch ...>>\r\n")
    terminal.read(f"<<Starting on {host}>>\r\n")
    return job


def ended(cluster: Cluster, job: int, code: int) -> None:
    """Wait for the job's end, which the master may hear after its client, and compare the exit code."""
    cluster.becomes(job, "EXIT")
    assert cluster.states(job) == {0: ("EXIT", code)}


def test_a_shell_on_another_host(cluster: Cluster) -> None:
    """Line editing, Ctrl-C, Ctrl-Z, the window's size and its changes, and the exit code are the shell's own."""
    with Terminal(cluster, "bsub", "-Is", "-m", "lava2", *SHELL, lines=30, columns=99) as terminal:
        job = started(terminal)
        terminal.read("$ ")
        terminal.type("stty size; echo $LSB_INTERACTIVE $LSB_JOBID $TERM $LSB_HOSTS\r")
        terminal.read(f"\r\n30 99\r\nY {job} dumb lava2\r\n")
        terminal.type("echo onw\x7fe two\x01echo \x05 three\r")  # backspace, to the start, to the end
        terminal.read("\r\necho one two three\r\n")
        terminal.read("$ ")
        terminal.type(GOING)
        terminal.read("\r\ngoing\r\n")
        terminal.type("\x1a")
        terminal.read("Stopped")
        terminal.read("$ ")
        terminal.type("fg\r")
        terminal.read("\r\nagain\r\n")  # it has the terminal by then: before, the shell would get what is typed
        terminal.type("\x03")
        terminal.read("^C")
        terminal.read("$ ")
        terminal.resize(50, 132)
        terminal.type("stty size\r")
        terminal.read("\r\n50 132\r\n")
        assert cluster.says("bjobs", "-noheader", "-o", "interactive", str(job)) == "Y"
        assert "Interactive pseudo-terminal shell mode" in cluster.says("bjobs", "-UF", str(job))
        assert "Cannot bpeek an interactive job." in cluster.run("bpeek", str(job)).stderr
        terminal.type("exit 7\r")
        assert terminal.wait() == 7
    ended(cluster, job, 7)


def test_without_a_terminal_the_streams_stay_apart(cluster: Cluster) -> None:
    """-I: input to its end, output, errors and LSF's notices each where they belong; the exit code."""
    done = cluster.run("bsub", "-I", "-m", "lava2", "cat; tty; echo bad >&2; exit 3", stdin="one\ntwo\n")
    assert done.returncode == 3, done
    first, *rest = done.stdout.splitlines()
    assert re.fullmatch(r"Job <\d+> is submitted to default queue <normal>.", first)
    assert rest == ["one", "two", "not a tty"]
    assert sorted(done.stderr.splitlines()) == ["<<Starting on lava2>>", "<<Waiting for dispatch ...>>", "bad"]


def test_quiet_and_large(cluster: Cluster) -> None:
    """BSUB_QUIET leaves the job's own output alone, every byte of it."""
    done = cluster.with_environment(BSUB_QUIET="1").run("bsub", "-IS", "-m", "lava2", "seq 200000")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "".join(f"{number}\n" for number in range(1, 200_001))


def test_keys_of_bsub_itself(cluster: Cluster) -> None:
    """-Ip: Ctrl-Z stops bsub and the job, fg goes on with both, Ctrl-C interrupts the job."""
    with Terminal(cluster, *SHELL) as terminal:
        terminal.read("$ ")
        script = "trap 'echo caught; exit 4' INT; trap 'echo again' CONT; tty; while true; do sleep 0.1; done"
        terminal.type(f'bsub -Ip -m lava2 "{script}"\r')
        job = started(terminal)
        terminal.read("/dev/pts/")
        terminal.type("\x1a")
        terminal.read("Stopped")
        terminal.read("$ ")
        terminal.type("fg\r")
        terminal.read('sleep 0.1; done"\r\n')
        terminal.read("again")  # by then bsub is in the foreground
        terminal.type("\x03")
        terminal.read("caught")
        terminal.read("$ ")
        terminal.type("echo code $?; stty -a | grep -o ' icanon'\r")
        terminal.read("\r\ncode 4\r\n icanon\r\n")
        terminal.type("exit\r")
        assert terminal.wait() == 0
    ended(cluster, job, 4)


def test_ctrl_c_while_it_waits(cluster: Cluster) -> None:
    """The job is ended with its bsub."""
    with Terminal(cluster, "bsub", "-Is", "-H", *SHELL) as terminal:
        terminal.read("Job <")
        job = int(terminal.read(">"))
        terminal.read("<<Waiting for dispatch ...>>\r\n")
        terminal.type("\x03")
        terminal.read("<<Terminated while pending>>\r\n")
        assert terminal.wait() == 126
    cluster.becomes(job, "EXIT")


def test_the_job_ends_with_its_client(cluster: Cluster) -> None:
    """A bsub that is killed, or whose terminal hangs up, leaves no job behind."""
    for number in (signal.SIGKILL, signal.SIGHUP):
        with Terminal(cluster, "bsub", "-Is", "-m", "lava2", *SHELL) as terminal:
            job = started(terminal)
            terminal.read("$ ")
            terminal.kill(number)
            terminal.wait()
        cluster.becomes(job, "EXIT")
        assert "The client of the interactive job has gone" in cluster.history(job).replace(FOLD, "")


def test_restarts_of_all_daemons(cluster: Cluster) -> None:
    """The shell and what runs in it go on; no key and no byte is lost or doubled."""
    with Terminal(cluster, "bsub", "-Is", "-m", "lava2", *SHELL) as terminal:
        job = started(terminal)
        terminal.read("$ ")
        terminal.type("cat\r")
        terminal.read("cat\r\n")
        cluster.kill("lavad")
        terminal.type("without a master\r")
        terminal.read("without a master\r\nwithout a master\r\n")
        cluster.kill("agent-lava2")
        cluster.kill(LOGIN)
        terminal.read(f"{LOST}>>\r\n")
        cluster.up()
        terminal.read("<<Connected to lava2 again>>\r\n")
        terminal.type("after\r")
        assert terminal.read("after\r\nafter\r\n") == ""
        terminal.type("\x04")
        terminal.read("$ ")
        terminal.type("exit 5\r")
        assert terminal.wait() == 5
    ended(cluster, job, 5)


def test_a_lost_host(cluster: Cluster) -> None:
    """The client says so, has its own terminal meanwhile, and ends when the job is ended in the books."""
    with Terminal(cluster, "bsub", "-Is", "-m", "lava2", *SHELL) as terminal:
        job = started(terminal)
        terminal.read("$ ")
        cluster.kill("agent-lava2")
        terminal.read("<<The connection to the agent of lava2 was lost" + LOST + ">>\r\n")
        assert cluster.run("bkill", "-r", str(job)).returncode == 0
        assert terminal.wait() not in (0, 255)
    with Terminal(cluster, "bsub", "-Is", "-m", "lava1", *SHELL) as terminal:
        terminal.read("$ ")
        cluster.kill("agent-lava1")
        terminal.read(f"{LOST}>>\r\n")
        terminal.type("\x03")
        assert terminal.wait() == 128 + signal.SIGINT
    cluster.up()


def test_a_shell_within_a_running_job(cluster: Cluster, account: str, tmp_path: Path) -> None:
    """`lavactl attach`: the job's environment, devices and group, a terminal, the exit code; for its owner only."""
    job = cluster.submit(
        "-m", "lava2", "-gpu", "num=1", "-o", "/dev/null", f"cat /proc/self/cgroup > {tmp_path}/group; sleep 1000"
    )
    cluster.becomes(job, "RUN")
    group = tmp_path / "group"
    wait_for(lambda: group.exists() and group.read_text().endswith("\n"), 60, "the job's group")
    with Terminal(cluster, "lavactl", "attach", str(job), *SHELL, lines=31, columns=77) as terminal:
        terminal.read("# ")
        terminal.type("echo job $LSB_JOBID on $LSB_HOSTS with ${#CUDA_VISIBLE_DEVICES} $TERM; stty size\r")
        terminal.read(f"\r\njob {job} on lava2 with 1 dumb\r\n31 77\r\n")
        terminal.type(f"cmp /proc/self/cgroup {group} && echo same\r")
        terminal.read("\r\nsame\r\n")
        terminal.type(GOING)
        terminal.read("\r\ngoing\r\n")
        terminal.type("\x03")
        terminal.read("^C")
        terminal.read("# ")
        terminal.type("exit 6\r")
        assert terminal.wait() == 6
    done = cluster.run("lavactl", "attach", str(job), "cat; echo bad >&2; exit 3", stdin="in")
    assert (done.returncode, done.stdout, done.stderr) == (3, "in", "bad\n")
    done = cluster.as_seen_by(account).run("lavactl", "attach", str(job), "id")
    assert (done.returncode, done.stdout, done.stderr) == (255, "", f"Job <{job}>: User permission denied\n")
    with Terminal(cluster, "lavactl", "attach", str(job), *SHELL) as terminal:
        terminal.read("# ")
        cluster.run("bkill", str(job))
        assert terminal.wait() in (128 + signal.SIGKILL, 128 + signal.SIGHUP, 128 + signal.SIGTERM)
    cluster.becomes(job, "EXIT")
    done = cluster.run("lavactl", "attach", str(job), "id")
    assert (done.returncode, done.stderr) == (255, f"Job <{job}> : Already finished.\n")


def test_a_command_in_the_place_of_a_task(cluster: Cluster) -> None:
    """It has what that task has been told, and runs on its host."""
    done = cluster.run("lavactl", "run", "-f", "-", stdin=ROLES)
    job = int(done.stdout.partition("<")[2].partition(">")[0])
    cluster.becomes(job, "RUN")
    wait_for(lambda: cluster.run("lavactl", "tasks", str(job)).stdout.count("  RUN   ") == 2, 60, "both to run")
    text = "echo $LAVA_ROLE/$LAVA_ROLE_INDEX"
    assert cluster.says("lavactl", "attach", f"{job}[worker/1]", text) == "worker/1"
    assert "the role has 2 tasks: name one of them" in cluster.run("lavactl", "attach", f"{job}[worker]", text).stderr
    assert "has no such task" in cluster.run("lavactl", "attach", f"{job}[worker/2]", text).stderr


def test_commands_on_chosen_hosts(cluster: Cluster) -> None:
    """lsrun has the command's streams and exit code, lsgrun runs it on each host; both are jobs of the cluster."""
    command = "read line; echo got $line; exit 3"
    done = cluster.run("/bin/sh", "-c", f"echo it | lsrun -v -m lava2 '{command}'")
    assert (done.returncode, done.stdout) == (3, "got it\n")
    assert f"<<Execute {command} on remote host lava2>>" in done.stderr
    done = cluster.run("lsgrun", "-m", "lava2 lava1", "echo", "on", "$LSB_HOSTS")
    assert (done.returncode, done.stdout) == (0, "on lava2\non lava1\n")
    done = cluster.run("lsgrun", "-p", "-m", "lava1 lava2", "test", "$LSB_HOSTS", "=", "lava1")
    assert (done.returncode, done.stdout) == (1, "")


def test_the_load_on_a_screen(cluster: Cluster) -> None:
    """lsmon shows the table again and again, follows the keys, and leaves the terminal as it was."""
    with Terminal(
        cluster, "sh", "-c", "lsmon -i 1 lava1 lava2; echo left $?; stty -a", lines=10, columns=90
    ) as terminal:
        terminal.read("Refresh rate:   1 secs")
        terminal.read("lava2")
        terminal.read("Refresh rate:   1 secs")
        terminal.type("N")
        terminal.read("Normalized")
        terminal.type("q")
        terminal.read("left 0")
        assert " echo " in terminal.read("echonl")


def test_make_on_several_hosts(cluster: Cluster, tmp_path: Path) -> None:
    """lsmake is a job whose lines run on all of its hosts; a line that fails ends it as make does."""
    # Each waits for two others: three at a time are more than one host has room for.
    together = "until [ $$(ls a b c d 2>/dev/null | wc -l) -ge 3 ]; do sleep 0.1; done"
    targets = "all: a b c d\n" + "".join(f"{one}:\n\t@echo $$LSB_JOBID >{one}; {together}\n" for one in "abcd")
    (tmp_path / "Makefile").write_text(f"{targets}bad:\n\t@exit 3\n")
    where = f"cd {tmp_path} && lsmake -v -j 4 -R 'span[ptile=2]'"
    done = cluster.run("/bin/sh", "-c", where)
    assert done.returncode == 0, done
    assert len({(tmp_path / one).read_text() for one in "abcd"}) == 1
    seen = done.stdout + done.stderr
    assert {f"<<Execute on lava{number}>>" in seen for number in (1, 2)} == {True}, seen
    assert cluster.run("/bin/sh", "-c", f"{where} bad").returncode == 2
