"""Interactive jobs that wait for their dispatch."""

import signal
from collections.abc import Iterator

import pytest

from lavactl.tasks import interactive


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_signal_that_comes_while_an_answer_is_being_left_is_heeded() -> None:
    """Python drops an exception that is raised there; the signal was lost."""

    def answers() -> Iterator[int]:
        try:
            yield 1
        finally:
            signal.raise_signal(signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(interactive._Interrupted) as raised, interactive._Interruptible():
        assert next(answers())
    assert raised.value.number == signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is before
