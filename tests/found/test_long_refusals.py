"""Submissions that are refused for now, for a reason that takes several lines."""

import pytest

from protos import jobs_pb2
from tests.lavactl.conftest import Desk

REASON = (
    "The database is older than the cluster: it is at term 3 batch 8, host n1 has seen term 3 batch 900. A backup was "
    "restored, commits were lost, or LAVA_DATABASE names another database. Run: lavactl adopt"
)
SHORT = "The database is older than the cluster"


@pytest.mark.parametrize(("refusals", "last"), [(5, ""), (12, f"{SHORT}. Job not submitted.\n")])
def test_a_long_reason_is_told_once(desk: Desk, refusals: int, last: str) -> None:
    """bsub repeated all of it with each of its twelve tries."""
    later = jobs_pb2.SubmitResult(error=REASON, retry_later=True, retry_s=7)
    desk.client.submit_results = [*[later] * refusals, jobs_pb2.SubmitResult(job=8, queue="q")]
    result = desk.type("bsub", "-o", "/dev/null", "x")
    retries = refusals - bool(last)
    lines = [f"{REASON}. Retrying in 7 seconds...\n", *[f"{SHORT}. Retrying in 7 seconds...\n"] * (retries - 1)]
    assert (result.code, result.err) == (255 if last else 0, "".join(lines) + last)


def test_another_reason_is_told_in_full(desk: Desk) -> None:
    """And a short one each time, as LSF does."""
    other, brief = REASON.replace("900", "901"), "Pending job threshold reached"
    later = [jobs_pb2.SubmitResult(error=text, retry_later=True) for text in (REASON, other, brief, brief)]
    desk.client.submit_results = [*later, jobs_pb2.SubmitResult(job=8, queue="q")]
    result = desk.type("bsub", "-o", "/dev/null", "x")
    assert result.err == "".join(f"{text}. Retrying in 60 seconds...\n" for text in (REASON, other, brief, brief))
