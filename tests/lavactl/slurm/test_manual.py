"""Slurm's own manual pages against the tables: none of their options and variables is passed over without a word."""

import gzip
import re
import runpy
from pathlib import Path

import pytest

from agents.shepherd.process.spawner import _of_slurm
from lavactl.main import SLURM
from lavactl.slurm.steps import variables as of_steps
from lavactl.slurm.words import job_fields
from lavactl.slurm.words.variables import variables_of
from protos.common_pb2 import HostShare, IndexRange, Role
from protos.jobs_pb2 import JobSpec, SlurmTerms
from tests.agents.test_environment import environment_of
from tests.lavactl.scripted import Desk

ROOT = Path(__file__).resolve().parents[3]
PLACES = (ROOT / ".cache" / "slurm-client" / "usr/share/man/man1", Path("/usr/share/man/man1"))
HERE = next((place for place in PLACES if (place / "sbatch.1.gz").is_file()), None)
needs_manual = pytest.mark.skipif(HERE is None, reason="needs the manual pages of Debian's package slurm-client")
PAGE = runpy.run_path(str(ROOT / "packaging" / "slurm_page.py"))
# Names that the pages only mention, or that are headings of a choice.
NO_VARIABLES = {"SLURM_JOB_CPUS_PER_NODE_PACK_GROUP"}


def text_of(command: str) -> str:
    """A manual page without its marks of fonts."""
    assert HERE is not None
    text = gzip.decompress((HERE / f"{command}.1.gz").read_bytes()).decode()
    return re.sub(r"\\f[A-Z0-9]", "", text.replace("\\-", "-").replace("\\:", ""))


def heads(text: str) -> list[str]:
    """Lines that name what a paragraph is about."""
    return re.findall(r"^\.TP[^\n]*\n([^\n]*)", text, re.MULTILINE)


def section(text: str, title: str) -> str:
    """Sections with this word in their titles."""
    parts = re.split(r"^\.SH ", text, flags=re.MULTILINE)
    return "".join(part for part in parts if title in part.partition("\n")[0])


def named(text: str) -> set[str]:
    """Variables that are named at the head of a paragraph."""
    return {name for head in heads(text) for name in re.findall(r"\b(?:S[A-Z]+|PMI)_[A-Z0-9_]+\b", head)}


@needs_manual
@pytest.mark.parametrize("command", sorted(SLURM))
def test_every_option_of_the_manual_is_in_the_table(command: str) -> None:
    """It is honoured, ignored with a word, or refused with a reason."""
    options = {
        name
        for head in heads(text_of(command))
        if head.startswith("-")
        for name in re.findall(r"--([a-zA-Z][\w-]*)", head)
    }
    assert len(options) > 10
    assert options - {option.name for option in PAGE["parser_of"](command).options} == set()


@needs_manual
@pytest.mark.parametrize("command", sorted(SLURM))
def test_every_variable_that_a_command_reads_is_in_the_table(command: str) -> None:
    """INPUT ENVIRONMENT VARIABLES of a command that submits, ENVIRONMENT VARIABLES of the others."""
    text = text_of(command)
    wanted = named(section(text, "INPUT ENVIRONMENT") or section(text, "ENVIRONMENT VARIABLES"))
    assert len(wanted) > 5
    assert wanted - {one.name for one in variables_of(PAGE["parser_of"](command))} == set()


def variables_set(tmp_path: Path) -> set[str]:
    """Variables of a job and of a step that asked for all there is."""
    spec = JobSpec(
        name="x", project="p", cwd="/r", submit_host="h", array=[IndexRange(first=1, last=3)],
        roles=[Role(tasks_min=2, tasks_max=2, slots_per_task=1)], slurm=SlurmTerms(command="sbatch"),
    )  # fmt: skip
    found = environment_of(tmp_path, spec, [HostShare(host="n1", slots=4, gpus=[0], tasks_by_role=[2])])
    names = set(found) | {name.decode() for name in _of_slurm((12, 1, 3), 0)}
    names |= set(of_steps.of_step(0, ["n1", "n1"], 2, "10.0.0.1"))
    return names.union(*of_steps.of_tasks(["n1", "n1"]))


def asked(desk: Desk) -> set[str]:
    """Variables that the commands themselves give to a job that asked for all there is."""
    names: set[str] = set()
    for memory in ("--mem=1G", "--mem-per-cpu=1G", "--mem-per-gpu=1G"):
        desk.client.submit_results.append(desk.client.submit_results[0])
        desk.type(
            "sbatch", memory, "-n2", "--ntasks-per-node=2", "-c2", "-d", "afterok:5", "-L", "lic:2", "--comment=c",
            "--reservation=r", "--gpus-per-task=1", "--gpus=2", "--gpus-per-node=2", "--wrap", "true",
        )  # fmt: skip
        names |= {entry.partition(b"=")[0].decode() for entry in desk.spec.environment}
    return names


@needs_manual
@pytest.mark.parametrize("command", ["sbatch", "srun", "salloc"])
def test_every_variable_that_a_script_reads_is_set_or_named(command: str, tmp_path: Path, desk: Desk) -> None:
    """OUTPUT ENVIRONMENT VARIABLES: jobs and steps have them, or the page says why not; and never both."""
    wanted = named(section(text_of(command), "OUTPUT ENVIRONMENT"))
    assert len(wanted) > 20
    found = variables_set(tmp_path) | asked(desk)
    not_set = {name for names in PAGE["NOT_SET"].values() for name in names.split()}
    assert found & not_set == set()
    assert wanted - found - not_set == set()


@needs_manual
def test_every_letter_of_squeue_is_a_field() -> None:
    """Portals ask for all of them at once."""
    letters = set(re.findall(r"^%(\w)$", text_of("squeue"), re.MULTILINE))
    assert len(letters) > 40
    assert letters - set(job_fields.LETTERS) == set()
