"""Interactive jobs under real shepherds: streams of a client, with a terminal and without, and what becomes of them."""

import asyncio
import os
import signal
import time
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

import pytest

from agents.job_setup.preparation import Bounds
from agents.ranks.interfaces import KeptRequest
from agents.shepherd import messages
from agents.shepherd.messages import DATA, OWN, TASK_OVER, Message, pack, unpack
from agents.shepherd.tasks.streams import KEPT_MAX, SIGNALS, STDERR, STDIN, STDOUT
from tests.agents.hosts import Host, Place, blob, lines, until

if TYPE_CHECKING:
    import socket

pytestmark = pytest.mark.slow

KEY = (1, 0, 1)
PATIENCE_S = 60.0
GOING = b"sh -c 'echo going; exec sleep 1000'\r"


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run one test in an event loop of its own."""
    asyncio.run(coroutine)


class Client:
    """A client of a job's streams, or of a task's."""

    def __init__(self, host: Host, token: bytes = OWN, script: str = "", window: tuple[int, ...] = ()) -> None:
        self._host = host
        self._token, self._script, self._window = token, script, window
        self._connections = 0
        self.heard: list[Message] = []
        self.got = {STDOUT: b"", STDERR: b""}
        self._sent = {STDIN: 0, SIGNALS: 0}
        self._read = {STDOUT: 0, STDERR: 0}

    def __enter__(self) -> "Client":
        return self.connect()

    def __exit__(self, *_: object) -> None:
        self.channel.close()

    def connect(self) -> "Client":
        """Attach, or start the task."""
        self._connections += 1
        is_new = self._connections == 1 and bool(self._script)
        argv = (b"/bin/bash", b"-c", self._script.encode()) if is_new else ()
        got = (len(self.got[STDOUT]), len(self.got[STDERR]), 0)
        wanted = KeptRequest(
            self._token, self._connections, not is_new, False, got, argv, "", (), False, False, -1, 0,
            window=self._window,
        )  # fmt: skip
        channel = self._host.local.attempts.open_task(KEY, wanted)
        assert channel is not None
        self.channel: socket.socket = channel
        return self

    def type(self, data: bytes) -> None:
        """Send input."""
        self.channel.send(pack(DATA, STDIN, self._sent[STDIN], data))
        self._sent[STDIN] += len(data)

    def signal(self, number: int) -> None:
        """Send a signal."""
        self.channel.send(pack(DATA, SIGNALS, self._sent[SIGNALS], bytes([number])))
        self._sent[SIGNALS] += 1

    async def hear(self) -> Message:
        """The next message."""
        hearing = asyncio.get_running_loop().sock_recv(self.channel, messages.INLINE_MAX + 1)
        try:
            data = await asyncio.wait_for(hearing, PATIENCE_S)
        except TimeoutError:
            raise AssertionError(f"nothing after {self.got[STDOUT][-500:]!r}") from None
        assert data, f"closed after {self.heard}"
        message = unpack(data)
        self.heard.append(message)
        if message[0] == DATA:
            stream, place, piece = message[1:]
            self.got[stream] += piece[max(0, len(self.got[stream]) - place) :]
            self.channel.send(pack(messages.GOT, stream, len(self.got[stream])))
        return message

    async def read(self, wanted: bytes, stream: int = STDOUT) -> None:
        """Hear until this has been written, after what was read before."""
        while (found := self.got[stream].find(wanted, self._read[stream])) < 0:
            await self.hear()
        self._read[stream] = found + len(wanted)

    async def end(self) -> int:
        """Hear until the end; its wait status."""
        while (message := await self.hear())[0] != TASK_OVER:
            continue
        self.channel.send(pack(messages.DONE))
        return int(message[1])


async def started(host: Host, command: str, kind: str = "terminal", **fields: object) -> None:
    """An interactive job that runs."""
    given = {"output": "", "interactive": kind, **fields}
    await host.run(blob(host.place, 1, command, **given))
    await host.report(KEY, "started")


def test_a_job_on_a_terminal_is_its_clients(place: Place) -> None:
    """The terminal is the job's controlling one and its user's; lines are edited and characters are signals there."""

    async def story() -> None:
        async with Host(place) as host:
            await started(host, "tty; stat -Lc %U /dev/tty $(tty); exec bash --norc -i")
            with Client(host) as client:
                client.channel.send(pack(messages.WINDOW, 40, 123))
                await client.read(b"$ ")
                assert client.got[STDOUT].startswith(b"/dev/pts/"), client.got
                assert f"{place.user.pw_name}\r\n".encode() in client.got[STDOUT]
                client.type(b"stty size; echo $LSB_INTERACTIVE; cat\r")
                await client.read(b"40 123\r\nY\r\n")
                client.type(b"helo\x7flo\r")  # the terminal's own line editing
                await client.read(b"\r\nhello\r\n")
                client.type(b"\x03")
                await client.read(b"^C")
                await client.read(b"$ ")
                client.type(b"kill -l $?\r")
                await client.read(b"\r\nINT\r\n")
                client.type(GOING)
                await client.read(b"\r\ngoing\r\n")
                client.type(b"\x1a")
                await client.read(b"Stopped")
                await client.read(b"$ ")
                client.type(b"exit\r")  # refused once: there is a stopped job
                await client.read(b"There are stopped jobs.")
                await client.read(b"$ ")
                client.type(
                    b"kill %1; exec sh -c 'trap \"stty size; exit 3\" WINCH; echo set; while :; do sleep 0.05; done'\r"
                )
                await client.read(b"\r\nset\r\n")
                client.channel.send(pack(messages.WINDOW, 50, 100))
                await client.read(b"50 100\r\n")
                assert await client.end() == 3 << 8
            assert (await host.report(KEY, "finished")).finished.status == 3 << 8

    run(story())


def test_pipes_keep_the_streams_apart(place: Place) -> None:
    """Without a terminal input, output and errors are three streams; the end of input is one; signals come through."""

    async def story() -> None:
        async with Host(place) as host:
            script = "tty; cat; echo bad >&2; trap 'exit 7' USR1; echo ready; while true; do sleep 0.05; done"
            await started(host, script, "pipes")
            with Client(host) as client:
                client.type(b"one\n")
                client.channel.send(pack(messages.END_OF_INPUT))
                await client.read(b"ready\n")
                await client.read(b"bad\n", STDERR)
                assert client.got == {STDOUT: b"not a tty\none\nready\n", STDERR: b"bad\n"}
                client.signal(signal.SIGUSR1)
                assert await client.end() == 7 << 8

    run(story())


def test_a_client_hears_what_is_left_in_the_background(place: Place) -> None:
    """As LSF's job file waits for it; the exit code is the command's."""

    async def story() -> None:
        async with Host(place) as host:
            await started(host, "(sleep 0.5; echo late) & echo early; exit 5", "pipes")
            with Client(host) as client:
                assert await client.end() == 5 << 8
                assert client.got[STDOUT] == b"early\nlate\n"

    run(story())


@pytest.mark.parametrize(("typed", "shown"), [(b"abc", b"abc"), (b"abc\n", b"abc\r\nabc\r\n"), (b"", b"")])
def test_input_that_ends_is_an_end_of_file_on_a_terminal(place: Place, typed: bytes, shown: bytes) -> None:
    """As in `printf abc | bsub -Ip cat`: within a line, too, where that character only hands the line over."""

    async def story() -> None:
        async with Host(place) as host:
            await started(host, "stty -echoctl; echo; cat; echo; echo end")
            with Client(host) as client:
                await client.read(b"\r\n")
                if typed:
                    client.type(typed)
                client.channel.send(pack(messages.END_OF_INPUT))
                assert await client.end() == 0
            assert client.got[STDOUT].count(typed.strip() or b"end") == (2 if typed else 1), client.got
            assert shown in client.got[STDOUT]
            assert client.got[STDOUT].endswith(b"\r\nend\r\n")

    run(story())


def test_a_short_job_waits_for_its_client(place: Place) -> None:
    """All it wrote, and its exit code, are there for a client that comes after its end; only then it is over."""

    async def story() -> None:
        async with Host(place) as host:
            await started(host, "printf '%100000s' x; exit 5", "pipes")
            await asyncio.sleep(0.3)  # nothing tells that nothing happens
            assert not host.said(KEY, "finished")
            with Client(host) as client:
                assert await client.end() == 5 << 8
                assert len(client.got[STDOUT]) == 100_000
            await host.report(KEY, "finished")

    run(story())


def test_files_take_the_place_of_the_terminal(place: Place) -> None:
    """-i, -o and -e as with a batch job; what has no file is the client's."""

    async def story() -> None:
        async with Host(place) as host:
            place.out("in").write_text("from a file\n")
            files = {"input": str(place.out("in")), "output": str(place.out())}
            await started(host, "cat; echo seen >&2", "pipes", **files)
            with Client(host) as client:
                assert await client.end() == 0
                assert client.got == {STDOUT: b"", STDERR: b"seen\n"}
            await host.report(KEY, "finished")
            assert lines(place.out()) == ["from a file"]

    run(story())


