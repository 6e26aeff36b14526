"""When to schedule, and how much at a time: woken by what matters, at once when idle, debounced under load, in slices.

A slice's plan is applied before anything else happens; between slices the loop serves whoever waits.
"""

import asyncio
import logging
import time

from lavad.core.commands import ApplyPlan
from lavad.core.scheduling.agenda import Agenda
from lavad.core.scheduling.cycle import slice_pass
from lavad.engine import Engine

log = logging.getLogger(__name__)

DEBOUNCE_S = 0.002  # under load a pass waits this long after the last one, so that what ends meanwhile shares it
SLICE_S = 0.004  # a slice should take about so long: what a reply may have to wait for
STEPS_MIN, STEPS_MAX = 16, 4096


class Pacer:
    """Runs slices of scheduling passes on the engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.agenda = Agenda()
        self.steps = 256
        self.passes = 0
        self._is_due = False
        self._last_end = 0.0

    def wake(self) -> None:
        """Something changed that may let a job start."""
        if self._is_due or not self.agenda.has_work(self.engine.cluster, self.engine.clock()):
            return
        self._is_due = True
        loop = asyncio.get_running_loop()
        if time.monotonic() - self._last_end > DEBOUNCE_S:
            loop.call_soon(self._run)
        else:
            loop.call_later(DEBOUNCE_S, self._run)

    def _run(self) -> None:
        self._is_due = False
        started = time.monotonic()
        try:
            complete = self._slice()
        finally:
            self._last_end = time.monotonic()
            self._tune(self._last_end - started)
        if not complete:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._run)

    def _slice(self) -> bool:
        plan = slice_pass(self.engine.cluster, self.agenda, self.steps, self.engine.clock())
        self.passes += plan.is_complete
        if not plan.is_empty:
            self.engine.post_replying([ApplyPlan(plan)], self._check_applied)
        return plan.is_complete

    def _check_applied(self, replies: list[int]) -> None:
        """Starts that did not hold any more leave their buckets unlooked at: look at all of them again."""
        if replies[0]:
            log.info("plan=stale dropped=%d", replies[0])
            self.agenda.look_at_everything(self.engine.cluster)
            self.wake()

    def _tune(self, took_s: float) -> None:
        if took_s > 2 * SLICE_S and self.steps > STEPS_MIN:
            self.steps //= 2
        elif took_s < SLICE_S / 2 and self.steps < STEPS_MAX:
            self.steps *= 2
