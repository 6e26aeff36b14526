"""Messages to core values, and back. The -R text is parsed here, by the core's own parser; nothing is decided."""

from typing import cast

from lavad.api import checks
from lavad.core import requirement
from lavad.core.commands import Asked, Caller, Target
from lavad.core.events import NewJob
from lavad.core.model import HostFacts, JobState, Launch, Request, RoleRequest, Shared, pack_text
from lavad.core.policy import Policy
from lavad.core.reasons import Refused
from protos import cluster_pb2, common_pb2, jobs_pb2

COMMAND_SHOWN_MAX = 4096  # of a longer script only the beginning is kept in memory for lists
SLOTS_MAX = 1_000_000


def queue_for(spec: jobs_pb2.JobSpec, policy: Policy) -> str:
    """The first candidate queue that exists and is open; the first named when none is (so that the refusal names
    it)."""
    if not spec.queues:
        return policy.default_queue
    for name in spec.queues:
        queue = policy.queue(name)
        if queue is not None and queue.open:
            return name
    return spec.queues[0]


def asked_of(spec: jobs_pb2.JobSpec, policy: Policy) -> Asked:
    """What a queue has to judge beside the job itself."""
    return Asked(
        tuple(spec.queues) or policy.default_queues or (policy.default_queue,),
        bool(spec.roles and spec.roles[0].tasks_min),
        tuple((limit.name, limit.soft) for limit in spec.rlimits),
    )


def new_job(spec: jobs_pb2.JobSpec, stored: bytes, request_id: bytes, caller: Caller, policy: Policy) -> NewJob:
    """A submission for the core.

    Raises:
        Refused: something in the spec makes no sense; one sentence says what.
    """
    _check_spec(spec)
    queue = queue_for(spec, policy)
    shared = Shared(
        user=caller.user,
        uid=caller.uid,
        gid=caller.gid,
        queue=queue,
        project=spec.project or "default",
        request=request_of(spec),
        from_host=caller.host,
        run_limit_s=spec.run_limit_s,
        memory_limit_mib=spec.memory_limit_mib,
        rerunnable=spec.rerunnable and not spec.not_rerunnable,
        terminate_at=spec.terminate_time,
        user_group=spec.user_group,
    )
    return NewJob(
        id=0,
        shared=shared,
        text=text_of(spec),
        spec=stored,
        request_id=request_id,
        hold=spec.hold,
        indices=checks.ranges_of(spec.array),
        array_limit=spec.array_limit,
        priority=spec.priority,
        dependency=spec.dependency,
        begin_at=spec.begin_time,
        ends_orphan=spec.ends_orphan,
    )


def _check_spec(spec: jobs_pb2.JobSpec) -> None:
    checks.check_spec(spec)
    if spec.cwd and not spec.cwd.startswith("/"):
        raise Refused("-cwd: the working directory must be an absolute path")
    if spec.begin_time and spec.terminate_time and spec.terminate_time <= spec.begin_time:
        raise Refused("Start time is later than termination time")
    if spec.resizable:
        raise Refused("-ar: resizable jobs are not honoured by this version")
    if spec.reservation:
        raise Refused("-U: advance reservations are not honoured by this version")
    if spec.pre_exec or spec.post_exec:
        raise Refused("-E, -Ep: pre- and post-execution commands are not honoured by this version")


def text_of(spec: jobs_pb2.JobSpec) -> bytes:
    """What lists show of a job, packed."""
    return pack_text(
        name=spec.name,
        command=spec.command[:COMMAND_SHOWN_MAX].replace("\0", ""),
        cwd=spec.cwd,
        submit_cwd=spec.submit_cwd if spec.submit_cwd != spec.cwd else "",
        input=spec.input,
        output=spec.output,
        error=spec.error,
        description=spec.description,
    )


def request_of(spec: jobs_pb2.JobSpec) -> Request:
    """What placement looks at.

    Raises:
        Refused: bad -R, -n or -gpu.
    """
    roles = tuple(role_of(role) for role in spec.roles) or (RoleRequest(),)
    return Request(roles, tuple(spec.hosts), spec.exclusive)


def role_of(role: common_pb2.Role) -> RoleRequest:
    """One role of a spec."""
    wanted = requirement.parse(role.requirement) if role.requirement else requirement.Requirement()
    tasks_min = role.tasks_min or 1
    tasks_max = max(role.tasks_max or tasks_min, 1)
    if tasks_max < tasks_min:
        raise Refused("Bad processor number: the maximum of -n is below its minimum")
    if tasks_max * (role.slots_per_task or 1) > SLOTS_MAX:
        raise Refused(f"Too many processors requested: the most is {SLOTS_MAX}")
    gpus = role.gpu.num if role.HasField("gpu") else wanted.gpus
    return RoleRequest(
        tasks_min=tasks_min,
        tasks_max=tasks_max,
        slots_per_task=role.slots_per_task or 1,
        memory_mib=wanted.memory_mib,
        gpus=gpus,
        gpus_per_task=role.gpu.per_task,
        one_host=wanted.one_host,
        ptile=wanted.ptile,
        select=wanted.select,
        launch=Launch(role.launch),
        name=role.name,
        command=role.command,
    )


def state_message(state: JobState) -> common_pb2.JobState:
    """A state on the wire: the numbers are the same."""
    return cast("common_pb2.JobState", int(state))


def target_of(ref: common_pb2.JobRef) -> Target:
    """A job, or some elements of it."""
    return Target(ref.job, checks.indices_of(ref))


def facts_of(message: cluster_pb2.HostFacts) -> HostFacts:
    """A host as the core sees it."""
    return HostFacts(
        name=message.name,
        slots=message.slots if message.server else 0,
        memory_mib=message.memory_mib,
        gpus=len(message.gpus),
        server=message.server,
        type=message.type,
        model=message.model,
        cpu_factor=message.cpu_factor or 1.0,
        cpus=message.cpus,
        swap_mib=message.swap_mib,
        tmp_mib=message.tmp_mib,
        resources=frozenset(message.resources),
        boot_id=message.boot_id,
        peer_address=message.peer_address,
        gpu_model=message.gpus[0].model if message.gpus else "",
    )


def load_of(load: cluster_pb2.Load) -> tuple[float, ...]:
    """Load indices in the order of the host table."""
    return (
        load.r15s, load.r1m, load.r15m, load.ut, load.pg, load.io, load.ls, load.it,
        load.tmp_mib, load.swp_mib, load.mem_mib,
    )  # fmt: skip
