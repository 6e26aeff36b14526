"""Thread for all calls of a GPU driver: one call at a time, each with a time limit.

Invariants: a driver that hangs keeps this one thread and nothing else, neither other threads nor the end of the
process; it is told once, and once more when it answers again. A call that waits for it beyond the limit is refused at
once.
"""

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import ParamSpec, TypeVar

LOG = logging.getLogger("lava.gpu")

LIMIT_S = 30.0  # the first call of a driver without a persistence daemon takes seconds for each device

_P = ParamSpec("_P")
_T = TypeVar("_T")


class DriverHangs(Exception):
    """A driver that does not answer within the limit."""


class DriverThread:
    """The thread. Its calls may come from any other; it begins with the first."""

    def __init__(self, limit_s: float = LIMIT_S) -> None:
        self.limit_s = limit_s
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._since = 0.0  # monotonic; of the call under way
        self._is_told = False

    def wait(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Call a function there and wait for it; for other threads.

        Raises:
            DriverHangs: it takes longer than the limit, or an earlier one does.
        """
        future = self._submit(function, *args, **kwargs)
        try:
            return future.result(self.limit_s)
        except TimeoutError:
            future.cancel()
            raise self._hangs() from None

    async def call(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Call a function there and wait for it; for the event loop.

        Raises:
            DriverHangs: it takes longer than the limit, or an earlier one does.
        """
        try:
            async with asyncio.timeout(self.limit_s):
                return await asyncio.wrap_future(self._submit(function, *args, **kwargs))
        except TimeoutError:
            raise self._hangs() from None

    def _submit(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> "Future[_T]":
        if self._is_late():
            raise self._hangs()
        future: Future[_T] = Future()

        def work() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(function(*args, **kwargs))
                except BaseException as error:
                    future.set_exception(error)

        self._calls.put(work)
        with self._lock:
            if self._thread is None:
                # A daemon: the process may end although the driver never answers.
                self._thread = threading.Thread(target=self._run, name="gpu-driver", daemon=True)
                self._thread.start()
        return future

    def _run(self) -> None:
        while True:
            work = self._calls.get()
            self._since = time.monotonic()
            work()
            self._since = 0.0
            if self._is_told:
                self._is_told = False
                LOG.info("event=gpu_driver_answers_again")

    def _is_late(self) -> bool:
        since = self._since
        return bool(since) and time.monotonic() - since >= self.limit_s

    def _hangs(self) -> DriverHangs:
        if self._since and not self._is_told:
            self._is_told = True
            LOG.warning("event=gpu_driver_hangs seconds=%g", self.limit_s)
        return DriverHangs(f"the driver has not answered for {self.limit_s:g} seconds")
