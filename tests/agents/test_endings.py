"""Termination reasons: the same words in listings and in the job report."""

import pytest

from lavad.api import agents
from lavad.core.model import Key
from protos import agents_pb2 as pb


@pytest.mark.parametrize(
    ("end", "told"),
    [
        ({"status": 9, "reason": "TERM_MEMLIMIT"}, "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit."),
        (
            {"status": 2 << 8, "reason": "TERM_CWD_NOTEXIST", "detail": "The working directory /x cannot be entered."},
            "TERM_CWD_NOTEXIST: current working directory is not accessible or does not exist on the execution host. "
            "The working directory /x cannot be entered.",
        ),
        ({"status": 256, "detail": "The output file /x cannot be opened."}, "The output file /x cannot be opened."),
        ({"status": 256, "reason": "supervisor lost", "detail": "Why."}, "supervisor lost"),
        ({"status": 256}, ""),
        ({"status": 0, "detail": "No matter."}, ""),
    ],
)
def test_the_master_keeps_why_a_job_ended(end: dict[str, str | int], told: str) -> None:
    """A keyword with its meaning; for a failed start also the sentence with the cause."""
    report = agents._finished("h1", Key(1, 0, 1), pb.Report(finished=pb.Finished(**end)))  # type: ignore[arg-type]
    assert report.reason == told
