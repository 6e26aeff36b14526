"""Commands as stubs: the same words, output and identity as the whole commands, whatever becomes of who serves them."""

import contextlib
import os
import pty
import pwd
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from agents.local_socket.command_server import IDLE_MAX
from lavactl.served.bounds import MEMORY_MAX
from lavactl.served.stubs import COMPILED, write_stub
from lavactl.wire.connection import Connection
from protos import served
from tests.acceptance.conftest import _ended_in_order, open_directory
from tests.acceptance.personal import Cluster, a_cluster, wait_for
from tests.personal.conftest import account, public_commands

__all__ = ["_ended_in_order", "account", "open_directory", "public_commands"]

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]


class Stubs:
    """The stubs of a cluster, and the serving process of the login host."""

    def __init__(self, cluster: Cluster, programs: Path) -> None:
        self.cluster = cluster
        self.programs = programs
        self.directory = Path(cluster.environment["PATH"].split(":")[0])

    def run(
        self,
        *words: str,
        stdin: bytes = b"",
        user: str = "",
        env: Mapping[str, str | None] | None = None,
        cwd: Path | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        """A stub as a user types it; a variable that is None is not set."""
        given = {**self.cluster.environment, **(env or {})}
        become = ("runuser", "-u", user, "--") if user else ()
        return subprocess.run(
            [*become, str(self.directory / words[0]), *words[1:]],
            env={name: value for name, value in given.items() if value is not None},
            input=stdin,
            capture_output=True,
            timeout=60,
            check=False,
            cwd=cwd,
        )

    def serving(self) -> int:
        """Process id of the serving process of the login host's agent."""
        log = self.cluster.directory / "log" / "agent-vm.log"
        logs = [log] if log.exists() else list((self.cluster.directory / "log").glob("agent-*.log"))
        own = [one for one in logs if "command_server_ready" in one.read_text()]
        lines = [line for one in own for line in one.read_text().splitlines() if "command_server_ready" in line]
        return int(lines[-1].rpartition("pid=")[2])


@pytest.fixture(params=["python", "c"])
def stubs(request: pytest.FixtureRequest, served_cluster: Stubs) -> Stubs:
    """The stubs of the cluster, in Python and in C."""
    compiled = COMPILED if request.param == "c" else None
    if compiled is not None and not compiled.exists():
        pytest.skip("no C compiler has built the stub of commands")
    socket = served_cluster.cluster.environment["LAVA_SOCKET"]
    write_stub(served_cluster.directory.parent, served_cluster.programs, socket, compiled)
    return served_cluster


@pytest.fixture(scope="module")
def served_cluster(open_directory: Path, public_commands: Path) -> Iterator[Stubs]:
    """A cluster without further hosts, whose login host serves commands."""
    with a_cluster(open_directory / "Q", 1, 2, commands=public_commands) as cluster:
        found = Stubs(cluster, public_commands)
        found.run("bqueues")  # the first stub becomes the whole command, and has the serving process started
        logs = cluster.directory / "log"
        wait_for(
            lambda: any("command_server_ready" in log.read_text() for log in logs.glob("agent-*.log")),
            60,
            "the serving process",
        )
        yield found


def traced(stubs: Stubs, *words: str) -> bool:
    """True if a command was served: its process never became another program."""
    trace = stubs.cluster.directory / "trace"
    subprocess.run(
        ["strace", "-f", "-o", str(trace), "-e", "trace=execve", str(stubs.directory / words[0]), *words[1:]],
        env=stubs.cluster.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=60,
    )
    return trace.read_text().count("execve(") == 1


def test_a_stub_says_what_the_whole_command_says(stubs: Stubs) -> None:
    """Output, errors and exit code are equal, byte for byte."""
    job = stubs.cluster.submit("-J", "a job", "-o", "/dev/null", "exit 3")
    wait_for(lambda: stubs.cluster.state(job) == "EXIT", 60, "the job's end")
    stubs.cluster.clear()  # what tests before have submitted changes no answer
    for line in (
        ["bjobs"], ["bjobs", "-l", str(job)], ["bjobs", "-noheader", "-o", "jobid stat", str(job)], ["bjobs", "99999"],
        ["bjobs", "-u", "all", "-a", "-w"], ["bqueues"], ["bqueues", "-l"], ["bhosts"], ["lsid"], ["bparams"],
        ["busers"], ["bhist", "-l", str(job)], ["bjobs", "-h"], ["bjobs", "-V"], ["bjobs", "-nonsense"], ["bkill"],
        ["bkill", "99999"], ["bsub"], ["bsub", "-q", "nowhere", "true"], ["bsub", "-n", "x", "true"], ["lshosts"],
    ):  # fmt: skip
        whole = stubs.cluster.with_whole_commands().run(*line, stdin="")
        served = stubs.run(*line)
        assert (served.stdout.decode(), served.stderr.decode(), served.returncode) == (
            whole.stdout,
            whole.stderr,
            whole.returncode,
        ), line


def test_everyday_commands_are_served(stubs: Stubs) -> None:
    """Lists, submissions and ends need no whole command; what waits becomes one."""
    for line in (["bjobs", "-a"], ["bsub", "-o", "/dev/null", "true"], ["bkill", "99999"], ["bhist", "-a"]):
        assert traced(stubs, *line), line
    assert not traced(stubs, "bsub", "-K", "true")


def test_memory_and_threads_of_the_process_stay(served_cluster: Stubs) -> None:
    """However many commands it has served: two hundred leave less than a page each, and a few threads."""

    def serve(number: int) -> tuple[int, int]:
        loop = "i=0; while [ $i -lt $0 ]; do bjobs -a; bkill 99999; bsub -h; i=$((i+1)); done"
        environment = served_cluster.cluster.environment
        words = ["/bin/sh", "-c", loop, str(number)]
        subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=120)
        status = Path("/proc", str(served_cluster.serving()), "status").read_text().splitlines()
        found = dict(line.split(":", 1) for line in status)
        return int(found["VmRSS"].split()[0]), int(found["Threads"])

    before, _ = serve(20)
    after, threads = serve(70)
    assert after - before < 800
    assert threads <= 1 + IDLE_MAX


