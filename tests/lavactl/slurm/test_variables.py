"""Environment variables of Slurm's commands: honoured, refused or told, and below what is typed."""

import pytest

from lavactl.main import SLURM
from lavactl.slurm.submit.options import PARSERS
from lavactl.slurm.words.options import HONOURED, IGNORED, REFUSED, Parser
from lavactl.slurm.words.variables import MEANINGLESS, Variable, variables_of
from lavactl.wire import messages
from protos import common_pb2, jobs_pb2
from tests.lavactl.scripted import NOW, Desk, a_job


def parser_of(command: str) -> Parser:
    """Parser of a command."""
    from importlib import import_module

    return PARSERS[command] if command in PARSERS else import_module(f"lavactl.slurm.{command}").PARSER


def of_fate(*fates: str) -> list[tuple[str, Variable]]:
    """Variables of all commands with these fates."""
    return [(name, one) for name in sorted(SLURM) for one in variables_of(parser_of(name)) if one.fate in fates]


ARGUMENTS = {"sbatch": ["--wrap", "true"], "scancel": ["7"],
             "scontrol": ["ping"]}  # fmt: skip


@pytest.mark.parametrize(("command", "variable"), of_fate(REFUSED))
def test_what_cannot_be_honoured_is_refused_by_the_variables_name(desk: Desk, command: str, variable: Variable) -> None:
    """With the reason that the option has."""
    desk.environ[variable.name] = "x"
    result = desk.type(command, *ARGUMENTS.get(command, []))
    said = f"{command}: error: {variable.name}=x is not supported: {variable.words}.\n"
    assert (result.code, result.err) == (1, said)
    assert not desk.client.asked


@pytest.mark.parametrize(("command", "variable"), of_fate(IGNORED))
def test_what_has_no_effect_is_told_by_the_variables_name(desk: Desk, command: str, variable: Variable) -> None:
    """Once, whatever else the command says or does."""
    desk.environ[variable.name] = "3"
    result = desk.type(command, *ARGUMENTS.get(command, []))
    assert result.err.count(f"{variable.name} has no effect: {variable.words}.") == 1


@pytest.mark.parametrize(("command", "variable"), of_fate(MEANINGLESS))
def test_what_is_slurms_own_says_nothing(desk: Desk, command: str, variable: Variable) -> None:
    """A host may have Slurm's files, too."""
    desk.environ[variable.name] = "x"
    assert variable.name not in desk.type(command, *ARGUMENTS.get(command, [])).err


def test_every_honoured_variable_is_an_option_or_has_a_test_here() -> None:
    """Those that stand for no option."""
    own = {one.name for _, one in of_fate(HONOURED) if not one.option}
    assert own == {"SLURM_EXIT_ERROR", "SLURM_UMASK"}


def test_a_site_may_choose_the_exit_code_of_errors(desk: Desk) -> None:
    """sbatch(1): SLURM_EXIT_ERROR."""
    desk.environ["SLURM_EXIT_ERROR"] = "65"
    assert desk.type("sbatch", "--no-such-option").code == 65
    assert desk.type("squeue", "--no-such-option").code == 1


def test_the_mask_of_a_batch_job(desk: Desk) -> None:
    """sbatch(1): SLURM_UMASK."""
    desk.environ["SLURM_UMASK"] = "0077"
    desk.type("sbatch", "--wrap", "true")
    assert desk.spec.umask_plus_one == 0o77 + 1
    desk.environ["SLURM_UMASK"] = "9"
    assert desk.type("sbatch", "--wrap", "true").err == (
        "sbatch: error: SLURM_UMASK=9: expected a mask in octal, such as 0022.\n"
    )


def jobs() -> list[jobs_pb2.JobRecord]:
    """Two jobs."""
    return [
        a_job(job=7, name="b", state=common_pb2.PEND, project="p1", queue="night"),
        a_job([("n1", 1)], job=8, name="a", state=common_pb2.RUN, project="p2", start_time=NOW - 60),
    ]


@pytest.mark.parametrize(
    ("variables", "typed", "out"),
    [
        ({"SQUEUE_SORT": "j"}, [], ["8", "7"]),
        ({"SQUEUE_SORT": "j"}, ["--sort=-j"], ["7", "8"]),
        ({"SQUEUE_ACCOUNT": "p1"}, [], ["7"]),
        ({"SQUEUE_NAMES": "a"}, [], ["8"]),
        ({"SQUEUE_STATES": "R"}, [], ["8"]),
        ({"SQUEUE_FORMAT": "%j"}, ["-o", "%A"], ["7", "8"]),
        ({"SQUEUE_FORMAT2": "name"}, ["-o", "%A"], ["7", "8"]),
    ],
)
def test_squeue_reads_its_variables(desk: Desk, variables: dict[str, str], typed: list[str], out: list[str]) -> None:
    """squeue(1): an option that is typed is before its variable."""
    desk.client.jobs = jobs()
    desk.environ.update(variables)
    words = typed if "-o" in typed else [*typed, "-o", "%A"]
    assert desk.type("squeue", "-h", *words).out.split() == out


