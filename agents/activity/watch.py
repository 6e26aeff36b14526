"""Watch over the activity of this host's attempts: what the master hears of it, and only when it changes.

Watched are jobs with a rule for hangs, and all jobs on several hosts, for hosts without a process of theirs. Each look
asks the attempt's shepherd, which answers without waiting for anything; files are looked at in threads of their user,
because a file system that hangs may be the cause of what is looked for. A new agent begins all times anew: it reports
a hang late rather than wrongly.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agents.activity import counters
from agents.activity.clock import NOT_KNOWN, PartClock, Sample
from agents.activity.rule import Rule, rule_of
from agents.activity.stacks import Collector
from agents.attempts.attempts import Attempts
from agents.attempts.ledger import Ledger
from agents.attempts.ledger_entry import Entry, State
from agents.attempts.task_book import Run
from agents.ranks.readers import READERS
from agents.shepherd import messages
from agents.shepherd.controls import RESUME, SUSPEND, kind_of
from agents.shepherd.messages import Key, pack
from agents.shepherd.tasks.run_files import kept_run_path
from agents.shepherd_pool.pool import Pool
from protos.agents_pb2 import JobProgress, PartActivity, SavedStacks, StacksRequest
from protos.common_pb2 import AttemptKey
from protos.wire import DEBUGGER, UNUSED_HOST

if TYPE_CHECKING:
    from protos.cluster_pb2 import Gpu

LOG = logging.getLogger("lava.activity")

TICK_S = 1.0
LOOKS = 10  # in the time that a rule names
LOOK_MIN_S, LOOK_MAX_S = 1.0, 15.0
ANSWER_S = 5.0
UNUSED_LOOKS = 4
COLLECTED_AT_ONCE = 4  # attempts whose stacks are saved: it takes processors and memory
UNUSED_S = 60.0  # unless the master says otherwise


@dataclass(slots=True, eq=False)
class _Part:
    """One watched attempt."""

    entry: Entry
    rule: Rule | None
    clock: PartClock | None
    next_at: float
    empty_since: float | None = None
    runs: frozenset[Run] = frozenset()
    progress: int = 0  # reports that said something new
    said: tuple[float, str] = (0.0, "")
    told: tuple[float, float] = (0.0, 0.0)  # inactive and unused, as the master knows them
    is_held: bool = False  # suspended, by an order
    saved: SavedStacks | None = None
    saving: int = 0  # number of the request under way
    answer: "asyncio.Future[tuple[float, tuple[int, ...]]] | None" = None


class ActivityWatch:
    """Watch over all attempts. ``gpus`` returns the newest reading, ``notify`` is called when there is news.

    ``outputs`` is the directory of kept outputs.
    """

    def __init__(self, ledger: Ledger, pool: Pool, attempts: Attempts, host: str, outputs: str) -> None:
        self.gpus: Callable[[], Sequence[Gpu]] = tuple
        self.notify: Callable[[], None] = lambda: None
        self._ledger = ledger
        self._pool = pool
        self._attempts = attempts
        self._host = host
        self._outputs = outputs
        self._unused_after_s = UNUSED_S
        self._debugger = "py-spy"
        self._parts: dict[Key, _Part] = {}
        self._news: dict[Key, None] = {}
        self._stacks: dict[Key, None] = {}
        self._busy: set[asyncio.Task[None]] = set()
        self._collecting = asyncio.Semaphore(COLLECTED_AT_ONCE)
        self._fault = ""

    async def run(self) -> None:
        """Look at all parts when they are due, for ever."""
        while True:
            await asyncio.sleep(TICK_S)
            self._enter()
            now = time.monotonic()
            for key, part in list(self._parts.items()):
                if now >= part.next_at and part.answer is None and not part.saving:
                    part.next_at = now + self._pause_s(part)
                    self._spawn(self._try_look(key, part))

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._busy.add(task)
        task.add_done_callback(self._busy.discard)

    def _enter(self) -> None:
        """Begin to watch attempts that are held, and forget those that are over.

        Only the lead host hears that a job begins whose command runs there alone.
        """
        for key in [key for key in self._parts if not _is_watched(self._ledger.entries.get(key))]:
            del self._parts[key]
            self._stacks.pop(key, None)
        for key, entry in self._ledger.entries.items():
            if key in self._parts or not _is_watched(entry):
                continue
            share = next((one for one in entry.stage.allocation if one.host == self._host), None)
            rule = rule_of(entry.blob.spec, share.slots) if share is not None else None
            if rule is not None or (self._unused_after_s and len(entry.stage.allocation) > 1):
                now = time.monotonic()
                clock = PartClock(rule, now) if rule is not None else None
                part = self._parts[key] = _Part(entry, rule, clock, 0.0)
                part.next_at = now + min(LOOK_MIN_S, self._pause_s(part))

    def _pause_s(self, part: _Part) -> float:
        times = [part.rule.after_s / LOOKS] if part.rule is not None else []
        if self._unused_after_s:
            times.append(self._unused_after_s / UNUSED_LOOKS)
        return min(LOOK_MAX_S, max(LOOK_MIN_S, min(times, default=LOOK_MAX_S)))

    def configure(self, settings: Mapping[str, str]) -> None:
        """Take the master's settings; one of an earlier version sends none."""
        self._unused_after_s = float(settings.get(UNUSED_HOST, UNUSED_S))
        self._debugger = settings.get(DEBUGGER, "") or "py-spy"

    # -- looks

    async def _try_look(self, key: Key, part: _Part) -> None:
        """Look at a part; one of these looks is left out if the machine lacks what it takes, which is told once."""
        try:
            await self._look(key, part)
            self._fault = ""
        except OSError as error:
            if str(error) != self._fault:
                LOG.warning("event=activity_unknown job=%d index=%d attempt=%d reason=%r", *key, str(error))
            self._fault = str(error)

    async def _look(self, key: Key, part: _Part) -> None:
        answer = await self._ask(key, part)
        if answer is None or part.saving:
            return
        cpu_s, pids = answer
        now = time.monotonic()
        part.empty_since = None if pids else part.empty_since or now
        if part.clock is not None:
            self._note_runs(part, now)
            output = await self._output(key, part)
            network, is_stopped = await asyncio.to_thread(_counted, pids)
            power = counters.power_of(self.gpus(), _devices(part.entry, self._host))
            part.clock.take(Sample(now, cpu_s, network, output, part.progress, power, is_stopped or part.is_held))
        self._tell(key, part, now)

    async def _ask(self, key: Key, part: _Part) -> tuple[float, tuple[int, ...]] | None:
        """Return CPU seconds and processes of the attempt; None if its shepherd does not answer."""
        shepherd = self._pool.holder(key)
        if shepherd is None:
            return None
        part.answer = asyncio.get_running_loop().create_future()
        shepherd.send(pack(messages.LOOK, *key))
        try:
            async with asyncio.timeout(ANSWER_S):
                return await part.answer
        except TimeoutError:
            return None
        finally:
            part.answer = None

    def answered(self, key: Key, cpu_s: float, pids: tuple[int, ...]) -> None:
        """Take a shepherd's answer."""
        part = self._parts.get(key)
        if part is not None and part.answer is not None and not part.answer.done():
            part.answer.set_result((cpu_s, pids))

    def _note_runs(self, part: _Part, now: float) -> None:
        """Begin the clock anew when tasks were started."""
        runs = _runs_of(part.entry)
        if not runs <= part.runs and part.clock is not None:
            part.clock.begin(now)
        part.runs = runs

    async def _output(self, key: Key, part: _Part) -> int:
        """Return the size of the part's outputs; NOT_KNOWN if it cannot be known now."""
        held = self._attempts.find(*key)
        reading = READERS.begin(held.uid) if held is not None else None
        if held is None or reading is None:
            return NOT_KNOWN
        paths = [path for path in (held.output_path, held.error_path) if path]
        for run in part.runs:
            own = [self._attempts.run_output(key, run, is_error).path for is_error in (False, True)]
            paths += [path for path in own if path] or [kept_run_path(self._outputs, key, run)]
        try:
            async with asyncio.timeout(ANSWER_S):
                return await reading.call(counters.size_of, paths)
        except TimeoutError:
            return NOT_KNOWN
        finally:
            reading.end()

    def _tell(self, key: Key, part: _Part, now: float) -> None:
        inactive_s = part.clock.inactive_s() if part.clock is not None else 0.0
        empty_s = now - part.empty_since if part.empty_since is not None else 0.0
        unused_s = empty_s if self._unused_after_s and empty_s >= self._unused_after_s and _is_wide(part.entry) else 0.0
        is_news = (inactive_s > 0, unused_s > 0) != (part.told[0] > 0, part.told[1] > 0)
        part.told = (inactive_s, unused_s)
        if is_news:
            self._news[key] = None
            self.notify()

    # -- orders

    def signalled(self, key: Key, number: int) -> None:
        """Note that the master suspends or resumes an attempt: it counts as active until then, and the master hears
        of it anew.
        """
        part = self._parts.get(key)
        if part is None or kind_of(number) not in (SUSPEND, RESUME):
            return
        part.is_held = kind_of(number) == SUSPEND
        if part.clock is not None:
            part.clock.wake(time.monotonic())
            self._tell(key, part, time.monotonic())

    def progressed(self, told: JobProgress) -> None:
        """Note a report of progress by a process of an attempt here. One that says the same again is no progress."""
        part = self._parts.get((told.key.job, told.key.index, told.key.attempt))
        said = (told.progress.percent, told.progress.text)
        if part is not None and part.said != said:
            part.progress, part.said = part.progress + 1, said

    def save_stacks(self, request: StacksRequest) -> None:
        """Save the stacks of an attempt's processes, once for each number; the master hears where they are."""
        key: Key = (request.key.job, request.key.index, request.key.attempt)
        self._enter()
        part = self._parts.get(key)
        if part is None:
            return
        if part.saved is not None and part.saved.number == request.number:
            self._stacks[key] = None
            self.notify()
        elif part.saving != request.number:
            part.saving = request.number
            self._spawn(self._save(key, part, request))

    async def _save(self, key: Key, part: _Part, request: StacksRequest) -> None:
        """Save stacks. What that uses is not the part's own, so it does not count as active by it."""
        saved = SavedStacks(key=request.key, number=request.number)
        try:
            if part.rule is not None and not part.rule.saves_stacks:
                saved.error = "the job wants no stacks"
            else:
                async with self._collecting:
                    answer = await self._ask(key, part)
                    collector = Collector(self._attempts, self._host, self._debugger)
                    outcome = await collector.save(key, answer[1] if answer is not None else (), request)
                saved.path, saved.error = outcome.path, outcome.error
        finally:
            part.saving = 0
            if part.clock is not None:
                part.clock.skip()
        part.saved = saved
        self._stacks[key] = None
        self.notify()

    # -- for the session

    def take_news(self) -> tuple[list[PartActivity], list[SavedStacks]]:
        """Return what has changed since the last call."""
        activities = [_message(key, part) for key in self._news if (part := self._parts.get(key)) is not None]
        saved = [part.saved for key in self._stacks if (part := self._parts.get(key)) is not None and part.saved]
        self._news.clear()
        self._stacks.clear()
        return activities, saved

    def repeat(self) -> None:
        """Tell everything anew: there is a new session."""
        for key, part in self._parts.items():
            if any(part.told):
                self._news[key] = None
            if part.saved is not None:
                self._stacks[key] = None

    async def close(self) -> None:
        """End the looks under way."""
        for task in list(self._busy):
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*self._busy, return_exceptions=True)


def _is_watched(entry: Entry | None) -> bool:
    return entry is not None and entry.state is State.HELD


def _is_wide(entry: Entry) -> bool:
    return len(entry.stage.allocation) > 1


def _runs_of(entry: Entry) -> frozenset[Run]:
    """Return the runs that are alive here, of a job of tasks."""
    if entry.tasks is None:
        return frozenset()
    return frozenset((*key, known.run) for key, known in entry.tasks.known.items() if not known.has_ended)


def _devices(entry: Entry, host: str) -> list[int]:
    return [index for share in entry.stage.allocation if share.host == host for index in share.gpus]


def _counted(pids: tuple[int, ...]) -> tuple[int, bool]:
    return counters.network_bytes(pids), counters.are_stopped(pids)


def _message(key: Key, part: _Part) -> PartActivity:
    job, index, attempt = key
    inactive_s, unused_s = part.told
    return PartActivity(key=AttemptKey(job=job, index=index, attempt=attempt), inactive_s=inactive_s, unused_s=unused_s)
