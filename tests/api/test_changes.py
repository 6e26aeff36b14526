"""Which parameters of a job bmod may name: a client that names others is refused, not obeyed in part."""

import pytest

from lavad.api.jobs import _take_over
from lavad.core.reasons import Refused
from protos import jobs_pb2 as pb
from protos.common_pb2 import IndexRange


@pytest.mark.parametrize("field", ["array", "hold", "notify_end", "submit_host", "environment_base", "nonsense"])
def test_what_is_so_for_good(field: str) -> None:
    """What only a submission says, what only the master knows, and what is no parameter."""
    spec = pb.JobSpec(name="before")
    new = pb.JobSpec(name="after", hold=True, array=[IndexRange(first=1, last=9)])
    with pytest.raises(Refused, match=f"{field}: not a parameter"):
        _take_over(spec, pb.ModifyRequest(spec=new, fields=["name", field]))


def test_only_what_is_named_is_taken() -> None:
    """Also where that means taking a value back."""
    spec = pb.JobSpec(name="before", project="p", run_limit_s=60)
    _take_over(spec, pb.ModifyRequest(spec=pb.JobSpec(name="after", project="q"), fields=["name", "run_limit_s"]))
    assert (spec.name, spec.project, spec.run_limit_s) == ("after", "p", 0)
