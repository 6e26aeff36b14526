"""Files that root writes into the service user's directory: what that user puts there beforehand leads nowhere else."""

import os
from pathlib import Path

import pytest

from lavactl.personal.directory import make_directory, write_public


def test_a_link_under_the_temporary_name_is_not_followed(tmp_path: Path) -> None:
    """The name could be foreseen: root emptied and overwrote the file that it led to, and gave it away."""
    victim, path = tmp_path / "shadow", tmp_path / "lsf.conf"
    victim.write_text("secret")
    victim.chmod(0o600)
    (tmp_path / f".{path.name}.{os.getpid()}").symlink_to(victim)
    write_public(path, "LSF_UNIT_FOR_LIMITS=MB\n")
    assert (victim.read_text(), victim.stat().st_mode & 0o777) == ("secret", 0o600)
    assert not path.is_symlink()
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("LSF_UNIT_FOR_LIMITS=MB\n", 0o644)
    assert sorted(os.listdir(tmp_path)) == ["lsf.conf", "shadow"]


def test_a_link_in_place_of_a_new_directory_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put there between mkdir and chmod, it made a directory of root readable for all users."""
    victim, path = tmp_path / "root", tmp_path / "state"
    victim.mkdir(mode=0o700)
    monkeypatch.setattr(Path, "mkdir", lambda made, **_: made.symlink_to(victim))
    with pytest.raises(OSError, match="state"):
        make_directory(path, 0o755)
    assert victim.stat().st_mode & 0o777 == 0o700
