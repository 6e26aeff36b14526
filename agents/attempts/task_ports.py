"""Ports for tasks: free ones of this host, never given to two attempts at a time.

A port is tried by binding it on all addresses, of IPv4 and of IPv6 where there is one. It can be taken by another
program before the task uses it; then the task finds that out itself.
"""

import errno
import socket
from collections.abc import Container, Iterable, Iterator, Sequence

from protos.common_pb2 import LAUNCH_FIRST, LAUNCH_HOST, PortRequest, Role, RoleTasks

PORT_MAX = 65535


class NoPort(Exception):
    """Want of a port; the text is a clause."""


def reserve(
    roles: Sequence[Role], tasks: Iterable[RoleTasks], used: Container[int], pool: range, at: int
) -> list[RoleTasks]:
    """Return these tasks with a port for each request of their roles, in order.

    The search begins ``at`` a place of the pool, so that ports of ended jobs are not used again at once. A number that
    is only preferred goes to the first task that wants it, and others get others. One that is fixed is given once, but
    for tasks for which one process stands.

    Raises:
        NoPort: one that must be that number is taken, or none is free.
    """
    taken: set[int] = set()
    free = _free(pool, at, used, taken)
    found = []
    for part in tasks:
        role, ports = roles[part.role], list[int]()
        own: set[int] = set()  # fixed ports that tasks of the same process have
        for index in part.indices:
            own = own if role.launch in (LAUNCH_FIRST, LAUNCH_HOST) else set()
            for request in role.ports:
                ports += _chosen(request, used, taken, own, free, f"{role.name}/{index}")
        found.append(RoleTasks(role=part.role, indices=part.indices, ports=ports))
    return found


def _chosen(
    request: PortRequest, used: Container[int], taken: set[int], own: set[int], free: Iterator[int], task: str
) -> Iterator[int]:
    for at in range(request.count or 1):
        wanted = request.number + at if request.number else 0
        is_fixed = bool(wanted) and not request.is_preferred
        if wanted in own or (wanted and _may_have(wanted, used, taken, is_fixed)):
            port = wanted
        elif is_fixed:
            raise NoPort(f"port {wanted}, which task {task} wants, is taken")
        else:
            port = next(free, 0)
            if not port:
                raise NoPort(f"no port is free for task {task}")
        taken.add(port)
        if is_fixed:
            own.add(port)
        yield port


def _may_have(port: int, used: Container[int], taken: Container[int], is_fixed: bool) -> bool:
    return port <= PORT_MAX and port not in taken and port not in used and is_free(port, is_fixed)


def _free(pool: range, start: int, used: Container[int], taken: Container[int]) -> Iterator[int]:
    places = (pool[(start + step) % len(pool)] for step in range(len(pool)))
    for port in places:
        if port not in used and port not in taken and is_free(port):
            yield port


def is_free(port: int, as_servers: bool = False) -> bool:
    """Return True if the port can be bound on all addresses.

    ``as_servers``: also where connections of an earlier program linger, as programs with a fixed port bind it.
    """
    return all(_can_bind(family, address, port, as_servers) for family, address in _addresses())


def _addresses() -> list[tuple[socket.AddressFamily, str]]:
    found = [(socket.AF_INET, "0.0.0.0")]
    return [*found, (socket.AF_INET6, "::")] if socket.has_ipv6 else found


def _can_bind(family: socket.AddressFamily, address: str, port: int, as_servers: bool) -> bool:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            if as_servers:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            probe.bind((address, port))
    except OSError as error:
        return error.errno in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)  # no such family here
    return True
