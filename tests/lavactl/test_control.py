"""bkill, bstop, bresume and bpeek: their requests and output."""

import pytest

from lavactl.wire import messages
from protos import agents_pb2, jobs_pb2
from tests.lavactl.scripted import Desk


def answer(desk: Desk, *results: tuple[int, int, str]) -> None:
    """Script the master's reply: (job, index, error)."""
    desk.client.signal_reply = jobs_pb2.SignalReply(
        results=[jobs_pb2.SignalResult(job=job, index=index, error=error) for job, index, error in results]
    )


def test_bmig(desk: Desk) -> None:
    """lsf.md 1.4: rerunnable and checkpointable jobs go elsewhere; -m names the hosts, and selects no jobs."""
    desk.client.signal_reply = jobs_pb2.SignalReply(results=[jobs_pb2.SignalResult(job=7)])
    result = desk.type("bmig", "7")
    assert (result.code, result.out) == (0, "Job <7> is being migrated\n")
    assert desk.client.asked[-1].action == jobs_pb2.MIGRATE
    assert not desk.client.asked[-1].force
    desk.type("bmig", "-m", "h1+2 big", "-q", "night", "0")
    request = desk.client.asked[-1]
    assert (list(request.hosts), request.filter.host, request.filter.queue) == (["h1+2", "big"], "", "night")
    assert "-m: the hosts" in desk.type("bmig", "-m", "", "7").err
    desk.type("bmig", "-f", "7")
    assert desk.client.asked[-1].force


def test_bchkpnt(desk: Desk) -> None:
    """lsf.md 1.4: the line of a checkpoint; -f forces it, -k ends the job with it; running jobs are chosen by name."""
    answer(desk, (123, 0, ""), (124, 2, "Job is not checkpointable"))
    result = desk.type("bchkpnt", "-f", "-k", "123", "124[2]")
    assert (result.code, result.out) == (255, "Job <123> is being checkpointed\n")
    assert result.err == "Job <124[2]>: Job is not checkpointable\n"
    request = desk.client.asked[-1]
    assert (request.action, request.force, request.ends) == (jobs_pb2.CHECKPOINT, True, True)
    desk.type("bchkpnt", "-J", "sim*")
    request = desk.client.asked[-1]
    assert (request.force, request.ends, request.newest_only) == (False, False, True)
    assert messages.PEND not in request.filter.states


def test_bchkpnt_changes_the_period(desk: Desk) -> None:
    """lsf.md 1.4: -p makes no checkpoint; jobs that wait are chosen, too. With 0 none is made without a request."""
    results = [jobs_pb2.SignalResult(job=1), jobs_pb2.SignalResult(job=2, error="Job is not checkpointable")]
    desk.client.modify_reply = jobs_pb2.ModifyReply(results=results)
    result = desk.type("bchkpnt", "-p", "5", "1", "2")
    assert (result.code, result.out) == (255, "Job <1>: Checkpoint period is now 5 min.\n")
    assert result.err == "Job <2>: Job is not checkpointable\n"
    request = desk.client.asked[-1]
    assert ([ref.job for ref in request.refs], list(request.fields)) == ([1, 2], ["checkpoint.period_s"])
    assert request.spec.checkpoint.period_s == 300
    desk.type("bchkpnt", "-p", "0", "-q", "night", "0")
    request = desk.client.asked[-1]
    assert (list(request.refs), request.filter.queue, request.newest_only) == ([], "night", False)
    assert list(request.filter.states) == []
    assert request.spec.checkpoint.period_s == 0
    for words, why in ((["-p", "x"], "minutes from 0"), (["-k", "-p", "5"], "makes no checkpoint")):
        refused = desk.type("bchkpnt", *words, "1")
        assert (refused.code, why in refused.err) == (255, True), refused


