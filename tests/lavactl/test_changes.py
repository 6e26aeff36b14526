"""Golden output of the commands that change jobs: bmod, bswitch, btop, bbot, brequeue, brun and bresize."""

import pytest

from protos import common_pb2, jobs_pb2
from tests.lavactl.scripted import NOW, Desk


def results(*told: tuple[int, int, str]) -> list[jobs_pb2.SignalResult]:
    """The master's results: (job, index, error)."""
    return [jobs_pb2.SignalResult(job=job, index=index, error=error) for job, index, error in told]


def test_bmod(desk: Desk) -> None:
    """lsf.md 1.4: success on stdout; a failure names the job and ends with `Job not modified.`"""
    desk.client.modify_reply.results.extend(results((7, 0, ""), (8, 0, "Job has already finished")))
    result = desk.type("bmod", "-W", "10", "-wn", "7", "8")
    assert result.code == 255
    assert result.out == "Parameters of job <7> are being changed\n"
    assert result.err == "Job <8>: Job has already finished. Job not modified.\n"
    asked = desk.client.asked[-1]
    assert (list(asked.fields), asked.spec.run_limit_s, asked.spec.dependency) == (
        ["run_limit_s", "dependency"],
        600,
        "",
    )


def test_bmod_of_how_many_elements_run(desk: Desk) -> None:
    """lsf.md 5.6: -J "%20"."""
    desk.client.modify_reply.results.extend(results((7, 0, "")))
    assert desk.type("bmod", "-J", "%20", "7").out == "Parameters of job <7> are being changed\n"
    asked = desk.client.asked[-1]
    assert (list(asked.fields), asked.spec.array_limit) == (["array_limit"], 20)


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["bmod", "-W", "1"], "bmod: Job ID must be specified"),
        (["bmod", "7"], "bmod: no parameter to change is specified"),
        (["bmod", "-J", "a[1-3]", "7"], "bmod -J: the index list of an array cannot be changed. Job not modified."),
        (["bswitch"], "bswitch: The destination queue must be specified"),
        (["bswitch", "night"], "bswitch: Job ID or one of '-m', '-u' '-q' and '-J' must be specified"),
        (["btop"], "btop: a job id and at most one position are expected"),
        (["btop", "7", "x"], "x: Illegal job position: it counts from 1."),
        (["brun", "7"], "brun: -m: at least one host must be specified"),
        (["brun", "-m", "n001#x", "7"], "-m n001#x: expected host or host#slots."),
        (["bresize", "7"], "bresize: 7: release, request or cancel is expected"),
        (["bresize", "request", "many", "7"], "bresize: many: a number of slots is expected"),
        (["bresize", "request", "=3", "7"], "bresize: =3: role=tasks is expected"),
        (["lavactl", "scale"], "scale: a job ID is expected"),
        (
            ["lavactl", "scale", "7"],
            "scale: either sizes of roles, or --remove or --remove-host with what is to go, are expected",
        ),
        (["lavactl", "scale", "7", "worker=many"], "scale: worker=many: role=tasks is expected"),
    ],
)
def test_wrong_use(desk: Desk, argv: list[str], sentence: str) -> None:
    """The first line says what was expected; no request is sent."""
    result = desk.type(*argv)
    assert (result.code, result.out) == (255, "")
    assert result.err.splitlines()[0] == sentence
    assert not desk.client.asked


def test_bswitch(desk: Desk) -> None:
    """lsf.md 1.4; without an id the newest job that matches is meant."""
    desk.client.modify_reply.results.extend(results((7, 0, ""), (8, 2, "")))
    result = desk.type("bswitch", "night", "7", "8[2]")
    assert (result.code, result.err) == (0, "")
    assert result.out == "Job <7> is switched to queue <night>\nJob <8[2]> is switched to queue <night>\n"
    desk.type("bswitch", "-q", "day", "night")
    asked = desk.client.asked[-1]
    assert (asked.filter.queue, list(asked.spec.queues), asked.newest_only, asked.is_switch) == (
        "day", ["night"], True, True
    )  # fmt: skip


@pytest.mark.parametrize(
    ("argv", "place", "line"),
    [
        (["btop", "7"], 1, "Job <7> has been moved to position 1 from top.\n"),
        (["btop", "7[3]", "2"], 2, "Job <7[3]> has been moved to position 2 from top.\n"),
        (["bbot", "7", "3"], -3, "Job <7> has been moved to position 3 from bottom.\n"),
        (["bbot", "-u", "7"], -1, "Job <7> has been moved to position 1 from bottom.\n"),
        (["btop", "-u", "7", "4"], 4, "Job <7> has been moved to position 4 from top.\n"),
    ],
)
def test_moves(desk: Desk, argv: list[str], place: int, line: str) -> None:
    """lsf.md 1.4: places count from the top, or from the bottom; with -u among the jobs of one user."""
    desk.client.move_reply.place = place
    result = desk.type(*argv)
    assert (result.code, result.out, result.err) == (0, line, "")
    assert (desk.client.asked[-1].place, desk.client.asked[-1].among_own) == (place, "-u" in argv)


def test_a_move_that_cannot_be(desk: Desk) -> None:
    """The reason on stderr."""
    desk.client.move_reply.error = "Job has already started"
    result = desk.type("btop", "7")
    assert (result.code, result.out, result.err) == (255, "", "Job <7>: Job has already started\n")


