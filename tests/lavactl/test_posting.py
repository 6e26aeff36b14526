"""bpost, bread and bstatus: requests and golden output (lsf.md 1.9); the table of bjobs -l (lsf.md 1.3)."""

from pathlib import Path

import pytest

from protos import common_pb2, jobs_pb2
from tests.lavactl.scripted import Desk, a_job, at

MESSAGE = jobs_pb2.JobMessage(number=10, user="alice", time=at("09:04:00"), text="step 2 of 5", level="INFO", size=3)


def test_a_message_with_a_file(desk: Desk, tmp_path: Path) -> None:
    """Index, text, level and the file's content reach the master; the job is named in the answer."""
    (tmp_path / "data").write_bytes(b"\0ab")
    desk.client.post_reply = jobs_pb2.PostReply(job=7, index=2)
    argv = ("-i", "10", "-d", "step 2 of 5", "-N", "INFO", "-a", str(tmp_path / "data"), "7[2]")
    result = desk.type("bpost", *argv)
    assert (result.code, result.out, result.err) == (0, "Message <10> is posted to job <7[2]>\n", "")
    sent = jobs_pb2.JobMessage(number=10, text="step 2 of 5", level="INFO", data=b"\0ab")
    assert desk.client.asked[-1].message == sent
    assert desk.client.asked[-1].ref.job == 7


def test_the_newest_job_of_a_name(desk: Desk) -> None:
    """-J; without -d the text is LSF's."""
    assert desk.type("bpost", "-J", "md").code == 0
    assert desk.client.asked[-1].filter.name == "md"
    assert desk.client.asked[-1].message == jobs_pb2.JobMessage(text="no description")
    desk.client.read_reply = jobs_pb2.ReadReply(error="No matching job found")
    result = desk.type("bread", "-J", "md")
    assert (result.code, result.err) == (255, "Job <md>: No matching job found\n")


def test_a_message_is_read(desk: Desk, tmp_path: Path) -> None:
    """lsf.md 1.9: JOBID MSG_ID FROM POST_TIME MESSAGE; -N has the level, -a keeps the file."""
    desk.client.read_reply = jobs_pb2.ReadReply(job=7, message=MESSAGE)
    assert desk.type("bread", "-i", "10", "7").out == (
        "JOBID    MSG_ID   FROM       POST_TIME        MESSAGE\n"
        "7        10       alice      Nov 21 09:04     step 2 of 5\n"
    )
    request = desk.client.asked[-1]
    assert (request.ref, request.number, request.with_data) == (common_pb2.JobRef(job=7), 10, False)
    titles, row = desk.type("bread", "-N", "-i", "10", "7").out.splitlines()
    assert (titles.split()[4], row.split()[6]) == ("NOTIFY", "INFO")
    desk.client.read_reply.message.data = b"\0ab"
    assert desk.type("bread", "-i", "10", "-a", str(tmp_path / "copy"), "7").code == 0
    assert (tmp_path / "copy").read_bytes() == b"\0ab"
    assert desk.client.asked[-1].with_data
    desk.client.read_reply.message.data = b""
    assert "no file is attached to the message" in desk.type("bread", "-a", str(tmp_path / "copy"), "7").err
    assert (tmp_path / "copy").read_bytes() == b"\0ab"


def test_the_status_of_a_job(desk: Desk) -> None:
    """bstatus -d sets message 0, bstatus shows it."""
    assert desk.type("bstatus", "-d", "almost done", "7").out == "Status of job <7> is set\n"
    assert desk.client.asked[-1].message == jobs_pb2.JobMessage(text="almost done")
    desk.client.read_reply = jobs_pb2.ReadReply(job=7, message=MESSAGE)
    assert desk.type("bstatus", "7").out == (
        "JOBID      FROM       UPDATE_TIME     STATUS\n7          alice      Nov 21 09:04    step 2 of 5\n"
    )
    desk.client.read_reply = jobs_pb2.ReadReply(job=7)
    assert desk.type("bstatus", "7").err == "Job <7>: No status was posted\n"
    assert desk.type("bread", "-i", "3", "7").err == "Job <7>: No message with index <3>\n"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["bpost"], "one job is expected: its id, or its name with -J"),
        (["bpost", "1", "2"], "one job is expected"),
        (["bpost", "-J", "a", "1"], "one job is expected"),
        (["bread", "0"], "0: Illegal job ID."),
        (["bpost", "-i", "128", "1"], "bpost -i 128: expected a number from 0 to 127."),
        (["bpost", "-d", "x" * 513, "1"], "bpost -d: the message has 513 characters; 512 are the most."),
        (["bpost", "-N", "INFO", "1"], "-N is one of INFO, WARNING, ERROR, CRITICAL, and goes with -d"),
        (["bpost", "-d", "x", "-N", "LOUD", "1"], "-N is one of INFO"),
        (["bpost", "-a", "/nonexistent", "1"], "bpost -a /nonexistent: the file cannot be read."),
        (["bstatus", "-i", "1", "1"], "illegal option -- i"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_asked(desk: Desk, argv: list[str], words: str) -> None:
    """One sentence, exit code 255."""
    result = desk.type(*argv)
    assert result.code == 255
    assert words in result.err
    assert not desk.client.asked


def test_a_file_that_is_too_large(desk: Desk, tmp_path: Path) -> None:
    """It stays where it is; an empty one is nothing to attach."""
    for size, words in ((256 << 10, ""), ((256 << 10) + 1, "the file is larger than 256 KiB."), (0, "is empty")):
        (tmp_path / "data").write_bytes(b"x" * size)
        assert words in desk.type("bpost", "-a", str(tmp_path / "data"), "1").err
    assert len(desk.client.asked) == 1


def test_messages_in_the_long_form(desk: Desk) -> None:
    """lsf.md 1.3: EXTERNAL MESSAGES with MSG_ID FROM POST_TIME MESSAGE ATTACHMENT."""
    desk.client.jobs = [a_job(spec=jobs_pb2.JobSpec(command="x"), messages=[MESSAGE])]
    assert (
        """
 EXTERNAL MESSAGES:
 MSG_ID FROM       POST_TIME      MESSAGE                             ATTACHMENT
 10     alice      Nov 21 09:04   step 2 of 5                         Y
"""
        in desk.type("bjobs", "-l", "1201").out
    )
