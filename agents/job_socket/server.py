"""Job socket of the host: one socket for all jobs; the kernel says which of them a caller belongs to.

Invariants: a process that belongs to no job, or to another user than its job, is refused with a sentence; connections
are bounded in all, for each user and each attempt, and where there is no room for another one, idle ones end first;
requests of an attempt are answered at a bounded rate, later ones wait; nothing is answered for one that is over.
"""

import asyncio
import contextlib
import logging
import os
import socket
from collections import Counter

from agents.attempts.ledger import Ledger
from agents.attempts.ledger_entry import State
from agents.job_socket.answers import Answer, Answers, Refusal, Request
from agents.job_socket.members import Member, NotOfAJob, member
from agents.local_socket.acceptor import Acceptor
from agents.local_socket.callers import CallFailed, peer_credentials
from agents.local_socket.gateway import descriptors, listen
from agents.shepherd.messages import Key
from agents.shepherd_pool.pool import Pool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agents.job_socket.http import HttpConnection

LOG = logging.getLogger("lava.job_socket")

CONNECTIONS_MAX = 4096
CONNECTIONS_OF_USER = 1024
CONNECTIONS_OF_JOB = 512
DESCRIPTORS_EACH = 8  # of all that this process may have, for one of a job's connections: most are for other things
IDLE_MIN_S = 1.0  # a connection without a request for so long may end for another one
REFUSALS_MAX = 64
REQUESTS_A_SECOND = 100.0  # of one attempt
BURST = 200.0


class _Held:
    """A connection of a job: its attempt and user."""

    def __init__(self, key: Key, uid: int) -> None:
        self.key, self.uid = key, uid
        self.http: HttpConnection | None = None

    @property
    def is_idle(self) -> bool:
        """True if it has had no request for a while."""
        return self.http is not None and self.http.idle_s() >= IDLE_MIN_S


