"""Blocks of the configuration that count at certain times: `#if time(...)`, lsf.md 6.1."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lavad.api.cluster.configuration import Configurator
from lavad.config import load as reading
from lavad.config.lines import condition_of
from lavad.config.load import Loaded, load
from lavad.config.values import Wrong
from lavad.core.commands import Reconfigure
from lavad.core.model.policy import Policy
from lavad.settings import Settings

QUEUES = """\
Begin Queue
QUEUE_NAME = normal
#if time(8:00-18:00)
PRIORITY = 20
#elif time(6:0:00-0:23:59) && !time(20:00-22:00)
PRIORITY = 30
#else
PRIORITY = 40
#endif
End Queue
#if time(18:00-8:00)
Begin Queue
QUEUE_NAME = night
End Queue
#endif
"""


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "local_zone", lambda: UTC)


def at(day: int, clock: str) -> float:
    """Seconds since the epoch of a day in November 2026; the 21st is a Saturday."""
    hour, minute = map(int, clock.split(":"))
    return datetime(2026, 11, day, hour, minute, tzinfo=UTC).timestamp()


def read(directory: Path, moment: float, queues: str = QUEUES) -> Loaded:
    """Read these queues as they count then."""
    (directory / "lsb.queues").write_text(queues)
    return load(directory, Policy(), at=moment)


@pytest.mark.parametrize(
    ("day", "clock", "priority", "has_night"),
    [
        (20, "12:00", 20, False),
        (20, "07:59", 40, True),
        (20, "18:00", 40, True),
        (21, "19:00", 30, True),
        (21, "21:00", 40, True),
        (22, "23:00", 30, True),
    ],
)
def test_the_branch_that_holds(tmp_path: Path, day: int, clock: str, priority: int, has_night: bool) -> None:
    """The first branch whose condition holds, else that of #else."""
    loaded = read(tmp_path, at(day, clock))
    assert not loaded.complaints
    queues = {queue.name: queue for queue in loaded.policy.queues}
    assert queues["normal"].priority == priority
    assert ("night" in queues) is has_night


def test_blocks_within_blocks(tmp_path: Path) -> None:
    """The inner one counts only where the outer one does."""
    text = (
        "#if time(8:00-18:00)\nBegin Queue\nQUEUE_NAME = a\n#if time(12:00-13:00)\nNICE = 5\n#else\nNICE = 6\n#endif\n"
    )
    text += "End Queue\n#else\nBegin Queue\nQUEUE_NAME = b\nEnd Queue\n#endif\n"
    for clock, expected in (("12:30", ("a", 5)), ("14:00", ("a", 6)), ("20:00", ("b", 0))):
        queue = read(tmp_path, at(20, clock), text).policy.queues[0]
        assert (queue.name, queue.nice) == expected


@pytest.mark.parametrize(
    "text", ["", "time", "time()", "tme(8:00-9:00)", "time(8:00-9:00) &&", "time(8:00)", "time(x)"]
)
def test_conditions_that_are_none(text: str) -> None:
    """A sentence says what was expected."""
    with pytest.raises(Wrong):
        condition_of(text)


def test_an_error_that_counts_only_later(tmp_path: Path) -> None:
    """It is told at once: otherwise nothing would, until the night."""
    loaded = read(tmp_path, at(20, "12:00"), QUEUES.replace("= night", "= night\nNICE = many"))
    assert [str(one) for one in loaded.errors] == [
        f"{tmp_path}/lsb.queues:14: NICE = many: expected a whole number from -20 to 20"
    ]


class Engine:
    """Engine that only remembers what it was told to do."""

    def __init__(self, now: float) -> None:
        self.now = now
        self.done: list[Policy] = []
        self.cluster = SimpleNamespace(policy=Policy(), hosts={})

    def clock(self) -> float:
        """Time of the test."""
        return self.now

    async def execute(self, command: Reconfigure) -> None:
        """Remember the policy."""
        self.done.append(command.policy)


class Follower(Configurator):
    """Configurator of a master without services that need its administrators."""

    def admit(self) -> Settings:
        """Leave out the services."""
        return self.settings


def test_a_master_follows_the_clock(tmp_path: Path) -> None:
    """At the edge of a condition, and only then, the files count anew: as they were read, not as they are edited."""
    loaded = read(tmp_path, at(20, "12:00"))
    (tmp_path / "lsb.queues").write_text("half of a new file")
    engine = Engine(at(20, "12:00"))
    taken: list[Loaded] = []
    installation = SimpleNamespace(take=taken.append)
    master = Follower(cast("Any", engine), cast("Any", None), [], cast("Any", installation), loaded)

    async def live() -> None:
        for clock in ("12:00", "17:59", "18:00", "18:01"):
            engine.now = at(20, clock)
            await master.follow_clock()
        engine.now = at(21, "08:00")
        await master.follow_clock()

    asyncio.run(live())
    found = [{queue.name: queue.priority for queue in policy.queues} for policy in engine.done]
    assert [one["normal"] for one in found] == [40, 20]
    assert ["night" in one for one in found] == [True, False]
    assert [one.policy for one in taken] == engine.done


def test_a_change_by_the_clock_that_fails_is_tried_again(tmp_path: Path) -> None:
    """The files for the new time are in force at the next look, not only at the next edge."""
    loaded = read(tmp_path, at(20, "12:00"))
    engine = Engine(at(20, "18:00"))
    taken: list[Loaded] = []

    def take(given: Loaded) -> None:
        taken.append(given)
        if len(taken) == 1:
            raise OSError("the disk is full")

    master = Follower(cast("Any", engine), cast("Any", None), [], cast("Any", SimpleNamespace(take=take)), loaded)

    async def live() -> None:
        with pytest.raises(OSError, match="the disk is full"):
            await master.follow_clock()
        for _ in range(2):
            await master.follow_clock()

    asyncio.run(live())
    assert [one.policy for one in taken] == engine.done
    assert len(taken) == 2