def test_formats_of_the_environment(desk: Desk) -> None:
    """SQUEUE_FORMAT, SQUEUE_FORMAT2 before it, and -l before both."""
    desk.client.jobs = jobs()
    desk.environ["SQUEUE_FORMAT"] = "%j"
    assert desk.type("squeue", "-h").out == "b\na\n"
    desk.environ["SQUEUE_FORMAT2"] = "jobid:3,name:2"
    assert desk.type("squeue", "-h").out == "7  b\n8  a\n"
    assert "night" in desk.type("squeue", "-h", "-l").out


def test_users_and_queues_of_the_environment_are_asked_for(desk: Desk) -> None:
    """SQUEUE_USERS, SQUEUE_PARTITION; scancel has its own."""
    desk.environ |= {"SQUEUE_USERS": "bob", "SQUEUE_PARTITION": "night"}
    desk.type("squeue")
    assert (desk.client.asked[0].filter.user, desk.client.asked[0].filter.queue) == ("bob", "night")
    desk.client.asked.clear()
    desk.environ |= {"SCANCEL_USER": "carol", "SCANCEL_PARTITION": "day"}
    desk.type("scancel", "7")
    assert (desk.client.asked[0].filter.user, desk.client.asked[0].filter.queue) == ("carol", "day")


PORTAL = "aABcCdDeEfFgGhHiIjJkKlLmMnNoOqPQrStTuUvVwWxXyYzZb"


def test_the_list_of_a_portal(desk: Desk) -> None:
    """Open OnDemand's call: every letter, between control characters, and no word on standard error."""
    desk.client.jobs = jobs()
    form = "\x1e" + "\x1f".join(f"%{letter}" for letter in PORTAL)
    result = desk.type("squeue", "--all", "--states=all", "--noconvert", "-o", form)
    assert (result.code, result.err) == (0, "")
    lines = result.out.split("\n\x1e")
    assert [len(line.split("\x1f")) for line in lines] == [len(PORTAL)] * 3
    assert [line.split("\x1f")[1] for line in lines] == ["JOBID", "7", "8"]


def test_a_dependency_that_can_never_hold_has_slurms_word(desk: Desk) -> None:
    """squeue(1), JOB REASON CODES."""
    why = [jobs_pb2.PendingReason(text="Dependency condition invalid or never satisfied")]
    desk.client.jobs = [a_job(job=7, pending_reasons=why)]
    assert desk.type("squeue", "-h", "-o", "%r").out == "DependencyNeverSatisfied\n"


def array(state: "common_pb2.JobState.ValueType") -> list[jobs_pb2.JobRecord]:
    """Elements of 0-9%2, all in this state."""
    spec = jobs_pb2.JobSpec(slurm=jobs_pb2.SlurmTerms(command="sbatch", array_base=1), array_limit=2)
    counts = jobs_pb2.ArrayCounts(spec="x[1-10]%2")
    return [
        a_job(job=7, index=index, name=f"x[{index}]", state=state, spec=spec, array=counts) for index in range(1, 11)
    ]


@pytest.mark.parametrize("state", [common_pb2.PEND, common_pb2.PSUSP])
def test_a_pending_array_has_its_limit_in_every_form(desk: Desk, state: "common_pb2.JobState.ValueType") -> None:
    """In squeue with and without fields that need details, and in sacct, which has a line each with --array."""
    desk.client.jobs = array(state)
    assert desk.type("squeue", "-h", "-o", "%i").out == "7_[0-9%2]\n"
    assert desk.type("squeue", "-h", "-o", "%i %K %R").out.split()[:2] == ["7_[0-9%2]", "0-9%2"]
    assert desk.type("sacct", "-X", "-n", "-P", "-j", "7", "-o", "jobid").out == "7_[0-9%2]\n"
    assert desk.type("sacct", "-X", "-n", "-P", "--array", "-j", "7", "-o", "jobid").out.split()[:2] == ["7_0", "7_1"]


