"""Bounds of numbers in requirements: one job beyond those of the scheduler would stop all others."""

import pytest

from lavad.core.language.requirements import parser
from lavad.core.model.reasons import Refused


@pytest.mark.parametrize(
    "text",
    [
        "rusage[mem=99999999999999999999T]",
        "rusage[mem=" + "9" * 4000 + "]",
        "rusage[ngpus_physical=nan]",
        "rusage[ngpus_physical=inf]",
        "rusage[ngpus_physical=-1]",
        "span[ptile=" + "9" * 4000 + "]",
        "span[ptile=²]",
        "select[mem>" + "9" * 400 + "]",
        "select[mem>" + "9" * 400 + "G]",
    ],
)
def test_absurd_numbers_are_refused(text: str) -> None:
    """Refused as bad syntax, with the place."""
    with pytest.raises(Refused, match="Bad resource requirement syntax at character"):
        parser.parse(text)
