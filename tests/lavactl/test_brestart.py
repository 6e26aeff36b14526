"""brestart: a new job from the checkpoint of an earlier one."""

from pathlib import Path

import pytest

from protos import jobs_pb2
from tests.lavactl.scripted import Desk


def earlier(desk: Desk, directory: Path, **fields: str) -> None:
    """Job 7 of the caller, with checkpoints in a directory, is what the master knows."""
    terms = jobs_pb2.Checkpoint(directory=str(directory), period_s=600, method="own", programs="/site")
    spec = jobs_pb2.JobSpec(command="a.out", name="sweep", cwd="/home/alice/run", submit_cwd="/home/alice/run")
    spec.array.add(first=1, last=9)
    spec.checkpoint.CopyFrom(terms)
    record = jobs_pb2.JobRecord(job=7, index=2, spec=spec, user=fields.get("user", "alice"))
    desk.client.jobs = [record]
    desk.client.submit_results = [jobs_pb2.SubmitResult(job=8, queue="night")]


def test_a_job_goes_on_from_the_checkpoint_of_another(desk: Desk, tmp_path: Path) -> None:
    """It has the options of the earlier one where none are given; of an array it is the element that is named."""
    earlier(desk, tmp_path)
    made = tmp_path / "7[2]" / ".checkpointed"
    made.parent.mkdir()
    made.touch()
    result = desk.type("brestart", "-f", "-q", "night", str(tmp_path), "7[2]")
    assert (result.code, result.out) == (0, "Job <8> is submitted to queue <night>.\n"), result
    spec = next(one.spec for one in reversed(desk.client.asked) if isinstance(one, jobs_pb2.SubmitItem))
    assert (spec.command, spec.name, list(spec.queues), list(spec.array)) == ("a.out", "sweep", ["night"], [])
    terms = spec.checkpoint
    assert (terms.directory, terms.restarts_from, terms.forces_restart) == (str(tmp_path), "7[2]", True)
    assert (terms.period_s, terms.method, terms.programs) == (600, "own", "/site")


def test_without_a_job_id_it_is_the_newest(desk: Desk, tmp_path: Path) -> None:
    """By number, of those with a checkpoint there (lsf.md 3: brestart)."""
    earlier(desk, tmp_path)
    for name in ("7[2]", "5", "7[1]"):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".checkpointed").touch()
    for name in ("70", "notes", "6"):
        (tmp_path / name).mkdir()
    (tmp_path / "80").symlink_to(tmp_path / "5")
    result = desk.type("brestart", str(tmp_path))
    assert (result.code, result.out) == (0, "Job <8> is submitted to queue <night>.\n"), result
    spec = next(one.spec for one in reversed(desk.client.asked) if isinstance(one, jobs_pb2.SubmitItem))
    assert spec.checkpoint.restarts_from == "7[2]"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["DIR", "7[2]"], "DIR: no checkpoint of job <7[2]> was made there."),
        (["/elsewhere", "7[2]"], "/elsewhere: the checkpoints of job <7[2]> are in DIR."),
        ([], "a checkpoint directory and perhaps a job id are expected"),
        (["DIR"], "DIR: no checkpoint of a job of yours was made there."),
        (["DIR/none"], "DIR/none: No such file or directory."),
        (["-k", "DIR", "7[2]"], "-k: the directory and the periods of the checkpoints stay as they were."),
    ],
)
def test_what_is_refused(desk: Desk, tmp_path: Path, words: list[str], why: str) -> None:
    """One sentence each."""
    earlier(desk, tmp_path)
    result = desk.type("brestart", *[word.replace("DIR", str(tmp_path)) for word in words])
    assert (result.code, why.replace("DIR", str(tmp_path)) in result.err) == (255, True), result
    assert not [one for one in desk.client.asked if isinstance(one, jobs_pb2.SubmitItem)]


def test_jobs_of_others_are_refused(desk: Desk, tmp_path: Path) -> None:
    """Also for an administrator, who sees them."""
    earlier(desk, tmp_path, user="somebody")
    assert "another user's" in desk.type("brestart", str(tmp_path), "7").err
