"""Numbers as messages and tables show them: whole, and the same from the master and from the commands."""

import pytest

from lavactl.text import units
from lavad.core.language import numbers


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"), (-3, "-3"), (300.0, "300"), (1234567, "1234567"), (1234567.5, "1234567.5"), (0.1 + 0.2, "0.3"),
        (1e6, "1000000"), (1e15, "1000000000000000"), (1e16, "10000000000000000"), (2.5e-6, "0.0000025"),
        (9.999999, "9.999999"), (float("inf"), "inf"),
    ],
)  # fmt: skip
def test_a_number_has_all_its_digits(number: float, text: str) -> None:
    """No exponent, no rounding to six digits, and none of the digits that floats make up."""
    assert numbers.number_text(number) == text
    assert units.number_text(number) == text
