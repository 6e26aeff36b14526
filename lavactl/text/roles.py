"""Requests of a job's roles as its views show them. Most jobs have one role."""

from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from protos.common_pb2 import Role


def command_of(spec: messages.JobSpec) -> str:
    """Command of a job; of one whose roles have commands of their own that of the first."""
    return spec.command or next((role.command for role in spec.roles if role.command), "")


def gpu_request(spec: messages.JobSpec, role: int = -1) -> messages.GpuRequest:
    """GPU request of that role, or of the first with one. Terms of a compound -R are all of the job's only role."""
    if 0 <= role < len(spec.roles) > 1:
        return spec.roles[role].gpu
    return next(_with_gpus(spec), spec.roles[0] if spec.roles else messages.Role()).gpu


def gpu_text(spec: messages.JobSpec) -> str:
    """The -gpu argument; of several roles each with its role's name."""
    if len(spec.roles) > 1:
        return "; ".join(f"{role.name}: {role.gpu.text}" for role in _with_gpus(spec))
    return spec.roles[0].gpu.text if spec.roles else ""


def _with_gpus(spec: messages.JobSpec) -> "Iterator[Role]":
    return (role for role in spec.roles if role.gpu.num or role.gpu.text)
