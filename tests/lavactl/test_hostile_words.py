"""Texts of others on a terminal: whatever a record holds, no command moves the cursor or forges a line with it."""

import json
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor

from lavactl.views.job_fields import WIDTHS
from protos import cluster_pb2, common_pb2, jobs_pb2
from tests.lavactl.scripted import Desk, a_job

HOSTILE = "x\x1b[2J\x9b2J\x07\rUserId=root(0)\nUserId=root(0)\u202e"
STRING = FieldDescriptor.TYPE_STRING


# Names of users, hosts and queues: the master takes them from the system and its files, and only printable ones.
NAMES = frozenset((
    "user", "queue", "queues", "from_host", "host", "submit_host", "address", "share_account", "hosts", "host_names",
    "index", "resource",
))  # fmt: skip


def poison(message: Any, depth: int = 0) -> Any:
    """Put the hostile text into every text of a message and of its parts, one of each."""
    for field in message.DESCRIPTOR.fields:
        if field.name in NAMES and field.type == STRING:
            continue
        if field.type == STRING:
            if field.is_repeated:
                getattr(message, field.name).append(HOSTILE)
            else:
                setattr(message, field.name, HOSTILE)
        elif field.message_type is not None and not field.message_type.GetOptions().map_entry and depth < 4:
            part = getattr(message, field.name)
            if field.is_repeated:
                if not part:
                    poison(part.add(), depth + 1)
            else:
                part.SetInParent()
                poison(part, depth + 1)
    return message


def hostile_jobs() -> list[jobs_pb2.JobRecord]:
    """A running, a waiting and an ended job that have that text wherever there is one."""
    found = []
    for number, state in ((7, common_pb2.RUN), (8, common_pb2.PEND), (9, common_pb2.EXIT)):
        job = poison(a_job([("n1", 2)], job=number, state=state))
        job.state, job.job = state, number
        job.spec.is_script = False
        found.append(job)
    return found


FIELDS = " ".join(WIDTHS)
COMMANDS = [
    ("bjobs", "-u", "all", "-a"), ("bjobs", "-w", "-u", "all", "-a"), ("bjobs", "-W", "-u", "all", "-a"),
    ("bjobs", "-l", "-u", "all", "-a"), ("bjobs", "-UF", "-u", "all", "-a"), ("bjobs", "-p", "-u", "all"),
    ("bjobs", "-sum", "-u", "all"), ("bjobs", "-psum", "-u", "all"), ("bjobs", "-A", "-u", "all", "-a"),
    ("bjobs", "-WL", "-u", "all"),
    ("bjobs", "-u", "all", "-a", "-o", FIELDS), ("bjobs", "-u", "all", "-a", "-o", "jobid command job_name:20 user:9"),
    ("squeue",), ("squeue", "-o", "%all"), ("squeue", "-l"), ("scontrol", "show", "job", "7"),
    ("scontrol", "show", "job"), ("sacct", "-a"), ("sacct", "-a", "-o", "all"), ("sacct", "-a", "-P", "-o", "all"),
]  # fmt: skip


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_list_shows_what_moves_the_cursor(desk: Desk, words: tuple[str, ...]) -> None:
    """Each record stays on its own lines, and everything in it that is no text is made visible."""
    desk.client.jobs = hostile_jobs()
    words = tuple("%i %j %u %a %R %Z %k %o %n" if word == "%all" else word for word in words)
    result = desk.type(*words)
    shown = result.out + result.err
    assert "Traceback" not in shown
    assert "unexpected" not in shown
    assert shown
    assert not [line for line in shown.splitlines() if line.startswith("UserId=root(0)")], shown
    assert not {letter for letter in shown if not letter.isprintable()} - set("\n"), shown


@pytest.mark.parametrize(
    "words", [("bjobs", "-u", "all", "-a", "-json", "-o", FIELDS), ("squeue", "--json"), ("sacct", "-a", "--json")]
)
def test_documents_are_whole(desk: Desk, words: tuple[str, ...]) -> None:
    """Programs read them as JSON, whatever the texts are, and a terminal shows no more than that."""
    desk.client.jobs = hostile_jobs()
    shown = desk.type(*words).out
    assert json.loads(shown)
    assert not {letter for letter in shown if not letter.isprintable()} - set("\n\t "), shown


def test_hosts_of_others(desk: Desk) -> None:
    """A host says what it is and how it is; queues and users have names of their own."""
    record = poison(cluster_pb2.HostRecord())
    record.facts.name, record.status = "n1", "ok"
    desk.client.host_records = [record]
    for words in (("bhosts",), ("bhosts", "-l"), ("lshosts",), ("lshosts", "-l"), ("lsload",), ("sinfo",)):
        result = desk.type(*words)
        shown = result.out + result.err
        assert not [line for line in shown.splitlines() if line.startswith("UserId=root(0)")], (words, shown)
        assert not {letter for letter in shown if not letter.isprintable()} - set("\n"), (words, shown)