def test_brequeue(desk: Desk) -> None:
    """lsf.md 1.4: running and suspended jobs unless -d, -e, -p or -r select others; -H holds them."""
    desk.client.signal_reply.results.extend(results((7, 0, "")))
    assert desk.type("brequeue", "7").out == "Job <7> is being requeued\n"
    assert desk.client.asked[-1].action == jobs_pb2.REQUEUE
    desk.type("brequeue", "-d", "-H", "7")
    asked = desk.client.asked[-1]
    assert (list(asked.states), asked.hold) == ([7], True)


def test_scale(desk: Desk) -> None:
    """Sizes of roles, or what is to go; a number alone is for a job of one role."""
    reply = desk.client.resize_reply
    reply.before.extend([jobs_pb2.RoleSize(role="worker", tasks=4), jobs_pb2.RoleSize(role="ps", tasks=1)])
    reply.after.extend([jobs_pb2.RoleSize(role="worker", tasks=3), jobs_pb2.RoleSize(role="ps", tasks=1)])
    told = desk.type("lavactl", "scale", "7", "worker=3", "ps=1").out
    assert told == "Job <7>: it is being resized: worker from 4 to 3 tasks, ps stays at 1 task\n"
    asked = desk.client.asked[-1]
    assert (asked.ref.job, asked.action) == (7, jobs_pb2.RESIZE_SCALE)
    assert [(one.role, one.tasks) for one in asked.sizes] == [("worker", 3), ("ps", 1)]
    reply.Clear()
    reply.before.add(tasks=2)
    reply.after.add(tasks=3)
    assert desk.type("lavactl", "scale", "7", "3").out == "Job <7>: it is being resized: from 2 to 3 tasks\n"
    assert [(one.role, one.tasks) for one in desk.client.asked[-1].sizes] == [("", 3)]
    desk.type("lavactl", "scale", "7", "--remove", "worker-2 n003")
    assert (desk.client.asked[-1].action, desk.client.asked[-1].what) == (jobs_pb2.RESIZE_RELEASE, "worker-2 n003")
    desk.type("lavactl", "scale", "7", "--remove-host", "n003")
    assert (desk.client.asked[-1].action, desk.client.asked[-1].what) == (jobs_pb2.RESIZE_RELEASE_HOSTS, "n003")
    desk.client.resize_reply.error = "Role worker has 1 to 3 tasks, as it was submitted"
    result = desk.type("lavactl", "scale", "7", "worker=4")
    assert (result.code, result.err) == (255, "Job <7>: Role worker has 1 to 3 tasks, as it was submitted\n")


def test_brun(desk: Desk) -> None:
    """lsf.md 1.4 and 1.1: hosts with their slots."""
    desk.client.force_reply.job = 7
    assert desk.type("brun", "-f", "-m", "n001#2 n002", "7").out == "Job <7> is being forced to run.\n"
    asked = desk.client.asked[-1]
    assert [(share.host, share.slots) for share in asked.hosts] == [("n001", 2), ("n002", 0)]
    assert asked.is_unconstrained


def test_bresize(desk: Desk) -> None:
    """lsf.md 1.9: release, request, cancel; refusals are reported."""
    assert desk.type("bresize", "release", "all ^n001", "7").out == "Job <7>: release is being carried out\n"
    assert desk.client.asked[-1].what == "all ^n001"
    assert desk.type("bresize", "request", "2,8", "7").out == (
        "Job <7>: it grows to 8 slots as soon as there is room\n"
    )
    assert desk.type("bresize", "cancel", "7").out == "Job <7>: it grows no further\n"
    assert desk.type("bresize", "request", "worker=5 ps=2", "7").out == (
        "Job <7>: it grows to worker=5 ps=2 as soon as there is room\n"
    )
    asked = desk.client.asked[-1]
    assert (asked.action, asked.tasks) == (jobs_pb2.RESIZE_REQUEST, 0)
    assert [(one.role, one.tasks) for one in asked.sizes] == [("worker", 5), ("ps", 2)]
    desk.client.resize_reply.error = "The job is not resizable"
    result = desk.type("bresize", "request", "8", "7")
    assert (result.code, result.err) == (255, "Job <7>: The job is not resizable\n")


@pytest.mark.parametrize("has_columns", [False, True])
def test_a_job_that_is_being_started_is_estimated(desk: Desk, has_columns: bool) -> None:
    """bjobs shows it as RUN already: all of its run is left, and nothing is done."""
    desk.client.has_columns = has_columns
    desk.client.jobs = [jobs_pb2.JobRecord(job=7, state=common_pb2.STAGING, submit_time=NOW - 60)]
    desk.client.modify_reply.results.extend(results((7, 0, "")))
    assert desk.type("bmod", "-We+", "20", "7").out == "Parameters of job <7> are being changed\n"
    assert desk.client.asked[-1].spec.runtime_estimate_s == 1200
    refused = desk.type("bmod", "-Wep", "50", "7")
    assert refused.err.startswith("Job <7>: nothing of it is done yet: it is being started. -We+ says what is left.")
    desk.client.jobs[0].state, desk.client.jobs[0].start_time = common_pb2.RUN, NOW - 600
    assert desk.type("bmod", "-Wep", "50", "7").code == 0
    assert desk.client.asked[-1].spec.runtime_estimate_s == 1200
    for state in (common_pb2.PEND, common_pb2.DONE):
        desk.client.jobs[0].state = state
        assert "-We+ and -Wep are for a job that runs" in desk.type("bmod", "-We+", "20", "7").err
