"""srun: within a job a step on its allocation; elsewhere a job that consists of one step, followed to its end."""

from lavactl.errors import CommandError
from lavactl.slurm.steps.layout import Misfit, Wish, layout, needs
from lavactl.slurm.steps.ledger import Ledger
from lavactl.slurm.steps.programs import programs
from lavactl.slurm.steps.step import Plan, Step, passed_on
from lavactl.slurm.submit.choices import Choices, environment_options, refuse_components
from lavactl.slurm.submit.following import run_as_job
from lavactl.slurm.submit.options import PARSERS, REQUEST, STEP
from lavactl.slurm.words import values
from lavactl.slurm.words.options import FAILURE, HONOURED, Given, answered, fail, typed
from lavactl.slurm.words.variables import NO
from lavactl.tasks.surrounding_job import job_around
from lavactl.text import units
from lavactl.wire.connection import LostError
from protos.slurm_words import expanded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io
    from lavactl.tasks.surrounding_job import JobKey

USAGE = "Usage: srun [options] program [argument ...]"
PARSER = PARSERS["srun"]
COUNT = "a number of at least 1"
HOSTS = "hosts such as n[01-04],n07"
RETRY_S, RETRY_MAX_S = 0.1, 2.0
SCRIPT = """#!/bin/sh
[ -x "$LSF_BINDIR/lavactl" ] && exec "$LSF_BINDIR/lavactl" srun --quiet "$@"
exec {} srun --quiet "$@"
"""
OF_REQUEST = tuple(option.name for option in REQUEST)
OF_STEP = tuple(option.name for option in STEP)
# Options of a request that a step has as well; the others it has from its job.
ALSO_OF_STEP = ("chdir", "cpus-per-task", "exclude", "exclusive", "gpus-per-task", "nodelist", "nodes", "ntasks",
                "ntasks-per-node", "quiet")  # fmt: skip
OF_JOB_ALONE = ("chdir", "exclude", "nodefile", "nodelist")


def main(argv: list[str], io: "Io") -> int:
    """Run srun."""
    line = PARSER.parse(argv)
    if answered(line, PARSER, USAGE, io):
        return 0
    is_inside = "LSB_JOBID" in io.environ and "LSB_MCPU_HOSTS" in io.environ
    variables = environment_options("srun", io, OF_REQUEST if is_inside else ())
    choices = Choices("srun", line, variables)
    choices.say_ignored(io)
    refuse_components("srun", line.words)
    if not line.words:
        raise fail("srun", "no command is given to run.")
    if (text := choices.last("input")) not in (None, "none", "all", "0"):
        raise fail("srun", f"--input {text}: use a redirection of the shell; the first task reads it.")
    if is_inside:
        say_without_effect(line, io)
        return run_step(choices, line.words, io)
    if (named := choices.last("jobid")) is not None:
        raise fail("srun", f"--jobid {named}: a step runs only within its own job.")
    return run_as_job(choices, SCRIPT.format(_own_lavactl()), argv_in_job(line, variables), line.words[0], io)


def say_without_effect(line: Given, io: "Io") -> None:
    """Name the options of a request that a step does not have."""
    if "quiet" in line:
        return
    for name in dict.fromkeys(name for name, _ in line.items if name in OF_REQUEST and name not in ALSO_OF_STEP):
        option = PARSER.named(name)
        if option is not None and option.fate == HONOURED:
            io.error(f"srun: --{name} has no effect on a step: it has what its job has.")


def argv_in_job(line: Given, variables: Given) -> list[str]:
    """Arguments of the step of a job that this command submits.

    Options that variables gave are among them, since a job inherits no variables of Slurm. Its directory and hosts are
    the job's, for which they were asked already.
    """
    items = [item for item in variables.items if item[0] in OF_STEP]
    items += [item for item in line.items if item[0] not in OF_JOB_ALONE]
    found = [(PARSER.named(name), value) for name, value in items]
    return [*(typed(option, value) for option, value in found if option is not None), "--", *line.words]


def _own_lavactl() -> str:
    import shlex
    import sysconfig

    return shlex.quote(f"{sysconfig.get_path('scripts')}/lavactl")


