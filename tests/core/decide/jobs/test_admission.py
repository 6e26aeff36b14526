"""Admission to the queues of LSF's files: users, kinds of jobs, defaults, limits."""

from dataclasses import replace
from typing import Any

import pytest

from lavad.core import commands as c
from lavad.core.decide.jobs.admission import known_admission
from lavad.core.events import NewJob
from lavad.core.model import RoleAsked, Shared, SpecialOptions
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import NotNow, Refused
from lavad.core.model.rules.names import Names
from lavad.core.model.rules.queues import JobDefaults, Queue
from lavad.core.model.rules.users import Fairshare, Share, UserRule
from tests.builders import ANN, BOB, ROOT, Story, a_host, a_job


def a_story(*queues: Queue, **rules: Any) -> Story:
    """Two hosts under these queues; the first one is the default."""
    policy = Policy(queues=queues, default_queue=queues[0].name, **rules)
    return Story(a_host("n1"), a_host("n2"), policy=policy)


def shared_of(story: Story, job: NewJob, caller: c.Caller = ANN, **asked: Any) -> Shared:
    """Shared facts of the job as its queue has admitted it."""
    reply = story.do(c.SubmitJob(job, caller, c.Asked(**asked))).reply
    return story.cluster.jobs[reply.job].shared


def refusal(story: Story, job: NewJob, caller: c.Caller = ANN, **asked: Any) -> str:
    """Text of the refusal by all queues."""
    with pytest.raises(Refused) as refused:
        story.do(c.SubmitJob(job, caller, c.Asked(**asked)))
    return str(refused.value)


def test_users_of_a_queue() -> None:
    """Other users are refused; administrators of the cluster and of the queue are not."""
    story = a_story(Queue("q", users=Names(True, frozenset({"bob"})), administrators=frozenset({"kim"})))
    assert shared_of(story, a_job(queue="q")).queue == "q"
    assert refusal(story, a_job(queue="q", caller=BOB), BOB) == "q: User cannot use the queue"
    kim = c.Caller("kim", 1002)
    story = a_story(Queue("q", users=Names(False), administrators=frozenset({"kim"})))
    assert shared_of(story, a_job(queue="q", caller=kim), kim).user == "kim"
    assert shared_of(story, a_job(queue="q", caller=ROOT), ROOT).user == "root"


def test_whoever_has_no_share_of_a_shared_queue() -> None:
    """There is no account for the user's jobs."""
    shares = (Share("bob", 1, Names(False, frozenset({"bob"}))),)
    story = a_story(Queue("q", fairshare=Fairshare(shares)))
    assert shared_of(story, a_job(queue="q", caller=BOB), BOB).queue == "q"
    assert refusal(story, a_job(queue="q")) == "q: User cannot use the queue"


def test_the_group_that_a_job_is_for() -> None:
    """The group exists and the user is a member, at submission and at modification."""
    groups = {"art": Names(False, frozenset({"ann"})), "bio": Names(False, frozenset({"bob"})), "many": Names(True)}
    story = a_story(Queue("q"), user_groups=groups)

    def in_group(name: str) -> NewJob:
        job = a_job(queue="q")
        return job._replace(shared=replace(job.shared, user_group=name))

    assert shared_of(story, in_group("art")).user_group == "art"
    assert shared_of(story, in_group("many")).user_group == "many"
    assert refusal(story, in_group("bio")) == "bio: User not in the specified user group"
    assert refusal(story, in_group("atr")) == "atr: No such user group"
    job = story.submit(in_group("art"))
    fields = frozenset({"user_group"})
    story.do(c.ModifyJob(c.Target(job), in_group("many"), ANN, "", fields))
    assert story.cluster.jobs[job].shared.user_group == "many"
    with pytest.raises(Refused, match="bio: User not in the specified user group"):
        story.do(c.ModifyJob(c.Target(job), in_group("bio"), ANN, "", fields))


def test_a_larger_job_needs_leave_to_wait() -> None:
    """MAX_PEND_SLOTS holds for `bmod -n` as for bsub; each pending element of an array counts."""
    story = a_story(Queue("q"), user_rules={"ann": UserRule(pending_slots=10, pending_jobs=2)})

    def enlarge(job: int, slots: int) -> None:
        story.do(c.ModifyJob(c.Target(job), a_job(slots, queue="q"), ANN, "", frozenset({"roles.tasks"})))

    job, array = story.submit(a_job(2, queue="q")), story.submit(a_job(1, queue="q"))
    enlarge(job, 9)
    with pytest.raises(NotNow, match="Pending job slots threshold reached"):
        enlarge(job, 10)
    enlarge(job, 4)
    story.do(c.KillJob(c.Target(array), ANN))
    array = story.submit(a_job(1, queue="q"))
    with pytest.raises(Refused, match="Pending job slots threshold is 10; the submission has 15"):
        enlarge(job, 19)
    enlarge(array, 6)
    assert story.cluster.counters.waiting_now.slots["user ann"] == 10
    enlarge(job, 1)


