"""blaunch, lavarun and bpeek between two agents that are connected by real TLS."""

import asyncio
import fcntl
import os
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agents.ranks.output import OnlyForItsUser, OutputReader
from lavactl.wire.connection import CallError
from protos.agents_pb2 import TailChunk, TaskInput, TaskOutput
from protos.jobs_pb2 import PeekRequest
from protos.trust import peek_tickets
from protos.trust.authority import make_authority
from protos.trust.roles import Kind, Role, agent_server_name
from protos.trust.tls import channel_credentials, secure_channel
from tests.fakes.site import Site, identity_for

ROOT = Path(__file__).resolve().parent.parent.parent
TIMEOUT_S = 60.0
SLOTS = (("n1", 2), ("n2", 2))
RUN = "/lava.local/Run"
ATTACH = "/lava.local/Attach"
PEEK = "/lava.local/Peek"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with Site(tmp_path, "n1", "n2") as site:
        site.allocate(7, *SLOTS)
        yield site


def command(
    site: Site, *argv: str, slots: tuple[tuple[str, int], ...] = SLOTS, **options: object
) -> "subprocess.Popen[bytes]":
    """Start a command as a process of job 7 on its lead host."""
    environment = {"PATH": os.environ["PATH"], **site.job_environment(7, *slots)}
    environment.update(options.pop("environment", {}))  # type: ignore[call-overload]
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    # Unbuffered: what readline() reads ahead would be lost to communicate().
    streams["bufsize"] = 0
    return subprocess.Popen([sys.executable, "-m", "lavactl", *argv], env=environment, cwd=ROOT, **streams)  # type: ignore[call-overload,no-any-return]


