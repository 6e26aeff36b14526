"""When to schedule, and how much at a time: woken by what matters, at once when idle, debounced under load, in slices.

A slice's plan is applied before anything else happens; between slices the loop serves whoever waits.
"""

import asyncio
import logging
import time

from lavad.core.commands import ApplyPlan
from lavad.core.plan import Plan
from lavad.core.scheduling.cycle import slice_pass
from lavad.core.scheduling.worklist import Agenda
from lavad.engine import Engine

log = logging.getLogger(__name__)

DEBOUNCE_S = 0.002  # under load a pass waits this long after the last one, so that what ends meanwhile shares it
SLICE_S = 0.006  # a slice should take about so long: what a reply may have to wait for
STEPS_MIN, STEPS_FIRST, STEPS_MAX = 64, 512, 16_384
_LEARNING = 0.25  # weight of the newest slice, where steps were cheaper than before; a dear one counts at once


class Tempo:
    """How many steps of a pass take ``SLICE_S``: learnt from the slices that were run, planned and applied."""

    def __init__(self) -> None:
        self.steps = STEPS_FIRST
        self._step_s = SLICE_S / STEPS_FIRST

    def note(self, steps: int, took_s: float) -> None:
        """A slice of so many steps took so long."""
        step_s = min(took_s / max(steps, STEPS_MIN), 2 * self._step_s)  # one slice that was held up says little
        more_s = step_s - self._step_s
        self._step_s += more_s if more_s > 0 else _LEARNING * more_s
        self._step_s = max(self._step_s, SLICE_S / STEPS_MAX)
        self.steps = max(STEPS_MIN, int(SLICE_S / self._step_s))


def _never() -> bool:
    return False


class Pacer:
    """Runs slices of scheduling passes on the engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.agenda = Agenda()
        self.tempo = Tempo()
        self.passes = 0
        self.is_held = _never  # nothing is to be scheduled at the moment
        self._is_due = False
        self._last_end = 0.0

    def wake(self) -> None:
        """Something changed that may let a job start."""
        if self._is_due or self.is_held() or not self.agenda.has_work(self.engine.cluster, self.engine.clock()):
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
            plan = self._slice()
        finally:
            self._last_end = time.monotonic()
        self.tempo.note(plan.steps, self._last_end - started)
        if not plan.is_complete:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._run)

    def _slice(self) -> Plan:
        plan = slice_pass(self.engine.cluster, self.agenda, self.tempo.steps, self.engine.clock())
        self.passes += plan.is_complete
        if not plan.is_empty:
            self.engine.post_replying([ApplyPlan(plan)], self._check_applied)
        return plan

    def _check_applied(self, replies: list[int]) -> None:
        """Starts that did not hold any more leave their buckets unlooked at: look at all of them again."""
        if replies[0]:
            log.info("plan=stale dropped=%d", replies[0])
            self.agenda.look_at_everything(self.engine.cluster)
            self.wake()