def test_update_of_dependency_and_time(desk: Desk) -> None:
    """scontrol(1): Dependency= as --dependency, and TimeLimit=+30 and -10 from the limit that a job has."""
    desk.client.modify_reply.results.add(job=7)
    assert desk.type("scontrol", "update", "job=7", "dependency=afterok:5").code == 1  # JobId= names it
    assert desk.type("scontrol", "update", "JobId=7", "Dependency=afterok:5:6").code == 0
    request = desk.client.asked[-1]
    assert (request.spec.dependency, list(request.fields)) == ("(done(5) && done(6))", ["dependency"])
    desk.client.jobs = [a_job(job=7, spec=jobs_pb2.JobSpec(run_limit_s=3600))]
    for text, limit_s in (("+30", 5400), ("-10", 3000), ("+1:00:00", 7200)):
        assert desk.type("scontrol", "update", "JobId=7", f"TimeLimit={text}").code == 0
        request = desk.client.asked[-1]
        assert (request.spec.run_limit_s, list(request.fields)) == (limit_s, ["run_limit_s"])
    too_much = desk.type("scontrol", "update", "JobId=7", "TimeLimit=-60")
    assert too_much.err == "scontrol: error: job 7: its time limit would be below 0.\n"
    desk.client.jobs = [a_job(job=7)]
    without = desk.type("scontrol", "update", "JobId=7", "TimeLimit=+30")
    assert without.err == "scontrol: error: job 7 has no time limit that could be changed by +30.\n"


def test_singleton_by_update_does_not_wait_for_itself(desk: Desk) -> None:
    """Only for the earlier jobs of its name."""
    desk.client.modify_reply.results.add(job=8)
    desk.client.jobs = [a_job(job=8, name="x"), a_job(job=7, name="x"), a_job(job=9, name="x")]
    desk.type("scontrol", "update", "JobId=8", "Dependency=singleton")
    request = desk.client.asked[-1]
    assert isinstance(request, messages.ModifyRequest | jobs_pb2.ModifyRequest)
    assert request.spec.dependency == "ended(7)"


@pytest.mark.parametrize(
    ("typed", "variables", "script", "why"),
    [
        (["--mem=50g", "--mem-per-cpu=3g"], {}, "", "--mem and --mem-per-cpu"),
        (["--mem=50g"], {}, "#SBATCH --mem-per-gpu=3g\n", "--mem and --mem-per-gpu"),
        ([], {"SBATCH_MEM_PER_CPU": "1g", "SBATCH_MEM_PER_NODE": "2g"}, "", "--mem and --mem-per-cpu"),
        (["-S", "2"], {}, "#SBATCH --thread-spec=3\n", "--core-spec and --thread-spec"),
        (["-B", "2", "--hint=nomultithread"], {}, "", "--extra-node-info and --hint"),
    ],
)
def test_options_that_exclude_each_other(
    desk: Desk, typed: list[str], variables: dict[str, str], script: str, why: str
) -> None:
    """sbatch(1): mutually exclusive, wherever they stand."""
    desk.environ.update(variables)
    result = desk.type("sbatch", *typed, stdin=f"#!/bin/sh\n{script}true\n".encode())
    assert result.code == 1
    assert result.err.endswith(f"sbatch: error: {why} are mutually exclusive.\n")
    assert not desk.client.asked


def test_a_variable_gives_way_to_what_excludes_it(desk: Desk) -> None:
    """sbatch(1): options that are typed or in the script reset variables of their group."""
    desk.environ["SBATCH_MEM_PER_CPU"] = "1g"
    desk.type("sbatch", stdin=b"#!/bin/sh\n#SBATCH --mem=2g\ntrue\n")
    assert desk.spec.requirement_text == "rusage[mem=2048MB/host]"


def test_all_memory_of_a_host(desk: Desk) -> None:
    """sbatch(1), --mem=0."""
    result = desk.type("sbatch", "--mem=0", "--wrap", "true")
    assert desk.spec.exclusive
    assert result.err == "sbatch: --mem=0 asks for all memory of each host: the job gets whole hosts.\n"


@pytest.mark.parametrize(
    "words",
    [
        ("srun", "-n", "1", "echo", "first", ":", "-n", "1", "echo", "second"),
        ("sbatch", "-n1", ":", "-n2", "job.sh"),
        ("salloc", "-n1", ":", "-n2", "true"),
    ],
)
def test_components_are_refused(desk: Desk, words: tuple[str, ...]) -> None:
    """srun(1), HETEROGENEOUS JOBS: a colon stands between components."""
    name, *rest = words
    result = desk.type(name, *rest)
    assert (result.code, "a : between components is not supported" in result.err) == (1, True)
    assert not desk.client.asked