def finish(process: "subprocess.Popen[bytes]", input: bytes | None = None) -> tuple[int, str, str]:
    """Exit code, output and error text."""
    try:
        out, err = process.communicate(input, TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        pytest.fail(f"the command hangs: {out!r} {err!r}")
    return process.returncode, out.decode(), err.decode()


def blaunch(site: Site, *argv: str, **options: object) -> tuple[int, str, str]:
    """Run blaunch to its end."""
    return finish(command(site, "blaunch", *argv, **options))


def until(condition: Callable[[], object], what: str) -> None:
    """Wait for a condition, with a timeout."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """True if a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def alive_in_group(group: int) -> list[int]:
    """Processes of a process group that run."""
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [pid for pid in pids if is_alive(pid) and group_of(pid) == group]


def group_of(pid: int) -> int:
    """A process's group, 0 when it has gone."""
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0


@pytest.mark.parametrize("host", ["n1", "n2", "N2", "n2.site.example"])
def test_a_command_runs_on_the_named_host_through_a_shell(site: Site, host: str) -> None:
    """Words are joined with blanks and read by a shell there, as rsh does; output and exit code come back."""
    code, out, err = blaunch(site, host, "echo", '"a  b";', "echo oops", ">&2; exit", "3")
    assert (code, out, err) == (3, "a  b\n", "oops\n")
    started = site.agents[host[:2].lower()].attempts
    assert len(started.handles) == 1


def test_words_like_those_of_mpi_launchers_reach_the_shell(site: Site) -> None:
    """Literal quotes, exports and a leading blank, with rsh options before them."""
    code, out, _ = blaunch(site, "-x", "-n", "n2", 'A=1;export A;B="$A"2;export B;/bin/echo', '"$B"', "--x", '"y z"')
    assert (code, out) == (0, "12 --x y z\n")
    assert blaunch(site, "n2", " echo", '"two words"')[:2] == (0, "two words\n")
    assert blaunch(site, "-n", "n1", '"/bin/echo"', "--control-port", "n1:42461")[:2] == (
        0,
        "--control-port n1:42461\n",
    )


@pytest.mark.parametrize(
    "options",
    [
        ["-x"], ["-nx"], ["-l", "someone"], ["-lsomeone"], ["-p", "22"], ["-o", "BatchMode=yes"], ["-oBatchMode=yes"],
        ["-q", "-T", "-4"], ["-i", "/some/key", "-F", "/dev/null"], ["--"],
    ],
)  # fmt: skip
def test_options_of_rsh_and_ssh_are_read_over(site: Site, options: list[str]) -> None:
    """They are skipped before the host, with and without values."""
    assert blaunch(site, *options, "n2", "echo", "ok")[:2] == (0, "ok\n")


def test_options_after_the_host_are_read_over_too(site: Site) -> None:
    """ssh takes them there as well."""
    assert blaunch(site, "n2", "-n", "-l", "someone", "echo", "ok")[:2] == (0, "ok\n")


def test_the_task_has_the_callers_directory_and_variables_but_its_own_hosts_facts(site: Site, tmp_path: Path) -> None:
    """Variables that the job's own host sets are not carried to another host."""
    site.agents["n2"].attempts.held[0].environment = {b"LSB_JOBID": b"7", b"CUDA_VISIBLE_DEVICES": b"3", b"X": b"job"}
    environment = {"X": "caller", "CUDA_VISIBLE_DEVICES": "0", "LSB_OTHER": "1", "PYTHONPATH": str(ROOT)}
    shown = "pwd; echo $X $CUDA_VISIBLE_DEVICES ${LSB_OTHER-unset} $LSF_PM_TASKID"
    argv = [sys.executable, "-m", "lavactl", "blaunch", "n2", shown]
    variables = {"PATH": os.environ["PATH"], **site.job_environment(7, *SLOTS), **environment}
    ran = subprocess.run(
        argv, env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT_S, check=True
    )
    assert ran.stdout == f"{tmp_path}\ncaller 3 unset 1\n"


def test_no_host_means_one_task_for_each_slot(site: Site) -> None:
    """The tasks know their numbers; their output is not torn within lines."""
    code, out, _ = blaunch(site, "echo", "task $LSF_PM_TASKID")
    assert code == 0
    assert sorted(out.splitlines()) == ["task 1", "task 2", "task 3", "task 4"]
    assert [len(agent.attempts.handles) for agent in site.agents.values()] == [2, 2]


def test_hosts_may_be_listed_or_read_from_a_file(site: Site, tmp_path: Path) -> None:
    """A host named twice gets two tasks."""
    assert blaunch(site, "-z", "n2 n2", "echo", "x")[:2] == (0, "x\nx\n")
    (tmp_path / "hosts").write_text("# mine\nn1\n\nn2  # the second\n")
    assert blaunch(site, "-u", str(tmp_path / "hosts"), "echo", "x")[:2] == (0, "x\nx\n")
    assert [len(agent.attempts.handles) for agent in site.agents.values()] == [1, 3]


def test_lines_of_several_tasks_are_never_torn(site: Site) -> None:
    """Even when each comes in pieces."""
    script = "for i in 1 2 3 4 5 6 7 8 9; do printf $LSF_PM_TASKID; sleep 0.01; printf $LSF_PM_TASKID; echo; done"
    code, out, _ = blaunch(site, script)
    assert code == 0
    assert sorted(set(out.split())) == ["11", "22", "33", "44"]


def test_no_shell_runs_the_words_as_they_are(site: Site) -> None:
    """No word is expanded."""
    assert blaunch(site, "-no-shell", "n2", "/bin/echo", "$HOME", "a  b;")[:2] == (0, "$HOME a  b;\n")


def test_the_exit_code_is_the_commands_own(site: Site) -> None:
    """A signal shows as 128 and its number; with several tasks the first failure counts."""
    assert blaunch(site, "n2", "kill -9 $$")[0] == 137
    assert blaunch(site, "test $LSF_PM_TASKID != 3 || exit 5")[0] == 5
    assert blaunch(site, "n2", "/no/such/program")[0] == 127


def test_standard_input_is_streamed_to_the_task(site: Site) -> None:
    """Every byte arrives, and the end of input."""
    data = os.urandom(3_000_000).hex().encode()
    process = command(site, "blaunch", "n2", "sha256sum", stdin=subprocess.PIPE)
    code, out, _ = finish(process, data)
    expected = subprocess.run(["sha256sum"], input=data, capture_output=True, check=True).stdout.decode()
    assert (code, out) == (0, expected)


def test_with_no_input_the_task_reads_nothing(site: Site) -> None:
    """-n gives it the null device."""
    process = command(site, "blaunch", "-n", "n2", "cat; echo end", stdin=subprocess.PIPE)
    assert finish(process, b"words") == (0, "end\n", "")


def test_a_task_that_reads_nothing_still_gets_signals_and_ends(site: Site) -> None:
    """Unread input neither blocks the end of a task nor delays a signal."""
    code, out, _ = finish(command(site, "blaunch", "n2", "echo done", stdin=subprocess.PIPE), bytes(5_000_000))
    assert (code, out) == (0, "done\n")
    script = "trap 'echo caught; exit 9' USR1; echo up; while :; do sleep 0.05; done"
    with open("/dev/zero", "rb") as zeros:
        process = command(site, "blaunch", "n2", script, stdin=zeros)
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        process.send_signal(signal.SIGUSR1)
        assert finish(process)[:2] == (9, "caught\n")


def test_much_output_arrives_whole_through_a_slow_reader(site: Site) -> None:
    """No output is lost and the command does not grow."""
    process = command(site, "blaunch", "n2", "seq 1 2000000")
    assert process.stdout is not None
    time.sleep(1)
    grown = int(re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())[0])
    assert grown < 80_000, "the reader has not begun, so all but a few megabytes must wait at the task"
    code, out, _ = finish(process)
    assert code == 0
    assert out.count("\n") == 2_000_000
    assert out.endswith("\n2000000\n")


