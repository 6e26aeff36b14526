"""Job socket of a host, asked by real jobs: who they are, who the others are, notices, progress; and by strangers."""

import asyncio
import json
import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from agents.job_socket import progress as progress_module
from agents.job_socket import server
from agents.job_socket.members import slot_of
from agents.job_socket.progress import BadReport, read_report
from agents.shepherd.confinement.hierarchy import Base
from agents.shepherd.messages import Key
from protos.agents_pb2 import JobProgress, Limits, Notice, Order, Resize, SignalOrder
from protos.common_pb2 import HostShare
from tests.agents.hosts import Host, Place, blob, key_message, lines, stage, until

pytestmark = pytest.mark.slow

# The one of the machine: the interpreter of the tests may be for root alone.
PYTHON = next((path for path in ("/usr/bin/python3",) if os.path.exists(path)), sys.executable)
ASK = """
import http.client, json, os, socket, sys
class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(os.environ.get("LAVA_JOB_SOCKET") or sys.argv[4])
connection = Unix("job")
connection.request(sys.argv[1], sys.argv[2], sys.argv[3] or None)
answer = connection.getresponse()
print(answer.status, answer.read().decode().strip(), flush=True)
"""


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run one test in an event loop of its own."""
    asyncio.run(coroutine)


def ask(path: str, method: str = "GET", body: str = "") -> str:
    """Shell command of a job that asks its socket and prints status and answer."""
    return f"{PYTHON} -c {shlex.quote(ASK)} {method} {shlex.quote(path)} {shlex.quote(body)}"


def answers(path: Path) -> list[tuple[int, dict[str, Any]]]:
    """Status and document of each answer that a job has printed."""
    found = []
    for line in lines(path) if path.exists() else []:
        status, _, document = line.partition(" ")
        found.append((int(status), json.loads(document)))
    return found


async def with_socket(host: Host) -> None:
    """Serve the job socket of a host."""
    await host.local.interface.socket.start()


def test_a_job_learns_who_it_is_and_what_time_is_left(place: Place) -> None:
    """Its numbers, host and slots; and the run limit less what has passed."""

    async def story() -> None:
        async with Host(place) as host:
            await with_socket(host)
            command = f"{ask('/v1/whoami')}; {ask('/v1/left')}; {ask('/v1/peers')}"
            await host.finish(blob(place, 7, command), stage(run_limit_s=100.0))
            await host.local.interface.socket.stop()

    run(story())
    (_, me), (_, left), (_, peers) = answers(place.out())
    assert (me["job"], me["attempt"], me["host"], me["slots"], me["queue"]) == (7, 1, "h1", 1, "normal")
    assert "role" not in me
    assert left["run_limit"] == 100
    assert 80 < left["seconds_left"] <= 100
    assert peers == {"version": "0", "hosts": [{"host": "h1", "slots": 1, "gpus": []}], "tasks": []}


def test_strangers_are_refused_with_a_sentence(place: Place) -> None:
    """A process that descends from no shepherd gets no answer about any job, whatever its environment says."""

    async def story() -> None:
        async with Host(place) as host:
            await with_socket(host)
            path = host.local.interface.socket.path
            key = await host.run(blob(place, 7, "sleep 100"))
            await host.report(key, "started")
            stranger = await asyncio.create_subprocess_exec(
                PYTHON, "-c", ASK, "GET", "/v1/whoami", "", path,
                env={"LAVA_JOB_KEY": "7.0.1", "LSB_JOBID": "7"}, stdout=subprocess.PIPE,
            )  # fmt: skip
            said, _ = await stranger.communicate()
            assert said.decode() == '403 {"error": "this process belongs to no job on this host"}\n'
            await host.local.interface.socket.stop()

    run(story())


@pytest.mark.root
def test_another_user_in_the_same_tree_is_refused(place: Place) -> None:
    """A process that a job has started as another user is not the job's."""
    other = "setpriv --reuid 65533 --clear-groups"

    async def story() -> None:
        async with Host(place) as host:
            await with_socket(host)
            job = blob(place, 7, f"{other} {ask('/v1/whoami')}")
            job.user, job.uid, job.gid = "root", 0, 0
            await host.finish(job)
            await host.local.interface.socket.stop()

    run(story())
    assert answers(place.out()) == [(403, {"error": "this process belongs to uid 65533, and the job to root"})]


