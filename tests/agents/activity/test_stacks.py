"""Collection of stacks and metrics beside a writer or script that fails: no thread and no descriptor stays behind."""

import asyncio
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agents.activity import stacks, watch
from agents.activity.stacks import Collector, Saved
from agents.activity.watch import ActivityWatch
from agents.attempts.autoscaling import Autoscaling
from agents.attempts.ledger_entry import State
from agents.ranks.interfaces import TaskRefused, TaskRequest
from protos.agents_pb2 import StacksRequest, Stage
from protos.common_pb2 import AttemptKey, HostShare
from protos.jobs_pb2 import Autoscale, HangRule, JobSpec

KEY = (7, 0, 1)
TEXT = b"x" * (1 << 20)


class Attempts:
    """Attempts in which a test's function is the task; it has the task's input and output."""

    def __init__(self, task: Callable[[int, int], None]) -> None:
        self._task = task
        self.kept: list[int] = []  # as by processes that are still there
        self.signals: list[int] = []
        self.at_once = self.most_at_once = 0

    def find(self, *_key: int) -> Any:
        return SimpleNamespace(cwd="/tmp", home="/tmp", uid=0)

    def prepared(self, _key: object) -> None:
        return None

    async def run_task(self, _key: object, request: TaskRequest) -> Any:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.kept += (os.dup(request.stdin_fd), os.dup(request.stdout_fd))
        self._task(*self.kept[-2:])

        async def wait() -> int:
            await asyncio.sleep(0.05)
            self.at_once -= 1
            return 0

        return SimpleNamespace(signal=self.signals.append, wait=wait)

    def close(self) -> None:
        """End the tasks."""
        for descriptor in self.kept:
            os.close(descriptor)
        self.kept.clear()


def answers(_into: int, out_of: int) -> None:
    """Answer, and leave the text unread."""
    os.write(out_of, b"/tmp/stacks\n")


def is_silent(_into: int, _out_of: int) -> None:
    """Neither read nor write."""


def refuses(_into: int, _out_of: int) -> None:
    """Refuse to start."""
    raise TaskRefused("it is not running here")


def descriptors() -> int:
    """Descriptors that this process has."""
    return len(os.listdir("/proc/self/fd"))


async def saved(attempts: Attempts, ends: bool) -> Saved:
    """Stacks that are saved; ``ends``: the task ends after its start."""
    collector = Collector(cast("Any", attempts), "h1", "py-spy")
    saving = asyncio.create_task(collector._run(KEY, (b"writer",), TEXT, 60.0 if ends else 0.3))
    await asyncio.sleep(0.05)
    if ends:
        attempts.close()
    return await saving


@pytest.mark.parametrize(
    ("task", "ends", "expected"),
    [
        (answers, True, Saved("/tmp/stacks")),
        (answers, False, Saved("", "they were not saved within 0.3 seconds")),
        (is_silent, True, Saved("", "nothing was said")),
        (is_silent, False, Saved("", "they were not saved within 0.3 seconds")),
    ],
)
def test_a_writer_that_hangs_keeps_nothing_here(task: Callable[[int, int], None], ends: bool, expected: Saved) -> None:
    """It is killed after its time; what it started may hold its pipes for ever."""

    async def story() -> None:
        attempts, before, threads = Attempts(task), descriptors(), threading.active_count()
        assert await saved(attempts, ends) == expected
        assert bool(attempts.signals) is not ends
        await asyncio.sleep(0)
        assert threading.active_count() == threads
        attempts.close()
        assert descriptors() <= before  # those of an earlier test may have been closed meanwhile

    asyncio.run(story())


def test_refusals_and_shortages_leave_no_descriptor_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the collector and of metric scripts: a machine that lacks descriptors must not lose more."""

    async def story() -> None:
        attempts, before = Attempts(refuses), descriptors()
        with pytest.raises(TaskRefused):
            await Collector(cast("Any", attempts), "h1", "py-spy")._run(KEY, (b"writer",), TEXT, 5)
        scaling = Autoscaling(cast("Any", None), cast("Any", attempts), "h1", lambda _: None)
        with pytest.raises(TaskRefused):
            await scaling._ask(KEY, Autoscale(command="echo 1", limit_s=60))
        attempts.close()
        with monkeypatch.context() as patch:
            patch.setattr(os, "devnull", "/nowhere/null")
            with pytest.raises(OSError, match="nowhere"):
                await scaling._ask(KEY, Autoscale(command="echo 1", limit_s=60))
        await asyncio.sleep(0)
        assert descriptors() <= before  # those of an earlier test may have been closed meanwhile

    asyncio.run(story())


def watched(attempts: Any, count: int) -> ActivityWatch:
    """A watch of so many attempts on one of two hosts."""
    shares = [HostShare(host="h1", slots=1), HostShare(host="h2", slots=1)]
    entries = {
        (job, 0, 1): SimpleNamespace(
            state=State.HELD,
            tasks=None,
            stage=Stage(allocation=shares),
            blob=SimpleNamespace(spec=JobSpec(hang=HangRule(after_s=1))),
        )
        for job in range(1, count + 1)
    }
    pool = SimpleNamespace(holder=lambda _: SimpleNamespace(send=lambda _: None))
    made = ActivityWatch(cast("Any", SimpleNamespace(entries=entries)), cast("Any", pool), attempts, "h1", "")

    async def asked(*_: object) -> tuple[float, tuple[int, ...]]:
        return 0.0, (os.getpid(),)

    made._ask = asked  # type: ignore[method-assign]
    return made


def test_few_collections_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host with many jobs that hang is not filled with writers."""
    monkeypatch.setattr(stacks, "INTERPRETERS", ("python3",))

    async def story() -> None:
        attempts = Attempts(answers)
        made = watched(attempts, 20)
        for job in range(1, 21):
            made.save_stacks(StacksRequest(key=AttemptKey(job=job, attempt=1), number=1, limit_s=60))
        told: list[Any] = []
        deadline = time.monotonic() + 60
        while len(told) < 20 and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
            attempts.close()
            told += made.take_news()[1]
        assert [one.path for one in told] == ["/tmp/stacks"] * 20
        assert attempts.most_at_once == watch.COLLECTED_AT_ONCE

    asyncio.run(story())


def test_a_look_that_lacks_descriptors_is_told_once_and_left_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """The next ones go on; no task fails unheard."""
    failures = iter(range(3))
    looks: list[int] = []

    def counted(_pids: object) -> tuple[int, bool]:
        looks.append(1)
        for _ in failures:
            raise OSError(24, "Too many open files")
        return 0, False

    monkeypatch.setattr(watch, "_counted", counted)
    monkeypatch.setattr(watch, "TICK_S", 0.01)

    async def story() -> None:
        made = watched(SimpleNamespace(find=lambda *_: None), 1)
        monkeypatch.setattr(made, "_pause_s", lambda _part: 0.0)
        running = asyncio.create_task(made.run())
        async with asyncio.timeout(60):
            while len(looks) < 6:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        running.cancel()
        await made.close()

    asyncio.run(story())
    assert [one.getMessage().split()[0] for one in caplog.records] == ["event=activity_unknown"]
