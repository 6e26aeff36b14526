"""Environment variables that Slurm's manual names for its commands, each with its fate.

Invariants: a variable that stands for an option has the option's fate; none that would change what is done is passed
over without a word; docs/reference/slurm.md is generated from these, and a test compares them with Slurm's manual.
"""

from typing import NamedTuple

from lavactl.options import printable
from lavactl.slurm.words.options import FAILURE, FLAG, HONOURED, IGNORED, REFUSED, Given, Option, Parser, fail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from lavactl.io import Io

NO = ("", "0", "no")  # values of a variable that do not set a flag
MEANINGLESS = "Slurm's own"  # about its files and messages: nothing that lava does depends on it
ONE_CLUSTER = "a command speaks to the one cluster of its agent"
# Beginnings of the names; of several the first that is set counts.
PREFIXES = {
    "sbatch": ("SBATCH_",), "salloc": ("SALLOC_",), "srun": ("SRUN_", "SLURM_"), "squeue": ("SQUEUE_",),
    "sacct": ("SACCT_",), "scancel": ("SCANCEL_",), "scontrol": ("SCONTROL_",), "sinfo": ("SINFO_",),
}  # fmt: skip
# Variables that only srun reads: those of a job would be taken for those of the next.
NOT_OF_SBATCH = ("NNODES", "NTASKS", "NTASKS_PER_NODE", "CPUS_PER_TASK")
# Options that have no effect or are not supported, by the ends of their variables' names.
OF_REQUEST = {
    "ACCTG_FREQ": "acctg-freq", "CLUSTERS": "clusters", "CONTAINER": "container", "CORE_SPEC": "core-spec",
    "CPUS_PER_GPU": "cpus-per-gpu", "DEBUG": "verbose", "DELAY_BOOT": "delay-boot", "DISTRIBUTION": "distribution",
    "GPU_BIND": "gpu-bind", "GPU_FREQ": "gpu-freq", "GRES_FLAGS": "gres-flags", "HINT": "hint",
    "MEM_BIND": "mem-bind", "NETWORK": "network", "NO_KILL": "no-kill", "POWER": "power", "PROFILE": "profile",
    "QOS": "qos", "REQ_SWITCH": "switches", "SPREAD_JOB": "spread-job", "THREAD_SPEC": "thread-spec",
    "THREADS_PER_CORE": "threads-per-core", "USE_MIN_NODES": "use-min-nodes", "WCKEY": "wckey",
}  # fmt: skip
FURTHER: "dict[str, dict[str, str]]" = {
    "sbatch": OF_REQUEST | {
        "BATCH": "batch", "GET_USER_ENV": "get-user-env", "IGNORE_PBS": "ignore-pbs", "OVERCOMMIT": "overcommit",
        "WAIT_ALL_NODES": "wait-all-nodes",
    },
    "salloc": {name: option for name, option in OF_REQUEST.items() if name != "DISTRIBUTION"} | {
        "BELL": "bell", "BURST_BUFFER": "bb", "IMMEDIATE": "immediate", "KILL_CMD": "kill-command",
        "NO_BELL": "no-bell", "OVERCOMMIT": "overcommit", "WAIT_ALL_NODES": "wait-all-nodes",
    },
    "srun": OF_REQUEST | {
        "BCAST": "bcast", "BCAST_EXCLUDE": "bcast-exclude", "BURST_BUFFER": "bb", "COMPRESS": "compress",
        "CPU_BIND": "cpu-bind", "CPU_FREQ_REQ": "cpu-freq", "DISABLE_STATUS": "disable-status", "EPILOG": "epilog",
        "IMMEDIATE": "immediate", "NTASKS_PER_CORE": "ntasks-per-core", "NTASKS_PER_GPU": "ntasks-per-gpu",
        "NTASKS_PER_SOCKET": "ntasks-per-socket", "PROLOG": "prolog", "RESV_PORTS": "resv-ports",
        "SEND_LIBS": "send-libs", "TASK_EPILOG": "task-epilog", "TASK_PROLOG": "task-prolog", "THREADS": "threads",
        "UNBUFFEREDIO": "unbuffered",
    },
    "squeue": {
        "FEDERATION": "federation", "LICENSES": "licenses", "LOCAL": "local", "PRIORITY": "priority", "QOS": "qos",
        "SIBLING": "sibling",
    },
    "sacct": {"FEDERATION": "federation", "LOCAL": "local"},
    "scancel": {
        "BATCH": "batch", "CTLD": "ctld", "HURRY": "hurry", "INTERACTIVE": "interactive", "QOS": "qos",
        "WCKEY": "wckey",
    },
    "scontrol": {
        "ALL": "all", "FEDERATION": "federation", "FUTURE": "future", "LOCAL": "local", "SIBLING": "sibling",
    },
    "sinfo": {"FEDERATION": "federation", "LOCAL": "local", "SORT": "sort"},
}  # fmt: skip


