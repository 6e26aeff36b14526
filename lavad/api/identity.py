"""Identity of callers: the role of the certificate, and the user that an agent vouches for.

The user is read from the metadata that an agent added, never from a message; the agent got it from the kernel.
Administrators have their rights only on the hosts listed for them.
"""

from typing import Any
from urllib.parse import unquote

import grpc
import grpc.aio

from lavad.core.commands import Caller
from lavad.settings import Settings
from protos.trust.roles import Kind, TrustError
from protos.trust.tls import peer_role
from protos.wire import CALLER_GID, CALLER_UID, CALLER_USER

UID_MAX = (1 << 32) - 2
USER_NAME_MAX = 256

Context = grpc.aio.ServicerContext[Any, Any]


async def agent_host(context: Context) -> str:
    """Return the host of the calling agent; abort the call if the peer is anything else."""
    try:
        role = peer_role(context.auth_context())
    except TrustError as error:
        await context.abort(grpc.StatusCode.UNAUTHENTICATED, str(error))
    if role.kind is not Kind.AGENT:
        await context.abort(grpc.StatusCode.PERMISSION_DENIED, "Only an agent may do this.")
    return role.host


async def caller(context: Context, settings: Settings, starts_jobs: bool = False) -> Caller:
    """Return the user that an agent vouches for; abort the call if there is none.

    With ``starts_jobs`` root is accepted only from the hosts named for administrators: a compromised agent must not
    become root on all other hosts. That all hosts are listed names none.
    """
    host = await agent_host(context)
    metadata = dict(context.invocation_metadata() or ())
    try:
        user = unquote(str(metadata[CALLER_USER]))
        uid, gid = int(str(metadata[CALLER_UID])), int(str(metadata[CALLER_GID]))
    except (KeyError, ValueError):
        await context.abort(grpc.StatusCode.UNAUTHENTICATED, "The agent did not say for whom it calls.")
    if (
        not user.isprintable()
        or not user
        or not 0 <= uid <= UID_MAX
        or not 0 <= gid <= UID_MAX
        or len(user) > USER_NAME_MAX
    ):
        await context.abort(grpc.StatusCode.UNAUTHENTICATED, "The agent named no user.")
    if starts_jobs and uid == 0 and host not in settings.administration_hosts:
        await context.abort(grpc.StatusCode.PERMISSION_DENIED, f"Root may not submit or modify jobs from {host}.")
    is_named = user in settings.administrators
    is_listed = settings.administers_anywhere or host in settings.administration_hosts
    return Caller(user, uid, is_named and is_listed, gid, host, is_named and not is_listed)
