"""Messages posted to jobs: who may, to what, and when no more."""

import pytest

from lavad.core import commands as c
from lavad.core.activity_events import JobMessagePosted
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


def test_an_ended_job_takes_no_messages() -> None:
    """Nor does an ended element, while the others do."""
    story = a_cluster(a_host())
    job, array = story.submit(a_job(hold=True)), story.submit(a_job(array="1-2", hold=True))
    story.kill(job)
    story.kill(array, "1")
    for one, index in ((job, ""), (array, "1")):
        with pytest.raises(Refused, match="Job has already finished"):
            _post(story, one, indices=index)
    assert _post(story, array, indices="2").index == 2
    story.kill(array)
    with pytest.raises(Refused, match="Job has already finished"):
        _post(story, array)
