"""Writes the tables of docs/reference/slurm.md from the parsers of Slurm's commands.

What stands outside the marks in the page is written by hand.
"""

import re
from importlib import import_module
from pathlib import Path

from lavactl.main import SLURM
from lavactl.slurm.submit.options import PARSERS
from lavactl.slurm.words.accounting_fields import FIELDS as ACCOUNTING
from lavactl.slurm.words.job_fields import FIELDS as JOBS
from lavactl.slurm.words.options import HONOURED, IGNORED, Option, Parser, spelled
from lavactl.slurm.words.variables import variables_of

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "slurm.md"
MARK = re.compile(r"<!-- options of (\w+) -->\n.*?<!-- end -->", re.DOTALL)
WITHOUT = re.compile(r"<!-- variables not set -->\n.*?<!-- end -->", re.DOTALL)
VARIABLES = re.compile(r"<!-- variables of (\w+) -->\n.*?<!-- end -->", re.DOTALL)
FIELDS = re.compile(r"<!-- fields of (\w+) -->\n.*?<!-- end -->", re.DOTALL)

# Output variables of Slurm's manual that no job of lava has, by the reason.
NOT_SET = {
    "memory is bound by -R affinity[...] of bsub": (
        "SBATCH_MEM_BIND SBATCH_MEM_BIND_LIST SBATCH_MEM_BIND_PREFER SBATCH_MEM_BIND_TYPE SBATCH_MEM_BIND_VERBOSE "
        "SLURM_MEM_BIND SLURM_MEM_BIND_LIST SLURM_MEM_BIND_PREFER SLURM_MEM_BIND_SORT SLURM_MEM_BIND_TYPE "
        "SLURM_MEM_BIND_VERBOSE"
    ),
    "processors are bound by -R affinity[...] of bsub": (
        "SLURM_CPU_BIND_LIST SLURM_CPU_BIND_TYPE SLURM_CPU_BIND_VERBOSE SLURM_THREADS_PER_CORE "
        "SLURM_NTASKS_PER_CORE SLURM_NTASKS_PER_SOCKET"
    ),
    "the option has no effect, or is not supported": (
        "SLURM_CONTAINER SLURM_CPUS_PER_GPU SLURM_CPU_FREQ_REQ SLURM_DIST_PLANESIZE SLURM_GPU_BIND SLURM_GPU_FREQ "
        "SLURM_GPUS_PER_SOCKET SLURM_NTASKS_PER_GPU SLURM_OVERCOMMIT SLURM_PROFILE"
    ),
    "lava has no quality of service, heterogeneous jobs, shards or aliases of nodes": (
        "SLURM_JOB_QOS SLURM_HET_SIZE SLURM_SHARDS_ON_NODE SLURM_NODE_ALIASES"
    ),
    "no client needs them: a step has the environment that srun passes on": (
        "SLURM_EXPORT_ENV SLURM_PRIO_PROCESS SLURM_UMASK SRUN_DEBUG"
    ),
    "lava's PMI has no port of Slurm's; SLURM_STEP_GPUS is what CUDA_VISIBLE_DEVICES says": (
        "SLURM_SRUN_COMM_PORT SLURM_STEP_LAUNCHER_PORT SLURM_STEP_GPUS"
    ),
    "the older name of SLURM_JOB_NODELIST, which is set": "SLURM_JOB_NODES",
    "$$ of the script, and getpid() of a task": "SLURM_TASK_PID",
}


def parser_of(command: str) -> Parser:
    """Parser of a command."""
    if command in PARSERS:
        return PARSERS[command]
    found: Parser = import_module(f"lavactl.slurm.{command}").PARSER
    return found


def row(option: Option) -> str:
    """One row: the option, its fate, a remark."""
    words = option.words.replace("|", "\\|")
    return f"| `{spelled(option).strip()}` | {said(option.fate)} | {words} |\n"


def table(found: "re.Match[str]") -> str:
    """The options of a command between its marks, those that are honoured first."""
    command = found[1]
    options = sorted(parser_of(command).options, key=lambda one: (one.fate != HONOURED, one.fate != IGNORED, one.name))
    head = "| option | here | |\n| --- | --- | --- |\n"
    return f"<!-- options of {command} -->\n{head}{''.join(map(row, options))}<!-- end -->"


def variables(found: "re.Match[str]") -> str:
    """The environment variables of a command between its marks, with those that scripts are told."""
    rows = sorted(set(variables_of(parser_of(found[1]))), key=lambda one: (one.name, one.words))
    lines = [f"| `{one.name}` | {said(one.fate)} | {one.words} |\n" for one in rows]
    head = "| variable | here | |\n| --- | --- | --- |\n"
    return f"<!-- variables of {found[1]} -->\n{head}{''.join(lines)}<!-- end -->"


def not_set(_: "re.Match[str]") -> str:
    """The variables that Slurm tells scripts and tasks of, and lava does not, with the reasons."""
    lines = [f"| {', '.join(f'`{name}`' for name in names.split())} | {why} |\n" for why, names in NOT_SET.items()]
    return f"<!-- variables not set -->\n| variable | why |\n| --- | --- |\n{''.join(lines)}<!-- end -->"


def said(fate: str) -> str:
    """Fate in a table."""
    return fate if fate != IGNORED else "ignored with a word"


def fields(found: "re.Match[str]") -> str:
    """The names of the fields of a command between its marks."""
    names = (
        sorted(field.title for field in ACCOUNTING.values())
        if found[1] == "sacct"
        else [f"{name} (`%{field.letter}`)" if field.letter else name for name, field in JOBS.items()]
    )
    return f"<!-- fields of {found[1]} -->\n{', '.join(names)}.\n<!-- end -->"


def page() -> str:
    """The page with its tables as they are now."""
    text = VARIABLES.sub(variables, FIELDS.sub(fields, MARK.sub(table, PAGE.read_text(encoding="utf-8"))))
    return WITHOUT.sub(not_set, text)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    assert set(SLURM) == {found[1] for found in MARK.finditer(PAGE.read_text(encoding="utf-8"))}