class Variable(NamedTuple):
    """One variable. ``option``: the option that it stands for; empty for none."""

    name: str
    fate: str
    words: str
    option: str = ""


def _told(name: str, words: str) -> Variable:
    return Variable(name, IGNORED, words)


CONF = Variable("SLURM_CONF", MEANINGLESS, "lava reads none of Slurm's files")
DEBUG_FLAGS = Variable("SLURM_DEBUG_FLAGS", MEANINGLESS, "lava has no such messages")
CLUSTERS = Variable("SLURM_CLUSTERS", REFUSED, ONE_CLUSTER)
TIMES = _told("SLURM_TIME_FORMAT", "times are written in Slurm's standard format")
INDICES = _told("SLURM_BITSTR_LEN", "indices are always shown whole")
SWITCHES = "use -R cu[...] of bsub"
EXIT = Variable("SLURM_EXIT_ERROR", HONOURED, "the exit code where the command itself fails")
EXTRA: "dict[str, tuple[Variable, ...]]" = {
    "sbatch": (
        CONF, DEBUG_FLAGS, CLUSTERS, EXIT, _told("SBATCH_WAIT4SWITCH", SWITCHES),
        _told("SLURM_HINT", "bind processors with -R affinity[...] of bsub"),
        Variable("SLURM_STEP_KILLED_MSG_NODE_ID", MEANINGLESS, "lava has no such messages"),
        Variable("SLURM_UMASK", HONOURED, "the job's file mode creation mask, in octal"),
    ),
    "salloc": (
        CONF, DEBUG_FLAGS, CLUSTERS, EXIT, _told("SALLOC_WAIT4SWITCH", SWITCHES),
        _told("SLURM_HINT", "bind processors with -R affinity[...] of bsub"),
        _told("SLURM_EXIT_IMMEDIATE", "the job waits its turn"),
    ),
    "srun": (
        CONF, DEBUG_FLAGS, EXIT, _told("SLURM_WAIT4SWITCH", SWITCHES),
        _told("SLURM_EXIT_IMMEDIATE", "the job waits its turn"),
        _told("SLURM_DIST_PLANESIZE", "tasks fill one host after the other"),
        Variable("SLURM_JOB_ID", HONOURED, "the surrounding job", "jobid"),
        Variable("SLURM_JOB_NUM_NODES", HONOURED, "hosts of the surrounding job", "nodes"),
        Variable("SLURM_NPROCS", HONOURED, "tasks of the surrounding job", "ntasks"),
        _told("SLURM_REMOTE_CWD", "tasks start in --chdir, else in the directory of srun"),
        _told("SLURM_STEP_GRES", "a step has what its job has"),
        _told("SLURM_TEST_EXEC", "a program that is not there fails its task"),
        Variable("SLURM_UMASK", MEANINGLESS, "Slurm passes it on; tasks have the mask of srun"),
        *(Variable(name, MEANINGLESS, "lava's PMI needs no such number") for name in (
            "PMI_FANOUT", "PMI_FANOUT_OFF_HOST", "PMI_TIME", "SLURM_PMI_KVS_NO_DUP_KEYS")),
        *(Variable(name, MEANINGLESS, "lava has no such messages") for name in (
            "SLURM_STEP_KILLED_MSG_NODE_ID", "SLURM_SRUN_REDUCE_TASK_EXIT_MSG", "SLURMD_DEBUG")),
    ),
    "squeue": (CONF, DEBUG_FLAGS, CLUSTERS, TIMES, INDICES),
    "sacct": (CONF, DEBUG_FLAGS, TIMES, INDICES),
    "scancel": (CONF, DEBUG_FLAGS, CLUSTERS),
    "scontrol": (CONF, DEBUG_FLAGS, CLUSTERS, TIMES, INDICES,
                 Variable("SLURM_CONF_OUT", MEANINGLESS, "scontrol writes no configuration"),
                 Variable("SLURM_TOPO_LEN", MEANINGLESS, "scontrol shows no topology")),
    "sinfo": (CONF, DEBUG_FLAGS, CLUSTERS, TIMES),
}  # fmt: skip
# What srun and salloc read under a name of their own, beside that of the table.
OTHER_NAMES = {
    "srun": {"STDERRMODE": "error", "STDINMODE": "input", "STDOUTMODE": "output", "WORKING_DIR": "chdir"}
}  # fmt: skip


