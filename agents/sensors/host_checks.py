"""Health checks of this host in turn: those that the master asks for, and those before and after jobs.

One program runs at a time, so that checks don't find each other's load. Jobs that start at the same time share a check
of the same program, and use one that has just ended: a wave of short jobs is no wave of checks.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from agents.sensors.health import OK, HealthProgram, Verdict
from protos.agents_pb2 import HealthCheck, HealthVerdict

FRESH_S = 10.0  # for a good result
LOST_S = 60.0  # after which a message has been taken by the master, or the session has ended

Program = tuple[str, ...]  # with its arguments

# Health check before or after a job; with True a result of just now will do. A bad one is told to the master.
Check = Callable[[HealthCheck, bool], Coroutine[Any, Any, Verdict]]


async def unchecked(check: HealthCheck, may_be_fresh: bool) -> Verdict:
    """Check nothing: the host is good."""
    return Verdict(OK, "")


class ToldBad:
    """Bad results that were told to the master lately: one that was lost with its session is told again."""

    def __init__(self) -> None:
        self._told: dict[Program, tuple[HealthVerdict, float]] = {}

    def note(self, program: Program, verdict: HealthVerdict) -> HealthVerdict:
        """Note that a result is told now, and return it."""
        self._told[program] = (verdict, time.monotonic())
        return verdict

    def drop(self, program: Program) -> None:
        """Forget what was told of a program: there is a newer result."""
        self._told.pop(program, None)

    def recent(self) -> dict[Program, HealthVerdict]:
        """Take those that may not have been heard."""
        after, told = time.monotonic() - LOST_S, self._told
        self._told = {}
        return {program: verdict for program, (verdict, at) in told.items() if at >= after}


class HostChecks:
    """Runner of health checks."""

    def __init__(self) -> None:
        self.program = HealthProgram()
        self._turn = asyncio.Semaphore(1)
        self._running: dict[tuple[str, ...], asyncio.Task[Verdict]] = {}
        self._good: dict[tuple[str, ...], float] = {}  # end of the newest good check

    async def run(self, argv: Sequence[str], limit_s: float, may_be_fresh: bool = False) -> Verdict:
        """Run a program within its limit, counted from its start. ``may_be_fresh``: a result of just now will do."""
        key = tuple(argv)
        if may_be_fresh and time.monotonic() - self._good.get(key, -FRESH_S) < FRESH_S:
            return Verdict(OK, "")
        running = self._running.get(key)
        if running is None:
            running = self._running[key] = asyncio.ensure_future(self._run(key, limit_s))
            running.add_done_callback(lambda _: self._running.pop(key, None))
        return await asyncio.shield(running)

    async def _run(self, key: tuple[str, ...], limit_s: float) -> Verdict:
        async with self._turn:
            found = await asyncio.to_thread(self.program.run, list(key), limit_s)
        if found.verdict == OK:
            self._good[key] = time.monotonic()
        else:
            self._good.pop(key, None)
        return found
