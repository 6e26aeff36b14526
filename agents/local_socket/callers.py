"""Identity of callers of the local socket: uid from the kernel, user name from the name service.

Invariants: identity comes from SO_PEERCRED and from nothing the caller sends; an unmapped uid is refused; a name
look-up never runs on the event loop, since SSSD or LDAP may block for seconds.
"""

import asyncio
import pwd
import socket
import struct
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from agents import account_files
from protos import frames
from protos.wire import CALLER_GID, CALLER_UID, CALLER_USER

_CREDENTIALS = struct.Struct("iII")
# uids of the kernel for users unknown in this user namespace, and for no user.
_NOBODY = frozenset({65534, 0xFFFFFFFF})

LOOKUP_S_MAX = 10.0
# More stuck look-ups than this mean that the name service is down; further ones queue.
LOOKUP_THREADS = 4


class CallFailed(Exception):
    """Failure of a call, with a gRPC status number and one sentence for the user."""

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
        """Metadata about the caller for the master, vouched for by this agent."""
        return ((CALLER_USER, _ascii(self.user)), (CALLER_UID, str(self.uid)), (CALLER_GID, str(self.gid)))


def peer_credentials(connection: socket.socket) -> tuple[int, int, int]:
    """Return (pid, uid, gid) of the connected process, as the kernel recorded them at connect.

    Raises:
        CallFailed: the uid stands for no user here.
    """
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, gid = _CREDENTIALS.unpack(raw)
    if uid in _NOBODY:
        raise CallFailed(frames.UNAUTHENTICATED, f"uid {uid} stands for no user of this host")
    return pid, uid, gid


class UserNames:
    """Cache of user names by uid, for a moment; looked up in threads of its own."""

    def __init__(self, look_up: Callable[[int], str] = lambda uid: pwd.getpwuid(uid).pw_name) -> None:
        self._look_up = look_up
        self._known: dict[int, tuple[str, float, account_files.State]] = {}
        self._asked: dict[int, asyncio.Future[str]] = {}
        self._threads = ThreadPoolExecutor(LOOKUP_THREADS, "user-names")

    async def name(self, uid: int) -> str:
        """Return the user name of ``uid``.

        Raises:
            CallFailed: there is none, or the name service did not answer in time.
        """
        known = self._known.get(uid)
        now = account_files.state()
        if known is not None and known[1] > time.monotonic() and known[2] == now:
            return known[0]
        asked = self._asked.get(uid)
        if asked is None:
            asked = asyncio.get_running_loop().run_in_executor(self._threads, self._look_up, uid)
            self._asked[uid] = asked
            asked.add_done_callback(lambda answer: self._answered(uid, answer, now))
        try:
            return await asyncio.wait_for(asyncio.shield(asked), LOOKUP_S_MAX)
        except KeyError:
            raise CallFailed(frames.UNAUTHENTICATED, f"uid {uid} has no user name on this host") from None
        except (TimeoutError, OSError):
            text = f"the name of uid {uid} could not be looked up: the name service of this host does not answer"
            raise CallFailed(frames.UNAVAILABLE, text) from None

    def close(self) -> None:
        """Abandon the threads, including a stuck look-up."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _answered(self, uid: int, answer: asyncio.Future[str], before: account_files.State) -> None:
        del self._asked[uid]
        if not answer.cancelled() and answer.exception() is None:
            self._known[uid] = (answer.result(), time.monotonic() + account_files.REMEMBER_S, before)


def _ascii(name: str) -> str:
    """Encode a name for gRPC metadata: percent-encoded unless plain ASCII."""
    if name.isascii() and name.isprintable() and "%" not in name:
        return name
    return "".join(chr(octet) if 0x20 < octet < 0x7F and octet != 0x25 else f"%{octet:02X}" for octet in name.encode())