@pytest.mark.parametrize("host", ["n1", "n2"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR2])
def test_signals_are_passed_on(site: Site, host: str, number: int) -> None:
    """The task handles them, and its exit code counts."""
    script = f"trap 'echo caught; exit 21' {signal.Signals(number).name[3:]}; echo up; while :; do sleep 0.05; done"
    process = command(site, "blaunch", host, script)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    process.send_signal(number)
    assert finish(process)[:2] == (21, "caught\n")


@pytest.mark.parametrize("host", ["n1", "n2"])
def test_the_task_is_killed_when_blaunch_is(site: Site, host: str) -> None:
    """Also a task that ignores SIGTERM, and the task's children."""
    process = command(site, "blaunch", host, "trap '' TERM; echo up; sleep 1000 & wait; sleep 1000")
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    pid = site.agents[host].attempts.handles[0].pid
    assert is_alive(pid)
    process.kill()
    finish(process)
    until(lambda: not is_alive(pid), "the task outlives its caller")
    until(lambda: not alive_in_group(pid), "a child of the task outlives its caller")


def test_a_task_that_is_not_kept_is_killed_when_the_callers_agent_goes_away(site: Site) -> None:
    """Under a shepherd of the first version the agents hold its streams; blaunch reports the cause."""
    for agent in site.agents.values():
        agent.attempts.keeps_tasks = False
    process = command(site, "blaunch", "n2", "echo up; sleep 1000")
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    pid = site.agents["n2"].attempts.handles[0].pid
    site.call(site.agents["n1"].gateway.stop())
    code, _, err = finish(process)
    assert code == 255
    assert "the agent of this host has gone" in err
    until(lambda: not is_alive(pid), "the task outlives its caller")


def test_a_reader_that_goes_away_ends_the_task(site: Site) -> None:
    """blaunch ... | head."""
    process = command(site, "blaunch", "n2", "yes")
    assert process.stdout is not None
    process.stdout.read(10)
    pid = site.agents["n2"].attempts.handles[0].pid
    process.stdout.close()
    assert process.wait(TIMEOUT_S) == -signal.SIGPIPE
    assert process.stderr is not None
    process.stderr.close()
    until(lambda: not is_alive(pid), "the task outlives its reader")


@pytest.mark.slow
def test_a_background_child_that_keeps_the_output_open_does_not_hold_the_command(site: Site) -> None:
    """The command ends soon after the task's first process."""
    start = time.monotonic()
    code, out, _ = blaunch(site, "n2", "echo out; sleep 600 & exit 4")
    assert (code, out) == (4, "out\n")
    assert time.monotonic() - start < 120
    site.agents["n2"].attempts.kill_all()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["-z", "n3", "hostname"], "blaunch: host <n3> is not in the allocation of job <7>."),
        (["n3", "hostname"], "blaunch: host <n3> is not in the allocation of job <7>."),
        (["-z", " ", "hostname"], "blaunch: no host is specified."),
        (["-u", "/no/such/file", "hostname"], "blaunch: /no/such/file: No such file or directory."),
        (["n2"], "blaunch: no command is specified."),
        ([], "blaunch: no command is specified."),
        (["-Z", "n2"], "blaunch: illegal option -- Z"),
        (["-u"], "blaunch: option requires an argument -- u"),
    ],
)
def test_nonsense_is_answered_with_one_sentence(site: Site, argv: list[str], message: str) -> None:
    """No traceback, exit code 255."""
    code, out, err = blaunch(site, *argv)
    assert (code, out) == (255, "")
    assert err.splitlines()[0] == message
    assert "Traceback" not in err


