"""Sizes asked for by the metric scripts of elastic jobs, which run on the first host of the job, as its user.

The script prints the number of tasks that the role should have. The master decides what becomes of it; a script that
fails, prints anything else or takes too long changes nothing, and the master is told why.
"""

import asyncio
import contextlib
import logging
import os
import re
from collections.abc import Callable

from agents.attempts.attempts import Attempts
from agents.attempts.ledger import Ledger
from agents.attempts.ledger_entry import Entry, State
from agents.ranks.interfaces import TaskRefused, TaskRequest
from agents.ranks.pipes import open_null, open_pipe
from agents.shepherd.messages import Key
from protos.agents_pb2 import Report, Wanted
from protos.common_pb2 import AttemptKey
from protos.jobs_pb2 import Autoscale

LOG = logging.getLogger("lava.autoscaling")

LOOK_S = 1.0
OUTPUT_MAX = 4096
SIGKILL = 9
SCRIPT = "script"
_NUMBER = re.compile(r"\s*(\d{1,7})(\s|$)")


class Autoscaling:
    """Metric scripts of this host's jobs. ``say`` takes the reports."""

    def __init__(self, ledger: Ledger, attempts: Attempts, host: str, say: Callable[[Report], None]) -> None:
        self._ledger = ledger
        self._attempts = attempts
        self._host = host
        self._say = say
        self._loops: dict[Key, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Keep a loop for each job whose script belongs here, for ever."""
        try:
            while True:
                self._begin_and_end()
                await asyncio.sleep(LOOK_S)
        finally:
            for loop in self._loops.values():
                loop.cancel()
            await asyncio.gather(*self._loops.values(), return_exceptions=True)

    def _begin_and_end(self) -> None:
        wanted = {key: entry for key, entry in self._ledger.entries.items() if self._belongs_here(entry)}
        for key in [key for key, loop in self._loops.items() if key not in wanted or loop.done()]:
            self._loops.pop(key).cancel()
        for key, entry in wanted.items():
            if key not in self._loops:
                self._loops[key] = asyncio.create_task(self._repeat(key, entry.blob.spec.tasks.autoscale))

    def _belongs_here(self, entry: Entry) -> bool:
        if entry.tasks is None or entry.state is not State.HELD or not entry.launched or entry.releasing:
            return False
        rule, shares = entry.blob.spec.tasks.autoscale, entry.stage.allocation
        return rule.metric == SCRIPT and bool(shares) and shares[0].host == self._host

    async def _repeat(self, key: Key, rule: Autoscale) -> None:
        while True:
            await asyncio.sleep(rule.interval_s)
            try:
                wanted = Wanted(tasks=await self._ask(key, rule))
            except TaskRefused as refusal:
                wanted = Wanted(error=str(refusal))
            except OSError as error:  # no descriptors are left, for a while
                LOG.warning("event=autoscale_failed job=%d index=%d attempt=%d error=%s", *key, error.strerror)
                continue
            attempt = AttemptKey(job=key[0], index=key[1], attempt=key[2])
            self._say(Report(key=attempt, wanted=wanted))

    async def _ask(self, key: Key, rule: Autoscale) -> int:
        """Run the script and return the number that it prints.

        Raises:
            TaskRefused: it has no answer; the text says why.
        """
        with open_pipe() as (output, its_output):
            with open_null() as nothing:
                command = (b"/bin/sh", b"-c", os.fsencode(rule.command))
                request = TaskRequest(command, "", (), nothing.fileno(), its_output.fileno(), nothing.fileno())
                task = await self._attempts.run_task(key, request)
            its_output.close()
            try:
                async with asyncio.timeout(rule.limit_s):
                    status = await task.wait()
            except TimeoutError:
                task.signal(SIGKILL)
                raise TaskRefused(f"its script did not end within {rule.limit_s:g} seconds") from None
            except asyncio.CancelledError:
                task.signal(SIGKILL)
                raise
            return _size(status, _read(output.fileno()))


def _read(descriptor: int) -> str:
    """Read what is there: what the script has started may go on writing."""
    os.set_blocking(descriptor, False)
    data = b""
    with contextlib.suppress(BlockingIOError):
        data = os.read(descriptor, OUTPUT_MAX)
    return data.decode(errors="replace")


def _size(status: int, text: str) -> int:
    if status:
        signal = status & 0x7F
        raise TaskRefused(f"its script {f'was ended by signal {signal}' if signal else f'exits with {status >> 8}'}")
    found = _NUMBER.match(text)
    if found is None:
        said = " ".join(text.split())[:80]
        raise TaskRefused(f"its script should print a number of tasks, and prints {said!r}")
    return int(found[1])
