"""Fixtures of the command tests: surroundings for running commands, in UTC."""

import time
from collections.abc import Iterator

import pytest

from tests.lavactl.scripted import Desk


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """Desk whose clock shows Sat Nov 21 09:30:00 2026, UTC."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield Desk()
    monkeypatch.undo()
    time.tzset()
