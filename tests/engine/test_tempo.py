"""Slice size of a pass, adapted to the duration of the last slices."""

import pytest

from lavad.pacer import SLICE_S, STEPS_MAX, STEPS_MIN, Tempo


def run(tempo: Tempo, step_s: float, slices: int) -> float:
    """Run slices on a machine with this duration of a step; duration of the last slice."""
    took_s = 0.0
    for _ in range(slices):
        took_s = tempo.steps * step_s
        tempo.note(tempo.steps, took_s)
    return took_s


@pytest.mark.parametrize("step_s", [5e-7, 2e-6, 1e-5])
def test_slices_come_to_the_length_that_was_wanted(step_s: float) -> None:
    """On fast machines and slow ones."""
    assert run(Tempo(), step_s, 40) == pytest.approx(SLICE_S, rel=0.1)


def test_dear_steps_count_at_once() -> None:
    """Steps that have become four times as dear make two long slices, not more."""
    tempo = Tempo()
    run(tempo, 1e-6, 40)
    run(tempo, 4e-6, 2)
    assert tempo.steps * 4e-6 <= SLICE_S * 1.01


def test_one_slice_that_was_held_up_does_not_stop_everything() -> None:
    """Another process had the CPU for a second: the next slice is half as long, not empty."""
    tempo = Tempo()
    run(tempo, 1e-6, 40)
    before = tempo.steps
    tempo.note(before, 1.0)
    assert tempo.steps >= before // 2 - 1


def test_slices_stay_within_bounds() -> None:
    """Whatever the measurement, a slice does some steps, and not too many."""
    tempo = Tempo()
    run(tempo, 1.0, 40)
    assert tempo.steps == STEPS_MIN
    run(tempo, 0.0, 60)
    assert tempo.steps == STEPS_MAX