def test_a_hostile_caller_gets_errors_and_others_answers(place: Place) -> None:
    """Nonsense, an endless head, a large body and a silent connection: each ends with an error, and nothing breaks."""
    nonsense = f"""{PYTHON} -c '
import os, socket
def talk(data):
    one = socket.socket(socket.AF_UNIX); one.connect(os.environ["LAVA_JOB_SOCKET"])
    try:
        one.sendall(data)
        print(one.recv(4096).split(b"\\r\\n")[0].decode())
    except OSError: print("closed")
    return one
talk(b"nonsense\\r\\n\\r\\n"); talk(b"GET / HTTP/1.1\\r\\n" + b"x: y\\r\\n" * 9000)
talk(b"POST /v1/progress HTTP/1.1\\r\\nHost: job\\r\\nContent-Length: 99999999\\r\\n\\r\\n" + b"x" * 200000)
silent = [socket.socket(socket.AF_UNIX) for _ in range(600)]
for one in silent:
    one.connect(os.environ["LAVA_JOB_SOCKET"])
'"""

    async def story() -> None:
        async with Host(place) as host:
            await with_socket(host)
            first, second = place.out("first"), place.out("second")
            await host.finish(blob(place, 1, nonsense, output=str(first)))
            checks = (("/v1/nowhere", "GET", ""), ("/v1/whoami", "POST", ""), ("/v1/peers?wait=x", "GET", ""))
            asked = "; ".join(ask(*one) for one in (*checks, ("/v1/progress", "POST", '{"percent": 140}')))
            await host.finish(blob(place, 2, asked, output=str(second)))
            await host.local.interface.socket.stop()

    run(story())
    first = [line.split()[1] if line.startswith("HTTP") else line for line in lines(place.out("first"))]
    assert first[0] == "400"
    assert set(first[1:]) <= {"400", "413", "431", "closed"}
    assert [status for status, _ in answers(place.out("second"))] == [404, 405, 400, 400]
    assert answers(place.out("second"))[3][1] == {"error": "progress: percent: 140 is not between 0 and 100"}


HOLD = """
import os, socket, sys, time
held = []
for _ in range(int(sys.argv[1])):
    one = socket.socket(socket.AF_UNIX)
    one.settimeout(10)
    one.connect(os.environ["LAVA_JOB_SOCKET"])
    one.sendall(sys.argv[2].encode())
    held.append(one)
refused = 0
if sys.argv[2]:
    refused = sum(b" 403 " in one.recv(4096) for one in held)
print("refused", refused, flush=True)
time.sleep(100)
"""
STREAM = "GET /v1/notices/stream HTTP/1.1\\r\\nHost: job\\r\\n\\r\\n"


@pytest.mark.root
@pytest.mark.parametrize("request_of_each", ["", STREAM], ids=["idle", "busy"])
def test_connections_of_one_user_leave_room_for_others(
    place: Place, monkeypatch: pytest.MonkeyPatch, request_of_each: str
) -> None:
    """Seven jobs that hold all the connections they get: another user's job is answered at once.

    Idle ones of the same job or user end for new ones; busy ones do not, and the user hears of the limit.
    """
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 48)
    monkeypatch.setattr(server, "IDLE_MIN_S", 0.2)
    text = request_of_each.replace("\\r\\n", "\r\n")
    holding = f"{PYTHON} -c {shlex.quote(HOLD)} 12 {shlex.quote(text)}"

    async def story() -> None:
        async with Host(place, slots=10) as host:
            await with_socket(host)
            for number in range(1, 8):
                job = blob(place, number, holding, output=str(place.out(f"held{number}")))
                await host.run(job)
                await until(lambda number=number: bool(lines_of(place.out(f"held{number}"))))  # type: ignore[misc]
            asked = blob(place, 9, ask("/v1/whoami"), output=str(place.out("other")))
            asked.user, asked.uid, asked.gid = "root", 0, 0
            await host.finish(asked)
            held = host.local.interface.socket._of_user
            assert held[place.user.pw_uid] <= 24
            await host.local.interface.socket.stop()

    run(story())
    ((status, me),) = answers(place.out("other"))
    assert (status, me["job"]) == (200, 9)
    refused = [int(lines_of(place.out(f"held{number}"))[0].split()[1]) for number in range(1, 8)]
    assert sum(refused) == (0 if not text else 7 * 12 - 24)


def lines_of(path: Path) -> list[str]:
    """Lines of a file that may not be there yet."""
    return lines(path) if path.exists() else []


