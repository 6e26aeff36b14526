"""Job parameters that bmod may change: a request that names others is refused as a whole."""

from datetime import UTC

import pytest
from google.protobuf.descriptor import FieldDescriptor

from lavad.api.jobs.modify import FILLED_IN, FOR_GOOD, Versions, in_words, take_over
from lavad.core.model.reasons import Refused
from protos import jobs_pb2 as pb
from protos.common_pb2 import GpuRequest, IndexRange, Role


@pytest.mark.parametrize(
    "field", ["array", "hold", "notify_end", "interactive", "submit_host", "environment_base", "nonsense"]
)
def test_what_is_so_for_good(field: str) -> None:
    """Fields set only at submission, fields of the master, and unknown names."""
    spec = pb.JobSpec(name="before")
    new = pb.JobSpec(name="after", hold=True, array=[IndexRange(first=1, last=9)])
    with pytest.raises(Refused, match=f"{field}: not a parameter"):
        take_over(spec, pb.ModifyRequest(spec=new, fields=["name", field]))


def test_only_what_is_named_is_taken() -> None:
    """Only named fields change, including those that are reset."""
    spec = pb.JobSpec(name="before", project="p", run_limit_s=60)
    take_over(spec, pb.ModifyRequest(spec=pb.JobSpec(name="after", project="q"), fields=["name", "run_limit_s"]))
    assert (spec.name, spec.project, spec.run_limit_s) == ("after", "p", 0)


def test_a_limit_of_processes_leaves_the_others() -> None:
    """`bmod -c` is about the CPU limit alone; clients of before named all at once."""
    spec = pb.JobSpec(rlimits=[pb.Rlimit(name="fsize", soft=1 << 20), pb.Rlimit(name="cpu", soft=60)])
    new = pb.JobSpec(rlimits=[pb.Rlimit(name="cpu", soft=120)])
    take_over(spec, pb.ModifyRequest(spec=new, fields=["rlimits.cpu"]))
    assert {limit.name: limit.soft for limit in spec.rlimits} == {"fsize": 1 << 20, "cpu": 120}
    take_over(spec, pb.ModifyRequest(spec=new, fields=["rlimits"]))
    assert {limit.name: limit.soft for limit in spec.rlimits} == {"cpu": 120}


def test_the_period_of_checkpoints_leaves_their_other_terms() -> None:
    """bchkpnt -p; without a period there is no first one by itself. Of other jobs it is refused."""
    spec = pb.JobSpec(checkpoint=pb.Checkpoint(directory="/saved", period_s=600, first_s=60, method="own"))
    for period_s, first_s in ((300, 60), (0, 0)):
        new = pb.JobSpec(checkpoint=pb.Checkpoint(period_s=period_s))
        take_over(spec, pb.ModifyRequest(spec=new, fields=["checkpoint.period_s"]))
        assert spec.checkpoint == pb.Checkpoint(directory="/saved", period_s=period_s, first_s=first_s, method="own")
    with pytest.raises(Refused, match="Job is not checkpointable"):
        take_over(pb.JobSpec(), pb.ModifyRequest(fields=["checkpoint.period_s"]))


def test_old_and_new_values_in_the_words_of_users() -> None:
    """As bsub takes them and bjobs -l shows them; unchanged values are omitted, an unset old value is "none"."""
    before = pb.JobSpec(
        name="wave", run_limit_s=600, memory_limit_mib=512, begin_time=1_792_000_000, output="a",
        roles=[Role(tasks_min=1, requirement="select[mem>10]")],
        rlimits=[pb.Rlimit(name="fsize", soft=1 << 20)],
    )  # fmt: skip
    after = pb.JobSpec(
        name="wave", run_limit_s=1800, memory_limit_mib=1536, output="b", output_overwrite=True, queues=["short"],
        roles=[Role(tasks_min=2, tasks_max=8, gpu=GpuRequest(num=2))],
        rlimits=[pb.Rlimit(name="cpu", soft=90)], rerunnable=True,
    )  # fmt: skip
    assert in_words(Versions(before, after, "normal"), UTC).split(", ") == [
        "queue from <normal> to <short>",
        "number of tasks from 1 to 2,8",
        "resource requirement from <select[mem>10]> to none",
        "GPU requirement from none to <num=2>",
        "run limit from 10.0 min to 30.0 min",
        "memory limit from 512 M to 1.5 G",
        "CPU limit from none to 1.5 min",
        "file limit from 1024 K to none",
        "rerunnable from none to yes",
        "output file from <a> to <b> (overwritten)",
        "begin time from Wed Oct 14 17:46 2026 to none",
    ]
    assert in_words(Versions(before, before, "normal"), UTC) == "nothing that was otherwise before"


def test_every_parameter_that_can_be_changed_is_told() -> None:
    """A field that bmod may name without a wording would be missing from the history."""
    told_otherwise = {"roles", "is_script", "submit_cwd", "umask_plus_one"}
    told_otherwise |= {"output_overwrite", "error_overwrite", "not_rerunnable", "requirement_text", "resizable"}
    told_otherwise |= {"resize_notify", "environment", "rlimits"} | FILLED_IN | FOR_GOOD
    for field in pb.JobSpec.DESCRIPTOR.fields:
        if field.name in told_otherwise:
            continue
        after = pb.JobSpec()
        value = {"string": "x", "bool": True, "bytes": b"x"}.get(_KINDS.get(field.type, ""), 60)
        if field.message_type is not None:
            first = {"checkpoint": "directory", "host_file": "path"}[field.name]
            setattr(getattr(after, field.name), first, "/saved")
        elif field.is_repeated:
            getattr(after, field.name).append(value)
        else:
            setattr(after, field.name, value)
        assert in_words(Versions(pb.JobSpec(), after, ""), UTC).count(" from ") == 1, field.name


_KINDS = {
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_BYTES: "bytes",
}


@pytest.mark.parametrize("field", ["hosts", "roles.tasks", "roles.requirement"])
def test_a_job_whose_hosts_or_slots_change_has_no_host_file(field: str) -> None:
    """bjobs -hostfile would show what no longer holds; other changes leave it, and a new one takes its place."""
    spec = pb.JobSpec(hosts=["n1"])
    spec.host_file.path = "/home/ann/hosts"
    take_over(spec, pb.ModifyRequest(spec=pb.JobSpec(name="a"), fields=["name"]))
    assert spec.host_file.path
    before = pb.JobSpec.FromString(spec.SerializeToString())
    take_over(spec, pb.ModifyRequest(fields=[field]))
    assert not spec.HasField("host_file")
    assert "host file from </home/ann/hosts> to none" in in_words(Versions(before, spec, "normal"), UTC)
    take_over(spec, pb.ModifyRequest(spec=before, fields=["hosts", "host_file"]))
    assert spec.host_file.path
