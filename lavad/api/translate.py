"""Conversion of messages to core values and back. Nothing is decided here, and -R is not parsed."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, cast

from lavad.agent_links.spec_cache import Packed
from lavad.api import checks, task_rules
from lavad.core.commands import Asked, Caller, Target
from lavad.core.events import NewJob
from lavad.core.language import exit_values, job_groups
from lavad.core.model import (
    Device,
    HostFacts,
    JobOptions,
    JobState,
    Launch,
    Request,
    RoleAsked,
    Shared,
    SpecialOptions,
    pack_text,
    special_options,
)
from lavad.core.model.priorities.absolute import read_given
from lavad.core.model.reasons import Refused
from protos import cluster_pb2, common_pb2, jobs_pb2
from protos.names import is_checkpoint

_ONE_TASK = (RoleAsked(),)
COMMAND_SHOWN_MAX = 4096  # characters; only the beginning of a longer script stays in memory, for lists


def asked_of(spec: jobs_pb2.JobSpec, default_queues: tuple[str, ...] = ()) -> Asked:
    """Return the options that the core combines with a queue's rules; ``default_queues`` count without -q."""
    is_of_tasks = spec.HasField("tasks")
    return Asked(
        tuple(spec.queues) or default_queues,
        is_of_tasks or any(role.tasks_min for role in spec.roles),
        tuple([(limit.name, limit.soft) for limit in spec.rlimits]),
        tuple([role_of(role, spec.resizable, is_of_tasks) for role in spec.roles]) or _ONE_TASK,
        bool(spec.warning_action),
        bool(spec.warning_action) and is_checkpoint(spec.warning_action),
    )


def new_job(spec: jobs_pb2.JobSpec, packed: Packed, request_id: bytes, caller: Caller) -> NewJob:
    """Build a submission for the core, without a queue and roles: what these are follows from ``asked_of``.

    Raises:
            Refused: something in the spec is invalid; one sentence says what.
    """
    _check_spec(spec)
    shared = Shared(
        user=caller.user,
        uid=caller.uid,
        gid=caller.gid,
        queue="",
        project=spec.project or "default",
        request=_request_without_roles(options_of(spec)),
        from_host=caller.host,
        run_limit_s=spec.run_limit_s,
        memory_limit_mib=spec.memory_limit_mib,
        rerunnable=spec.rerunnable and not spec.not_rerunnable,
        terminate_at=spec.terminate_time,
        user_group=spec.user_group,
        environment=packed.environment,
        tasks=task_rules.rules_of(spec),
        job_group=spec.job_group,
        application=spec.application,
        special=_special_options(spec),
    )
    return NewJob(
        id=0,
        shared=shared,
        text=text_of(spec),
        spec=packed.spec,
        request_id=request_id,
        hold=spec.hold,
        indices=checks.ranges_of(spec.array),
        array_limit=spec.array_limit,
        priority=spec.priority,
        dependency=spec.dependency,
        begin_at=spec.begin_time,
        ends_orphan=spec.ends_orphan,
        environment=packed.content,
        absolute=read_given(spec.absolute_priority),
    )


def _special_options(spec: jobs_pb2.JobSpec) -> SpecialOptions:
    return special_options(
        requeue_exit_values=spec.requeue_exit_values,
        success_exit_values=spec.success_exit_values,
        warning_time_s=checks.amount_of(spec.warning_time_s),
        interactive=spec.interactive,
        has_commands=bool(spec.pre_exec or spec.post_exec),
        has_copies=bool(spec.file_copies),
        checkpointable=spec.HasField("checkpoint"),
        migration_s=60.0 * (spec.migration_min_plus_one - 1) if spec.migration_min_plus_one else None,
        checkpoint_period_s=spec.checkpoint.period_s if spec.HasField("checkpoint") else None,
    )


_PROFILE = re.compile(r"((?P<computes>\d{1,2})c\.)?(?P<slices>\d{1,2})g\.")


@lru_cache(maxsize=1024)
def _request_without_roles(options: JobOptions) -> Request:
    return Request((), **options._asdict())


def _check_spec(spec: jobs_pb2.JobSpec) -> None:
    checks.check_spec(spec)
    task_rules.check(spec)
    if spec.cwd and not spec.cwd.startswith("/"):
        raise Refused("-cwd: the working directory must be an absolute path")
    if spec.begin_time and spec.terminate_time and spec.terminate_time <= spec.begin_time:
        raise Refused("Start time is later than termination time")
    if spec.requeue_exit_values:
        exit_values.parse(spec.requeue_exit_values)
    if spec.success_exit_values:
        exit_values.check_success(spec.success_exit_values)
    if spec.interactive:
        checks.check_interactive(spec)


def fill_in_group(spec: jobs_pb2.JobSpec, user: str, default: str = "") -> None:
    """Put the full path of the job's group into the spec: the default without -g, names for %u and %p.

    Raises:
        Refused: bad path, or one that the names would make too long.
    """
    path = spec.job_group or default
    if path:
        spec.job_group = job_groups.checked(job_groups.filled_in(path, user, spec.project or "default"))