HAND_ON = """
import os, socket, sys
one = socket.socket(socket.AF_UNIX)
one.connect(os.environ["LAVA_JOB_SOCKET"])
outside = socket.socket(socket.AF_UNIX)
outside.connect(sys.argv[1])
socket.send_fds(outside, [b"x"], [one.fileno()])
outside.recv(1)
"""


def test_a_connection_that_is_handed_on_ends_with_the_job(place: Place) -> None:
    """It is answered while the job runs; afterwards nothing is told or taken on it, and no file stays."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place.work / "outside"))
    os.chmod(place.work / "outside", 0o777)
    listener.listen()
    report = b"POST /v1/progress HTTP/1.1\r\nHost: job\r\nContent-Length: 14\r\n\r\n" + b'{"percent": 4}'

    async def story() -> None:
        async with Host(place) as host:
            await with_socket(host)
            key = await host.run(blob(place, 7, f"{PYTHON} -c {shlex.quote(HAND_ON)} {place.work}/outside"))
            outside, _ = await asyncio.to_thread(listener.accept)
            _, (descriptor,), _, _ = await asyncio.to_thread(socket.recv_fds, outside, 1, 1)
            handed = socket.socket(fileno=descriptor)
            handed.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(handed, report)
            assert (await loop.sock_recv(handed, 4096)).startswith(b"HTTP/1.1 200 ")
            outside.sendall(b"x")
            await host.report(key, "finished")
            await host.release(key)
            await host.report(key, "released")
            said = b""
            try:
                await loop.sock_sendall(handed, report)
                said = await loop.sock_recv(handed, 4096)
            except OSError:
                pass
            assert said == b"" or said.startswith(b"HTTP/1.1 403 ")
            assert list((place.state / "progress").iterdir()) == []
            for one in (handed, outside):
                one.close()
            await host.local.interface.socket.stop()

    run(story())
    listener.close()


def test_progress_is_told_once_in_a_while_and_outlives_the_agent(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of twenty reports the master hears the first and the last; the next agent knows the newest."""
    monkeypatch.setattr(progress_module, "TELL_EVERY_S", 0.5)
    told: list[JobProgress] = []
    many = (
        ASK[: ASK.index("connection =")]
        + """
connection = Unix("job")
for percent in range(1, 21):
    body = {"progressPercentage": percent, "estimatedRemainingSeconds": 30}
    connection.request("POST", "/v1/progress", json.dumps(body))
    connection.getresponse().read()
"""
    )
    loop = f"{PYTHON} -c {shlex.quote(many)}; sleep 100"

    async def story() -> None:
        async with Host(place) as host:
            await with_socket(host)
            host.local.interface.progress.tell = told.append
            begun = time.monotonic()
            key = await host.run(blob(place, 1, loop))
            await until(lambda: bool(told) and told[-1].progress.percent == 20, more=lambda: str(told))
            assert told[-1].progress.seconds_left == 30
            assert len(told) <= 2 + (time.monotonic() - begun) / progress_module.TELL_EVERY_S
            await host.local.interface.socket.stop()
            await host.replace()
            assert [one.progress.percent for one in host.local.keeper.newest_progress()] == [20]
            await host.release(key)
            await host.report(key, "released")
            assert host.local.keeper.newest_progress() == []
            assert list((place.state / "progress").iterdir()) == []

    run(story())


WATCH = 'trap "echo got USR1; cat $LAVA_NOTICE_FILE" USR1; trap "echo got TERM; exit 0" INT USR2; echo ready; '
WAITING = "while :; do sleep 0.05; done"


def test_a_run_limit_is_announced_before_it_is_reached(place: Place) -> None:
    """By the notice file, then by the signal of the job; the limit itself follows."""

    async def story() -> None:
        async with Host(place) as host:
            where = stage(run_limit_s=4.0, warning_time_s=2.0, warning_action="USR1")
            end = await host.finish(blob(place, 1, WATCH + WAITING), where)
            assert end.finished.reason == "TERM_RUNLIMIT" or not end.finished.status
            assert list((place.root / "agent.jobs").glob("*.notice")) == []

    run(story())
    heard = [line for line in lines(place.out()) if "defined signal" not in line]  # of the shell, about its `sleep`
    ready, usr1, notice, term = heard[:4]
    assert (ready, usr1, term) == ("ready", "got USR1", "got TERM")
    found = json.loads(notice)
    assert (found["number"], found["event"]) == (1, "run-limit")
    assert 0 < found["seconds_left"] <= 2.0


