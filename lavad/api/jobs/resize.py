"""bresize and lavactl scale: release of hosts and slots by a running job, or its new desired size."""

from lavad.api import checks, translate
from lavad.core import commands as c
from lavad.core.model.reasons import Refused
from protos import jobs_pb2 as pb

WORDS_MAX = 64 << 10  # characters of a host list


def command_of(request: pb.ResizeRequest, caller: c.Caller) -> c.Command:
    """Convert the request to a core command.

    Raises:
            Refused: it is invalid.
    """
    checks.check_refs([request.ref])
    checks.check_texts(request)
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