def run_step(choices: Choices, words: list[str], io: "Io") -> int:
    """Run a step on the surrounding allocation."""
    job = job_around(io, "srun")
    if (named := choices.last("jobid")) is not None and named.partition("_")[0] != str(job.job):
        raise fail("srun", f"--jobid {named}: a step runs only within its own job; here that is {job.job}.")
    slots = {host: job.slots.count(host) for host in job.hosts}
    wish = wish_of(choices, list(slots), io)
    try:
        ranks = layout(slots, wish)
    except Misfit as misfit:
        raise fail("srun", f"Unable to create step for job {job.job}: {misfit}.") from None
    started = programs(words, "multi-prog" in choices, len(ranks), io)
    # The number of the attempt's shepherd tells apart the jobs of several clusters on one machine.
    ledger = Ledger(f"{job.job}.{job.index}.{job.attempt}-{io.environ.get('LS_JOBPID', '')}", io.uid)
    number = enter(ledger, needs(ranks, wish.cpus, slots), slots, choices, job, io)
    try:
        return Step(plan_of(choices, number, ranks, started, io), job, io).run()
    except LostError as error:
        raise CommandError(
            f"srun: error: the agent of this host has gone, the tasks are killed: {error}.", FAILURE
        ) from None
    finally:
        ledger.leave()


def enter(
    ledger: Ledger, wanted: dict[str, int], slots: dict[str, int], choices: Choices, job: "JobKey", io: "Io"
) -> int:
    """Number of the step, when its slots are free of other steps."""
    pause_s = RETRY_S
    overlaps = "overlap" in choices or "overcommit" in choices
    while (number := ledger.enter(wanted, slots, overlaps=overlaps)) is None:
        if pause_s == RETRY_S and "quiet" not in choices:
            io.error(f"srun: Job {job.job} step creation temporarily disabled, retrying (Requested nodes are busy)")
        io.sleep(pause_s)
        pause_s = min(RETRY_MAX_S, pause_s * 1.5)
    return number


def wish_of(choices: Choices, known: list[str], io: "Io") -> Wish:
    """Numbers of a step: its own options, then those of the job, whose hosts are given."""
    tasks = choices.read("ntasks", values.read_count, COUNT)
    nodes = choices.read("nodes", values.read_nodes, "a number of hosts")
    per_node = choices.read("ntasks-per-node", values.read_count, COUNT)
    cpus = choices.read("cpus-per-task", values.read_count, COUNT)
    hosts = len(known)
    if tasks is None and per_node is None and nodes is None:
        tasks, per_node = _of_job("SLURM_NTASKS", io), _of_job("SLURM_NTASKS_PER_NODE", io)
    elif tasks is None and per_node is None and nodes is not None and nodes[0] == hosts:
        tasks = _of_job("SLURM_NTASKS", io)
    elif tasks is not None and nodes is not None and nodes[0] > tasks:
        nodes = tasks, tasks  # as its job has it: a host without a task is none of the step
    relative = choices.read("relative", lambda text: units.read_count(text, 0), "a number") or 0
    return Wish(
        tasks=tasks,
        nodes=None if nodes is None else min(nodes[1], hosts) if nodes[0] <= hosts else nodes[0],
        per_node=per_node,
        cpus=cpus or _of_job("SLURM_CPUS_PER_TASK", io) or 1,
        relative=relative,
        hosts=tuple(_hosts(choices, known[relative:])),
        overcommit="overcommit" in choices,
    )


def _hosts(choices: Choices, known: list[str]) -> list[str]:
    """Hosts that --nodelist and --exclude leave; empty for all."""
    wanted = choices.read("nodelist", expanded, HOSTS) or []
    excluded = set(choices.read("exclude", expanded, HOSTS) or [])
    if not excluded:
        return wanted
    left = [host for host in wanted or known if host not in excluded]
    if not left:
        raise fail("srun", "--exclude leaves no host of the allocation.")
    return left


def _of_job(name: str, io: "Io") -> int | None:
    text = io.environ.get(name, "")
    return int(text) if units.is_digits(text) and int(text) else None


def plan_of(choices: Choices, number: int, ranks: list[str], started: list[list[str]], io: "Io") -> Plan:
    """The step, from its options."""
    plan = Plan(number, ranks, started)
    plan.cwd = io.path(choices.last("chdir") or io.cwd)
    plan.output, plan.error = choices.last("output") or "", choices.last("error") or ""
    plan.appends = (choices.last("open-mode") or "t")[:1] == "a"
    plan.environment = passed_on(choices.last("export"), io)
    plan.cpus = choices.read("cpus-per-task", values.read_count, COUNT)
    plan.is_labelled = "label" in choices
    plan.kills_all = "kill-on-bad-exit" in choices and (choices.last("kill-on-bad-exit") or "1") not in NO
    plan.has_own_gpus = "gpus-per-task" in choices or "SLURM_GPUS_PER_TASK" in io.environ
    plan.with_pmi = (choices.last("mpi") or "pmi2") != "none"
    plan.reads_nothing = choices.last("input") == "none"
    wait_s = choices.read("wait", lambda given: units.read_count(given, 0), "a number of seconds")
    plan.after_first_s = float(wait_s) if wait_s else None
    return plan
