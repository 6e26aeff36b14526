"""bslots: windows as a table and in full (lsf.md 1.5)."""

import pytest

from protos import common_pb2, jobs_pb2
from tests.lavactl.scripted import NOW, Desk


def _window(minutes: float, *hosts: tuple[str, int]) -> jobs_pb2.SlotWindow:
    shares = [common_pb2.HostShare(host=host, slots=slots) for host, slots in hosts]
    slots = sum(number for _, number in hosts)
    return jobs_pb2.SlotWindow(until=NOW + 60 * minutes if minutes else 0.0, hosts=shares, slots=slots)


def _three(desk: Desk) -> None:
    desk.client.windows = [_window(0, ("n1", 1)), _window(85, ("n1", 3), ("n2", 2)), _window(0.5, ("n1", 12))]


def test_windows(desk: Desk) -> None:
    """lsf.md 1.5: SLOTS RUNTIME, with -l hosts; one that is over within a minute is of no use."""
    _three(desk)
    assert desk.type("bslots").out == (
        "SLOTS          RUNTIME\n1              UNLIMITED\n5              1 hour 25 minutes\n"
    )
    assert desk.type("bslots", "-l", "-R", "mem>1").out == (
        "SLOTS: 1\nRUNTIME: UNLIMITED\nHOSTS: 1*n1\n\nSLOTS: 5\nRUNTIME: 1 hour 25 minutes\nHOSTS: 3*n1 2*n2\n"
    )
    assert desk.client.asked == [("", False), ("mem>1", True)]
    assert len(desk.type("bslots", "-n", "2").out.splitlines()) == 2
    assert "UNLIMITED" in desk.type("bslots", "-W", "2:00").out
    none_like_that = "No backfill window meets these requirements at this time\n"  # which Balsam looks for
    assert desk.type("bslots", "-W", "2:00", "-n", "2").out == none_like_that
    desk.client.windows = []
    assert desk.type("bslots").out == "No backfill window exists at this time\n"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["-n", "few"], "bslots -n few: expected a number of slots."),
        (["-W", "long"], "bslots -W long: expected [hours:]minutes."),
        (["n1"], "n1: only options are expected"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_asked(desk: Desk, argv: list[str], words: str) -> None:
    """One sentence, exit code 255."""
    result = desk.type("bslots", *argv)
    assert result.code == 255
    assert words in result.err
    assert not desk.client.asked
