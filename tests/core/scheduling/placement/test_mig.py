"""MIG devices: given only to jobs that ask for them, by size; whole GPUs beside them to all others."""

import pytest

from lavad.core.decide.jobs.request import request_of, rules_for
from lavad.core.language.requirements.gpu import parse, text_of
from lavad.core.model import Device, JobOptions, RoleAsked
from tests.builders import Story, a_cluster, a_host, a_job

WHOLE = Device("NVIDIA H100", 81_920)
LARGE = Device("NVIDIA H100 MIG 3g.40gb", 40_960, slices=(3, 3))
SMALL = Device("NVIDIA H100 MIG 1g.10gb", 10_240, slices=(1, 1))
PART = Device("NVIDIA H100 MIG 1c.3g.40gb", 40_960, slices=(3, 1))


def a_mixed_site() -> Story:
    """One host: a GPU divided into three MIG devices, and a whole GPU behind them."""
    return a_cluster(a_host("n1", slots=8, gpus=4, devices=(LARGE, SMALL, PART, WHOLE)))


def given(story: Story, text: str) -> tuple[int, ...]:
    """GPUs of a job submitted with this -gpu; none if it waits."""
    rules = rules_for(story.cluster.policy, story.cluster.table, story.cluster.policy.queue("normal"))
    request, _ = request_of([RoleAsked(gpu=text)], JobOptions(), rules)
    job = story.submit(a_job(request=request))
    story.plan()
    attempt = story.job(job).attempt
    return attempt.allocation[0].gpus if attempt is not None else ()


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("num=1", (3,)),
        ("num=2", ()),
        ("mig=1", (1,)),
        ("mig=3", (0,)),
        ("mig=3/1", (2,)),
        ("mig=7", ()),
        ("num=2:mig=1", ()),
    ],
)
def test_the_devices_of_a_job(text: str, gpus: tuple[int, ...]) -> None:
    """The slices asked for, exactly; without a word about MIG whole GPUs alone."""
    assert given(a_mixed_site(), text) == gpus


def test_each_mig_device_is_one_job_s() -> None:
    """A MIG device is held like a GPU: the next job that asks for its size waits."""
    story = a_mixed_site()
    assert given(story, "mig=1") == (1,)
    assert given(story, "mig=1") == ()
    assert given(story, "num=1") == (3,)


def test_mig_is_written_as_it_was_read() -> None:
    """Both sizes survive; the compute size is named only where it differs."""
    assert [parse(text_of(parse(text))).slices for text in ("mig=3", "mig=3/1", "num=2")] == [(3, 3), (3, 1), ()]
    assert text_of(parse("mig=2")).endswith("mig=2")
