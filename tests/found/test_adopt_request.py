"""The request that `lavactl adopt` leaves for lavad."""

import os
from pathlib import Path

import pytest

from lavad.commit_mark import REQUEST
from lavad.maintenance import adopt
from lavad.store.errors import StoreRefused


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who administers what belongs to lavad's user")
def test_lavad_can_read_the_request_of_a_root_with_a_strict_umask(tmp_path: Path) -> None:
    """It adopted the database, could not answer, and the command reported no answer."""
    os.chown(tmp_path, 4321, 4321)
    before = os.umask(0o077)
    try:
        with pytest.raises(StoreRefused, match="has not answered"):
            adopt.ask(tmp_path, 0.0)
    finally:
        os.umask(before)
    found = (tmp_path / REQUEST).stat()
    assert (found.st_uid, found.st_mode & 0o777) == (4321, 0o600)