def test_the_end_of_a_job_does_not_wait_for_its_warning_command(place: Place) -> None:
    """It is no control of the queue, for which what is left of a job waits: it ends with the job."""

    async def story() -> None:
        async with Host(place) as host:
            host.local.preparation.intervals.terminate_s = 100.0
            where = stage(run_limit_s=60.0, warning_time_s=59.7, warning_action="echo warned > warned; sleep 100")
            key = await host.run(blob(place, 1, "until [ -s warned ]; do sleep 0.05; done; exit 3"), where)
            end = await host.report(key, "finished")
            assert end.also_released
            assert end.finished.status >> 8 == 3

    began = time.monotonic()
    run(story())
    assert time.monotonic() - began < 45
    assert place.out("warned").exists()


def test_a_limit_that_moves_away_withdraws_its_notice(place: Place) -> None:
    """bmod of the run limit after the notice: the job hears that it is void, and runs on."""

    async def story() -> None:
        async with Host(place) as host:
            key = await host.run(blob(place, 1, WATCH + WAITING), stage(run_limit_s=30.0, warning_time_s=29.9))
            path = place.root / "agent.jobs" / "1-0-1.notice"
            await until(path.exists)
            limits = Limits(version=1, run_limit_s=1000.0)
            await host.order(Order(key=key_message(key), limits=limits))
            await until(lambda: len(path.read_text().splitlines()) == 2)
            events = [json.loads(line)["event"] for line in path.read_text().splitlines()]
            assert events == ["run-limit", "withdrawn"]
            await host.release(key)
            await host.report(key, "released")

    run(story())


def test_a_preempted_job_has_its_time_and_hears_of_it_by_the_socket(place: Place) -> None:
    """The wait for a notice ends with it; the signals come when its time is over; another kill does not wait."""
    told = place.out("told")

    async def preempt(host: Host, key: Key, seconds: float) -> None:
        order = SignalOrder(signal=0, reason="preempted for job 9", serial=1, event="preempt", notice_s=seconds)
        await host.order(Order(key=key_message(key), signal=order))

    async def story() -> None:
        async with Host(place) as host:
            await with_socket(host)
            waits = f"{ask('/v1/notices?wait=60')} > told; echo done; {WAITING}"
            where = stage()
            key = await host.run(blob(place, 1, f"trap 'echo got TERM; exit 3' INT; {waits}"), where)
            await host.report(key, "started")
            await asyncio.sleep(0.3)  # the job is at its question, or asks later: both are answered
            begun = asyncio.get_running_loop().time()
            await preempt(host, key, 3.0)
            await until(lambda: told.exists() and told.read_text().endswith("}\n"))
            assert host.said(key, "finished") == []
            await host.report(key, "finished")
            assert asyncio.get_running_loop().time() - begun > 2.9
            again = await host.run(blob(place, 2, WAITING), where)
            await host.report(again, "started")
            await preempt(host, again, 100.0)
            await host.signal(again, 0, "killed by its owner", serial=2)
            end = await host.report(again, "finished")
            assert end.finished.reason == "killed by its owner"
            await host.local.interface.socket.stop()

    run(story())
    ((status, said),) = answers(told)
    (notice,) = said["notices"]
    assert (status, notice["event"], notice["reason"]) == (200, "preempt", "preempted for job 9")
    assert 0 < notice["seconds_left"] <= 3


def test_a_shrinking_job_has_its_time(place: Place) -> None:
    """It hears what leaves, and only after its warning time the master hears that it knows."""
    both = (HostShare(host="h1", slots=1), HostShare(host="h2", slots=2))

    async def story() -> None:
        async with Host(place) as host:
            where = stage(*both, warning_time_s=0.8)
            key = await host.run(blob(place, 1, "sleep 100", resizable=True), where)
            await host.report(key, "staged")
            await host.launch(key)
            await host.report(key, "started")
            begun = time.monotonic()
            order = Order(key=key_message(key), allocation_version=2, resize=Resize(allocation=both[:1]))
            await host.order(order)
            path = place.root / "agent.jobs" / "1-0-1.notice"
            await until(path.exists)
            await host.report(key, "resized")
            assert time.monotonic() - begun > 0.7
            notice = json.loads(path.read_text())
            assert (notice["event"], notice["reason"]) == ("shrink", "the job gives up 2 slots on h2")
            assert 0 < notice["seconds_left"] <= 0.8
            await host.release(key)
            await host.report(key, "released")

    run(story())


