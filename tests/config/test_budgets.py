"""Budget sections of lsb.resources: what is read, and what is wrong with others."""

from datetime import date
from pathlib import Path

import pytest

from lavad.core.model.rules.budgets import HOUR_S, Budget, Every
from lavad.core.model.rules.names import ALL, Names
from tests.config.files import loaded, policy_of, said

SECTIONS = """\
    Begin Budget
    NAME = chem
    USERS = ann bob
    QUEUES = normal
    SLOT_HOURS = 1000
    GPU_HOURS = 12.5
    PERIOD = quarter
    WARNING = 90%
    End Budget
    Begin Budget
    NAME      PER_PROJECT  CPU_HOURS  PERIOD
    projects  (all ~p1)    50         (2026-01-01,2026-06-30)
    End Budget
    """


def test_sections_and_tables_are_read(tmp_path: Path) -> None:
    """Hours become seconds; a period of two days is kept as these."""
    files = {"lsb.resources": SECTIONS, "lsb.queues": "Begin Queue\nQUEUE_NAME = normal\nEnd Queue\n"}
    chem, projects = policy_of(tmp_path, files).budgets
    people, normal = Names(False, frozenset({"ann", "bob"})), Names(False, frozenset({"normal"}))
    assert chem == Budget("chem", 1000 * HOUR_S, None, 12.5 * HOUR_S, Every.QUARTER, None, 0.9, people, queues=normal)
    days = date(2026, 1, 1), date(2026, 6, 30)
    assert projects == Budget("projects", cpu_s=50 * HOUR_S, once=days, per_project=Names(True, frozenset({"p1"})))


def test_a_plain_budget_is_one_of_each_month_for_all(tmp_path: Path) -> None:
    """Jobs are told at 80 %."""
    (plain,) = policy_of(tmp_path, {"lsb.resources": "Begin Budget\nNAME = b\nSLOT_HOURS = 1\nEnd Budget\n"}).budgets
    assert (plain.every, plain.warns_at, plain.users, plain.consumer("ann", "p", "q")) == (Every.MONTH, 0.8, None, "")
    assert Budget("b", per_user=ALL).consumer("ann", "p", "q") == "ann"


@pytest.mark.parametrize(("lines", "sentence"), [
    ("NAME = b", "Budget b: expected SLOT_HOURS, CPU_HOURS, GPU_HOURS, or some of these"),
    ("SLOT_HOURS = 1", "NAME"),
    ("NAME = b\nSLOT_HOURS = some", "SLOT_HOURS"),
    ("NAME = b\nSLOT_HOURS = 1\nPERIOD = day", "expected week, month, quarter, year, or two days"),
    ("NAME = b\nSLOT_HOURS = 1\nPERIOD = 2026-02-01,2026-01-01", "expected the second day not before the first"),
    ("NAME = b\nSLOT_HOURS = 1\nWARNING = 200%", "expected a percentage up to 100%"),
    ("NAME = b\nSLOT_HOURS = 1\nUSERS = ann\nPER_USER = all", "Budget b: expected USERS or PER_USER, not both"),
    ("NAME = b\nSLOT_HOURS = 1\nHOURS = 1", "HOURS: unknown parameter"),
])  # fmt: skip
def test_each_mistake_has_a_sentence(tmp_path: Path, lines: str, sentence: str) -> None:
    """With file and line."""
    found = loaded(tmp_path, {"lsb.resources": f"Begin Budget\n{lines}\nEnd Budget\n"})
    text = "\n".join(said(found))
    assert sentence in text
    assert "lsb.resources:" in text
