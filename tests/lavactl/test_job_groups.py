"""bgadd, bgmod, bgdel, bjgroup, and -g of other commands: requests and golden output (lsf.md 1.4, 1.9)."""

import pytest

from protos import cluster_pb2 as pb
from protos import jobs_pb2
from tests.lavactl.scripted import Desk


@pytest.mark.parametrize(
    ("argv", "asked", "line"),
    [
        (["bgadd", "/a/b"], pb.JobGroupRequest(name="/a/b"), "Job group </a/b> is added.\n"),
        (["bgadd", "-L", "4", "/a/b"], pb.JobGroupRequest(name="/a/b", limit=4), "Job group </a/b> is added.\n"),
        (
            ["bgmod", "-L", "0", "/a/b"],
            pb.JobGroupRequest(action=pb.CHANGE_GROUP, name="/a/b", limit=0),
            "Job group </a/b> is modified.\n",
        ),
        (
            ["bgmod", "-Ln", "/a/b"],
            pb.JobGroupRequest(action=pb.CHANGE_GROUP, name="/a/b"),
            "Job group </a/b> is modified.\n",
        ),
        (
            ["bgdel", "/a/b"],
            pb.JobGroupRequest(action=pb.REMOVE_GROUP, name="/a/b"),
            "Job group </a/b> is deleted.\n",
        ),
    ],
)
def test_a_group_is_added_changed_and_deleted(
    desk: Desk, argv: list[str], asked: pb.JobGroupRequest, line: str
) -> None:
    """lsf.md 1.9: the line of each command; a limit of 0 is not the same as none."""
    desk.client.job_group_reply = pb.JobGroupReply(paths=["/a/b"])
    result = desk.type(*argv)
    assert (result.code, result.out, result.err) == (0, line, "")
    assert desk.client.asked == [asked]


