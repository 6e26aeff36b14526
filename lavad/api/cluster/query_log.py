"""badmin diagnose -c query: a line in a file for each query, with its time, user, host and call, for a while.

Nothing is written while it is off. It ends by itself when its time is over, when the file is as large as it may be, or
when it can't be written.
"""

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TextIO

import grpc
import grpc.aio

from lavad.api.audit import caller_of
from lavad.api.cluster.performance import QUERY_KINDS
from lavad.core.model.reasons import Refused

log = logging.getLogger(__name__)

FILE = "query.log"
BYTES_MAX = 100 << 20
SECONDS_MAX = 7 * 86_400.0
FLUSH_S = 1.0
HEADER = "time,user,host,call\n"


class QueryLog(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]
    """Log of one master's queries, in a directory of its own."""

    def __init__(self, directory: Path, clock: Callable[[], float] = time.time) -> None:
        self._directory = directory
        self._clock = clock
        self._file: TextIO | None = None
        self._path = Path()
        self._size = 0
        self._ends_at = 0.0  # 0: it has no end
        self._timer: asyncio.TimerHandle | None = None

    # -- control -----------------------------------------------------------------------------------------------------

    def start(self, name: str, seconds: float) -> Path:
        """Begin to write, in place of a log under way; return the file.

        Args:
            seconds: how long; 0: until it is stopped.

        Raises:
            Refused: the name is none of a file, the time can't be, or the file can't be written.
        """
        name = name or FILE
        if name in (".", "..") or not name.isprintable() or "/" in name or len(name) > 200:
            raise Refused("-f: expected the name of a file, which is made in a directory of the master")
        if not 0 <= seconds <= SECONDS_MAX:
            raise Refused(f"-d: expected 1 to {SECONDS_MAX / 60:.0f} minutes")
        path = self._directory / name
        try:
            self._directory.mkdir(mode=0o700, exist_ok=True)
            file = open(path, "a", encoding="utf-8", opener=_private)  # noqa: SIM115 - closed when the log ends
            size = os.fstat(file.fileno()).st_size
        except OSError as error:
            raise Refused(f"{path}: {error.strerror}") from error
        if size and not _is_log(path):
            file.close()
            raise Refused(f"{path}: the file is not a log of queries")
        self.stop()
        self._file, self._path, self._size = file, path, size
        self._ends_at = self._clock() + seconds if seconds else 0.0
        if not size:
            self._write(HEADER)
        self._flush()
        return path

    def stop(self) -> Path | None:
        """Write no more; return the file, None if there was none."""
        if self._file is None:
            return None
        if self._timer is not None:
            self._timer.cancel()
        file, self._file, self._timer = self._file, None, None
        try:
            file.close()
        except OSError as error:
            log.warning("query_log=unwritable file=%s reason=%r", self._path, error.strerror)
        return self._path

    # -- writing -----------------------------------------------------------------------------------------------------

    async def intercept_service(self, continuation: Any, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """Return the method's handler, wrapped to note the call if it is a query and the log is on."""
        handler: Any = await continuation(handler_call_details)
        if self._file is None or handler is None:
            return handler
        name = str(handler_call_details.method).rpartition("/")[2]
        if name not in QUERY_KINDS:
            return handler
        read, write = handler.request_deserializer, handler.response_serializer
        if handler.unary_unary:
            return grpc.unary_unary_rpc_method_handler(self._noted(handler.unary_unary, name), read, write)
        return grpc.unary_stream_rpc_method_handler(self._noted(handler.unary_stream, name), read, write)

    def _noted(self, method: Callable[[Any, Any], Awaitable[Any]], name: str) -> Callable[[Any, Any], Awaitable[Any]]:
        async def noted(request: Any, context: Any) -> Any:
            self._note(name, *caller_of(context))
            return await method(request, context)

        return noted

    def _note(self, call: str, user: str, host: str) -> None:
        if self._file is None:
            return
        now = self._clock()
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now))
        user = "".join(letter if letter.isprintable() and letter not in ',"' else "?" for letter in user)
        self._write(f"{at},{user},{host},{call}\n")
        if self._size >= BYTES_MAX or 0 < self._ends_at <= now:
            self.stop()

    def _write(self, line: str) -> None:
        assert self._file is not None
        try:
            self._file.write(line)
            self._size += len(line)
        except OSError as error:
            log.warning("query_log=unwritable file=%s reason=%r", self._path, error.strerror)
            self.stop()

    def _flush(self) -> None:
        """Hand the buffered lines to the system, now and every second; end a log whose time is over."""
        if self._file is None:
            return
        if 0 < self._ends_at <= self._clock():
            self.stop()
            return
        try:
            self._file.flush()
        except OSError as error:
            log.warning("query_log=unwritable file=%s reason=%r", self._path, error.strerror)
            self.stop()
            return
        self._timer = asyncio.get_running_loop().call_later(FLUSH_S, self._flush)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def _is_log(path: Path) -> bool:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.readline() == HEADER
