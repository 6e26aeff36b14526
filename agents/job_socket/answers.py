"""Answers of the job socket: who the caller is, who the others are, the time left, notices; and reports taken.

All is known to this host: nothing here waits for the master. Paths and fields: docs/reference/job-socket.md.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import NamedTuple

from agents.attempts.ledger_entry import Entry, State
from agents.job_setup.host_context import HostContext
from agents.job_setup.told.table import Table
from agents.job_socket.members import Member
from agents.job_socket.news import Bell, NoticeBoard
from agents.job_socket.progress import BadReport, ProgressBook, read_body, read_report, shown
from agents.shepherd import messages, notices
from agents.shepherd.messages import Key, pack
from agents.shepherd_pool.pool import Pool
from protos.common_pb2 import HostShare

WAIT_MAX_S = 3600.0
CLOCK_S = 2.0  # for a shepherd to say what time is left
NOT_SAID = (-1.0, -1.0, -1.0)


class Refusal(Exception):
    """A request that is not answered: HTTP status, and one sentence."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Request(NamedTuple):
    """A request: its path without the query, the query, and the body."""

    method: str
    path: str
    query: Mapping[str, str]
    body: bytes


Document = dict[str, object]
Answer = Document | AsyncIterator[Document]


class Answers:
    """Answers for the attempts of this host."""

    def __init__(
        self, context: HostContext, pool: Pool, board: NoticeBoard, bell: Bell, progress: ProgressBook
    ) -> None:
        self._context = context
        self._pool = pool
        self._board = board
        self._bell = bell
        self._progress = progress
        self._clocks: dict[Key, asyncio.Future[tuple[float, ...]]] = {}
        self.cluster: Callable[[], str] = str
        self.has_master: Callable[[], bool] = bool

    async def answer(self, member: Member, request: Request) -> Answer:
        """Answer a request of a member.

        Raises:
            Refusal: it is not answered.
        """
        method, path = request.method, request.path.rstrip("/")
        known = {
            "/v1/whoami": ("GET", self._whoami),
            "/v1/peers": ("GET", self._peers),
            "/v1/left": ("GET", self._left),
            "/v1/notices": ("GET", self._notices),
            "/v1/notices/stream": ("GET", self._stream),
            "/v1/progress": ("GET POST PUT", self._take_progress if method != "GET" else self._own_progress),
        }
        if path not in known:
            raise Refusal(404, f"{request.path}: no such path; there are {' '.join(known)}")
        methods, work = known[path]
        if method not in methods.split():
            raise Refusal(405, f"{path}: {method} is not known here; {methods.replace(' ', ', ')} is")
        return await work(member, request)

    # -- who

    async def _whoami(self, member: Member, _request: Request) -> Answer:
        entry, host = member.entry, self._context.host
        blob, share = entry.blob, _share(entry, host)
        found: Document = {
            "cluster": blob.cluster or self.cluster(),
            "job": entry.key[0],
            "index": entry.key[1],
            "attempt": entry.key[2],
            "name": blob.spec.name,
            "user": blob.user,
            "queue": entry.stage.queue or blob.queue,
            "project": blob.spec.project,
            "submit_time": blob.submit_time,
            "host": host,
            "lead_host": entry.stage.allocation[0].host if entry.stage.allocation else host,
            "slots": share.slots,
            "gpus": list(share.gpus),
            "pid": member.pid,
            "is_master_connected": self.has_master(),
        }
        if member.run is not None:
            role, index, run = member.run
            found |= {"role": blob.spec.roles[role].name, "role_index": index, "run": run}
        return found

    async def _peers(self, member: Member, request: Request) -> Answer:
        entry, wait_s = member.entry, _wait_of(request)
        known = request.query.get("version", "")
        deadline = _deadline(wait_s)
        while known == version_of(entry) and entry.state is State.HELD and await self._rings(entry.key, deadline):
            continue
        hosts = [{"host": one.host, "slots": one.slots, "gpus": list(one.gpus)} for one in entry.stage.allocation]
        return {"version": version_of(entry), "hosts": hosts, "tasks": _tasks(entry)}

    # -- how long

    async def _left(self, member: Member, _request: Request) -> Answer:
        limit_left, deadline_left, elapsed = await self._clock(member.entry)
        lefts = [one for one in (limit_left, deadline_left) if one >= 0]
        limits = member.entry.limits
        run_limit_s = limits.run_limit_s if limits is not None else member.entry.stage.run_limit_s
        coming = [one.at - time.time() for one in self._announced(member.entry.key)]
        lefts += [max(0.0, one) for one in coming]
        return {
            "seconds_left": _rounded(min(lefts)) if lefts else None,
            "run_limit": _rounded(run_limit_s) if run_limit_s else None,
            "run_limit_left": _rounded(limit_left) if limit_left >= 0 else None,
            "deadline_left": _rounded(deadline_left) if deadline_left >= 0 else None,
            "elapsed": _rounded(elapsed) if elapsed >= 0 else None,
        }

    def _announced(self, key: Key) -> list[messages.Notice]:
        """Return the newest notice of an attempt, if it names a time and has not been withdrawn."""
        newest = self._board.of(key)[-1:]
        return [one for one in newest if one.at and one.event != notices.WITHDRAWN]

    async def _clock(self, entry: Entry) -> tuple[float, ...]:
        """Return what the attempt's shepherd says of its time; -1 for what it does not say."""
        shepherd = self._pool.holder(entry.key)
        if shepherd is None or shepherd.status.protocol < messages.GIVES_NOTICE:
            return NOT_SAID
        waiting = self._clocks.get(entry.key)
        if waiting is None:
            waiting = self._clocks[entry.key] = asyncio.get_running_loop().create_future()
            shepherd.send(pack(messages.ASK_TIME, *entry.key))
        try:
            async with asyncio.timeout(CLOCK_S):
                return await asyncio.shield(waiting)
        except TimeoutError:
            self._clocks.pop(entry.key, None)
            return NOT_SAID

    def clock_said(self, key: Key, said: tuple[float, ...]) -> None:
        """Take a shepherd's answer about the time left."""
        waiting = self._clocks.pop(key, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(said)

    # -- what is coming

    async def _notices(self, member: Member, request: Request) -> Answer:
        after, deadline = _after(request), _deadline(_wait_of(request))
        key = member.entry.key
        while not self._board.of(key, after) and await self._rings(key, deadline):
            if member.entry.state is not State.HELD:
                break
        now = time.time()
        return {"notices": [notices.shown(one, now) for one in self._board.of(key, after)]}

    async def _stream(self, member: Member, request: Request) -> Answer:
        return self._each_notice(member, _after(request))

    async def _each_notice(self, member: Member, after: int) -> AsyncIterator[Document]:
        while True:
            for one in self._board.of(member.entry.key, after):
                after = one.number
                yield notices.shown(one, time.time())
            if self._board.of(member.entry.key, after):
                continue  # given while the caller took the last one
            if member.entry.state is not State.HELD:
                return
            await self._bell.wait(member.entry.key)

    async def _rings(self, key: Key, deadline: float) -> bool:
        """Wait for news of an attempt until a time; return False if there are none."""
        left_s = deadline - asyncio.get_running_loop().time()
        if left_s <= 0:
            return False
        try:
            async with asyncio.timeout(left_s):
                await self._bell.wait(key)
        except TimeoutError:
            return False
        return True

    # -- progress

    async def _own_progress(self, member: Member, _request: Request) -> Answer:
        return shown(self._progress.of(member.entry.key))

    async def _take_progress(self, member: Member, request: Request) -> Answer:
        try:
            report = read_report(read_body(request.body))
        except BadReport as error:
            raise Refusal(400, f"progress: {error}") from None
        if member.run is not None:
            report.role, report.index = member.entry.blob.spec.roles[member.run[0]].name, member.run[1]
        self._progress.take(member.entry.key, report)
        return shown(report)


def version_of(entry: Entry) -> str:
    """Return the version of an attempt's hosts and tasks, which changes whenever these do."""
    return f"{entry.version}.{entry.tasks.version}" if entry.tasks is not None else str(entry.version)


def _tasks(entry: Entry) -> list[Document]:
    if entry.tasks is None:
        return []
    table = Table.of(entry.blob, entry.tasks.table)
    return [
        {
            "role": one.role,
            "index": one.index,
            "task": one.number,
            "host": one.host,
            "address": one.address,
            "ports": {name: list(ports) for name, ports in one.ports.items()},
        }
        for one in table.tasks
    ]


def _share(entry: Entry, host: str) -> HostShare:
    return next((one for one in entry.stage.allocation if one.host == host), HostShare(host=host))


def _rounded(seconds: float) -> float:
    return round(max(0.0, seconds), 1)


def _deadline(wait_s: float) -> float:
    return asyncio.get_running_loop().time() + wait_s


def _wait_of(request: Request) -> float:
    text = request.query.get("wait", "0")
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= WAIT_MAX_S:
        raise Refusal(400, f"wait={text}: seconds are expected, at most {WAIT_MAX_S:.0f}")
    return seconds


def _after(request: Request) -> int:
    text = request.query.get("after", "0")
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise Refusal(400, f"after={text}: the number of a notice is expected")
    return int(text)


def encoded(document: Document) -> bytes:
    """Return a document as a line of JSON."""
    return json.dumps(document).encode() + b"\n"