def test_each_element_of_an_array_grows() -> None:
    """One more task in each of three elements counts three slots."""
    story = a_story(Queue("q"), user_rules={"ann": UserRule(pending_slots=8)})
    array = story.submit(a_job(2, queue="q", array="1-3"))
    with pytest.raises(NotNow):
        story.do(c.ModifyJob(c.Target(array), a_job(3, queue="q"), ANN, "", frozenset({"roles.tasks"})))


def test_the_first_queue_that_takes_the_job() -> None:
    """Of several candidates; if none accepts the job, the first one's reason is reported."""
    small = Queue("small", run_limit_s=600)
    shut = Queue("shut", open=False)
    story = a_story(shut, small, Queue("large"))
    names = ("shut", "small", "large")
    assert shared_of(story, a_job(queue="shut", run_limit_s=60), queues=names).queue == "small"
    assert shared_of(story, a_job(queue="shut", run_limit_s=6000), queues=names).queue == "large"
    assert (
        refusal(story, a_job(queue="shut", run_limit_s=6000), queues=("shut", "small")) == "shut: Queue has been closed"
    )


def test_hosts_of_a_queue() -> None:
    """-m must name one that the queue uses; a host of lsf.cluster need not have joined yet."""
    story = a_story(Queue("q", hosts=Names(False, frozenset({"n2", "n9"}))), known_hosts=frozenset({"n9"}))
    assert shared_of(story, a_job(queue="q", hosts=("n1", "n2"))).request.hosts == ("n1", "n2")
    assert shared_of(story, a_job(queue="q", hosts=("n9",))).request.hosts == ("n9",)
    assert refusal(story, a_job(queue="q", hosts=("n1",))) == "n1: Host or host group is not used by the queue"
    assert refusal(story, a_job(queue="q", hosts=("n8",))) == "n8: Bad host name, host group name or cluster name"


def test_kinds_of_jobs() -> None:
    """Exclusive ones if EXCLUSIVE allows it; a queue for interactive jobs accepts no others."""
    story = a_story(Queue("q", is_exclusive_allowed=False), Queue("term", interactive="only"))
    assert refusal(story, a_job(queue="q", exclusive=True)) == "q: Queue does not accept EXCLUSIVE jobs"
    assert refusal(story, a_job(queue="q", cu="excl")) == "q: Queue does not accept EXCLUSIVE jobs"
    assert refusal(story, a_job(queue="term")) == "term: Queue only accepts interactive jobs"


def test_interactive_jobs_and_queues() -> None:
    """INTERACTIVE=NO takes none, ONLY and the default do; RERUNNABLE does not make one rerunnable."""
    story = a_story(Queue("batch", interactive="no"), Queue("term", interactive="only", rerunnable=True), Queue("q"))

    def interactive(queue: str) -> NewJob:
        job = a_job(queue=queue)
        return job._replace(shared=replace(job.shared, special=SpecialOptions(interactive="shell")))

    assert refusal(story, interactive("batch")) == "batch: Queue does not accept interactive jobs"
    assert shared_of(story, interactive("term")).special.interactive == "shell"
    assert not shared_of(story, interactive("term")).rerunnable
    assert shared_of(story, interactive("q")).special.interactive == "shell"


@pytest.mark.parametrize(
    ("given", "least", "most"), [(None, 4, 4), ((2, 2), 2, 2), ((1, 6), 2, 6), ((6, 20), 6, 8), ((8, 8), 8, 8)]
)
def test_sizes(given: tuple[int, int] | None, least: int, most: int) -> None:
    """The queue's default for a job without -n; a range is cut to what the queue allows."""
    story = a_story(Queue("q", defaults=JobDefaults(tasks_min=2, tasks_default=4, tasks_max=8)))
    size = {} if given is None else {"tasks_min": given[0], "tasks_max": given[1]}
    role = shared_of(story, a_job(queue="q", **size), is_size_given=given is not None).request.roles[0]
    assert (role.tasks_min, role.tasks_max) == (least, most)


def test_sizes_out_of_bounds() -> None:
    """LSF's sentences."""
    story = a_story(Queue("q", defaults=JobDefaults(tasks_min=2, tasks_default=4, tasks_max=8)))
    assert refusal(story, a_job(9, queue="q")) == "Too many processors requested"
    assert refusal(story, a_job(1, queue="q")) == "Too few processors requested"


