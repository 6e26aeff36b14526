"""Timing of scheduling passes: on changes, at once when idle, debounced under load, in slices.

A slice's plan is applied before anything else happens; between slices the event loop serves other callers.
"""

import asyncio
import logging
import time

from lavad.core.commands import ApplyPlan
from lavad.core.passes import slice_pass
from lavad.core.plan import Plan
from lavad.core.scheduling.worklist import Worklist
from lavad.engine import Engine

log = logging.getLogger(__name__)

DEBOUNCE_S = 0.002  # under load a pass starts this long after the last one ended, to cover more ends of jobs
SLICE_S = 0.006  # target length of a slice, which delays replies
STEPS_MIN, STEPS_FIRST, STEPS_MAX = 64, 512, 16_384
_LEARNING = 0.25  # weight of the newest slice if its steps were cheaper than before; a dearer one counts fully


class Tempo:
    """Number of steps that take ``SLICE_S``: learnt from past slices, planned and applied."""

    def __init__(self) -> None:
        self.steps = STEPS_FIRST
        self._step_s = SLICE_S / STEPS_FIRST

    def note(self, steps: int, took_s: float) -> None:
        """Learn from a slice of ``steps`` steps."""
        step_s = min(took_s / max(steps, STEPS_MIN), 2 * self._step_s)  # a single delayed slice says little
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
        self.worklist = Worklist()
        self.tempo = Tempo()
        self.passes = 0
        self.is_held = _never  # True while nothing may be scheduled
        self._is_due = False
        self._last_end = 0.0

    def wake(self) -> None:
        """Schedule a pass after a change that may let a job start."""
        if self._is_due or self.is_held() or not self.worklist.has_work(self.engine.cluster, self.engine.clock()):
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
        plan = slice_pass(self.engine.cluster, self.worklist, self.tempo.steps, self.engine.clock())
        self.passes += plan.is_complete
        if not plan.is_empty:
            self.engine.post_replying([ApplyPlan(plan)], self._check_applied)
        return plan

    def _check_applied(self, replies: list[int]) -> None:
        """Mark all buckets due if starts were dropped as stale: their buckets count as tried."""
        if replies[0]:
            log.info("plan=stale dropped=%d", replies[0])
            self.worklist.look_at_everything(self.engine.cluster)
            self.wake()