class JobSocket:
    """Server of the job socket at ``path``; empty: there is none."""

    def __init__(self, path: str, ledger: Ledger, pool: Pool, answers: Answers) -> None:
        self.path = path
        self._ledger = ledger
        self._pool = pool
        self._answers = answers
        self._acceptor: Acceptor | None = None
        self._connections: set[asyncio.Task[None]] = set()  # also those that are being refused
        self._held: dict[asyncio.Task[None], _Held] = {}  # of jobs, the oldest first
        self._of_job: Counter[Key] = Counter()
        self._of_user: Counter[int] = Counter()
        self._refusals = 0
        self._connections_max, self._of_user_max, self._of_job_max = (
            CONNECTIONS_MAX,
            CONNECTIONS_OF_USER,
            CONNECTIONS_OF_JOB,
        )
        self._next_at: dict[Key, float] = {}
        self._inode = 0

    async def start(self) -> None:
        """Listen; the socket of an earlier agent is replaced in one step.

        Raises:
            OSError: the path cannot be used.
        """
        if self.path:
            self._connections_max = min(CONNECTIONS_MAX, descriptors() // DESCRIPTORS_EACH)
            self._of_user_max = min(CONNECTIONS_OF_USER, self._connections_max // 2)
            self._of_job_max = min(CONNECTIONS_OF_JOB, self._of_user_max // 2)
            listener = listen(self.path)
            self._inode = os.stat(self.path).st_ino
            self._acceptor = Acceptor(listener, self._arrived)
        else:
            LOG.warning("event=no_job_socket reason='its path would be too long: use a shorter --socket'")

    async def stop(self) -> None:
        """Close the socket and every connection; jobs connect again to the next agent."""
        if self._acceptor is not None:
            self._acceptor.close()
            self._acceptor = None
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        with contextlib.suppress(FileNotFoundError):
            if self.path and os.stat(self.path).st_ino == self._inode:
                os.unlink(self.path)

    def forget(self, key: Key) -> None:
        """Drop what is kept of an attempt that is over here; connections that it has handed on end."""
        self._next_at.pop(key, None)
        for task in [task for task, held in self._held.items() if held.key == key] if self._of_job[key] else ():
            self._drop(task)

    def _arrived(self, connection: socket.socket) -> None:
        try:
            caller = self._caller(connection)
        except NotOfAJob as refusal:
            self._refuse(connection, str(refusal))
            return
        key, uid = caller.entry.key, caller.entry.blob.uid
        if why := self._why_full(key, uid):
            self._refuse(connection, why)
            return
        self._of_job[key] += 1
        self._of_user[uid] += 1
        held = _Held(key, uid)
        task = self._keep(self._serve(connection, caller, held))
        self._held[task] = held
        task.add_done_callback(self._left)

    def _why_full(self, key: Key, uid: int) -> str:
        """Make room for another connection of a job; return why there is none, empty if there is."""
        if self._of_job[key] >= self._of_job_max and not self._drop_one(lambda held: held.key == key):
            return f"the job has {self._of_job_max} connections on this host, which is the limit"
        if self._of_user[uid] >= self._of_user_max and not self._drop_one(lambda held: held.uid == uid):
            return f"uid {uid} has {self._of_user_max} connections of jobs on this host, which is the limit"
        if len(self._held) < self._connections_max:
            return ""
        most, count = max(self._of_user.items(), key=lambda one: one[1])
        may_displace = count > self._of_user[uid] + 1  # not only what is idle: each user has a part
        if self._drop_one(lambda held: held.uid == most, also_busy=may_displace):
            return ""
        return f"the jobs on this host have {self._connections_max} connections, which is the limit"

    def _drop_one(self, is_meant: "Callable[[_Held], bool]", also_busy: bool = False) -> bool:
        """End the oldest idle one of some connections, or with ``also_busy`` the oldest; return True if one ends."""
        meant = [task for task, held in self._held.items() if is_meant(held)]
        idle = next((task for task in meant if self._held[task].is_idle), None)
        task = idle or (meant[0] if also_busy and meant else None)
        if task is None:
            return False
        self._drop(task)
        return True

    def _drop(self, task: "asyncio.Task[None]") -> None:
        self._left(task)  # at once: others arrive before the task has ended
        task.cancel()

    def _caller(self, connection: socket.socket) -> Member:
        try:
            pid, uid, _ = peer_credentials(connection)
        except CallFailed as failure:
            raise NotOfAJob(failure.text) from None
        return member(pid, uid, self._ledger, self._pool)

    def _left(self, task: "asyncio.Task[None]") -> None:
        held = self._held.pop(task, None)
        if held is None:
            return
        self._of_job -= Counter((held.key,))  # without those of which none is left
        self._of_user -= Counter((held.uid,))

    def _keep(self, work: "asyncio._CoroutineLike[None]") -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._connections.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._connections.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            LOG.error("event=connection_broke", exc_info=error)

    def _refuse(self, connection: socket.socket, text: str) -> None:
        if self._refusals >= REFUSALS_MAX:
            connection.close()
            return
        self._refusals += 1
        self._keep(self._say(connection, text)).add_done_callback(lambda _: self._refused())

    def _refused(self) -> None:
        self._refusals -= 1

    async def _say(self, connection: socket.socket, text: str) -> None:
        from agents.job_socket.http import HttpConnection

        reader, writer = await asyncio.open_unix_connection(sock=connection)
        try:
            await HttpConnection(reader, writer, self._no_answer).refuse(text)
        finally:
            writer.close()

    @staticmethod
    async def _no_answer(_request: Request) -> Answer:
        return {}

    async def _serve(self, connection: socket.socket, caller: Member, held: "_Held") -> None:
        # With h11 a tenth of an agent's imports: few jobs ever ask.
        from agents.job_socket.http import HttpConnection

        reader, writer = await asyncio.open_unix_connection(sock=connection)

        async def answer(request: Request) -> Answer:
            await self._in_turn(caller.entry.key)
            if caller.entry.state is not State.HELD:  # what has the connection now is no process of the job
                raise Refusal(403, "the job is over on this host")
            return await self._answers.answer(caller, request)

        held.http = HttpConnection(reader, writer, answer)
        try:
            await held.http.serve()
        finally:
            writer.close()

    async def _in_turn(self, key: Key) -> None:
        """Wait until the attempt may ask again: a burst is free, then so many requests a second."""
        now = asyncio.get_running_loop().time()
        at = max(self._next_at.get(key, 0.0), now - BURST / REQUESTS_A_SECOND) + 1 / REQUESTS_A_SECOND
        self._next_at[key] = at
        if at > now:
            await asyncio.sleep(at - now)
