"""Tickets to attach to a running job: for whom, where, and for which purpose they are good."""

import time

import pytest

from lavad.api.checks import check_interactive
from lavad.api.jobs.tickets.attach import attach_reply
from lavad.core.commands import Caller
from lavad.core.model import Key
from lavad.core.model.reasons import Refused
from protos import jobs_pb2 as pb
from protos.common_pb2 import IndexRange, Role
from protos.trust import peek_tickets
from tests.builders import ANN, BOB, ROOT, a_cluster, a_host, a_job

SIGNING = peek_tickets.new_key()


def request(job: int, index: int = 0, attempt: int = 0, host: str = "") -> pb.AttachTicketRequest:
    """Request about a job, with a host of its allocation."""
    made = pb.AttachTicketRequest(host=host)
    made.key.job, made.key.index, made.key.attempt = job, index, attempt
    return made


def is_good(reply: pb.AttachTicketReply, key: Key, host: str, purpose: bytes = peek_tickets.ATTACH) -> bool:
    """True if the host's agent takes the ticket."""
    public = peek_tickets.public_bytes(SIGNING)
    return peek_tickets.check(public, reply.ticket, tuple(key), host, time.time(), purpose)


def test_the_ticket_is_for_one_attempt_on_one_of_its_hosts() -> None:
    """The lead host unless another is named; it opens nothing else there, and is no ticket to read output."""
    story = a_cluster(a_host("n1", 1), a_host("n2", 1), a_host("n3", 1))
    key = story.run(a_job(2))
    lead, other = story.where(key.job)
    reply = attach_reply(story.cluster, request(key.job), ANN, SIGNING)
    assert (reply.error, reply.host, reply.key.attempt) == ("", lead, key.attempt)
    assert is_good(reply, key, lead)
    assert not is_good(reply, key, other)
    assert not is_good(reply, Key(key.job, key.index, key.attempt + 1), lead)
    assert not is_good(reply, key, lead, peek_tickets.PEEK)
    assert attach_reply(story.cluster, request(key.job, host=other), ANN, SIGNING).host == other
    assert attach_reply(story.cluster, request(key.job, host=f"{other.upper()}.site."), ANN, SIGNING).host == other
    free = ({"n1", "n2", "n3"} - {lead, other}).pop()
    refused = attach_reply(story.cluster, request(key.job, host=free), ANN, SIGNING)
    assert (refused.error, refused.ticket) == (f"Job <{key.job}> does not run on {free}", b"")


@pytest.mark.parametrize(("caller", "error"), [(ANN, ""), (ROOT, ""), (BOB, "Job <1>: User permission denied")])
def test_only_the_owner_and_administrators_attach(caller: Caller, error: str) -> None:
    """As with other commands."""
    story = a_cluster(a_host("n1"))
    key = story.run(a_job())
    assert attach_reply(story.cluster, request(key.job), caller, SIGNING).error == error


def test_what_does_not_run_is_told() -> None:
    """Pending, ended, unknown, an array as a whole, an attempt that is over."""
    story = a_cluster(a_host("n1", 1))
    key = story.run(a_job())
    waiting = story.submit(a_job())
    array = story.submit(a_job(array="1-2"))

    def error(*about: int) -> str:
        return attach_reply(story.cluster, request(*about), ANN, SIGNING).error

    assert error(key.job, 0, 2) == f"Job <{key.job}>: that attempt of it is over"
    assert error(waiting) == f"Job <{waiting}> : Not yet started."
    assert error(array) == f"Job <{array}> is a job array: name one of its elements, as in {array}[1]"
    assert error(array, 1) == f"Job <{array}[1]> : Not yet started."
    assert error(99) == "Job <99> is not found"
    story.finished("n1", key, 0)
    assert error(key.job) == f"Job <{key.job}> : Already finished."


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, ""),
        ({"interactive": "telnet"}, "An interactive job has the streams pipes, terminal, shell, not telnet"),
        ({"array": [IndexRange(first=1, last=2)]}, "A job array cannot be interactive"),
        ({"roles": [Role(), Role()]}, "A job of several roles cannot be interactive"),
        ({"rerunnable": True}, "An interactive job is not run again: -r and -Q are for batch jobs"),
    ],
)
def test_what_an_interactive_job_cannot_be(fields: dict[str, object], error: str) -> None:
    """One command, one client, one life."""
    spec = pb.JobSpec(**{"interactive": "shell", **fields})  # type: ignore[arg-type]
    if not error:
        check_interactive(spec)
        return
    with pytest.raises(Refused) as refused:
        check_interactive(spec)
    assert str(refused.value) == error
