"""Commands about the tasks of a job: which are meant, how they are shown, and their output."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lavactl.errors import CommandError
from lavactl.taskrefs import names_tasks, read_task_ref
from protos import agents_pb2, common_pb2, jobs_pb2
from tests.lavactl.scripted import Desk, a_job, at


def training(**fields: Any) -> jobs_pb2.JobRecord:
    """A parameter-server job: ps/0 and worker/0 run, worker/1 has failed in its second run."""
    job = a_job([("n001", 2), ("n002", 1)], state=common_pb2.RUN, **fields)
    job.spec.tasks.format = 1
    job.spec.roles.add(name="ps", tasks_min=1, tasks_max=1)
    job.spec.roles.add(name="worker", tasks_min=1, tasks_max=2)
    for role, index, host, run, phase, status in (
        (0, 0, "n001", 1, common_pb2.TASK_RUNNING, 0),
        (1, 0, "n001", 1, common_pb2.TASK_RUNNING, 0),
        (1, 1, "n002", 2, common_pb2.TASK_EXITED, 3 << 8),
    ):
        one = job.tasks.add(phase=phase, host=host, pid=100 + run, started=at("09:10:00"), status=status)
        one.task.role, one.task.index, one.task.run = role, index, run
        if phase == common_pb2.TASK_EXITED:
            one.ended = at("09:20:00")
    job.restarts = 1
    return job


@pytest.mark.parametrize("argv", [("bjobs", "-l"), ("bhist", "-l", "-a"), ("bacct", "-l")])
def test_the_command_of_a_job_of_roles_is_its_first_ones(desk: Desk, argv: tuple[str, ...]) -> None:
    """Such a job has none itself: the lists showed ``Command <>``."""
    job = training()
    job.spec.command = ""
    job.spec.roles[0].command, job.spec.roles[1].command = "./ps --port 1", "./worker"
    desk.client.jobs = [job]
    desk.client.histories = [jobs_pb2.JobHistory(job=1201, record=job)]
    desk.client.account_pages = [jobs_pb2.AccountPage(jobs=[jobs_pb2.AccountRecord(record=job)])]
    assert "Command <./ps --port 1>" in desk.type(*argv, "1201").out.replace("\n                     ", "")


@pytest.mark.parametrize(
    ("word", "is_task"),
    [
        ("12[worker]", True),
        ("12[worker/3]", True),
        ("12[5][worker/3]", True),
        ("12[ps-1/0]", True),
        ("12[5]", False),
        ("12[1-10:2,15]", False),
        ("12", False),
        ("0", False),
    ],
)
def test_a_word_names_tasks_or_array_elements(word: str, is_task: bool) -> None:
    """Brackets with digits alone are array indices, as before."""
    assert names_tasks(word) is is_task


def test_the_parts_of_a_task_reference() -> None:
    """The job with its element, the role, and the index in the role."""
    ref = read_task_ref("12[5][worker/3]")
    assert (ref.job.job, ref.job.indices[0].first, ref.role, ref.index) == (12, 5, "worker", 3)
    assert str(ref) == "12[5][worker/3]"
    assert read_task_ref("12[worker]").index is None


@pytest.mark.parametrize("word", ["12[worker/x]", "12[worker/]", "12[/3]", "x[worker]", "12[worker/99999999999]"])
def test_a_malformed_task_reference_is_refused(word: str) -> None:
    """One sentence says which word."""
    with pytest.raises(CommandError, match="Illegal"):
        read_task_ref(word)


def test_the_table_of_tasks(desk: Desk) -> None:
    """A line for each task, by role and index."""
    desk.client.jobs = [training()]
    assert desk.type("lavactl", "tasks", "1201").out == (
        "TASK      STAT  HOST  RUN  EXIT  PID  STARTED       ENDED         REASON\n"
        "ps/0      RUN   n001  1    -     101  Nov 21 09:10  -             -\n"
        "worker/0  RUN   n001  1    -     101  Nov 21 09:10  -             -\n"
        "worker/1  EXIT  n002  2    3     102  Nov 21 09:10  Nov 21 09:20  -\n"
    )


def test_the_table_of_one_role_and_of_none(desk: Desk) -> None:
    """A role or task that the job lacks is an error."""
    desk.client.jobs = [training()]
    assert desk.type("lavactl", "tasks", "-noheader", "1201[ps]").out.startswith("ps/0")
    missing = desk.type("lavactl", "tasks", "1201[chief]")
    assert (missing.code, missing.err) == (255, "Job <1201[chief]> has no such task.\n")


def test_a_job_that_waits_has_no_table_yet(desk: Desk) -> None:
    """The sentence says why there are no rows; for programs there is no line at all."""
    job = training()
    job.state = common_pb2.PEND
    del job.tasks[:]
    desk.client.jobs = [job]
    assert desk.type("lavactl", "tasks", "1201").out == "Job <1201> has not been dispatched.\n"
    quiet = desk.type("lavactl", "tasks", "-noheader", "1201")
    assert (quiet.out, quiet.err, quiet.code) == ("", "", 0)


def test_tasks_of_a_suspended_job_are_suspended(desk: Desk) -> None:
    """Those that run; others have ended before."""
    job = training()
    job.state = common_pb2.USUSP
    desk.client.jobs = [job]
    rows = desk.type("lavactl", "tasks", "-noheader", "1201").out.splitlines()
    assert [row.split()[1] for row in rows] == ["SUSP", "SUSP", "EXIT"]


def test_other_jobs_have_no_tasks_of_their_own(desk: Desk) -> None:
    """A plain job says so; an unknown one is not found."""
    desk.client.jobs = [a_job([("n001", 1)])]
    assert "it has no tasks of its own" in desk.type("lavactl", "tasks", "1201").err
    desk.client.jobs = []
    assert desk.type("lavactl", "tasks", "7").err == "Job <7> is not found\n"


def test_bjobs_shows_roles_and_tasks(desk: Desk) -> None:
    """-l: sizes of the roles in the submission, a block about the tasks."""
    desk.client.jobs = [training()]
    out = desk.type("bjobs", "-l", "1201").out
    assert "Roles <ps: 1, worker: 1-2>" in out.replace("\n" + " " * 21, "")
    assert " TASKS: (the job was restarted 1 time)\n TASK      STAT" in out
    assert " worker/1  EXIT  n002  2    3" in out


def test_bkill_of_tasks(desk: Desk) -> None:
    """One request for each word, with role and task; the job goes on."""
    desk.client.signal_reply = jobs_pb2.SignalReply(results=[jobs_pb2.SignalResult(job=12)])
    result = desk.type("bkill", "12[worker/3]", "12[ps]")
    assert result.out == "Job <12[worker/3]> is being terminated\nJob <12[ps]> is being terminated\n"
    first, second = desk.client.asked
    assert (first.action, first.role, first.task_plus_one, first.filter.refs[0].job) == (
        jobs_pb2.TERMINATE,
        "worker",
        4,
        12,
    )
    assert (second.role, second.task_plus_one) == ("ps", 0)


def test_bkill_signals_tasks(desk: Desk) -> None:
    """-s sends a signal; other options do not go with tasks."""
    desk.client.signal_reply = jobs_pb2.SignalReply(results=[jobs_pb2.SignalResult(job=12)])
    assert desk.type("bkill", "-s", "USR1", "12[worker/3]").out == "Job <12[worker/3]> is being signaled\n"
    assert (desk.client.asked[0].action, desk.client.asked[0].signal) == (jobs_pb2.SEND, 10)
    assert desk.type("bkill", "-r", "12[worker/3]").code == 255
    assert desk.type("bkill", "12[worker/3]", "13").code == 255
    assert len(desk.client.asked) == 1


def spoken(desk: Desk, said: dict[tuple[str, int], list[bytes]]) -> None:
    """Script the output of each task."""

    def peek(request: jobs_pb2.PeekRequest) -> Iterator[agents_pb2.TailChunk]:
        desk.client.keep(jobs_pb2.PeekRequest, request)
        found = said.get((request.job.role, request.job.task))
        if found is None:
            return iter([agents_pb2.TailChunk(error="its host does not answer")])
        return iter([agents_pb2.TailChunk(data=data) for data in found])

    replacement: Callable[..., Any] = peek
    desk.client.peek = replacement  # type: ignore[method-assign]


def test_the_output_of_one_task_is_shown_as_it_is(desk: Desk) -> None:
    """Also of an earlier run."""
    desk.client.jobs = [training()]
    spoken(desk, {("worker", 1): [b"step 1\nst", b"ep 2"]})
    assert desk.type("lavactl", "logs", "1201", "worker/1", "--attempt", "1").out == "step 1\nstep 2"
    assert desk.client.asked[-1].job.run == 1
    assert desk.type("lavactl", "logs", "1201[worker/1]", "--attempt", "3").err == (
        "Job <1201[worker/1]> : run 3 of it was not started.\n"
    )


def test_the_output_of_several_tasks_is_marked_line_by_line(desk: Desk) -> None:
    """Lines stay whole, an unfinished last one is ended."""
    desk.client.jobs = [training()]
    spoken(desk, {("worker", 0): [b"a", b"b\nc"], ("worker", 1): [b"x\n"]})
    lines = desk.type("lavactl", "logs", "1201", "worker").out.splitlines()
    assert sorted(lines) == ["worker/0: ab", "worker/0: c", "worker/1: x"]


def test_a_task_that_cannot_be_read_does_not_hide_the_others(desk: Desk) -> None:
    """Its sentence goes to standard error, and the exit code tells."""
    desk.client.jobs = [training()]
    spoken(desk, {("worker", 0): [b"a\n"]})
    result = desk.type("lavactl", "logs", "1201", "worker")
    assert (result.code, result.out, result.err) == (255, "worker/0: a\n", "worker/1: its host does not answer\n")


def test_output_apart(desk: Desk) -> None:
    """One task after the other, each under its name."""
    desk.client.jobs = [training()]
    spoken(desk, {("worker", 0): [b"a\n"], ("worker", 1): [b"x\n"]})
    assert desk.type("lavactl", "logs", "--apart", "1201[worker]").out == (
        "<< output of worker/0 >>\na\n\n<< output of worker/1 >>\nx\n"
    )


def test_bpeek_of_a_job_of_tasks_shows_all_of_them(desk: Desk) -> None:
    """The answer to the plain request says that tasks are to be named."""
    desk.client.jobs = [training()]
    said = {("ps", 0): [b"p\n"], ("worker", 0): [b"a\n"], ("worker", 1): [b"x\n"]}
    spoken(desk, said)
    by_task = desk.client.peek

    def peek(request: jobs_pb2.PeekRequest) -> Iterator[agents_pb2.TailChunk]:
        return by_task(request) if request.job.role else iter([agents_pb2.TailChunk(has_tasks=True)])

    desk.client.peek = peek  # type: ignore[method-assign]
    out = desk.type("bpeek", "1201").out
    assert out.startswith("<< output from stdout >>\n")
    assert sorted(out.splitlines()[1:]) == ["ps/0: p", "worker/0: a", "worker/1: x"]
    assert desk.type("bpeek", "1201[worker/0]").out == "<< output from stdout >>\na\n"