def text_of(spec: jobs_pb2.JobSpec) -> bytes:
    """Pack the texts of a job that lists show."""
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


def options_of(spec: jobs_pb2.JobSpec) -> JobOptions:
    """Return the options for the job as a whole: all are fields of the spec."""
    values: list[Any] = [getattr(spec, name) for name in JobOptions._fields]
    plain: list[Any] = [value if isinstance(value, (bool, str, int, float)) else tuple(value) for value in values]
    return JobOptions(*plain)


def role_of(role: common_pb2.Role, resizable: bool = False, is_of_tasks: bool = False) -> RoleAsked:
    """Convert one role of a spec."""
    tasks_min = 0 if role.may_be_absent else role.tasks_min or 1
    return RoleAsked(
        tasks_min=tasks_min + role.spares,
        tasks_max=max(role.tasks_max or tasks_min, 1) + role.spares,
        slots_per_task=role.slots_per_task or 1,
        requirement=role.requirement,
        gpu=gpu_text(role.gpu) if role.HasField("gpu") and (role.gpu.num or role.gpu.text) else None,
        launch=Launch(role.launch),
        name=role.name,
        command=role.command,
        resizable=resizable,
        is_of_tasks=is_of_tasks,
        spread=role.spread,
        spares=role.spares,
        ports=_fixed_ports(role) if role.ports else (),
    )


def _fixed_ports(role: common_pb2.Role) -> tuple[int, ...]:
    """Return the ports that must have their numbers."""
    fixed = [port for port in role.ports if port.number and not port.is_preferred]
    return tuple(sorted({port.number + at for port in fixed for at in range(port.count or 1)}))


def gpu_text(gpu: common_pb2.GpuRequest) -> str:
    """Return the -gpu argument, built from the fields if a client sent only these."""
    if gpu.text:
        return gpu.text
    words = [f"num={gpu.num}" + ("/task" if gpu.per_task else "")]
    words += ["mode=exclusive_process"] if gpu.exclusive_process else []
    words += ["j_exclusive=yes"] if gpu.j_exclusive else []
    return ":".join(words)


def state_message(state: JobState) -> common_pb2.JobState:
    """Convert a state to the wire: the numbers are the same."""
    return cast("common_pb2.JobState", int(state))


def target_of(ref: common_pb2.JobRef) -> Target:
    """Convert a reference: a job, or some of its elements."""
    return Target(ref.job, checks.indices_of(ref))


def facts_of(message: cluster_pb2.HostFacts) -> HostFacts:
    """Convert host facts for the core."""
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
        gpu_driver=message.gpus[0].driver if message.gpus else "",
        gpu_vendor=message.gpus[0].vendor if message.gpus else "",
        devices=tuple(map(_device, message.gpus)),
        cores=message.cores,
        sockets=message.sockets,
        disks=message.disks,
        topology=checks.topology_of(message.topology),
        can_set_gpu_mode=message.can_set_gpu_mode,
        has_mps=message.has_mps,
        keeps_leases=message.keeps_leases,
        lacks_commands=not message.runs_commands,
        lacks_copies=not message.copies_files,
        lacks_checkpoints=not message.makes_checkpoints,
    )


def _device(gpu: cluster_pb2.Gpu) -> Device:
    peers = sum(1 << peer for peer in {peer for peer in gpu.nvlink_peers if peer < checks.HOST_GPUS_MAX})
    memory_mib = min(gpu.memory_mib, checks.MEMORY_MAX_MIB)
    return Device(gpu.model, memory_mib, gpu.numa_node, peers, _slices(gpu.mig_profile))


def _slices(profile: str) -> tuple[int, ...]:
    """Return the slices of a MIG device: (3, 3) for 3g.40gb, (3, 1) for 1c.3g.40gb; empty for a whole GPU."""
    found = _PROFILE.match(profile)
    if found is None:
        return ()
    slices = int(found["slices"])
    return (slices, int(found["computes"] or slices))


def load_of(load: cluster_pb2.Load) -> tuple[float, ...]:
    """Return load indices in the order of the host table."""
    return (
        load.r15s, load.r1m, load.r15m, load.ut, load.pg, load.io, load.ls, load.it,
        load.tmp_mib, load.swp_mib, load.mem_mib,
    )  # fmt: skip


def unfit_gpus_of(gpus: Iterable[cluster_pb2.Gpu]) -> int:
    """Return a mask of the GPUs that no job is to be given: their status says why."""
    unfit = {gpu.index for gpu in gpus if gpu.status not in ("", "ok") and gpu.index < checks.HOST_GPUS_MAX}
    return sum(1 << index for index in unfit)


def external_of(load: cluster_pb2.Load) -> dict[str, float]:
    """Return the values reported by a host's elims, within bounds."""
    return {name: checks.amount_of(value) for name, value in load.external.items()}
