"""The check of lava.conf: its names, its values, and what others may read in it."""

import re
from pathlib import Path

import pytest

from lavad import settings
from lavad.config import lava_conf
from lavad.settings import NAMES, examine

NEEDED = "LAVA_LISTEN=127.0.0.1:6920\nLAVA_ENROL_LISTEN=127.0.0.1:6921\nLAVA_STATE_DIR=/var/lib/lava\n"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "ports-and-files.md"
URL = "postgresql+psycopg://lava:secret@db/lava"


def _complaints(directory: Path, text: str, mode: int = 0o644) -> list[str]:
    path = directory / "lava.conf"
    path.write_text(NEEDED + text)
    path.chmod(mode)
    return [f"{one.line}:{'' if one.is_fatal else ' warning:'} {one.text}" for one in lava_conf.complaints(directory)]


def test_the_page_has_a_row_for_each_setting() -> None:
    """All that the page lists is known, and the other way round."""
    section = PAGE.read_text(encoding="utf-8").partition("## lava.conf")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `LAVA_")]
    assert sorted(NAMES) == sorted(name for row in rows for name in re.findall(r"`(LAVA_[A-Z_]+)`", row))


def test_each_setting_that_is_read_is_known() -> None:
    """A name in the module that reads them is in the list that the check goes by."""
    text = Path(settings.__file__).read_text(encoding="utf-8")
    assert set(re.findall(r'"(LAVA_[A-Z_]+)"', text)) <= NAMES


def test_all_mistakes_are_told_at_once_with_their_lines(tmp_path: Path) -> None:
    """A line without a value, three wrong values, and a name that is near a known one."""
    text = "LAVA_RETENTION\nLAVA_HEARTBEAT=0\nLAVA_PREEMPTION=kill\nLAVA_RUNTIMES=podman\nLAVA_CLEAN_PERIODE=7\n"
    text += "LAVA_FENCE_AFTER=2\n"
    assert _complaints(tmp_path, text) == [
        "4: expected NAME=VALUE with a name of capital letters",
        "5: LAVA_HEARTBEAT must be a positive number of seconds, not '0'",
        "6: LAVA_PREEMPTION must be suspend or requeue, not 'kill'",
        "7: warning: LAVA_RUNTIMES: unknown setting, it has no effect",
        "8: warning: LAVA_CLEAN_PERIODE: unknown setting, it has no effect; did you mean LAVA_CLEAN_PERIOD?",
        "9: LAVA_FENCE_AFTER must be at least twice LAVA_SILENT_AFTER (15 s), not 2 s",
    ]


def test_a_sound_file_has_no_complaint(tmp_path: Path) -> None:
    """Each documented setting may be there, empty ones as if they were not."""
    rest = sorted(NAMES - {line.partition("=")[0] for line in NEEDED.splitlines()} - {"LAVA_DATABASE_FILE"})
    assert _complaints(tmp_path, "".join(f"{name}=\n" for name in rest)) == []


@pytest.mark.parametrize(("mode", "count"), [(0o644, 1), (0o640, 1), (0o600, 0)])
def test_a_password_that_others_may_read_is_told(tmp_path: Path, mode: int, count: int) -> None:
    """The way to a file of its own is named; no password, no word."""
    found = _complaints(tmp_path, f"LAVA_DATABASE={URL}\n", mode)
    assert len(found) == count
    assert all("LAVA_DATABASE_FILE" in line and "secret" not in line for line in found)
    assert _complaints(tmp_path, "LAVA_DATABASE=postgresql+psycopg://lava@db/lava\n", mode) == []


def test_what_is_wrong_is_as_it_was(tmp_path: Path) -> None:
    """Good values of the file count, and of wrong ones those that were good before."""
    (tmp_path / "lava.conf").write_text(f"{NEEDED}LAVA_HEARTBEAT=0\nLAVA_CLAIM_TIMEOUT=10\nnonsense\n")
    found, wrong = examine(tmp_path, {"LAVA_HEARTBEAT": "7", "LAVA_CLAIM_TIMEOUT": "20", "LAVA_SILENT_AFTER": "30"})
    assert (found.heartbeat_s, found.policy().claim_timeout_s, found.policy().silent_after_s) == (7.0, 10.0, 30.0)
    assert len(wrong) == 2
