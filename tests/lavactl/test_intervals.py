"""Time intervals as typed (lsf.md 1.0), in the fixed time of these tests: Sat Nov 21 09:30:00 2026, UTC."""

import pytest

from lavactl.text.intervals import read_interval
from tests.lavactl.scripted import NOW, Desk, at

DAY = 86400.0


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("@", at("00:00:00"), at("00:00:00", 22)),
        ("20/", at("00:00:00", 20), at("00:00:00", 21)),
        ("11/20", at("00:00:00", 20), at("00:00:00", 21)),
        ("2026/11/20/10:15", at("10:15:00", 20), at("10:16:00", 20)),
        ("8:", at("08:00:00"), at("09:00:00")),
        ("20/08:00,20/09:00", at("08:00:00", 20), at("09:01:00", 20)),
        ("20/,.", at("00:00:00", 20), NOW),
        (".-2/,.-1:", NOW - 2 * DAY, NOW - 3600),
        (".-30,", NOW - 1800, 0.0),
        (",20/", 0.0, at("00:00:00", 21)),
    ],
)
def test_an_interval(desk: Desk, text: str, first: float, last: float) -> None:
    """From the first moment of its beginning to the last one of the unit that its end names."""
    assert read_interval(text, NOW) == pytest.approx((first, last), abs=1.1e-6 if "." not in text else 1.0)


def is_refused(text: str) -> bool:
    """True if the text is no interval."""
    try:
        read_interval(text, NOW)
    except ValueError:
        return True
    return False


@pytest.mark.parametrize("text", ["", ",", "x", "13/40/", "1/2/3/4/5", "10:99", ".-", ".-x/", "25:", "9,8", "٣/"])
def test_what_is_no_interval(desk: Desk, text: str) -> None:
    """It is refused."""
    assert is_refused(text)
