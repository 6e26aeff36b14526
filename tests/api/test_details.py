"""Details of jobs: what a client is shown of a spec besides what the user wrote."""

import pytest

from lavad.api.details import Details
from lavad.core.model.policy import Policy
from protos.common_pb2 import GpuRequest, Role
from protos.jobs_pb2 import JobRecord, JobSpec
from tests.builders import a_cluster, a_host, a_job


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ("", "num=2:mode=exclusive_process:mps=no"),  # the queue's GPU_REQ, or LSB_GPU_REQ
        ("-", "num=2:mode=exclusive_process:mps=no"),
        ("num=2", "num=2"),  # what the user wrote stays
    ],
)
def test_gpus_are_those_that_the_job_has(asked: str, shown: str) -> None:
    """L1: bjobs showed <1 shared>, or dashes, for GPUs that a default asked for."""
    story = a_cluster(a_host("n1", 4, gpus=3))
    record = story.cluster.jobs[story.submit(a_job(gpus=2, gpu="num=2:mode=exclusive_process"))]
    message = JobRecord()
    Details(Policy(), shares=False).add(message, record, JobSpec(roles=[Role(gpu=GpuRequest(text=asked))]))
    assert (message.spec.roles[0].gpu.text, message.spec.roles[0].gpu.num) == (shown, 0 if asked == shown else 2)


def test_gpus_of_a_requirement_are_shown() -> None:
    """L1: those of -R "rusage[ngpus_physical=1]" had no words at all."""
    story = a_cluster(a_host("n1", 4, gpus=3))
    record = story.cluster.jobs[story.submit(a_job(gpus=1))]
    message = JobRecord()
    Details(Policy(), shares=False).add(message, record, JobSpec(roles=[Role()]))
    assert message.spec.roles[0].gpu.text == "num=1:mode=shared:mps=no"
