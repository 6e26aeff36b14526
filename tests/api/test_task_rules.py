"""Submission of a job of tasks: what is refused, in which words, and what the core is given."""

import pytest

from lavad.api import task_rules
from lavad.core.model import Launch
from lavad.core.model.reasons import Refused
from lavad.core.model.task_rules import InPlace, Policy, TaskAction, TaskEvent
from lavad.store.rows.values import decode_shared, shared_text
from protos import common_pb2
from protos import jobs_pb2 as pb
from tests.builders import Story, a_host
from tests.task_jobs import NONE, a_policy, a_task_job, a_task_role, a_task_spec, submission


def refusal(*roles: common_pb2.Role, **rules: object) -> str:
    with pytest.raises(Refused) as refused:
        submission(a_task_spec(*roles, **rules))
    return str(refused.value)


@pytest.mark.parametrize(
    ("role", "sentence"),
    [
        (a_task_role("a b"), "Bad role name 'a b': it takes letters, digits and . _ ~ -"),
        (a_task_role(command=" "), "Role worker: no command is specified"),
        (a_task_role(argv=["a"]), "Role worker: it has a command and an argv; one of them is run"),
        (a_task_role(spread="wide"), "Role worker: unknown placement 'wide': it is pack, spread or rack"),
        (a_task_role(may_be_absent=True), "Role worker: it may be absent, so that it has no minimum"),
        (a_task_role(environment=[b"=1"]), "Role worker: its environment takes NAME=VALUE without NUL characters"),
        (a_task_role(cwd="here"), "Role worker: its working directory must be an absolute path"),
        (a_task_role(success_min=2), "Role worker: success_min is 2, and it has at most 1 tasks"),
        (a_task_role(after=["ps"]), "Role worker: it is to start after ps, which the job does not have"),
        (
            a_task_role(after=["worker"]),
            "Role worker would wait for itself: worker start after each other",
        ),
        (a_task_role(launch=NONE), "No role of the job has a command"),
        (a_task_role(policies=[a_policy()]), "Role worker: a policy names neither an event nor an exit code"),
        (
            a_task_role(policies=[a_policy(codes=(0,))]),
            "Role worker: a policy is for exit code 0, which is no failure",
        ),
        (
            a_task_role(policies=[a_policy(TaskEvent.FAILED, index=1)]),
            "Role worker: a policy is for task 1, which it does not have",
        ),
        (
            a_task_role(
                policies=[common_pb2.TaskPolicy(events=[2], action=6, uncounted=True)]  # type: ignore[list-item]
            ),
            "Role worker: a policy whose restarts do not count restarts something, and at once",
        ),
        (
            a_task_role(ports=[common_pb2.PortRequest(name="p"), common_pb2.PortRequest(name="p")]),
            "Role worker: two of its ports have the same name",
        ),
        (a_task_role(run_limit_s=float("nan")), "Role worker: its run limit is no number of seconds"),
    ],
)
def test_a_role_that_contradicts_itself_is_refused_by_its_name(role: common_pb2.Role, sentence: str) -> None:
    """One sentence names the role and what is wrong with it."""
    assert refusal(role) == sentence


def test_roles_are_known_by_their_names() -> None:
    """Two roles of one name could not be told apart."""
    assert refusal(a_task_role(), a_task_role()) == "Two roles have the name worker"


def test_roles_that_start_after_each_other_never_start() -> None:
    """A circle of dependencies is refused, with all of its roles."""
    roles = a_task_role("a", after=["b"]), a_task_role("b", after=["a"]), a_task_role("c", after=["a"])
    assert refusal(*roles) == "Role a would wait for itself: a, b, c start after each other"


def test_rules_of_the_job() -> None:
    """Rules of another version, and a policy of the job for one task of a role, are refused."""
    assert refusal(format=7) == "The job's rules have format 7; this version knows format 1"
    policy = a_policy(TaskEvent.FAILED, index=0)
    assert refusal(policies=[policy]) == "The job: a policy for one task belongs to its role"


def test_other_jobs_take_no_fields_of_tasks() -> None:
    """An option that would be taken and ignored is refused."""
    role = common_pb2.Role(name="r", ports=[common_pb2.PortRequest(name="p")])
    with pytest.raises(Refused, match=r"Role r: ports is for jobs of tasks only"):
        submission(pb.JobSpec(command="true", roles=[role]))


