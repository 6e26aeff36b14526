"""Progress that jobs report: read from their words, kept on disk, told to the master once in a while.

Invariants: the newest report of an attempt wins; the master hears of an attempt at most once in ``TELL_EVERY_S``,
however often it reports; the newest one is told to each new master, and outlives this agent.
"""

import asyncio
import contextlib
import json
import math
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToJson, Parse, ParseError

from agents.job_setup.environment import write_whole
from agents.shepherd.messages import Key
from protos.agents_pb2 import JobProgress
from protos.common_pb2 import AttemptKey, Progress

TELL_EVERY_S = 3.0
TEXT_MAX = 500
SECONDS_MAX = 1e9
# By the names of lava, and of KEP-2779 of Kubeflow Trainer.
PERCENT = ("percent", "progressPercentage")
SECONDS_LEFT = ("seconds_left", "estimatedRemainingSeconds")
IGNORED = ("metrics", "lastUpdatedTime")  # of KEP-2779


class BadReport(Exception):
    """A report that cannot be understood; the text is one sentence."""


def read_report(said: object) -> Progress:
    """Read a report as a job posts it.

    Raises:
        BadReport: it is none.
    """
    if isinstance(said, dict) and set(said) == {"trainerStatus"}:
        said = said["trainerStatus"]
    if not isinstance(said, dict):
        raise BadReport('an object is expected, such as {"percent": 40, "seconds_left": 300, "text": "epoch 3"}')
    unknown = sorted(set(said) - {*PERCENT, *SECONDS_LEFT, "text", *IGNORED})
    if unknown:
        raise BadReport(f"{unknown[0]}: unknown; percent, seconds_left and text are known")
    report = Progress(time=time.time(), text=_text(said.get("text")))
    percent, left = _number(said, PERCENT, 100.0), _number(said, SECONDS_LEFT, SECONDS_MAX)
    if percent is not None:
        report.percent, report.has_percent = percent, True
    if left is not None:
        report.seconds_left, report.has_seconds_left = left, True
    if percent is None and left is None and not report.text:
        raise BadReport("percent, seconds_left or text is expected")
    return report


def _number(said: Mapping[str, Any], names: Collection[str], most: float) -> float | None:
    for name in names:
        value = said.get(name)
        if value is not None:
            if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
                raise BadReport(f"{name}: a number is expected")
            if not 0 <= value <= most:
                raise BadReport(f"{name}: {value:g} is not between 0 and {most:g}")
            return float(value)
    return None


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond all floats
        return False


def _text(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > TEXT_MAX:
        raise BadReport(f"text: at most {TEXT_MAX} characters are expected")
    return "".join(one if one.isprintable() else " " for one in value).strip()


def shown(report: Progress | None) -> dict[str, object]:
    """Return a report as jobs read it."""
    if report is None:
        return {"percent": None, "seconds_left": None, "text": "", "time": None}
    return {
        "percent": report.percent if report.has_percent else None,
        "seconds_left": report.seconds_left if report.has_seconds_left else None,
        "text": report.text,
        "time": report.time,
    }


class ProgressBook:
    """Newest progress of each attempt of this host.

    Args:
        directory: for a file of each attempt; made if needed.
        tell: takes what the master is to hear.
    """

    def __init__(self, directory: Path, host: str, tell: Callable[[JobProgress], None]) -> None:
        self._directory = directory
        self._host = host
        self.tell = tell
        self._known: dict[Key, Progress] = {}
        self._next_at: dict[Key, float] = {}  # monotonic time from which on the master may hear of it again
        self._timers: dict[Key, asyncio.TimerHandle] = {}

    def adopt(self, held: Collection[Key]) -> None:
        """Take over the files of attempts held here after a restart, and remove those of others."""
        self._directory.mkdir(mode=0o700, exist_ok=True)
        for path in self._directory.iterdir():
            numbers = path.name.split("-")
            key = tuple(map(int, numbers)) if all(one.isdecimal() for one in numbers) else ()
            with contextlib.suppress(OSError, ParseError, UnicodeDecodeError):
                if len(key) == 3 and key in held:
                    self._known[key[0], key[1], key[2]] = Parse(path.read_text(encoding="utf-8"), Progress())
                    continue
            path.unlink(missing_ok=True)

    def of(self, key: Key) -> Progress | None:
        """Return the newest progress of an attempt."""
        return self._known.get(key)

    def take(self, key: Key, report: Progress) -> None:
        """Keep a report, and tell it now, or as soon as the master may hear of this attempt again."""
        report.host = self._host
        self._known[key] = report
        if key not in self._timers:
            loop = asyncio.get_running_loop()
            self._timers[key] = loop.call_at(max(loop.time(), self._next_at.get(key, 0.0)), self._tell, key)

    def _tell(self, key: Key) -> None:
        del self._timers[key]
        self._next_at[key] = asyncio.get_running_loop().time() + TELL_EVERY_S
        report = self._known[key]
        with contextlib.suppress(OSError):  # a full disk: the next agent knows an earlier one, or none
            write_whole(str(self._path(key)), MessageToJson(report).encode(), 0o600)
        self.tell(_message(key, report))

    def all(self) -> list[JobProgress]:
        """Return the newest progress of all attempts, for a master that may have restarted without it."""
        return [_message(key, report) for key, report in self._known.items()]

    def forget(self, key: Key) -> None:
        """Drop an attempt of which nothing is left here."""
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
            self._tell_last(key)
        self._next_at.pop(key, None)
        if self._known.pop(key, None) is not None:
            self._path(key).unlink(missing_ok=True)

    def _tell_last(self, key: Key) -> None:
        self.tell(_message(key, self._known[key]))

    def _path(self, key: Key) -> Path:
        return self._directory / "-".join(map(str, key))


def _message(key: Key, report: Progress) -> JobProgress:
    return JobProgress(key=AttemptKey(job=key[0], index=key[1], attempt=key[2]), progress=report)


def read_body(body: bytes) -> object:
    """Parse JSON of a request.

    Raises:
        BadReport: it is none.
    """
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise BadReport('JSON is expected, such as {"percent": 40}') from None
