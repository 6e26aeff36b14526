"""Unknown user, queue, host and job names on the command line, reported if a search found nothing."""

from lavactl.options import Options, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from lavactl.io import Io


NEAR = 0.75  # similarity for a suggestion
NO_DIGITS = str.maketrans("", "", "0123456789")


def unknown_name(options: Options, io: "Io") -> str:
    """Sentence about an unknown user, queue, host or job group of -u, -q, -m or -g; empty if all are known."""
    for user in unknown_users((options.last("u") or "").split(), io):
        return f"{printable(user)}: Unknown user{_near_user(user, io)}"
    queue, host = options.last("q"), options.last("m")
    if queue and unknown_queue(queue, io):
        return f"{printable(queue)}: No such queue{_near_queue(queue, io)}"
    if strange := unknown_host(host or "", io):
        return f"{printable(strange)}: Bad host name, host group name or cluster name{_near_host(strange, io)}"
    group = options.last("g")
    if group and unknown_job_group(group, io):
        return f"{printable(group)}: No such job group"
    return ""


def hint(name: str, known: "Iterable[str]") -> str:
    """End of a sentence about an unknown name: a near one; empty if there is none.

    Names that differ only in their numbers are not suggested: another host is not what was meant.
    """
    from difflib import get_close_matches

    letters = name.translate(NO_DIGITS)
    others = [one for one in known if one.translate(NO_DIGITS) != letters or letters == name]
    close = get_close_matches(name, others, 1, NEAR)
    return f"; did you mean {printable(close[0])}?" if close else ""


def _near_queue(name: str, io: "Io") -> str:
    from protos import cluster_pb2

    return hint(name, [queue.name for queue in io.client().queues(cluster_pb2.QueuesRequest()).queues])


def _near_user(name: str, io: "Io") -> str:
    from protos import cluster_pb2

    return hint(name, [user.name for user in io.client().users(cluster_pb2.UsersRequest(everybody=True)).users])


def _near_host(name: str, io: "Io") -> str:
    from protos import cluster_pb2

    request = cluster_pb2.HostsRequest(clients_too=True)
    return hint(name, [host.facts.name for page in io.client().hosts(request) for host in page.hosts])


def nothing_so_named(options: Options) -> str:
    """Sentence that no job has the name of -J, with the place searched; empty without -J."""
    name = options.last("J")
    return f"Job <{printable(name)}> is not found{where(options)}" if name else ""


def where(options: Options) -> str:
    """End of a sentence with the queue and the host of -q and -m; empty without them."""
    queue, host = options.last("q"), options.last("m")
    text = f" in queue <{printable(queue)}>" if queue else ""
    return text + (f" on host/group <{printable(host)}>" if host else "")


def unknown_users(names: list[str], io: "Io") -> list[str]:
    """Names that are neither an account of this host nor a user or group of the cluster."""
    names = [name.removeprefix("^") for name in names]
    strangers = [name for name in names if name != "all" and io.home_of(name) is None]
    if not strangers:
        return []
    from protos import cluster_pb2

    return list(io.client().users(cluster_pb2.UsersRequest(names=strangers)).missing)


def unknown_queue(name: str, io: "Io") -> bool:
    """True if no queue has this name."""
    from protos import cluster_pb2

    return bool(io.client().queues(cluster_pb2.QueuesRequest(names=[name])).missing)


def unknown_job_group(path: str, io: "Io") -> bool:
    """True if there is no job group of this path; the root group always is."""
    from protos import cluster_pb2

    return path != "/" and bool(io.client().job_groups(cluster_pb2.JobGroupsRequest(names=[path])).missing)


def unknown_host(names: str, io: "Io") -> str:
    """First of these names that is neither a host nor a host group nor the cluster itself, or empty."""
    from protos import cluster_pb2

    wanted = [name for name in names.split() if name != "all"]
    request = cluster_pb2.HostsRequest(names=wanted, clients_too=True)
    missing = [name for page in io.client().hosts(request) for name in page.missing] if wanted else []
    cluster = io.client().info().cluster if missing else ""
    return next((name for name in missing if name != cluster), "")
