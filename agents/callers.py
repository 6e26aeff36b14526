"""Who is at the other end of the local socket: the kernel says which uid, the name service what its user is called.

Invariants: identity comes from SO_PEERCRED and from nothing the caller sends; a uid that stands for nobody is
refused; a name look-up never runs on the event loop, since SSSD or LDAP may block for seconds.
"""

import asyncio
import pwd
import socket
import struct
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from protos import frames
from protos.wire import CALLER_GID, CALLER_UID, CALLER_USER

_CREDENTIALS = struct.Struct("iII")
# What the kernel shows for a user that this user namespace does not know, and for no user at all.
_NOBODY = frozenset({65534, 0xFFFFFFFF})

NAME_LIFE_S = 60.0
LOOKUP_S_MAX = 10.0
# More than this many look-ups stuck at once means that the name service is down; further ones wait for their turn.
LOOKUP_THREADS = 4


class CallFailed(Exception):
    """A call ends with a gRPC status number and one sentence for the user."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


@dataclass(frozen=True, slots=True)
class Caller:
    """A user of this machine, as the kernel and its name service know it."""

    user: str
    uid: int
    gid: int
    pid: int

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """What this agent tells the master about the caller it vouches for."""
        return ((CALLER_USER, _ascii(self.user)), (CALLER_UID, str(self.uid)), (CALLER_GID, str(self.gid)))


def peer_credentials(connection: socket.socket) -> tuple[int, int, int]:
    """(pid, uid, gid) of the process that connected, as the kernel recorded it then.

    Raises:
        CallFailed: the uid means nobody here.
    """
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, gid = _CREDENTIALS.unpack(raw)
    if uid in _NOBODY:
        raise CallFailed(frames.UNAUTHENTICATED, f"uid {uid} stands for no user of this host")
    return pid, uid, gid


class UserNames:
    """Names of uids, kept for a minute, looked up in threads of their own."""

    def __init__(self, look_up: Callable[[int], str] = lambda uid: pwd.getpwuid(uid).pw_name) -> None:
        self._look_up = look_up
        self._known: dict[int, tuple[str, float]] = {}
        self._asked: dict[int, asyncio.Future[str]] = {}
        self._threads = ThreadPoolExecutor(LOOKUP_THREADS, "user-names")

    async def name(self, uid: int) -> str:
        """The user name of ``uid``.

        Raises:
            CallFailed: there is none, or the name service did not answer in time.
        """
        known = self._known.get(uid)
        if known is not None and known[1] > time.monotonic():
            return known[0]
        asked = self._asked.get(uid)
        if asked is None:
            asked = asyncio.get_running_loop().run_in_executor(self._threads, self._look_up, uid)
            self._asked[uid] = asked
            asked.add_done_callback(lambda answer: self._answered(uid, answer))
        try:
            return await asyncio.wait_for(asyncio.shield(asked), LOOKUP_S_MAX)
        except KeyError:
            raise CallFailed(frames.UNAUTHENTICATED, f"uid {uid} has no user name on this host") from None
        except (TimeoutError, OSError):
            text = f"the name of uid {uid} could not be looked up: the name service of this host does not answer"
            raise CallFailed(frames.UNAVAILABLE, text) from None

    def close(self) -> None:
        """Let go of the threads; a look-up that is stuck is left behind."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _answered(self, uid: int, answer: asyncio.Future[str]) -> None:
        del self._asked[uid]
        if not answer.cancelled() and answer.exception() is None:
            self._known[uid] = (answer.result(), time.monotonic() + NAME_LIFE_S)


def _ascii(name: str) -> str:
    """A name that gRPC metadata can carry: percent-encoded where it is not plain ASCII."""
    if name.isascii() and name.isprintable() and "%" not in name:
        return name
    return "".join(chr(octet) if 0x20 < octet < 0x7F and octet != 0x25 else f"%{octet:02X}" for octet in name.encode())