@pytest.mark.parametrize(
    ("command", "action", "line"),
    [
        (["bkill"], jobs_pb2.TERMINATE, "Job <123> is being terminated\n"),
        (["bkill", "-r"], jobs_pb2.REMOVE, "Job <123> is being terminated\n"),
        (["bkill", "-s", "USR1"], jobs_pb2.SEND, "Job <123> is being signaled\n"),
        (["bkill", "-s", "STOP"], jobs_pb2.STOP, "Job <123> is being signaled\n"),
        (["bkill", "-s", "CONT"], jobs_pb2.RESUME, "Job <123> is being signaled\n"),
        (["bstop"], jobs_pb2.STOP, "Job <123> is being stopped\n"),
        (["bresume"], jobs_pb2.RESUME, "Job <123> is being resumed\n"),
    ],
)
def test_success_lines(desk: Desk, command: list[str], action: int, line: str) -> None:
    """lsf.md 1.4: the line of each command on stdout, exit code 0."""
    answer(desk, (123, 0, ""))
    result = desk.type(*command, "123")
    assert (result.code, result.out, result.err) == (0, line, "")
    request = desk.client.asked[-1]
    assert request.action == action
    assert not request.newest_only
    assert request.filter.refs[0].job == 123


@pytest.mark.parametrize(("name", "number"), [("9", 9), ("KILL", 9), ("SIGKILL", 9), ("kill", 9), ("2", 2)])
def test_signals_by_name_and_number(desk: Desk, name: str, number: int) -> None:
    """lsf-clients.md: ipyparallel sends numbers."""
    answer(desk, (123, 0, ""))
    assert desk.type("bkill", "-s", name, "123").code == 0
    assert desk.client.asked[-1].signal == number


def test_every_id_is_tried_and_one_failure_counts(desk: Desk) -> None:
    """lsf.md 1.4: failure lines on stderr, exit code 255 if any failed."""
    answer(desk, (1, 0, ""), (2, 3, ""), (4, 0, "No matching job found"), (5, 0, "Job has already finished"))
    result = desk.type("bkill", "1", "2[3]", "4", "5", "abc")
    assert result.code == 255
    assert result.out == "Job <1> is being terminated\nJob <2[3]> is being terminated\n"
    assert result.err == ("abc: Illegal job ID.\nJob <4>: No matching job found\nJob <5>: Job has already finished\n")


def test_without_an_id_the_newest_match_is_meant(desk: Desk) -> None:
    """lsf.md 1.0: -J, -q, -m or -u without an id choose the most recently submitted job."""
    answer(desk, (9, 0, ""))
    desk.type("bkill", "-J", "sweep*", "-q", "gpu")
    request = desk.client.asked[-1]
    assert request.newest_only
    assert (request.filter.name, request.filter.queue, request.filter.user) == ("sweep*", "gpu", "")


def test_a_state_is_selected(desk: Desk) -> None:
    """lsf.md 1.4: bkill -stat; the master compares the states when it carries it out."""
    answer(desk, (9, 0, ""))
    desk.type("bkill", "-stat", "susp", "0")
    request = desk.client.asked[-1]
    assert request.action == jobs_pb2.TERMINATE_IN_STATES
    assert set(request.states) == {messages.PSUSP, messages.USUSP, messages.SSUSP} == set(request.filter.states)
    for argv, sentence in (
        (("-stat", "done", "9"), "-stat is run, pend or susp, not done"),
        (("-stat", "run", "-r", "9"), "-stat and -r cannot be used together"),
    ):
        refused = desk.type("bkill", *argv)
        assert (refused.code, sentence in refused.err) == (255, True)


@pytest.mark.parametrize("command", [("bkill",), ("bkill", "-r"), ("bkill", "-stat", "run"), ("bstop",), ("bresume",)])
def test_a_reason_goes_with_the_command(desk: Desk, command: tuple[str, ...]) -> None:
    """lsf.md 1.4: -C; LSF's bound is 4095 characters."""
    answer(desk, (9, 0, ""))
    assert desk.type(*command, "-C", "moves to the new rack", "9").code == 0
    assert desk.client.asked[-1].reason == "moves to the new rack"
    for text, found in (("", 0), ("  ", 2), ("x" * 4096, 4096)):
        refused = desk.type(*command, "-C", text, "9")
        assert refused.code == 255
        assert f"-C: a reason of 1 to 4095 characters is expected, found {found}" in refused.err


