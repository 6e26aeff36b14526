"""Signals to commands that wait."""

import signal
from collections.abc import Iterator

import pytest

from lavactl.tasks.interruption import Interruptible


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_signal_that_comes_while_an_answer_is_being_left_is_heeded() -> None:
    """Python drops an exception that is raised there; the signal was lost."""

    def answers() -> Iterator[int]:
        try:
            yield 1
        finally:
            signal.raise_signal(signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    with (
        pytest.raises(ValueError, match=str(int(signal.SIGTERM))),
        Interruptible(lambda number: ValueError(str(int(number)))),
    ):
        assert next(answers())
    assert signal.getsignal(signal.SIGTERM) is before