def test_the_next_agent_and_the_next_connection_go_on(place: Place) -> None:
    """No byte is lost or doubled when the agent is replaced while the job writes."""

    async def story() -> None:
        async with Host(place) as host:
            await started(host, "read word; seq 50000; echo $word", "pipes")
            client = Client(host).connect()
            client.type(b"end\n")
            await client.read(b"\n4000\n")
            client.channel.close()
            await host.replace()
            with client:
                assert await client.end() == 0
            numbers = "".join(f"{number}\n" for number in range(1, 50_001))
            assert client.got[STDOUT].decode() == f"{numbers}end\n"

    run(story())


@pytest.mark.parametrize("kind", ["terminal", "pipes"])
def test_a_job_whose_client_has_gone_is_hung_up(place: Place, kind: str) -> None:
    """It gets HUP, and may end by that in its own way; its record says why."""

    async def story() -> None:
        async with Host(place) as host:
            await started(host, "trap 'exit 9' HUP; echo ready; while true; do sleep 0.05; done", kind)
            with Client(host) as client:
                await client.read(b"ready")
                client.channel.send(pack(messages.GONE))
            end = (await host.report(KEY, "finished")).finished
            assert (end.status, end.detail) == (9 << 8, "The client of the interactive job has gone.")

    run(story())