def test_rules_survive_the_store() -> None:
    """The core's rules are those of the submission, and the same after they were stored."""
    ps = a_task_role("ps", 2, restart=common_pb2.RESTART_ALWAYS, restarts_max=3, success_min=1)
    policy = a_policy(TaskEvent.FAILED, TaskEvent.EVICTED, timeout_s=5.0, index=1)
    free = a_policy(TaskEvent.EVICTED, action=TaskAction.RESTART_GROUP)
    free.uncounted = True
    worker = a_task_role(
        "worker", 2, 4, after=["ps"], after_done=["ps"], policies=[policy, free], run_limit_s=60.0, group=2
    )
    shared = a_task_job(ps, worker, final_codes=[3], restarts_max=2, ttl_s=0.0, has_ttl=True, needs_each=True).shared
    rules = shared.tasks
    assert rules is not None
    assert rules.roles[0].in_place is InPlace.ALWAYS
    assert (rules.roles[1].after, rules.roles[1].after_done) == ((0,), (0,))
    wanted = Policy(TaskAction.RESTART_JOB, frozenset({TaskEvent.FAILED, TaskEvent.EVICTED}), timeout_s=5.0, index=1)
    assert rules.roles[1].policies == (
        wanted,
        Policy(TaskAction.RESTART_GROUP, frozenset({TaskEvent.EVICTED}), is_counted=False),
    )
    assert (rules.ttl_s, rules.needs_each, rules.roles[1].group) == (0.0, True, 2)
    assert decode_shared(shared_text(shared)) == shared


def test_only_jobs_of_tasks_have_rules() -> None:
    """A job of one command is what it was before."""
    assert task_rules.rules_of(pb.JobSpec(command="true")) is None


# -- placement ---------------------------------------------------------------------------------------------------------


def placed(spec: pb.JobSpec, *slots: int) -> list[tuple[int, ...]]:
    """Tasks of each role on each host of the allocation."""
    story = Story(*(a_host(f"h{number}", some) for number, some in enumerate(slots, 1)))
    job = story.do(submission(spec)).reply.job
    story.plan()
    return [share.tasks_by_role for share in story.cluster.attempts[story.key(job)].allocation]


def test_a_role_may_be_absent() -> None:
    """The job starts with its launcher alone, where no worker fits."""
    launcher = a_task_role("launcher")
    worker = a_task_role("worker", 0, 3, may_be_absent=True)
    assert placed(a_task_spec(launcher, worker), 1) == [(1, 0)]
    assert placed(a_task_spec(launcher, worker), 3) == [(1, 2)]
    assert placed(a_task_spec(worker, launcher), 1) == [(0, 1)]


def test_no_role_takes_what_another_needs_at_least() -> None:
    """A role that could be larger is started at its minimum where the next one would not fit otherwise."""
    first, second = a_task_role("a", 1, 4), a_task_role("b", 2)
    assert placed(a_task_spec(first, second), 4) == [(1, 2)]
    assert placed(a_task_spec(first, second), 6) == [(4, 2)]


def test_a_job_of_absent_roles_alone_is_refused() -> None:
    """It could start without any task."""
    story = Story(a_host())
    with pytest.raises(Refused, match="one role at least needs a minimum above 0"):
        story.do(submission(a_task_spec(a_task_role("worker", 0, 3, may_be_absent=True))))


def test_tasks_are_spread_or_packed() -> None:
    """`spread` takes a host for each task as far as they go round, `pack` the hosts with the most room first."""
    assert placed(a_task_spec(a_task_role(tasks=4, spread="spread")), 4, 4, 4) == [(2,), (1,), (1,)]
    assert placed(a_task_spec(a_task_role(tasks=4, spread="pack")), 2, 2, 4) == [(4,)]
    assert placed(a_task_spec(a_task_role(tasks=4)), 2, 2, 4) == [(2,), (2,)]


def test_a_rack_needs_compute_units() -> None:
    """The wish is refused in a cluster without any, and so is a contradiction to the requirement."""
    story = Story(a_host())
    with pytest.raises(Refused, match="Role worker: placement in one rack needs compute units"):
        story.do(submission(a_task_spec(a_task_role(spread="rack"))))
    with pytest.raises(Refused, match="Role worker: its requirement has a span section"):
        story.do(submission(a_task_spec(a_task_role(spread="pack", requirement="span[ptile=1]"))))


def test_no_fast_path_takes_a_job_of_tasks() -> None:
    """They know none of its rules; each task has a place of its own in the allocation."""
    story = Story(a_host(slots=4))
    request = story.cluster.jobs[story.do(submission(a_task_spec(a_task_role(tasks=2)))).reply.job].shared.request
    assert not any([request.is_basic, request.is_slots_only, request.task_size, request.is_even_split])
    assert request.roles[0].launch is Launch.EACH