def test_a_job_gets_its_caller_s_surroundings(stubs: Stubs, tmp_path: Path) -> None:
    """Directory, umask, environment to the byte, and the script on standard input."""
    script = b"#!/bin/sh\n#BSUB -J from-input\n#BSUB -o out\numask; pwd; env -0 | tr '\\0' '\\n'\n"
    (tmp_path / "a b").mkdir()
    env = {**stubs.cluster.environment, "ODD": "\udcff\n=", "LC_ALL": "C"}
    done = subprocess.run(
        ["sh", "-c", f"umask 027; exec {stubs.directory}/bsub"],
        input=script, env=env, cwd=tmp_path / "a b", capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    job = int(done.stdout.split(b"<")[1].split(b">")[0])
    wait_for(lambda: stubs.cluster.state(job) == "DONE", 60, "the job")
    lines = (tmp_path / "a b" / "out").read_bytes().split(b"\n")
    assert lines[:2] == [b"0027", os.fsencode(tmp_path / "a b")]
    assert b"ODD=\xff" in lines
    assert b"LC_ALL=C" in lines
    assert not [line for line in lines if line.startswith((b"LC_CTYPE=", b"LAVA_REQUEST_ID="))]


def test_a_script_by_name_is_read_by_its_caller(stubs: Stubs, account: str, tmp_path: Path) -> None:
    """Files and directories are looked at as the user, who alone can read them."""
    home = Path(pwd.getpwnam(account).pw_dir)
    place = home / f"private{time.monotonic_ns()}"
    place.mkdir(mode=0o700)
    (place / "job.sh").write_text("#!/bin/sh\n#BSUB -J named-inside\nwhoami > who\n")
    for path in (place, place / "job.sh"):
        os.chown(path, pwd.getpwnam(account).pw_uid, -1)
    env = {"HOME": str(home), "USER": account, "PWD": str(place)}
    done = stubs.run("bsub", "-o", str(place), "job.sh", user=account, env=env, cwd=place)
    assert done.returncode == 0, done
    job = int(done.stdout.split(b"<")[1].split(b">")[0])
    shown = stubs.cluster.says("bjobs", "-noheader", "-a", "-o", "user job_name output_file delimiter='^'", str(job))
    assert shown == f"{account}^named-inside^{place}/{job}.out" or shown == f"{account}^named-inside^{place}/%J.out"


def test_a_script_on_standard_input_is_kept_for_the_whole_command(stubs: Stubs, tmp_path: Path) -> None:
    """That it waits is known only when the script was read, from a pipe."""
    script = f"#!/bin/sh\n#BSUB -K\n#BSUB -o /dev/null\necho ran > {tmp_path}/ran\nexit 3\n"
    done = stubs.run("bsub", stdin=script.encode())
    assert (done.returncode, (tmp_path / "ran").read_text()) == (3, "ran\n"), done


def test_settings_are_read_by_their_caller(stubs: Stubs, account: str, tmp_path: Path) -> None:
    """A file that the environment names, in a directory that only the user may enter."""
    stubs.cluster.submit("-o", "/dev/null", "true")
    home = Path(pwd.getpwnam(account).pw_dir)
    place = home / f"settings{time.monotonic_ns()}"
    place.mkdir(mode=0o700)
    (place / "lsf.conf").write_text('LSB_BJOBS_FORMAT="jobid user"\n')
    for path in (place, place / "lsf.conf"):
        os.chown(path, pwd.getpwnam(account).pw_uid, -1)
    for directory in (str(place), place.name):
        done = stubs.run("bjobs", "-a", "-u", "all", user=account, env={"LSF_ENVDIR": directory}, cwd=home)
        assert done.stdout.decode().splitlines()[0].split() == ["JOBID", "USER"], done


def test_a_stub_knows_its_agent_without_any_variable(stubs: Stubs) -> None:
    """Also where the command becomes the whole one; a job has the socket of its own host."""
    bare = {"LAVA_SOCKET": None, "LAVA_ENVDIR": None, "LSF_ENVDIR": None}
    assert stubs.run("lsid", env=bare).returncode == 0
    for options in (("-K",), ()):
        done = stubs.run("bsub", *options, "-o", "/dev/null", 'test -S "$LAVA_SOCKET"', env=bare)
        assert done.returncode == 0, done
    job = int(done.stdout.split(b"<")[1].split(b">")[0])
    wait_for(lambda: stubs.cluster.state(job) == "DONE", 60, "the job")


def test_a_user_is_who_the_kernel_says(stubs: Stubs, account: str) -> None:
    """Another's job cannot be ended through the serving process, whatever the environment claims."""
    job = stubs.cluster.submit("sleep", "100")
    done = stubs.run("bkill", str(job), user=account, env={"USER": "root", "LOGNAME": "root"})
    assert done.returncode != 0
    assert stubs.cluster.state(job) in ("PEND", "RUN")
    stubs.cluster.run("bkill", str(job))


def test_what_a_shell_expects(stubs: Stubs) -> None:
    """A closed reader, a full disk, closed descriptors, another time zone, and a terminal."""
    stubs.cluster.submit("-o", "/dev/null", "true")
    shell = f"{stubs.directory}/bjobs -a"
    for line, code in (
        (f"{shell} -l | head -1 >/dev/null; exit ${{PIPESTATUS[0]}}", (0, 141)),
        (f"{shell} > /dev/full", (255,)),
        (f"{shell} >&- 2>&-", (0,)),
        (f"{shell} <&- >/dev/null", (0,)),
    ):
        done = subprocess.run(
            ["bash", "-c", line], env=stubs.cluster.environment, capture_output=True, timeout=60, check=False
        )
        assert done.returncode in code, (line, done)
    zones = [stubs.run("bjobs", "-a", "-o", "submit_time", env={"TZ": zone}).stdout for zone in ("UTC0", "XYZ-9:17")]
    assert zones[0] != zones[1]
    reader, terminal = pty.openpty()
    process = subprocess.Popen(
        [str(stubs.directory / "bsub")], stdin=terminal, stdout=terminal, stderr=terminal, env=stubs.cluster.environment
    )
    os.close(terminal)
    assert b"bsub> " in os.read(reader, 100)  # the prompt is the whole command's
    process.kill()
    process.wait()
    os.close(reader)


def test_submissions_survive_the_death_of_who_serves_them(stubs: Stubs) -> None:
    """Killed at any moment, the serving process costs no job and doubles none; it is started again."""
    pid = stubs.serving()
    running = [
        subprocess.Popen(
            [str(stubs.directory / "bsub"), "-J", f"survivor{at}", "-o", "/dev/null", "-H", "true"],
            env=stubs.cluster.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for at in range(12)
    ]
    time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    assert [process.wait(180) for process in running] == [0] * 12
    names = stubs.cluster.says("bjobs", "-noheader", "-o", "job_name").split()
    assert sorted(name for name in names if name.startswith("survivor")) == sorted(f"survivor{at}" for at in range(12))
    wait_for(lambda: stubs.serving() != pid, 60, "the next serving process")
    stubs.cluster.run("bkill", "0")


def test_a_stopped_serving_process_holds_no_command_up(stubs: Stubs) -> None:
    """It is replaced, and until then the stub is told to become the whole command, which does all once."""
    pid = stubs.serving()
    os.kill(pid, signal.SIGSTOP)
    done = stubs.run("bsub", "-J", "beside", "-H", "-o", "/dev/null", "true")
    assert done.returncode == 0
    wait_for(lambda: stubs.serving() != pid, 60, "the next serving process")
    assert not os.path.exists(f"/proc/{pid}")
    names = stubs.cluster.says("bjobs", "-noheader", "-o", "job_name").split()
    assert names.count("beside") == 1
    stubs.cluster.run("bkill", "0")


def test_lists_of_any_width_run_in_their_caller_s_own_process(stubs: Stubs, account: str) -> None:
    """A row of thousands of columns is whole, and takes no memory of the process that serves all users.

    All of them at once are one user's; another user's list comes beside them.
    """
    job = stubs.cluster.submit("-H", "-o", "/dev/null", "true")
    pid = stubs.serving()
    wide = " ".join(["jobid:999"] * 9000)
    forms = [
        ("bjobs", "-u", "all", "-o", wide),
        ("bhosts", "-o", "host_name:9999 " * 900),
        ("bqueues", "-o", "queue_name:999 " * 900),
    ]
    running = [
        subprocess.Popen(
            ["runuser", "-u", account, "--", str(stubs.directory / words[0]), *words[1:]],
            env=stubs.cluster.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for words in forms * 5
    ]
    beside = stubs.run("bjobs", "-noheader", "-o", "jobid", str(job))
    assert beside.stdout.split() == [str(job).encode()]
    assert [process.wait(120) for process in running] == [0] * len(running), stubs.run(*forms[1]).stderr[:500]
    whole = stubs.run("bjobs", "-noheader", "-u", "all", "-o", wide, str(job))
    assert whole.stdout.split() == [str(job).encode()] * 9000
    assert stubs.serving() == pid
    assert peak_mib(pid) < 512
    stubs.cluster.run("bkill", str(job))


def test_the_process_has_a_bound_that_the_kernel_keeps(stubs: Stubs) -> None:
    """Whatever a command finds to fill memory with, it is the command that fails, and not the host."""
    limits = Path(f"/proc/{stubs.serving()}/limits").read_text()
    line = next(line for line in limits.splitlines() if line.startswith("Max data size"))
    assert line.split()[3:5] == [str(MEMORY_MAX)] * 2


def test_malformed_commands_leave_no_trace_in_the_log(stubs: Stubs) -> None:
    """Their callers run them; the process that serves the others goes on, and nothing is logged of each."""
    pid, login = stubs.serving(), "agent-" + socket.gethostname().partition(".")[0]
    before = len(stubs.cluster.log(login))
    good = [b"0", b"0", b"80", b"", b"/", b"", b"", b"", b"", b"1"]
    requests = [
        b"\xff" * 40,
        served.packed([]),
        served.packed([served.VERSION]),
        served.packed([served.VERSION, b"x", *good[1:], b"bjobs"]),
        served.packed([served.VERSION, *good]),
        served.packed([served.VERSION, *good[:-1], b"-5"]),
        served.packed([served.VERSION, *good[:-1], b"9" * 5000, b"bjobs"]),
    ]
    for request in requests * 5:
        with contextlib.closing(Connection(stubs.cluster.environment["LAVA_SOCKET"])) as connection:
            call = connection.start(served.COMMAND, request, more=True)
            assert connection.receive(60.0)[2] == served.ACCEPTED
            connection.send(call, served.GO)
            assert connection.receive(60.0)[2] == served.BECOME
    assert stubs.run("bjobs", "0").returncode in (0, 255)
    assert stubs.serving() == pid
    assert stubs.cluster.log(login)[before:].count("\n") < 5
    assert "Traceback" not in stubs.cluster.log(login)[before:]


def peak_mib(pid: int) -> int:
    """The most memory that a process has had."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith("VmHWM"))) >> 10