def variables_of(parser: Parser) -> "Iterator[Variable]":
    """Variables of a command, each by its name."""
    for prefix in PREFIXES[parser.command]:
        for end, option in _ends(parser):
            words = option.words if option.fate != HONOURED else f"stands for --{option.name}"
            yield Variable(prefix + end, option.fate, words, option.name)
    yield from EXTRA[parser.command]


def _ends(parser: Parser) -> "Iterator[tuple[str, Option]]":
    """(end of its name, option) of each variable that stands for an option."""
    for option in parser.options:
        if option.environment and (parser.command == "srun" or option.environment not in NOT_OF_SBATCH):
            yield option.environment, option
    for end, name in {**FURTHER[parser.command], **OTHER_NAMES.get(parser.command, {})}.items():
        found = parser.named(name)
        assert found is not None, name
        yield end, found


def options_given(parser: Parser, io: "Io", of_job: "Collection[str]" = ()) -> Given:
    """Options that variables give; those without effect are named, and those that are not supported refused.

    Args:
        of_job: names of options whose SLURM_ variables tell of the surrounding job: only SRUN_ is read for them.
    """
    given, environ = Given(), io.environ
    if not any(name.startswith(("SLURM", "SRUN_", "PMI_", *PREFIXES[parser.command])) for name in environ):
        return given
    for end, option in _ends(parser):
        prefixes = [one for one in PREFIXES[parser.command] if one != "SLURM_" or option.name not in of_job]
        name = next((prefix + end for prefix in prefixes if prefix + end in environ), "")
        if not name or (option.kind == FLAG and environ[name].lower() in NO):
            continue
        if option.fate == HONOURED:
            given.items.append((option.name, "" if option.kind == FLAG else environ[name]))
        else:
            _without_effect(parser.command, Variable(name, option.fate, option.words), io)
    for variable in EXTRA[parser.command]:
        if variable.name in environ and variable.fate in (IGNORED, REFUSED):
            _without_effect(parser.command, variable, io)
    return given


def _without_effect(command: str, variable: Variable, io: "Io") -> None:
    if variable.fate == REFUSED:
        raise fail(
            command, f"{variable.name}={printable(io.environ[variable.name])} is not supported: {variable.words}."
        )
    io.error(f"{command}: {variable.name} has no effect: {variable.words}.")


def with_variables(
    parser: Parser, given: Given, io: "Io", over: "Mapping[str, Collection[str]] | None" = None
) -> Given:
    """Options that were typed over those that variables give, one by one.

    Args:
        over: options that stand in the place of another one, by that one's name.
    """
    typed = {name for name, _ in given.items}
    away = typed | {name for name, others in (over or {}).items() if not typed.isdisjoint(others)}
    whole = Given()
    whole.words = given.words
    whole.items = [item for item in options_given(parser, io).items if item[0] not in away] + given.items
    return whole


def exit_code(command: str, code: int, io: "Io") -> int:
    """Exit code of a command that fails, with SLURM_EXIT_ERROR in the environment."""
    text = io.environ.get(EXIT.name, "")
    is_wanted = command in ("sbatch", "srun", "salloc") and code == FAILURE and text.isascii() and text.isdigit()
    return int(text) & 0xFF if is_wanted else code