def test_a_reason_does_not_go_with_a_signal(desk: Desk) -> None:
    """Nothing is taken and ignored: nor for tasks of a job."""
    for argv, sentence in (
        (("-s", "USR1", "9"), "-C and -s cannot be used together"),
        (("9[worker/1]",), "tasks of jobs are named by themselves, with no option but -s"),
    ):
        refused = desk.type("bkill", "-C", "why", *argv)
        assert (refused.code, sentence in refused.err) == (255, True)
    assert not desk.client.asked


def test_id_zero_means_all_that_match(desk: Desk) -> None:
    """lsf.md 1.0: 0 means all of the caller's jobs."""
    answer(desk, (9, 0, ""), (8, 0, ""))
    desk.type("bkill", "0")
    request = desk.client.asked[-1]
    assert [ref.job for ref in request.filter.refs] == [0]
    assert not request.newest_only
    assert request.filter.user == ""


def test_nothing_said_is_an_error(desk: Desk) -> None:
    """lsf.md 1.4: bkill without arguments."""
    result = desk.type("bkill")
    assert result.code == 255
    assert "Job ID or one of '-m', '-u' '-q' and '-J' must be specified" in result.err
    assert not desk.client.asked


def test_nothing_found(desk: Desk) -> None:
    """lsf.md 1.4: the sentence when no job matches."""
    result = desk.type("bkill", "0")
    assert (result.code, result.err) == (255, "No unfinished job found\n")


UNKNOWN = {
    "-q": "nowhere: No such queue",
    "-u": "nowhere: Unknown user",
    "-m": "nowhere: Bad host name, host group name or cluster name",
    "-J": "Job <nowhere> is not found",
}
TAKEN = {"bkill": UNKNOWN, "bstop": UNKNOWN, "bresume": UNKNOWN, "bswitch": UNKNOWN, "brequeue": ("-u", "-J")}


@pytest.mark.parametrize(
    ("command", "option"), [(command, option) for command, options in TAKEN.items() for option in options]
)
def test_a_name_that_nobody_knows(desk: Desk, command: str, option: str) -> None:
    """A misspelt name is distinguished from a queue without jobs."""
    desk.client.signal_reply = jobs_pb2.SignalReply(error="No unfinished job found")
    argv = [option, "nowhere", *(["night"] if command == "bswitch" else []), "0"]
    result = desk.type(command, *argv)
    assert (result.code, result.err) == (255, f"{UNKNOWN[option]}\n")


def test_unknown_signal(desk: Desk) -> None:
    """One sentence for a signal that does not exist."""
    assert desk.type("bkill", "-s", "FOO", "1").err == "FOO: Illegal signal value.\n"


def test_list_of_signals(desk: Desk) -> None:
    """bkill -l."""
    assert desk.type("bkill", "-l").out.startswith("HUP INT QUIT ")


def test_peek_shows_both_files(desk: Desk) -> None:
    """lsf.md 1.4: titles around the job's output; bytes pass unchanged."""
    desk.client.chunks = [
        agents_pb2.TailChunk(data=b"one\n"),
        agents_pb2.TailChunk(data=b"two\n"),
        agents_pb2.TailChunk(data=b"oops\n", is_error_file=True),
    ]
    result = desk.type("bpeek", "-f", "5[2]")
    assert result.out == "<< output from stdout >>\none\ntwo\n<< output from stderr >>\noops\n"
    request = desk.client.asked[-1]
    assert request.follow
    assert (request.job.ref.job, request.job.ref.indices[0].first) == (5, 2)


def test_peek_of_a_job_that_has_not_started(desk: Desk) -> None:
    """The agent's sentence is the command's error."""
    desk.client.chunks = [agents_pb2.TailChunk(error="Job <5> : Not yet started.")]
    result = desk.type("bpeek", "5")
    assert (result.code, result.out, result.err) == (255, "", "Job <5> : Not yet started.\n")
    desk.client.chunks = [agents_pb2.TailChunk(error="/tmp/x\x1b[2J: Permission denied")]  # the name is another user's
    assert desk.type("bpeek", "5").err == "/tmp/x\\e[2J: Permission denied\n"