def test_outside_of_a_job_it_says_so(site: Site) -> None:
    """Without the job's variables blaunch refuses to run."""
    code, _, err = blaunch(site, "n2", "hostname", environment={"LSB_JOBID": ""})
    assert (code, err) == (255, "blaunch: this command works only inside a job: LSB_JOBID is not set.\n")


def test_a_job_that_is_not_here_is_refused(site: Site) -> None:
    """The agent's own record decides, not the environment."""
    code, _, err = blaunch(site, "n2", "hostname", environment={"LSB_JOBID": "8"})
    assert (code, err) == (255, "blaunch: n2: job <8> does not run on n1\n")


def test_a_host_outside_the_allocation_is_refused_by_the_agent(tmp_path: Path) -> None:
    """Even if the environment names it."""
    with Site(tmp_path, "n1", "n2") as site:
        site.allocate(7, ("n1", 1))
        code, _, err = blaunch(site, "n2", "hostname")
        assert (code, err) == (255, "blaunch: n2: host n2 is not in the allocation of job <7>\n")


def test_a_job_of_someone_else_is_refused(tmp_path: Path) -> None:
    """The kernel's uid must be the owner's."""
    with Site(tmp_path, "n1", "n2") as site:
        site.allocate(7, *SLOTS, uid=os.getuid() + 1)
        code, _, err = blaunch(site, "n2", "hostname")
        assert (code, err) == (255, "blaunch: n2: job <7> belongs to another user\n")
        assert site.agents["n2"].attempts.handles == []


def test_a_peer_outside_the_allocation_is_refused(tmp_path: Path) -> None:
    """Its certificate is valid, but its host is not of this job, so it may start no task."""
    with Site(tmp_path, "n1", "n2") as site:
        site.allocate(7, ("n2", 1))
        site.agents["n1"].attempts.held += site.agents["n2"].attempts.held  # n1 believes it, n2 knows better
        site.agents["n1"].attempts.held[0].allocation = [*site.agents["n2"].attempts.held[0].allocation]
        code, _, err = blaunch(site, "n2", "hostname")
        assert (code, err) == (255, "blaunch: n2: job <7> does not run on both n1 and n2\n")
        assert site.agents["n2"].attempts.handles == []


@pytest.mark.parametrize("stranger", ["another authority", "the master", "no certificate"])
def test_strangers_cannot_start_tasks(site: Site, stranger: str) -> None:
    """Neither with a foreign certificate, nor with the master's role, nor without one."""
    import grpc

    async def attempt() -> str:
        if stranger == "no certificate":
            credentials = grpc.ssl_channel_credentials(site.authority.certificate_pem)
        elif stranger == "the master":
            credentials = channel_credentials(site.master.identity)
        else:
            foreign = identity_for(make_authority("other"), Role(Kind.AGENT, "n1"))
            credentials = grpc.ssl_channel_credentials(
                site.authority.certificate_pem, foreign.key_pem, foreign.certificate_pem
            )
        async with secure_channel(site.agents["n2"].address, credentials, agent_server_name("n2")) as channel:
            call = channel.stream_stream("/lava.v1.PeerService/Run", None, None)(None)
            start = TaskInput()
            start.start.key.job = 7
            start.start.command = b"hostname"
            try:
                await call.write(start.SerializeToString())
                await call.read()
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError):  # the latter where it ends before the write
                return str((await call.code()).name)
        return "served"

    assert site.call(attempt()) in ("UNAVAILABLE", "PERMISSION_DENIED")
    assert site.agents["n2"].attempts.handles == []


