"""HTTP on one connection of the job socket, by h11: requests of one process in turn, answers in JSON.

Invariants: a head, a body and a pause are bounded in size and time; a caller that leaves ends the wait for its answer.
"""

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from urllib.parse import parse_qsl, urlsplit

import h11

from agents.job_socket.answers import Answer, Refusal, Request, encoded

HEAD_MAX, BODY_MAX = 16 << 10, 64 << 10
READ_S = 30.0  # for the rest of a request, once begun
IDLE_S = 300.0  # between requests
WRITE_S = 60.0  # for a caller to read an answer
CHUNK = 64 << 10
JSON = [("Content-Type", "application/json"), ("Cache-Control", "no-store")]


class Left(Exception):
    """End of a connection by its caller."""


class HttpConnection:
    """One connection. ``answer`` makes the answer to a request, or raises Refusal."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        answer: Callable[[Request], Awaitable[Answer]],
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._answer = answer
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_MAX)
        self._ahead: asyncio.Task[bytes] | None = None  # read while an answer was made
        self._idle_since = asyncio.get_running_loop().time()  # infinite while it has a request

    async def serve(self) -> None:
        """Answer requests until the caller leaves, or breaks the protocol."""
        try:
            while True:
                try:
                    request = await self._request()
                    answer = await self._unless_left(self._answer(request))
                    await self._send(200, answer)
                except Refusal as refusal:
                    await self._send(refusal.status, {"error": str(refusal)})
                if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
                    return
                self._http.start_next_cycle()
                self._idle_since = asyncio.get_running_loop().time()
        except (Left, TimeoutError, ConnectionError, h11.LocalProtocolError):
            return
        except h11.RemoteProtocolError as error:
            with contextlib.suppress(h11.LocalProtocolError, TimeoutError, ConnectionError):
                await self._send(error.error_status_hint, {"error": f"not a request that can be read: {error}"})
        finally:
            if self._ahead is not None:
                self._ahead.cancel()
                await asyncio.gather(self._ahead, return_exceptions=True)

    def idle_s(self) -> float:
        """Return the time for which it has had no request; below 0 while it has one."""
        return asyncio.get_running_loop().time() - self._idle_since

    async def refuse(self, text: str) -> None:
        """Answer the first request with a refusal."""
        with contextlib.suppress(Left, TimeoutError, ConnectionError, h11.ProtocolError):
            try:
                async with asyncio.timeout(READ_S):
                    await self._request()
            except Refusal:
                pass
            await self._send(403, {"error": text}, is_last=True)

    # -- requests

    async def _request(self) -> Request:
        """Read the next request whole."""
        head: h11.Request | None = None
        body = bytearray()
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                await self._receive(IDLE_S if head is None else READ_S)
            elif isinstance(event, h11.Request):
                head, self._idle_since = event, math.inf
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > BODY_MAX:
                    raise h11.RemoteProtocolError(f"more than {BODY_MAX} bytes", error_status_hint=413)
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                return _request_of(head, bytes(body))
            else:
                raise Left

    async def _receive(self, patience_s: float) -> None:
        if self._http.they_are_waiting_for_100_continue:
            await self._write(self._http.send(h11.InformationalResponse(status_code=100, headers=[])))
        ahead, self._ahead = self._ahead, None
        async with asyncio.timeout(patience_s):
            data = await (ahead if ahead is not None else self._reader.read(CHUNK))
        if not data and self._http.their_state is h11.IDLE:
            raise Left
        self._http.receive_data(data)

    async def _unless_left(self, work: Awaitable[Answer]) -> Answer:
        """Make an answer; give it up if the caller leaves meanwhile."""
        task = asyncio.ensure_future(work)
        try:
            if self._ahead is None:
                self._ahead = asyncio.create_task(self._reader.read(CHUNK))
            await asyncio.wait({task, self._ahead}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done() and not self._has_left():
                await task  # a further request is there already: it has its turn
            if not task.done():
                raise Left
            return task.result()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _has_left(self) -> bool:
        ahead = self._ahead
        return ahead is not None and ahead.done() and (ahead.exception() is not None or not ahead.result())

    # -- answers

    async def _send(self, status: int, answer: Answer, is_last: bool = False) -> None:
        close = [("Connection", "close")] if is_last else []
        if isinstance(answer, dict):
            content = encoded(answer)
            length = [("Content-Length", str(len(content)))]
            parts = [h11.Response(status_code=status, headers=[*JSON, *length, *close]), h11.Data(data=content)]
            await self._write(b"".join(self._http.send(one) or b"" for one in (*parts, h11.EndOfMessage())))
            return
        await self._write(self._http.send(h11.Response(status_code=status, headers=JSON)))
        await self._unless_left(self._send_all(answer))
        await self._write(self._http.send(h11.EndOfMessage()))

    async def _send_all(self, answer: AsyncIterator[dict[str, object]]) -> Answer:
        async for document in answer:
            await self._write(self._http.send(h11.Data(data=encoded(document))))
        return {}

    async def _write(self, data: bytes | None) -> None:
        if data:
            self._writer.write(data)
            async with asyncio.timeout(WRITE_S):
                await self._writer.drain()


def _request_of(head: h11.Request, body: bytes) -> Request:
    parts = urlsplit(head.target.decode("ascii", "replace"))
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    return Request(head.method.decode("ascii", "replace"), parts.path, query, body)