@pytest.mark.parametrize(
    ("argv", "asked"),
    [
        (["-c", "/a"], pb.JobGroupRequest(action=pb.REMOVE_GROUPS_BELOW, name="/a")),
        (["-u", "bob"], pb.JobGroupRequest(action=pb.REMOVE_GROUPS_OF_USER, name="bob")),
        (["-u", "all"], pb.JobGroupRequest(action=pb.REMOVE_ALL_GROUPS)),
        (["0"], pb.JobGroupRequest(action=pb.REMOVE_GROUPS_OF_USER)),
    ],
)
def test_several_groups_are_deleted_at_once(desk: Desk, argv: list[str], asked: pb.JobGroupRequest) -> None:
    """A line for each of them."""
    desk.client.job_group_reply = pb.JobGroupReply(paths=["/a/b", "/a"])
    assert desk.type("bgdel", *argv).out == "Job group </a/b> is deleted.\nJob group </a> is deleted.\n"
    assert desk.client.asked == [asked]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["bgadd"], "one job group is expected"),
        (["bgadd", "-L", "many", "/a"], "-L many: expected a number of jobs from 0 to 2147483647"),
        (["bgmod", "/a"], "either -L or -Ln is expected"),
        (["bgmod", "-L", "2", "-Ln", "/a"], "either -L or -Ln is expected"),
        (["bgdel"], "the job group is missing"),
        (["bgdel", "-u", "ann", "/a"], "-u stands for itself"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_asked(desk: Desk, argv: list[str], words: str) -> None:
    """One sentence, exit code 255."""
    result = desk.type(*argv)
    assert result.code == 255
    assert words in result.err
    assert not desk.client.asked


TITLES = ["GROUP_NAME", "NJOBS", "PEND", "RUN", "SSUSP", "USUSP", "FINISH", "SLA", "JLIMIT", "OWNER"]


def _three_groups(desk: Desk) -> None:
    reply = desk.client.job_groups_reply
    reply.groups.add(path="/x", owner="bob")
    reply.groups.add(path="/a/b", owner="ann", pend=1, started=0, limit=5)
    reply.groups.add(path="/a", owner="ann", pend=2, run=1, ssusp=1, ususp=1, finish=7, started=3, limit=10, reserved=4)


def test_groups_are_listed_with_their_jobs(desk: Desk) -> None:
    """lsf.md 1.9: its columns; jobs used and limit; the highest groups first."""
    _three_groups(desk)
    result = desk.type("bjgroup")
    assert (result.code, result.err) == (0, "")
    assert result.out == (
        "GROUP_NAME        NJOBS    PEND     RUN   SSUSP   USUSP  FINISH  SLA         JLIMIT  OWNER\n"
        "/a                   12       2       1       1       1       7  ()            3/10  ann\n"
        "/x                    0       0       0       0       0       0  ()             0/-  bob\n"
        "/a/b                  1       1       0       0       0       0  ()             0/5  ann\n"
    )


def test_groups_are_listed_in_the_order_of_the_tree(desk: Desk) -> None:
    """-s; the titles that LSF's tools look for stay."""
    _three_groups(desk)
    lines = desk.type("bjgroup", "-s").out.splitlines()
    assert lines[0].split() == TITLES
    assert [line.split()[0] for line in lines[1:]] == ["/a", "/a/b", "/x"]


def test_groups_are_listed_with_their_slots(desk: Desk) -> None:
    """-N: slots that are reserved count, ended jobs don't."""
    _three_groups(desk)
    result = desk.type("bjgroup", "-N", "/a")
    assert result.out.splitlines()[:2] == [
        "GROUP_NAME       NSLOTS    PEND     RUN   SSUSP   USUSP     RSV  SLA       OWNER",
        "/a                    9       2       1       1       1       4  ()        ann",
    ]
    assert desk.client.asked == [pb.JobGroupsRequest(names=["/a"], slots=True)]


def test_a_group_that_is_not_there(desk: Desk) -> None:
    """One sentence each."""
    result = desk.type("bjgroup")
    assert (result.code, result.out, result.err) == (255, "", "No job group found\n")
    desk.client.job_groups_reply = pb.JobGroupsReply(missing=["/nope"])
    result = desk.type("bjgroup", "/nope")
    assert (result.code, result.out, result.err) == (255, "", "/nope: No such job group\n")


def test_bsub_names_a_group(desk: Desk) -> None:
    """-g, else the user's LSB_DEFAULT_JOBGROUP."""
    for _ in range(2):
        desk.client.submit_results.append(jobs_pb2.SubmitResult(job=1202, queue="normal"))
    desk.environ["LSB_DEFAULT_JOBGROUP"] = "/mine"
    desk.type("bsub", "-g", "/a/b", "sleep", "1")
    desk.type("bsub", "sleep", "1")
    assert [item.spec.job_group for item in desk.client.asked] == ["/a/b", "/mine"]


@pytest.mark.parametrize(("argv", "group"), [(["-g", "/a"], "/a"), (["-gn"], "")], ids=["another group", "no group"])
def test_bmod_moves_a_job_to_a_group(desk: Desk, argv: list[str], group: str) -> None:
    """Only this field is changed."""
    desk.type("bmod", *argv, "5")
    request = desk.client.asked[-1]
    assert list(request.fields) == ["job_group"]
    assert request.spec.job_group == group


@pytest.mark.parametrize("command", ["bkill", "bstop", "bresume"])
def test_jobs_of_a_group_are_controlled(desk: Desk, command: str) -> None:
    """With 0 all of them, without an id the newest."""
    desk.client.signal_reply = jobs_pb2.SignalReply(results=[jobs_pb2.SignalResult(job=9)])
    assert desk.type(command, "-g", "/a/b", "0").code == 0
    assert desk.type(command, "-g", "/a/b").code == 0
    every, newest = desk.client.asked
    assert (every.filter.job_group, every.newest_only) == ("/a/b", False)
    assert (newest.filter.job_group, newest.newest_only) == ("/a/b", True)


def test_jobs_of_a_group_are_switched(desk: Desk) -> None:
    """bswitch takes -g, too."""
    desk.client.modify_reply = jobs_pb2.ModifyReply(results=[jobs_pb2.SignalResult(job=9)])
    assert desk.type("bswitch", "-g", "/a", "short", "0").out == "Job <9> is switched to queue <short>\n"
    assert desk.client.asked[-1].filter.job_group == "/a"


def test_jobs_of_a_group_are_listed(desk: Desk) -> None:
    """Of a group that does not exist one sentence tells."""
    desk.client.job_groups_reply = pb.JobGroupsReply(missing=["/nope"])
    result = desk.type("bjobs", "-g", "/nope")
    assert (result.code, result.out, result.err) == (255, "", "/nope: No such job group\n")
    assert desk.client.asked[0].filter.job_group == "/nope"
