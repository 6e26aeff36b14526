"""Could any cluster give what a job asks for? Numbers out of bounds and what contradicts itself is refused at once."""

from functools import lru_cache

from lavad.core.cluster import Cluster
from lavad.core.model import Launch, Request, RoleRequest
from lavad.core.reasons import Refused
from lavad.core.requirements import named

_REQUESTS_KNOWN = 8192  # that were found to be good or bad


def check_request(cluster: Cluster, request: Request) -> None:
    """Refuse what no cluster could give."""
    complaint = _complaint_about(request)
    if complaint:
        raise Refused(complaint)
    if request.hosts:
        known = cluster.policy.known_hosts  # also those that have not joined yet
        groups = cluster.policy.host_groups
        named.check(request.hosts, lambda name: name in cluster.hosts or name in known or name in groups)


@lru_cache(maxsize=_REQUESTS_KNOWN)
def _complaint_about(request: Request) -> str:
    """Why no cluster could give that; empty when nothing is wrong with it."""
    if not request.roles:
        return "The job has no tasks: a role is missing"
    roles = (*request.roles, *(role for one in request.alternatives for role in one.roles))
    return next(filter(None, (_complaint_about_role(request, role) for role in roles)), "")


def _complaint_about_role(request: Request, role: RoleRequest) -> str:
    if role.tasks_min < 1 or role.tasks_max < role.tasks_min or role.slots_per_task < 1:
        return "Bad processor number: -n takes min[,max] with 1 <= min <= max"
    if role.ptile < -1:
        return "Bad resource requirement syntax: span[ptile=n] takes a positive number"
    if role.memory_mib < 0 or role.gpus < 0:
        return "Bad resource requirement syntax: memory and GPUs are not negative"
    return _complaint_about_resizing(request, role) if role.resizable else ""


def _complaint_about_resizing(request: Request, role: RoleRequest) -> str:
    if len(request.roles) > 1 or role.launch is not Launch.FIRST:
        return "-ar: only a job of one command that starts its tasks itself can be resizable"
    if request.exclusive:
        return "-ar: a resizable job can't have its hosts for itself (-x)"
    if request.alternatives or request.same or request.cu or role.same or role.cu or role.block or role.stripe:
        return "-ar: a resizable job's -R holds no alternatives, same, cu, span[block] or span[stripe]"
    return ""
