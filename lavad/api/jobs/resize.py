"""bresize and lavactl scale: release of hosts and slots by a running job, or its new desired size."""

from collections.abc import Iterable

from lavad.api import checks, translate
from lavad.core import commands as c
from lavad.core.cluster_view import ClusterView
from lavad.core.language.requirements.parts import sizes_of
from lavad.core.model import Allocation
from lavad.core.model.reasons import Refused
from lavad.core.state.records import Job
from protos import jobs_pb2 as pb

WORDS_MAX = 64 << 10  # characters of a host list


def command_of(request: pb.ResizeRequest, caller: c.Caller) -> c.Command:
    """Convert the request to a core command.

    Raises:
        Refused: it is invalid.
    """
    checks.check_refs([request.ref])
    target = translate.target_of(request.ref)
    if target.indices is not None:
        raise Refused("The job is not resizable: elements of job arrays never are")
    if len(request.what) > WORDS_MAX:
        raise Refused("The list of hosts is too long")
    if request.action == pb.RESIZE_RELEASE:
        return c.ShrinkJob(target, request.what, caller, request.notify)
    if request.action == pb.RESIZE_RELEASE_HOSTS:
        return c.ShrinkJob(target, request.what, caller, request.notify, is_of_hosts=True)
    if request.action == pb.RESIZE_SCALE or (request.action == pb.RESIZE_REQUEST and request.sizes):
        return _scale(target, request, caller)
    if request.action == pb.RESIZE_REQUEST and not request.tasks:
        raise Refused("Bad number of slots: it is at least 1")
    if request.action in (pb.RESIZE_REQUEST, pb.RESIZE_CANCEL):
        return c.WishSize(target, request.tasks if request.action == pb.RESIZE_REQUEST else 0, caller)
    raise Refused(f"Unknown action: {request.action}")


def _scale(target: c.Target, request: pb.ResizeRequest, caller: c.Caller) -> c.ScaleJob:
    sizes = tuple([(one.role, one.tasks) for one in request.sizes])
    roles = [role for role, _ in sizes]
    if len(set(roles)) < len(roles):
        raise Refused("A role is named twice")
    return c.ScaleJob(target, sizes, caller, request.action == pb.RESIZE_SCALE, request.notify)


class Sizes:
    """Sizes of a job's roles before a change of its size, for the reply."""

    def __init__(self, cluster: ClusterView, job: int) -> None:
        record = cluster.jobs.get(job)
        self._names: list[str] = []
        self._before: list[int] = []
        if isinstance(record, Job) and record.attempt is not None:
            request = record.shared.request
            self._names = [role.name if request.is_of_tasks else "" for role in request.roles]
            self._before = sizes_of(record.attempt.allocation, len(self._names))

    def tell(self, reply: pb.ResizeReply, sizes: Iterable[pb.RoleSize], gives: Allocation | None) -> None:
        """Fill in the reply: with the sizes asked for, or without them with those that a release leaves."""
        asked = {one.role: one.tasks for one in sizes}
        less = sizes_of(gives or (), len(self._names))
        for name, before, gone in zip(self._names, self._before, less, strict=True):
            is_only = len(self._names) == 1 and "" in asked
            after = asked.get("" if is_only else name, before - gone)
            if name in asked or is_only or after != before:
                reply.before.add(role=name, tasks=before)
                reply.after.add(role=name, tasks=after)
