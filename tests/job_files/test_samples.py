"""One file of each kind: what lava understands of it, word by word, and that its own form says the same again.

``LAVA_WRITE_SAMPLES=1`` writes the expected texts anew, to be reviewed like any change.
"""

import os
from pathlib import Path

import pytest

from lavactl.job_files.dry_run import describe
from lavactl.job_files.model import JobFile
from lavactl.job_files.own.writer import as_values, write_json, write_yaml
from lavactl.job_files.understanding import Understood, understand_text
from lavactl.submit.job_options import requirement

SAMPLES = Path(__file__).parent / "samples"
SHARED = Path(__file__).resolve().parents[3] / "shared" / "specs"
FILES = sorted(path for path in SAMPLES.iterdir() if path.suffix in (".yaml", ".json"))


def understood(path: Path) -> Understood:
    """A file, understood."""
    return understand_text(path.read_text(encoding="utf-8-sig"), path.name, "ann")


def same(job: JobFile) -> object:
    """All that a job and its copy have in common: everything but places, remarks, secrets and the form it came in."""
    options = sorted((name, value) for name, value in job.options if name not in ("w", "R"))
    options.append(("R", requirement([value for name, value in job.options if name == "R"] or [""])))
    rules = None
    if job.rules is not None:
        rules = type(job.rules).FromString(job.rules.SerializeToString())
        del rules.secrets[:]
        rules = rules.SerializeToString()
    roles = [role.SerializeToString() for role in job.roles]
    return options, job.command, job.is_script, sorted(job.environment), roles, rules, job.run_limit_s


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_sample_is_understood(path: Path) -> None:
    """The text of a dry run, byte for byte."""
    said = describe(understood(path)) + "\n"
    expected = path.with_name(f"{path.name}.txt")
    if os.environ.get("LAVA_WRITE_SAMPLES") == "1":
        expected.write_text(said, encoding="utf-8")
    assert said == expected.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_its_own_form_says_the_same(path: Path) -> None:
    """Written as YAML or JSON and read again, each job is equal."""
    jobs = understood(path).jobs
    for job in jobs:
        for role in job.roles:  # a role whose command is an image's own has none to write
            if not role.command and not role.argv:
                role.command = "x"
    values = [as_values(job) for job in jobs]
    for text in (write_yaml(values), write_json(values)) if values else ():
        assert [same(job) for job in understand_text(text + "\n", "f").jobs] == [same(job) for job in jobs]


def test_no_secret_is_shown() -> None:
    """Neither a dry run nor the written form holds a secret's value."""
    for name in ("openpai-v2.yaml", "own-roles.yaml"):
        found = understood(SAMPLES / name)
        assert any(b"hunter2" in one for job in found.jobs if job.rules for one in job.rules.secrets)
        assert "hunter2" not in describe(found) + write_yaml([as_values(job) for job in found.jobs])


NO_JOBS = {"kueue/quick-start-setup.yaml", "kueue/shared-quota-setup.yaml", "volcano/hierarchical-queues.yaml"}
REFUSED = {"openpai/hived-config-3.yaml": "this is a configuration of HiveD, no job"}


@pytest.mark.skipif(not SHARED.is_dir(), reason="the job files of other systems' repositories are not here")
def test_files_of_other_systems_are_accepted() -> None:
    """Each job file that stands beside this repository is understood; those that hold no job say so."""
    paths = [path for path in sorted(SHARED.glob("*/*")) if path.suffix in (".yaml", ".json")]
    assert len(paths) > 30
    for path in paths:
        name = path.relative_to(SHARED).as_posix()
        if name in REFUSED:
            with pytest.raises(Exception, match=REFUSED[name]):
                understood(path)
            continue
        found = understood(path)
        assert bool(found.jobs) == (name not in NO_JOBS), name
        assert found.jobs or found.notes, name
        assert "ignored." not in describe(found) or found.jobs