def test_an_agent_that_is_down_is_told(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the host's name, after a bounded time."""
    monkeypatch.setattr("agents.peers.CONNECT_S", 1.0)
    site.call(site.agents["n2"].peers.stop())
    code, _, err = blaunch(site, "n2", "hostname")
    assert code == 255
    assert re.fullmatch(r"blaunch: n2: the agent of n2 at \S+ cannot be reached: no connection within 1 seconds\n", err)


def peek(site: Site, host: str = "n1", **options: object) -> list[TailChunk]:
    """Answers to bpeek from the agent of a host."""
    request = PeekRequest(**options)  # type: ignore[arg-type]
    request.job.ref.job = 7
    answers = site.dial(host).answers(PEEK, request.SerializeToString(), TIMEOUT_S)
    return [TailChunk.FromString(answer) for answer in answers]


@pytest.mark.parametrize("host", ["n1", "n2"])
def test_a_jobs_output_is_read_where_it_runs(site: Site, tmp_path: Path, host: str) -> None:
    """Both files in turn, whichever agent is asked."""
    output, error = tmp_path / "out", tmp_path / "err"
    output.write_bytes(b"hello\n" * 50_000)
    error.write_bytes(b"oops\n")
    held = site.agents["n2"].attempts.held[0]
    held.output_path, held.error_path = str(output), str(error)
    site.may_peek("n2", 7, has_error_file=True)
    chunks = peek(site, host)
    assert b"".join(chunk.data for chunk in chunks if not chunk.is_error_file) == output.read_bytes()
    assert b"".join(chunk.data for chunk in chunks if chunk.is_error_file) == b"oops\n"
    assert chunks[-1].is_error_file
    last = peek(site, host, last_bytes=3)
    assert b"".join(chunk.data for chunk in last if not chunk.is_error_file) == b"lo\n"


def test_a_job_that_has_not_started_has_no_output(site: Site) -> None:
    """The answer is a sentence about it."""
    site.may_peek("n2", 7)
    assert [chunk.error for chunk in peek(site)] == ["Not yet started."]


def test_output_is_followed_until_the_job_is_over(site: Site, tmp_path: Path) -> None:
    """Later output arrives at once, up to the last line."""
    output = tmp_path / "out"
    output.write_bytes(b"one\n")
    site.agents["n2"].attempts.held[0].output_path = str(output)
    site.may_peek("n2", 7)
    request = PeekRequest(follow=True)
    request.job.ref.job = 7
    answers = site.dial("n1").answers(PEEK, request.SerializeToString(), TIMEOUT_S)
    assert TailChunk.FromString(next(answers)).data == b"one\n"
    delays = []
    for word in (b"two\n", b"three\n", b"four\n", b"five\n"):
        with output.open("ab") as file:
            file.write(word)
        began = time.monotonic()
        assert TailChunk.FromString(next(answers)).data == word
        delays.append(time.monotonic() - began)
    assert min(delays) < 0.9, "it comes by the kernel's word, not by looking again"
    site.agents["n2"].attempts.held.clear()
    assert list(answers) == []


def test_a_file_that_only_its_user_can_open_is_read_as_the_user(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a network file system with root squash: a helper beside the job reads it, and dies with its reader."""

    async def refuse(path: str, *_: object) -> OutputReader:
        raise OnlyForItsUser(path)

    monkeypatch.setattr("agents.peers.open_output", refuse)
    output = tmp_path / "out"
    output.write_bytes(b"one\n")
    site.agents["n2"].attempts.held[0].output_path = str(output)
    site.may_peek("n2", 7)
    assert [chunk.data for chunk in peek(site)] == [b"one\n"]
    request = PeekRequest(follow=True)
    request.job.ref.job = 7
    connection = site.dial("n1")
    answers = connection.answers(PEEK, request.SerializeToString(), TIMEOUT_S)
    assert TailChunk.FromString(next(answers)).data == b"one\n"
    pid = site.agents["n2"].attempts.handles[-1].pid
    connection.close()
    until(lambda: not is_alive(pid), "the helper outlives its reader")
    output.unlink()
    assert "No such file" in "".join(chunk.error for chunk in peek(site))


@pytest.mark.root
def test_what_the_jobs_user_may_not_read_is_not_shown(tmp_path: Path) -> None:
    """The agent is root and could; a file the user may only append to is refused, and so is anything but a regular
    file.
    """
    with Site(tmp_path, "n1", "n2") as site:
        site.allocate(7, *SLOTS, uid=12345, groups=(777,))
        site.may_peek("n2", 7)
        held = site.agents["n2"].attempts.held[0]
        dropbox = tmp_path / "dropbox"
        dropbox.write_bytes(b"secret")
        held.output_path = str(dropbox)
        dropbox.chmod(0o622)
        assert [chunk.error for chunk in peek(site)] == ["the output file may not be read by the job's user"]
        dropbox.chmod(0o644)
        assert [chunk.data for chunk in peek(site)] == [b"secret"]
        os.chown(dropbox, 0, 777)
        dropbox.chmod(0o604)
        assert [chunk.error for chunk in peek(site)] == ["the output file may not be read by the job's user"]
        held.output_path = "/dev/zero"
        assert [chunk.error for chunk in peek(site)] == ["the output file is no regular file"]
        held.output_path = str(tmp_path / "gone")
        assert [chunk.error for chunk in peek(site)] == ["the job has just ended"]


@pytest.mark.parametrize("host", ["n1"])
def test_a_forged_ticket_opens_nothing(site: Site, tmp_path: Path, host: str) -> None:
    """The agent that holds the output checks the master's signature."""
    (tmp_path / "out").write_bytes(b"secret")
    site.agents["n2"].attempts.held[0].output_path = str(tmp_path / "out")
    site.may_peek("n2", 7, ticket=bytes(73))
    with pytest.raises(CallError, match="the ticket to read job <7> is not valid here"):
        peek(site, host)
    assert site.agents["n2"].attempts.handles == []


def attach(site: Site, host: str) -> list[TaskOutput]:
    """Answers to a command on that host that runs `echo here` within job 7, on n2."""
    message = TaskInput()
    message.start.key.job, message.start.host, message.start.command = 7, "n2", b"echo here"
    answers = site.dial(host).answers(ATTACH, message.SerializeToString(), TIMEOUT_S)
    return [TaskOutput.FromString(one) for one in answers]


def test_who_is_not_on_a_host_of_the_job_attaches_with_a_ticket(tmp_path: Path) -> None:
    """The agent of the job's host checks the master's signature, and that it is for this purpose."""
    with Site(tmp_path, "n1", "n2") as site:
        site.allocate(7, ("n2", 1))
        site.may_attach("n2", 7)
        assert b"".join(one.out for one in attach(site, "n1")) == b"here\n"
        site.may_attach("n2", 7, error="Job <7>: User permission denied")
        assert [one.error for one in attach(site, "n1")] == ["Job <7>: User permission denied"]
        reading = peek_tickets.sign(site.master.signing, (7, 0, 1), "n2", time.time() + peek_tickets.LIFE_S)
        for ticket in (bytes(73), reading):
            site.may_attach("n2", 7, ticket=ticket)
            with pytest.raises(CallError, match="the ticket to attach to it is not valid here"):
                attach(site, "n1")


def test_the_owner_attaches_to_a_job_of_this_host_without_a_master(site: Site) -> None:
    """The kernel says who calls, and the agent whose job it is."""
    assert b"".join(one.out for one in attach(site, "n2")) == b"here\n"


def test_a_reader_that_stops_does_not_hold_a_command_that_is_ended(site: Site) -> None:
    """SIGTERM ends `lavactl attach` although its output is blocked; what waits for the reader is dropped."""
    process = command(site, "attach", "-m", "N1.site.example", "7", "yes")
    assert process.stdout is not None
    full = fcntl.fcntl(process.stdout, fcntl.F_GETPIPE_SZ) - 4096

    def is_blocked() -> bool:
        waiting = struct.unpack("i", fcntl.ioctl(process.stdout, termios.FIONREAD, b"\0" * 4))[0]
        return waiting >= full

    try:
        until(is_blocked, "the output is not blocked")
        process.terminate()
        assert process.wait(TIMEOUT_S) == 128 + signal.SIGTERM
    finally:
        process.kill()
        process.communicate()


def test_a_request_for_a_task_that_cannot_be_read_is_refused(site: Site) -> None:
    """Bytes that are no message."""
    with pytest.raises(CallError, match="cannot be read"):
        list(site.dial().answers(RUN, b"\xff\xff\xff", TIMEOUT_S))


def test_a_command_that_gives_no_command_is_told(site: Site) -> None:
    """An empty start is an answer, not a crash."""
    message = TaskInput()
    message.start.host, message.start.key.job = "n1", 7
    [answer] = list(site.dial().answers(RUN, message.SerializeToString(), TIMEOUT_S))
    assert TaskOutput.FromString(answer).error == "no command was given"