def test_waiting_callers_reach_the_next_agent(place: Place) -> None:
    """A job that asks again after its agent was replaced hears what it was told before, and what comes after."""
    loop = f"until {ask('/v1/notices?after=1&wait=60')} | grep -v ' .*\\[\\]' >> told; do sleep 0.1; done; {WAITING}"
    quiet = "exec 2>/dev/null; "

    async def story() -> None:
        async with Host(place) as host:
            await with_socket(host)
            key = await host.run(blob(place, 1, quiet + loop))
            await host.report(key, "started")
            first = Notice(event="host", reason="the host goes for maintenance", serial=1)
            await host.order(Order(key=key_message(key), notice=first))
            await until((place.root / "agent.jobs" / "1-0-1.notice").exists)
            await host.local.interface.socket.stop()
            await host.replace()
            await with_socket(host)
            second = Notice(event="withdrawn", reason="it stays", serial=2)
            await host.order(Order(key=key_message(key), notice=second))
            await host.order(Order(key=key_message(key), notice=second))
            await until(lambda: place.out("told").exists() and place.out("told").read_text().endswith("}\n"))
            await host.release(key)
            await host.report(key, "released")
            await host.local.interface.socket.stop()

    run(story())
    ((_, said),) = answers(place.out("told"))
    assert [(one["number"], one["event"]) for one in said["notices"]] == [(2, "withdrawn")]


def test_a_slot_is_found_in_a_control_group_of_either_version() -> None:
    """Also below it, where a container runtime makes groups of its own; not beside it."""
    v2 = Base(2, (("", "/sys/fs/cgroup/system.slice/lava-h1-0"),))
    v1 = Base(1, (("memory", "/sys/fs/cgroup/memory/lava-h1-0"), ("pids", "/sys/fs/cgroup/pids/lava-h1-0")))
    assert slot_of("0::/system.slice/lava-h1-0/3/box/1\n", v2) == 3
    assert slot_of("5:pids:/lava-h1-0/12\n4:memory:/lava-h1-0/12\n0::/\n", v1) == 12
    assert slot_of("0::/system.slice/lava-h2-0/3\n", v2) == -1
    assert slot_of("0::/user.slice\n", v2) == -1
    assert slot_of("0::/a\n", Base()) == -1


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ([], "an object is expected"),
        ({}, "percent, seconds_left or text is expected"),
        ({"percent": "40"}, "percent: a number is expected"),
        ({"percent": True}, "percent: a number is expected"),
        ({"percent": float("nan")}, "percent: a number is expected"),
        ({"percent": 10**400}, "percent: a number is expected"),
        ({"progressPercentage": 101}, "progressPercentage: 101 is not between 0 and 100"),
        ({"seconds_left": -1}, "seconds_left: -1 is not between 0"),
        ({"text": "x" * 501}, "text: at most 500 characters"),
        ({"percent": 1, "colour": "red"}, "colour: unknown; percent"),
    ],
)
def test_a_wrong_report_is_named(said: object, wrong: str) -> None:
    """In a sentence that names the field."""
    with pytest.raises(BadReport, match=wrong.replace("(", r"\(")):
        read_report(said)


def test_reports_of_trainers_are_understood() -> None:
    """KEP-2779's names, alone or in their wrapping, with what it has more."""
    told = {"progressPercentage": 0, "estimatedRemainingSeconds": 90, "metrics": [{"name": "loss", "value": "1"}]}
    for said in (told, {"trainerStatus": told}):
        report = read_report(said)
        assert (report.has_percent, report.percent, report.seconds_left) == (True, 0, 90)
    assert read_report({"text": "epoch\n3\x1b"}).text == "epoch 3"


def test_the_socket_module_needs_a_short_path() -> None:
    """A path that the kernel refuses is not offered to jobs."""
    from agents.job_socket.place import directory_of, socket_of

    assert socket_of("/run/lava/agent.sock") == "/run/lava/agent.jobs/socket"
    assert socket_of("") == directory_of("") == ""
    assert socket_of("/" + "x" * 100 + "/agent.sock") == ""
    assert len(socket_of("/" + "x" * 80 + "/agent.sock")) <= 107
    assert socket.AF_UNIX
