"""Job socket of the host: one socket for all jobs; the kernel says which of them a caller belongs to.

Invariants: a process that belongs to no job, or to another user than its job, is refused with a sentence; connections
are bounded in all and for each attempt; requests of one attempt are answered at a bounded rate, later ones wait.
"""

import asyncio
import contextlib
import logging
import os
import socket
from collections import Counter

from agents.attempts.ledger import Ledger
from agents.job_socket.answers import Answer, Answers, Request
from agents.job_socket.members import Member, NotOfAJob, member
from agents.local_socket.acceptor import Acceptor
from agents.local_socket.callers import CallFailed, peer_credentials
from agents.local_socket.gateway import descriptors, listen
from agents.shepherd.messages import Key
from agents.shepherd_pool.pool import Pool

LOG = logging.getLogger("lava.job_socket")

CONNECTIONS_MAX = 4096
CONNECTIONS_OF_JOB = 512
DESCRIPTORS_EACH = 8  # of all that this process may have, for one of a job's connections: most are for other things
REFUSALS_MAX = 64
REQUESTS_A_SECOND = 100.0  # of one attempt
BURST = 200.0


class JobSocket:
    """Server of the job socket at ``path``; empty: there is none."""

    def __init__(self, path: str, ledger: Ledger, pool: Pool, answers: Answers) -> None:
        self.path = path
        self._ledger = ledger
        self._pool = pool
        self._answers = answers
        self._acceptor: Acceptor | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._of_job: Counter[Key] = Counter()
        self._refusals = 0
        self._connections_max, self._of_job_max = CONNECTIONS_MAX, CONNECTIONS_OF_JOB
        self._next_at: dict[Key, float] = {}
        self._inode = 0

    async def start(self) -> None:
        """Listen; the socket of an earlier agent is replaced in one step.

        Raises:
            OSError: the path cannot be used.
        """
        if self.path:
            self._connections_max = min(CONNECTIONS_MAX, descriptors() // DESCRIPTORS_EACH)
            self._of_job_max = min(CONNECTIONS_OF_JOB, self._connections_max // 2)
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
        """Drop what is kept of an attempt that is over here."""
        self._next_at.pop(key, None)

    def _arrived(self, connection: socket.socket) -> None:
        if len(self._connections) >= self._connections_max:
            connection.close()
            return
        try:
            caller = self._caller(connection)
        except NotOfAJob as refusal:
            self._refuse(connection, str(refusal))
            return
        key = caller.entry.key
        if self._of_job[key] >= self._of_job_max:
            self._refuse(connection, f"the job has {self._of_job_max} connections on this host, which is the limit")
            return
        self._of_job[key] += 1
        task = self._keep(self._serve(connection, caller))
        task.add_done_callback(lambda _: self._left(key))

    def _caller(self, connection: socket.socket) -> Member:
        try:
            pid, uid, _ = peer_credentials(connection)
        except CallFailed as failure:
            raise NotOfAJob(failure.text) from None
        return member(pid, uid, self._ledger, self._pool)

    def _left(self, key: Key) -> None:
        self._of_job[key] -= 1
        if not self._of_job[key]:
            del self._of_job[key]

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

    async def _serve(self, connection: socket.socket, caller: Member) -> None:
        # With h11 a tenth of an agent's imports: few jobs ever ask.
        from agents.job_socket.http import HttpConnection

        reader, writer = await asyncio.open_unix_connection(sock=connection)

        async def answer(request: Request) -> Answer:
            await self._in_turn(caller.entry.key)
            return await self._answers.answer(caller, request)

        try:
            await HttpConnection(reader, writer, answer).serve()
        finally:
            writer.close()

    async def _in_turn(self, key: Key) -> None:
        """Wait until the attempt may ask again: a burst is free, then so many requests a second."""
        now = asyncio.get_running_loop().time()
        at = max(self._next_at.get(key, 0.0), now - BURST / REQUESTS_A_SECOND) + 1 / REQUESTS_A_SECOND
        self._next_at[key] = at
        if at > now:
            await asyncio.sleep(at - now)
