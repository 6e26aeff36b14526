"""The planted bugs fit the present sources; `make mutants` shows that each is detected."""

import pytest

from tests.mutants.planted import MUTANTS, Mutant
from tests.mutants.run import ROOT


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_bug_has_its_place(mutant: Mutant) -> None:
    """Its text is in the file just once."""
    assert (ROOT / mutant.file).read_text(encoding="utf-8").count(mutant.old) == 1
