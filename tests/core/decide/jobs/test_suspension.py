"""Jobs that can't be suspended, resumed or requeued: what is said."""

import pytest

from lavad.core import commands as c
from lavad.core.model import JobState
from lavad.core.model.reasons import Refused
from tests.builders import ANN, Story, a_cluster, a_host, a_job

S = JobState


def stop(story: Story, job: int, caller: c.Caller, indices: str = "") -> None:
    """bstop."""
    story.do(c.StopJob(story.target(job, indices), caller))


def refusal(story: Story, command: c.Command) -> str:
    """Sentence of a refused command."""
    with pytest.raises(Refused) as error:
        story.do(command)
    return str(error.value)


def test_what_is_not_to_be_done_is_told_with_the_state() -> None:
    """bresume of a running job, brequeue -d of one, bstop of a suspended one or of one whose host is silent."""
    story = a_cluster(a_host("n1", 4))
    job = story.run(a_job()).job
    target = story.target(job)
    assert refusal(story, c.ResumeJob(target, ANN)) == "No user has suspended the job; its state is RUN"
    done = c.RequeueJob(target, ANN, frozenset({S.DONE}))
    assert refusal(story, done) == "The job is RUN; only jobs in DONE are requeued by this request"
    stop(story, job, ANN)
    assert refusal(story, c.StopJob(target, ANN)) == "Nothing is left to suspend; the state is USUSP"
    array = story.submit(a_job(array="1-3"))
    stop(story, array, ANN, "1-2")
    found = refusal(story, c.ResumeJob(story.target(array, "3"), ANN))
    assert found == "No user has suspended the job; its state is PEND"
    assert refusal(story, c.StopJob(story.target(array, "1"), ANN)) == "Nothing is left to suspend; the state is PSUSP"
    begun = story.submit(a_job())
    story.plan()
    stop(story, begun, ANN)
    assert "as soon as it has started" in refusal(story, c.StopJob(story.target(begun), ANN))
