"""Jobs suspended by their owner or by an administrator: who may resume them, and what is said where nothing is left to
do."""

import pytest

from lavad.core import commands as c
from lavad.core.model import JobState
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import Refused
from lavad.core.orders import SignalOrder
from lavad.core.queries.pending_reasons import PendingReasons
from lavad.simulator.cluster.restart import reborn
from tests.builders import ANN, ROOT, Story, a_cluster, a_host, a_job

S = JobState


def stop(story: Story, job: int, caller: c.Caller, indices: str = "") -> None:
    """bstop."""
    story.do(c.StopJob(story.target(job, indices), caller))


def resume(story: Story, job: int, caller: c.Caller, indices: str = "") -> str:
    """bresume, with its note."""
    return story.do(c.ResumeJob(story.target(job, indices), caller)).reply or ""


def is_kept(story: Story, job: int) -> bool:
    """True if the owner's bresume is refused because an administrator has suspended the job."""
    try:
        resume(story, job, ANN)
    except Refused as error:
        return "an administrator has suspended the job" in str(error)
    return False


@pytest.mark.parametrize("runs", [False, True])
def test_a_user_can_not_resume_what_an_administrator_stopped(runs: bool) -> None:
    """Not after a restart either; an administrator can, and then the owner's own suspension is the owner's again."""
    story = a_cluster(a_host("n1", 1))
    job = story.run(a_job()).job if runs else story.submit(a_job())
    stop(story, job, ROOT)
    stopped = S.USUSP if runs else S.PSUSP
    assert is_kept(story, job)
    held = (story.runs_there("n1", story.key(job)),) if runs else ()
    story.cluster = reborn(story.cluster)
    story.join(a_host("n1", 1), held)
    assert is_kept(story, job)
    assert story.state(job) is stopped
    resume(story, job, ROOT)
    assert story.state(job) is not stopped
    stop(story, job, ANN)
    assert story.state(job) is stopped
    resume(story, job, ANN)
    assert story.state(job) is not stopped


@pytest.mark.parametrize("runs", [False, True])
def test_the_site_may_let_users_resume(runs: bool) -> None:
    """ENABLE_USER_RESUME=Y."""
    story = a_cluster(a_host("n1", 1), policy=Policy(users_resume=True))
    job = story.run(a_job()).job if runs else story.submit(a_job())
    stop(story, job, ROOT)
    resume(story, job, ANN)
    assert story.state(job) is (S.RUN if runs else S.PEND)


def test_elements_that_an_administrator_stopped_stay_so() -> None:
    """The others of the array are resumed, and the owner is told; the pending reasons say who has suspended which."""
    story = a_cluster(a_host("n1", 1))
    job = story.submit(a_job(array="1-4"))
    stop(story, job, ROOT, "2-3")
    stop(story, job, ANN)
    reasons = PendingReasons(story.cluster, story.now, None)
    told = [reasons.of(story.cluster.jobs[job], index)[0].code for index in range(1, 5)]
    assert told == [607, 610, 610, 607]
    assert "stay" in resume(story, job, ANN)
    assert [story.state(job, index) for index in range(1, 5)] == [S.PEND, S.PSUSP, S.PSUSP, S.PEND]
    assert is_kept(story, job)
    assert not resume(story, job, ROOT)
    assert story.state(job, 2) is S.PEND


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


def test_only_elements_in_a_state_are_killed() -> None:
    """bkill -stat: what is in another state goes on; a job of which nothing is in that state is refused."""
    story = a_cluster(a_host("n1", slots=1))
    array = story.submit(a_job(array="1-3"))
    story.plan()
    story.started("n1", story.key(array, 1))
    with pytest.raises(Refused, match="not in the state that -stat names; its state is PEND, RUN"):
        story.do(c.KillJob(c.Target(array), ANN, states=frozenset({S.PSUSP, S.USUSP})))
    story.do(c.KillJob(c.Target(array), ANN, states=frozenset({S.PEND})))
    assert [story.state(array, index) for index in (1, 2, 3)] == [S.RUN, S.EXIT, S.EXIT]
    assert not story.do(c.KillJob(c.Target(array), ANN, states=frozenset({S.RUN}))).reply


def test_a_signal_to_a_job_whose_host_is_silent() -> None:
    """It is refused as by LSF, and reaches the job once the host is back."""
    story = a_cluster(a_host("n1", 1), policy=Policy(silent_after_s=15.0))
    key = story.run(a_job())
    story.now += 20
    story.wait(0)
    assert story.state(key.job) is S.UNKWN
    with pytest.raises(Refused, match=r"^Unable to contact execution host$"):
        story.do(c.SignalJob(story.target(key.job), 10, ANN))
    story.back("n1", story.runs_there("n1", key))
    orders = story.do(c.SignalJob(story.target(key.job), 10, ANN)).orders
    assert [(order.host, order.signal) for order in orders if isinstance(order, SignalOrder)] == [("n1", 10)]
