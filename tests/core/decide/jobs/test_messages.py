"""Messages posted to jobs: who may, and to what. Reasons that users give for commands."""

import pytest

from lavad.core import commands as c
from lavad.core.activity_events import JobMessagePosted, ReasonGiven
from lavad.core.model.ranges import Ranges
from lavad.core.model.reasons import Refused
from tests.builders import ANN, BOB, ROOT, Story, a_cluster, a_host, a_job


def _post(story: Story, job: int, caller: c.Caller = ANN, indices: str = "", data: bytes = b"") -> JobMessagePosted:
    target = c.Target(job, Ranges.parse(indices) if indices else None)
    (event,) = story.do(c.PostMessage(target, caller, 3, "half", "", data)).events
    assert isinstance(event, JobMessagePosted)
    return event


def test_a_message_is_the_jobs_or_an_elements() -> None:
    """Of an array as a whole, or of one element of it."""
    story = a_cluster(a_host())
    plain, array = story.submit(a_job()), story.submit(a_job(array="1-3"))
    assert _post(story, plain) == JobMessagePosted(story.now, plain, 0, 3, "ann", "half", "", b"")
    assert _post(story, array).index == 0
    assert _post(story, array, indices="2").index == 2
    with pytest.raises(Refused, match="One element of the array is expected"):
        _post(story, array, indices="1-2")
    with pytest.raises(Refused, match="No matching job found"):
        _post(story, array, indices="9")


def test_owner_and_administrators_post_and_data_is_the_owners() -> None:
    """As LSF has it."""
    story = a_cluster(a_host())
    job = story.submit(a_job())
    assert _post(story, job, ROOT).by == "root"
    assert _post(story, job, data=b"x").data == b"x"
    with pytest.raises(Refused, match="only the owner of a job attaches data"):
        _post(story, job, ROOT, data=b"x")
    with pytest.raises(Refused, match="User permission denied"):
        _post(story, job, BOB)


def test_an_ended_job_takes_messages() -> None:
    """As an ended element and an ended array do: LSF accepts messages until the job is cleaned from the system."""
    story = a_cluster(a_host())
    job, array = story.submit(a_job(hold=True)), story.submit(a_job(array="1-2", hold=True))
    story.kill(job)
    story.kill(array, "1")
    for one, index in ((job, ""), (array, "1")):
        assert _post(story, one, indices=index).job == one
    story.kill(array)
    assert _post(story, array).index == 0


def _reasons(story: Story, command: c.Command) -> list[tuple[int, int, str, str, str]]:
    """Job, index, elements, what and text of each reason that the command's events have, all before their events."""
    found = [event for event in story.do(command).events if isinstance(event, ReasonGiven)]
    return [
        (one.key.job, one.key.index, one.indices.text() if one.indices else "", one.what, one.text) for one in found
    ]


def test_a_reason_is_noted_for_each_job_that_the_command_reaches() -> None:
    """A waiting job, elements that wait (together) and elements that run; once for each, and none without a reason."""
    story = a_cluster(a_host("n1", 2))
    array = story.submit(a_job(array="1-5"))
    story.plan()
    waiting = story.submit(a_job())
    target = c.Target(array)
    assert _reasons(story, c.StopJob(c.Target(waiting), ANN)) == []
    assert _reasons(story, c.ResumeJob(c.Target(waiting), ANN, "go")) == [(waiting, 0, "", "resume", "go")]
    assert _reasons(story, c.KillJob(target, ANN, reason="bad")) == [
        (array, 0, "3-5", "kill", "bad"), (array, 1, "", "kill", "bad"), (array, 2, "", "kill", "bad"),
    ]  # fmt: skip
    with pytest.raises(Refused, match="Operation is in progress"):
        story.do(c.KillJob(c.Target(array, Ranges.parse("3")), ANN, reason="bad"))


def test_a_reason_is_for_whole_jobs() -> None:
    """Tasks of a job have no history of their own in which to keep it."""
    story = a_cluster(a_host())
    job = story.submit(a_job())
    with pytest.raises(Refused, match="A reason is kept for jobs as a whole"):
        story.do(c.KillJob(c.Target(job, role="worker"), ANN, reason="bad"))