def test_a_job_that_ignores_the_hangup_is_terminated(place: Place) -> None:
    """The terminate sequence follows, which nothing survives."""

    async def story() -> None:
        async with Host(place) as host:
            await started(host, "trap '' HUP INT TERM; echo ready; while true; do sleep 0.05; done")
            with Client(host) as client:
                await client.read(b"ready")
                client.channel.send(pack(messages.GONE))
            assert (await host.report(KEY, "finished")).finished.status == signal.SIGKILL

    run(story())


def test_a_job_does_not_wait_for_a_lost_client_for_ever(place: Place) -> None:
    """After its patience it is hung up, as if it had been told."""

    async def story() -> None:
        async with Host(place) as host:
            host.local.preparation.bounds = Bounds(patience_s=0.3)
            await started(host, "exec sleep 1000")
            assert (await host.report(KEY, "finished")).finished.status == signal.SIGHUP

    run(story())


def test_a_reader_that_stops_holds_the_job_and_no_memory(place: Place) -> None:
    """`yes` is blocked by its own full terminal; what the shepherd keeps is bounded."""

    async def story() -> None:
        async with Host(place) as host:
            await started(host, "exec yes")
            with Client(host) as client:
                await client.read(b"y\r\ny\r\n")
                pid = (await host.report(KEY, "started")).started.pid
                shepherd = host.shepherd_of(KEY)
                before = resident(shepherd)
                await blocked(pid)
                assert resident(shepherd) - before < 4 * KEPT_MAX
                client.signal(signal.SIGINT)
                assert await client.end() == signal.SIGINT

    run(story())


