"""Variables that others rely on, name by name: OpenPAI's as the collected facts list them, Slurm's as they are read.

The facts are in a folder beside the repository; without it the test of OpenPAI's table is left out, with a word.
"""

import re
from pathlib import Path

import pytest

from tests.agents.told.jobs import at, job, role, told, variables

FACTS = Path(__file__).resolve().parents[4] / "shared" / "reference" / "workload-specs.md"
ROLES = (role("ps", "http", "ssh", failed_enough=1), role("worker", "http", "ssh", succeeded_enough=2))
HOSTS = (at("n1", "10.0.0.1", r0="0:4001/4002", r1="0:4003/4004"), at("n2", "10.0.0.2", r1="1:4001/4002"))
# What the table writes in place of a part of a name.
PARTS = {"<R>": "worker", "<i>": "1", "<label>": "http"}
NOT_SET = {"PAI_JOB_VC_NAME"}  # documented, but not set by OpenPAI's own code


def names_in(section: str) -> set[str]:
    """Names of variables in a piece of the facts, with its abbreviations written out."""
    found = set()
    for name, _, several in re.findall(r"(PAI_[A-Za-z_<>]+)(\{([A-Z_, ]+)\})?", section):
        for end in several.split(",") if several else [""]:
            text = name + end.strip()
            for part, value in PARTS.items():
                text = text.replace(part, value)
            found.add(text)
    return found - NOT_SET


@pytest.mark.skipif(not FACTS.exists(), reason="needs the collected facts beside the repository (../shared)")
@pytest.mark.parametrize("generation", [0, 1])
def test_every_variable_of_openpai_is_told(generation: int) -> None:
    """Each name of the table of section 3.3, in the generation that has it."""
    section = FACTS.read_text(encoding="utf-8").partition("### 3.3")[2].partition("### 3.4")[0]
    present, _, first = section.partition("v0.x additionally")
    wanted = names_in(present) | (names_in(first.partition("\n")[0]) if generation == 0 else set())
    line = f"pai generation={generation} data-dir=d output-dir=o code-dir=c"
    known = set(variables(told(job(ROLES, line), HOSTS, role=1, index=1), "PAI_"))
    assert len(wanted) > 30
    assert sorted(wanted - known) == []


# By the program that reads them: those without which it fails, or takes itself for alone.
READ = {
    "JAX": "JOB_ID STEP_NODELIST NTASKS PROCID LOCALID STEP_NUM_NODES",
    "Lightning": "NTASKS NTASKS_PER_NODE NNODES NODELIST JOB_ID JOB_NAME PROCID LOCALID NODEID",
    "NeMo": "JOB_ID NTASKS NTASKS_PER_NODE JOB_NUM_NODES PROCID LOCALID JOB_NODELIST SUBMIT_DIR",
    "submitit": "JOB_ID ARRAY_JOB_ID ARRAY_TASK_ID NTASKS JOB_NUM_NODES NODEID PROCID LOCALID JOB_NODELIST",
    "NVRx": "PROCID JOB_ID NNODES TOPOLOGY_ADDR ARRAY_TASK_ID RESTART_COUNT TASKS_PER_NODE",
    "Accelerate": "GPUS_ON_NODE NNODES PROCID",
}


@pytest.mark.parametrize("program", READ)
def test_every_variable_of_slurm_that_programs_read(program: str) -> None:
    """Of an array's element that runs for the second time, so that all of them apply."""
    roles = (role("worker", slots_per_task=2),)
    roles[0].gpu.num, roles[0].gpu.per_task = 2, True
    where = (at("n1", "10.0.0.1", r0="0,1"), at("n2", "10.0.0.2", r0="2,3"))
    result = told(job(roles, "slurm"), where, role=0, index=3, key=(7, 4, 2), gpus=(2, 3))
    found = variables(result, "SLURM_")
    assert sorted(set(READ[program].split()) - {name.removeprefix("SLURM_") for name in found}) == []
    assert (found["SLURM_NTASKS_PER_NODE"], found["SLURM_GPUS_ON_NODE"]) == ("2", "4")
