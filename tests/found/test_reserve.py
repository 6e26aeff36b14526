"""Disk space reserved in the state directory."""

from pathlib import Path

import pytest

from lavad.store.disk_reserve import FILE_NAME, PART, SIZE, DiskReserve


def test_no_state_directory_is_nothing_to_warn_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """With a database elsewhere there may be none; the log had a warning each second."""
    reserve = DiskReserve(tmp_path / "state")
    reserve.fill()
    assert reserve.problem() == ""
    assert not caplog.records
    (tmp_path / "state").mkdir()
    reserve.fill()
    assert SIZE // PART < (tmp_path / "state" / FILE_NAME).stat().st_size <= SIZE
