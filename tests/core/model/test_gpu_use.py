"""Use of GPUs by an attempt whose devices and hosts change while it runs."""

from lavad.core.model.gpu_use import GpuUse
from lavad.core.model.usage import HostUsage, depart, gpus_of_attempt, taken
from tests.builders import Story, a_host, a_job


def used(index: int, seconds: float, **figures: float) -> GpuUse:
    """A device of some seconds, at half use."""
    return GpuUse(index, f"GPU-{index}", seconds=seconds, utilisation_s=seconds / 2, **figures)  # type: ignore[arg-type]


def an_attempt_on(host: str, *uses: GpuUse) -> Story:
    story = Story(a_host(host))
    attempt = story.cluster.attempts[story.run(a_job())]
    attempt.usage = taken(attempt.usage, [(host, HostUsage(gpus=uses))])
    return story


def test_the_device_of_a_task_that_has_left_keeps_its_last_figures() -> None:
    """An elastic job gives one of two devices back, and gets a third: what is of the moment ends with the task."""
    story = an_attempt_on("n1", used(0, 10), used(1, 10, power_w=300.0, idle_s=5.0))
    (attempt,) = story.cluster.attempts.values()
    attempt.usage = taken(attempt.usage, [("n1", HostUsage(gpus=(used(0, 20), used(2, 3))))])
    assert gpus_of_attempt(attempt) == (("n1", (used(0, 20), used(1, 10), used(2, 3))),)
    attempt.usage = taken(attempt.usage, [("n1", HostUsage(gpus=(used(0, 30), used(2, 13))))])
    assert gpus_of_attempt(attempt) == (("n1", (used(0, 30), used(1, 10), used(2, 13))),)


def test_a_host_that_was_left_and_joined_again_is_one_host() -> None:
    """The figures of both stays are added up; the largest ones are the larger."""
    story = an_attempt_on("n1", used(0, 10, power_w_max=500.0), used(1, 10))
    (attempt,) = story.cluster.attempts.values()
    depart(attempt, "n1")
    attempt.usage = taken(attempt.usage, [("n1", HostUsage(gpus=(used(0, 5, power_w_max=400.0),)))])
    assert gpus_of_attempt(attempt) == (("n1", (used(0, 15, power_w_max=500.0), used(1, 10))),)