def test_bkill_ends_an_interactive_job(place: Place) -> None:
    """Its client has the rest of the output and the status."""

    async def story() -> None:
        async with Host(place) as host:
            await started(host, "echo ready; exec sleep 1000")
            with Client(host) as client:
                await client.read(b"ready")
                await host.signal(KEY, 0, "TERM_OWNER")
                assert await client.end() == signal.SIGINT
            assert (await host.report(KEY, "finished")).finished.reason == "TERM_OWNER"

    run(story())


def test_a_client_that_does_not_read_holds_the_end_for_a_bounded_time(place: Place) -> None:
    """The slot is free again although its client has not read what the job wrote."""

    async def story() -> None:
        async with Host(place) as host:
            host.local.preparation.bounds = Bounds(patience_s=2.0)
            await started(host, "exit 4", "pipes")
            with Client(host):
                assert (await host.report(KEY, "finished")).finished.status == 4 << 8

    run(story())


def test_a_shepherd_rests_when_the_time_to_read_is_over(place: Place) -> None:
    """The end then waits for the post-execution command, and the shepherd for its end."""

    async def story() -> None:
        async with Host(place) as host:
            host.local.preparation.bounds = Bounds(patience_s=2.0)
            begun = place.out("begun")
            await started(host, "exit 4", "pipes", post_exec=f"touch {begun}; sleep 1")
            with Client(host):
                shepherd = host.shepherd_of(KEY)
                await until(begun.exists)
                before = rests(shepherd)
                await asyncio.sleep(0.5)
                assert rests(shepherd) - before < 40
                assert (await host.report(KEY, "finished")).finished.status == 4 << 8

    run(story())


def test_a_task_beside_a_job_may_have_a_terminal(place: Place) -> None:
    """As `lavactl attach` starts it: a shell with job control, in the job's environment, ended by HUP."""

    async def story() -> None:
        async with Host(place) as host:
            await host.run(blob(place, 1, "sleep 1000"))
            await host.report(KEY, "started")
            with Client(host, b"t", "echo job $LSB_JOBID; stty size; exec bash --norc -i", (33, 99)) as client:
                await client.read(b"job 1\r\n33 99\r\n")
                await client.read(b"$ ")
                client.type(GOING)
                await client.read(b"\r\ngoing\r\n")
                client.type(b"\x1a")
                await client.read(b"Stopped")
                client.channel.send(pack(messages.GONE))
                assert await client.end() in (signal.SIGHUP, (128 + signal.SIGHUP) << 8, 1 << 8)
            await until(lambda: os.path.exists(f"/proc/{host.shepherd_of(KEY)}"))

    run(story())


def resident(pid: int) -> int:
    """Resident memory of a process in bytes."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def rests(pid: int) -> int:
    """Number of times that a process has waited for something."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(file.read().partition("\nvoluntary_ctxt_switches:")[2].split()[0])


async def blocked(pid: int) -> None:
    """Wait until a process that writes without end has written nothing for a while: on a busy host it may only wait."""
    written, since = -1, 0.0

    def stands() -> bool:
        nonlocal written, since
        with open(f"/proc/{pid}/io", encoding="ascii") as file:
            now = next(int(line.split()[1]) for line in file if line.startswith("wchar"))
        if now != written:
            written, since = now, time.monotonic()
        return time.monotonic() > since + 0.3

    await until(stands, more=lambda: f"{pid} was not blocked after {written} bytes")
