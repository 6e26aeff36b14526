"""Sizes of roles that a user asks for: a role with more tasks than that releases some, one with fewer grows later."""

from lavad.core import commands as c
from lavad.core.cluster import Cluster
from lavad.core.decide.decision import Decision
from lavad.core.decide.jobs.resize import running, shrink_attempt, shrink_job, wish_size, wished, wishes_of
from lavad.core.decide.jobs.sizes.release_words import role_number
from lavad.core.language.requirements.parts import could_release, sizes_of
from lavad.core.model import Allocation, Request
from lavad.core.model.allocation import could_give, tasks_of
from lavad.core.model.reasons import Refused
from lavad.core.plan import Shrink
from lavad.core.state.attempts import Attempt
from lavad.core.state.records import Job

NOTHING = "Nothing can be released from the job just now"


def scale_job(cluster: Cluster, command: c.ScaleJob, now: float) -> Decision:
    """Give roles the sizes asked for, as far as there is room (lavactl scale, bresize request)."""
    job, attempt = running(cluster, command.target, command.caller)
    request = job.shared.request
    if not command.sizes:
        raise Refused("A size is missing")
    if not request.is_of_tasks:
        return _scale_classic(cluster, command, attempt, now)
    present, wishes = sizes_of(attempt.allocation, len(request.roles)), list(wishes_of(attempt, request))
    less = [0] * len(wishes)
    for name, size in command.sizes:
        number = role_number(request, name)
        _check(request, number, size, present[number], command.may_shrink)
        less[number], wishes[number] = max(0, present[number] - size), size
    if any(less):
        return _shrunk(cluster, command, job, attempt, less, tuple(wishes), now)
    words = " ".join(f"{name}={size}" if name else str(size) for name, size in command.sizes)
    return Decision(wished(attempt, tuple(wishes), command.caller.user, now, words))


def _check(request: Request, number: int, size: int, present: int, may_shrink: bool) -> None:
    role = request.roles[number]
    if not role.tasks_min <= size <= role.tasks_max:
        raise Refused(f"Role {role.name} has {role.tasks_min} to {role.tasks_max} tasks, as it was submitted")
    if size < present and not may_shrink:
        raise Refused(f"Role {role.name} has {present} tasks: bresize release {role.name}={size} gives tasks back")


def _shrunk(
    cluster: Cluster,
    command: c.ScaleJob,
    job: Job,
    attempt: Attempt,
    less: list[int],
    wishes: tuple[int, ...],
    now: float,
) -> Decision:
    gives = could_release(attempt.allocation, job.shared.request, sum(less), most=less)
    if sizes_of(gives, len(less)) != less:
        raise Refused("So few tasks can't be kept: where tasks are bound to processors, hosts are released as a whole")
    shrink = Shrink(attempt.key, gives)
    events = shrink_attempt(cluster, shrink, now, command.caller.user, command.notify, wishes)
    if not events:
        raise Refused(NOTHING)
    return Decision(events, reply=gives)


def _scale_classic(cluster: Cluster, command: c.ScaleJob, attempt: Attempt, now: float) -> Decision:
    """Scale a job without roles of its own: it has one size."""
    (name, size), *others = command.sizes
    if name or others:
        raise Refused("The job has no roles: its size is one number")
    if size < 1:
        raise Refused("Bad number of slots: it is at least 1")
    present = tasks_of(attempt.allocation)
    if size >= present or not command.may_shrink:
        return wish_size(cluster, c.WishSize(command.target, size, command.caller), now)
    words = _words_for(cluster, attempt, present - size)
    return shrink_job(cluster, c.ShrinkJob(command.target, words, command.caller, command.notify), now)


def _words_for(cluster: Cluster, attempt: Attempt, less: int) -> str:
    """Words of bresize release for so many tasks of the hosts that joined last."""
    gives: Allocation = could_give(attempt.allocation, cluster.jobs[attempt.key.job].shared.request.roles[0], less)
    if tasks_of(gives) != less:
        raise Refused("The job can't get that small: it keeps its minimum, its first host, and hosts as a whole")
    return " ".join(f"{tasks_of((share,))}*{share.host}" for share in gives)
