"""Usage of an attempt exchanged between its hosts: the job report, written on the lead host, covers all of them.

Agents ask each other, not the master: a report is complete without a master, too. Invariants: a host that does not
answer in time is named in the report, and nothing waits for it any longer; an agent answers only the attempt's own
hosts. The master's accounting does not depend on this: every host reports its usage at its release.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from agents.attempts.ledger import Ledger
from agents.attempts.ledger_entry import Entry, State
from agents.gpu_use.report import report_text
from agents.job_setup.preparation import printed
from agents.local_socket.callers import CallFailed
from agents.master.report_messages import usage_message
from agents.shepherd import messages
from agents.shepherd.messages import Key, Used, pack
from agents.shepherd_pool.pool import Handle
from protos.agents_pb2 import CountReply, CountRequest
from protos.common_pb2 import AttemptKey, GpuUsage, HostShare, Usage

LOG = logging.getLogger("lava.counting")

ASK_S = 3.0  # for all hosts together; the shepherd waits a little longer
SHEPHERD_S = 2.0
ASKED_AT_ONCE = 32

# Query to the agent of another host.
Ask = Callable[[HostShare, CountRequest], Awaitable[CountReply]]


class Counting:
    """Both sides of the exchange. ``holder`` returns an attempt's shepherd; ``ask`` is set before the first query."""

    def __init__(self, ledger: Ledger, holder: Callable[[Key], Handle | None], host: str) -> None:
        self.ask: Ask | None = None
        self.gpus: Callable[[Key], Awaitable[Sequence[GpuUsage]]] = _no_gpus  # use of GPUs here, read now
        self._ledger = ledger
        self._holder = holder
        self._host = host
        self._waiting: dict[Key, list[asyncio.Future[CountReply]]] = {}
        self._asking: set[Key] = set()

    # -- queries by a shepherd of this host

    async def gather(self, handle: Handle, key: Key) -> None:
        """Query all other hosts of an attempt, and send the result to its shepherd."""
        entry = self._ledger.entries.get(key)
        if entry is None or self.ask is None or key in self._asking:
            return
        self._asking.add(key)
        others = [share for share in entry.stage.allocation if share.host != self._host]
        turns = asyncio.Semaphore(ASKED_AT_ONCE)
        asked = {share.host: asyncio.create_task(self._ask(share, key, turns)) for share in others}
        try:
            if asked:
                await asyncio.wait(asked.values(), timeout=ASK_S)
        finally:
            self._asking.discard(key)
            for task in asked.values():
                task.cancel()
        replies = {host: task.result() for host, task in asked.items() if _has_result(task)}
        found = {host: reply for host, reply in replies.items() if reply is not None}
        figures = tuple((host, tuple(used_of(reply.usage))) for host, reply in found.items())
        missing = tuple(host for host in asked if host not in found)
        limit = next((reply.limit_reached for reply in found.values() if reply.limit_reached), "")
        hosts = hosts_of(entry) if handle.status.protocol >= messages.NAMES_HOSTS else ()
        of_others = [(host, reply.usage.gpus) for host, reply in found.items()]
        text = report_text([(self._host, await self.gpus(key)), *of_others])
        more = (text,) if handle.status.protocol >= messages.TELLS_GPUS else ()
        handle.send(pack(messages.COUNTED, *key, figures, missing, limit, *hosts, *more))

    async def _ask(self, share: HostShare, key: Key, turns: asyncio.Semaphore) -> CountReply | None:
        assert self.ask is not None
        job, index, attempt = key
        request = CountRequest(key=AttemptKey(job=job, index=index, attempt=attempt))
        async with turns:
            try:
                return await self.ask(share, request)
            except (CallFailed, grpc.aio.AioRpcError, DecodeError) as error:
                LOG.warning("event=not_counted job=%d index=%d attempt=%d host=%s reason=%r", *key, share.host, error)
                return None

    # -- queries by another host

    def is_shared_with(self, key: Key, host: str) -> bool:
        """Return True if that host is in the attempt's allocation, according to the master's order."""
        entry = self._ledger.entries.get(key)
        return entry is not None and any(share.host == host for share in entry.stage.allocation)

    async def count(self, key: Key) -> CountReply | None:
        """Return an attempt's usage here, from its shepherd or its last report; None if neither has it."""
        entry, shepherd = self._ledger.entries.get(key), self._holder(key)
        if entry is None:
            return None
        if shepherd is None or entry.state in (State.ENDED, State.OVER):
            return self._told(key)
        answer: asyncio.Future[CountReply] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, []).append(answer)
        shepherd.send(pack(messages.COUNT, *key))
        try:
            async with asyncio.timeout(SHEPHERD_S):
                reply = await answer
                reply.usage.gpus.extend(await self.gpus(key))
                return reply
        except TimeoutError:
            return None

    def _told(self, key: Key) -> CountReply | None:
        """Return the usage in the last report of an attempt that is over here."""
        last = self._ledger.entries[key].last
        if last is None:
            return None
        if last.HasField("released"):
            return CountReply(usage=last.released.usage)
        if last.HasField("finished"):
            end = last.finished
            usage = Usage(
                cpu_s=end.cpu_s, user_s=end.user_s, system_s=end.system_s, memory_mib_max=end.memory_mib_max,
                memory_mib_mean=end.memory_mib_mean, processes_max=end.processes_max, seconds=end.seconds,
                gpus=end.gpus,
            )  # fmt: skip
            return CountReply(usage=usage, limit_reached=end.reason if end.reason in messages.LIMITS_OF_HOST else "")
        return None

    def answered(self, key: Key, used: Used, limit: str) -> None:
        """Pass on a shepherd's answer."""
        reply = CountReply(usage=usage_message(used, self._host), limit_reached=limit)
        for answer in self._waiting.pop(key, ()):
            if not answer.done():
                answer.set_result(reply)

    def forget(self, key: Key) -> None:
        """Answer waiting queries from the last report, since nothing of the attempt is left here."""
        reply = self._told(key) if key in self._ledger.entries else None
        for answer in self._waiting.pop(key, ()):
            if not answer.done():
                answer.set_result(reply or CountReply())


def hosts_of(entry: Entry) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return all hosts the job has had, in the report's format, and the names of those it has released."""
    return printed((*entry.stage.allocation, *entry.given_up)), tuple(share.host for share in entry.given_up)


async def _no_gpus(_: Key) -> Sequence[GpuUsage]:
    return ()


def _has_result(task: "asyncio.Task[CountReply | None]") -> bool:
    return task.done() and not task.cancelled() and task.exception() is None


def used_of(usage: Usage) -> Used:
    """Convert to the shepherds' format."""
    return Used(
        usage.cpu_s, usage.user_s, usage.system_s, usage.memory_mib_max, usage.memory_mib_mean, usage.swap_mib_max,
        usage.processes_max, usage.threads_max, usage.seconds,
    )  # fmt: skip