def test_limits_and_defaults() -> None:
    """A job without a limit gets the default, or the maximum if there is none; above the maximum it is refused."""
    rules = JobDefaults(
        run_limit_default_s=600, memory_limit_mib=4000, memory_limit_default_mib=1000, rlimits=(("core", 0, 1 << 20),)
    )
    story = a_story(Queue("q", run_limit_s=3600, rerunnable=True, defaults=rules, user_group_default="g"))
    shared = shared_of(story, a_job(queue="q"))
    assert (shared.run_limit_s, shared.memory_limit_mib, shared.rerunnable, shared.user_group) == (600, 1000, True, "g")
    assert shared_of(story, a_job(queue="q", run_limit_s=3600)).run_limit_s == 3600
    assert refusal(story, a_job(queue="q", run_limit_s=3601)) == "RUNLIMIT: Cannot exceed queue's hard limit(s)"
    job = a_job(queue="q")
    greedy = job._replace(shared=replace(job.shared, memory_limit_mib=4001))
    assert refusal(story, greedy) == "MEMLIMIT: Cannot exceed queue's hard limit(s)"
    assert refusal(story, job, limits=(("core", 2 << 20),)) == "CORELIMIT: Cannot exceed queue's hard limit(s)"
    assert shared_of(a_story(Queue("q", run_limit_s=900)), a_job(queue="q")).run_limit_s == 900


def test_what_was_admitted_before_is_asked_again_under_other_rules_and_for_others() -> None:
    """The same job again: from its user, from one whom the queue refuses, and after the queue was closed."""
    story = a_story(Queue("q", users=Names(False, frozenset({"ann"}))))
    job = a_job(queue="q")
    assert shared_of(story, job) is shared_of(story, job)
    assert refusal(story, job, BOB) == "q: User cannot use the queue"
    assert refusal(story, job, queues=("r",)) == "r: No such queue"
    story.do(c.RuleQueue("q", c.QueueAction.CLOSE, ROOT))
    assert refusal(story, job) == "q: Queue has been closed"


def test_an_equal_submission_is_read_and_checked_once() -> None:
    """Until facts of hosts or rules change; the hosts that a job names are looked for each time."""
    story, asked = a_story(Queue("q")), c.Asked(("q",), roles=(RoleAsked(2, 2),))

    def is_known(job: NewJob, caller: c.Caller = ANN, asked: c.Asked = asked) -> bool:
        return known_admission(story.cluster, job.shared, caller, asked) is not None

    def submit(job: NewJob) -> None:
        story.do(c.SubmitJob(job, ANN, asked))

    submit(a_job(queue=""))
    assert is_known(a_job(queue=""))
    assert not is_known(a_job(queue="", run_limit_s=60))
    assert not is_known(a_job(queue=""), replace(ANN, is_administrator=True))
    assert not is_known(a_job(queue=""), asked=replace(asked, roles=(RoleAsked(3, 3),)))
    story.join(a_host("n3", type="other"))
    assert not is_known(a_job(queue=""))
    submit(a_job(queue=""))
    assert is_known(a_job(queue=""))
    story.do(c.Reconfigure(Policy(queues=(Queue("q"),), default_queue="q", gpu_requirement="num=1")))
    assert not is_known(a_job(queue=""))
    submit(a_job(queue="", hosts=("n1",)))
    assert not is_known(a_job(queue="", hosts=("n1",)))


def test_the_request_is_read_by_the_rules_of_the_queue_that_takes_the_job() -> None:
    """Of several queues each combines the options anew; what no queue can read is refused before any is asked."""
    shut = Queue("shut", open=False, defaults=JobDefaults(requirement="rusage[mem=5]"))
    small = Queue("small", run_limit_s=60, defaults=JobDefaults(requirement="rusage[mem=50]"))
    large = Queue("large", defaults=JobDefaults(requirement="rusage[mem=500]"))
    story, queues = a_story(shut, small, large), ("shut", "small", "large")
    roles = (RoleAsked(2, 4, resizable=True),)
    short = shared_of(story, a_job(queue="", run_limit_s=30), queues=queues, roles=roles)
    assert (short.queue, short.request.roles[0].memory_mib, short.requirement) == ("small", 50, "rusage[mem=50]")
    long = shared_of(story, a_job(queue="", run_limit_s=6000), queues=queues, roles=roles)
    assert (long.queue, long.request.roles[0].memory_mib, long.request.roles[0].resizable) == ("large", 500, True)
    assert refusal(story, a_job(queue=""), queues=("shut",), roles=roles) == "shut: Queue has been closed"
    bad = (RoleAsked(requirement="rusage[mem"),)
    assert "resource requirement" in refusal(story, a_job(queue=""), queues=("shut", "small"), roles=bad)
