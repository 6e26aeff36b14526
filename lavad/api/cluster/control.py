"""badmin hopen, hclose, hremove, qopen, qclose, qact, qinact: names to commands, one answer for each name."""

import asyncio
from collections.abc import Callable

from lavad.api.cluster.configuration import Configurator
from lavad.core import commands as c
from lavad.core.cluster import Cluster
from lavad.core.decide import removal
from lavad.core.decide.hosts import ALL_LOCK_IDS
from lavad.core.model.reasons import Refused
from lavad.core.state.hosts.table import natural
from lavad.engine import Engine
from protos import cluster_pb2 as pb
from protos.names import is_lock_id
from protos.trust.roles import TrustError

COMMENT_MAX = 511
NAMES_MAX = 10_000
# Jobs of several hosts must first end on their other hosts: KILL follows INT after two intervals of ten seconds.
REMOVAL_PATIENCE_S = 25.0
REMOVAL_PAUSE_S = 0.2
_QUEUES = {
    pb.OPEN_QUEUE: c.QueueAction.OPEN,
    pb.CLOSE_QUEUE: c.QueueAction.CLOSE,
    pb.ACTIVATE_QUEUE: c.QueueAction.ACTIVATE,
    pb.INACTIVATE_QUEUE: c.QueueAction.INACTIVATE,
}


async def control(engine: Engine, request: pb.ControlRequest, caller: c.Caller) -> pb.ControlReply:
    """Carry out badmin for each name; a refusal for one name does not stop the others.

    Raises:
            Refused: the request as a whole is invalid.
    """
    _check(request)
    if request.action in _QUEUES:
        names, commands = _for_queues(engine.cluster, request, caller)
    elif request.action in (pb.OPEN_HOST, pb.CLOSE_HOST, pb.LOCK_HOST, pb.UNLOCK_HOST):
        names, commands = _for_hosts(engine.cluster, request, caller)
    else:
        raise Refused(f"Unknown action: {request.action}")
    future: asyncio.Future[list[object]] = asyncio.get_running_loop().create_future()
    engine.post_replying(commands, lambda replies: None if future.done() else future.set_result(replies))
    reply = pb.ControlReply()
    for name, answer in zip(names, await future, strict=True):
        is_refused = isinstance(answer, Exception)
        note = answer if isinstance(answer, str) else ""
        reply.results.add(name=name, error=str(answer) if is_refused else "", note=note)
    return reply


def check_comment(text: str) -> None:
    """Refuse a comment that is too long.

    Raises:
            Refused: it is.
    """
    if len(text) > COMMENT_MAX or "\0" in text:
        raise Refused(f"-C: a comment has at most {COMMENT_MAX} characters, and no NUL")


def _check(request: pb.ControlRequest) -> None:
    check_comment(request.comment)
    if len(request.names) > NAMES_MAX:
        raise Refused(f"More than {NAMES_MAX} names were given at once")
    if request.lock_ids:
        _check_lock_ids(request)


def _check_lock_ids(request: pb.ControlRequest) -> None:
    lock_ids = list(request.lock_ids)
    if request.action not in (pb.OPEN_HOST, pb.CLOSE_HOST) or request.notice_s:
        raise Refused("-i: lock IDs are for hosts that are closed or opened")
    if bad := [one for one in lock_ids if not is_lock_id(one)]:
        raise Refused(f"-i {bad[0]}: a lock ID has 1 to 128 letters, digits and underscores")
    if request.action == pb.CLOSE_HOST and (len(lock_ids) > 1 or ALL_LOCK_IDS in lock_ids):
        raise Refused("-i: a host is closed with one lock ID at a time, and none is called all")
    if ALL_LOCK_IDS in lock_ids and len(lock_ids) > 1:
        raise Refused("-i: all stands alone")


async def change_host_group(
    configurator: Configurator, request: pb.ControlRequest, caller: c.Caller
) -> pb.ControlReply:
    """Add hosts to a host group, or delete them from it: all of them, or none.

    Raises:
            Refused: the request is invalid, or not for this caller.
    """
    _check(request)
    names = tuple(dict.fromkeys(request.names))
    if not names or not request.group:
        raise Refused("Name the host group, and behind it the hosts")
    is_added = request.action == pb.ADD_TO_GROUP
    await configurator.change_host_group(request.group, names, is_added, caller, request.comment)
    return pb.ControlReply(results=[pb.ControlResult(name=name) for name in names])


async def remove_hosts(
    engine: Engine, request: pb.ControlRequest, caller: c.Caller, distrust: Callable[[str, str], None]
) -> pb.ControlReply:
    """Remove hosts from the cluster, one after the other; host groups are refused, since a mistake would be costly.

    Args:
            distrust: ends the host's session and revokes its certificates; called only for hosts that may be removed.

    Raises:
            Refused: the request as a whole is invalid.
    """
    _check(request)
    if not request.names or request.all:
        raise Refused("Name the hosts that are to be removed")
    reply = pb.ControlReply()
    for name in dict.fromkeys(request.names):
        try:
            await _remove(engine, c.RemoveHost(name, caller, request.comment), distrust)
            reply.results.add(name=name)
        except (Refused, TrustError) as error:
            reply.results.add(name=name, error=str(error))
    return reply


async def _remove(engine: Engine, command: c.RemoveHost, distrust: Callable[[str, str], None]) -> None:
    removal.check(engine.cluster, command)
    distrust(command.host, command.caller.user)
    end = engine.clock() + REMOVAL_PATIENCE_S
    while not await engine.execute(command):
        if engine.clock() > end:
            raise Refused("its jobs are still being ended on their other hosts; it is closed, and trusted no longer")
        await asyncio.sleep(REMOVAL_PAUSE_S)


def _for_queues(cluster: Cluster, request: pb.ControlRequest, caller: c.Caller) -> tuple[list[str], list[c.Command]]:
    names = [queue.name for queue in cluster.policy.queues] if request.all else list(request.names)
    if not names:
        names = [cluster.policy.default_queue]
    action = _QUEUES[request.action]
    return names, [c.RuleQueue(name, action, caller, request.comment) for name in names]


def _for_hosts(cluster: Cluster, request: pb.ControlRequest, caller: c.Caller) -> tuple[list[str], list[c.Command]]:
    names: list[str] = []
    servers = sorted((name for name, host in cluster.hosts.items() if host.facts.server), key=natural)
    wanted = list(request.names) if request.names or request.all else [_own_host(cluster, caller)]
    for name in wanted:
        members = cluster.policy.host_groups.get(name)
        names += [name] if members is None else [host for host in servers if host in members]
    if request.all:
        names = servers
    if request.action == pb.CLOSE_HOST and request.notice_s:
        return names, [c.RevokeHost(name, caller, request.notice_s, request.comment) for name in names]
    if request.action == pb.LOCK_HOST:
        return names, [c.LockHost(name, caller, max(0.0, request.lock_s)) for name in names]
    if request.action == pb.UNLOCK_HOST:
        return names, [c.UnlockHost(name, caller) for name in names]
    lock_ids = tuple(request.lock_ids)
    if request.action == pb.OPEN_HOST:
        return names, [c.OpenHost(name, caller, request.comment, lock_ids) for name in names]
    return names, [c.CloseHost(name, caller, request.comment, "".join(lock_ids)) for name in names]


def _own_host(cluster: Cluster, caller: c.Caller) -> str:
    """Return the host that the command was run on, the default where no host is named."""
    host = cluster.hosts.get(caller.host)
    if host is None or not host.facts.server:
        raise Refused(f"Host <{caller.host}> runs no jobs of this cluster: name the hosts that are meant")
    return caller.host
