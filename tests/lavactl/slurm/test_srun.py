"""srun: the step that it makes of its options, within a job and as a job of its own."""

import signal
from collections.abc import Iterator

import pytest

from lavactl.errors import CommandError
from lavactl.main import INTERRUPTED
from lavactl.slurm.srun import OF_REQUEST, PARSER, argv_in_job, say_without_effect, wish_of
from lavactl.slurm.submit import following
from lavactl.slurm.submit.choices import Choices, environment_options
from protos import common_pb2, jobs_pb2
from tests.lavactl.scripted import Desk, ScriptedClient

HOSTS = ["n1", "n2", "n3"]


def choices_within(desk: Desk, *argv: str) -> Choices:
    """Options of a step as srun reads them within a job."""
    desk.type("sinfo", "--version")
    assert desk.last_io is not None
    return Choices("srun", PARSER.parse(argv), environment_options("srun", desk.last_io, OF_REQUEST))


def test_the_step_of_a_job_of_its_own(desk: Desk) -> None:
    """Its directory and hosts are the job's; options of variables come along, since a job inherits none of Slurm's."""
    desk.environ |= {"SLURM_LABELIO": "1", "SRUN_KILL_BAD_EXIT": "1", "SLURM_NTASKS": "3", "SLURM_PARTITION": "gpu"}
    desk.type("sinfo", "--version")
    assert desk.last_io is not None
    line = PARSER.parse(["-D", "sub", "-w", "n[1-2]", "-N2", "-K0", "--overlap", "prog", "-n", "x"])
    found = argv_in_job(line, environment_options("srun", desk.last_io))
    assert found == ["--kill-on-bad-exit=1", "--label", "--nodes=2", "--kill-on-bad-exit=0", "--overlap", "--",
                     "prog", "-n", "x"]  # fmt: skip


def test_variables_of_a_step_within_a_job(desk: Desk) -> None:
    """SRUN_ is the step's own; SLURM_ tells of the job where both have the option."""
    desk.environ |= {"SLURM_NTASKS": "8", "SLURM_NNODES": "3", "SLURM_CPUS_PER_TASK": "4", "SLURM_LABELIO": "1"}
    choices = choices_within(desk)
    assert "label" in choices
    assert desk.last_io is not None
    wish = wish_of(choices, HOSTS, desk.last_io)
    assert (wish.tasks, wish.nodes, wish.cpus) == (8, None, 4)
    desk.environ |= {"SRUN_NTASKS": "2", "SRUN_NNODES": "1", "SRUN_CPUS_PER_TASK": "2"}
    wish = wish_of(choices_within(desk), HOSTS, desk.last_io)
    assert (wish.tasks, wish.nodes, wish.cpus) == (2, 1, 2)


@pytest.mark.parametrize(("argv", "nodes"), [(["-N3", "-n2"], 2), (["-N2", "-n2"], 2), (["-N2"], 2)])
def test_a_step_of_fewer_tasks_than_hosts(desk: Desk, argv: list[str], nodes: int) -> None:
    """It has a host for each task, as a job that asks so."""
    choices = choices_within(desk, *argv)
    assert desk.last_io is not None
    assert wish_of(choices, HOSTS[:2], desk.last_io).nodes == nodes


def test_hosts_of_a_step(desk: Desk) -> None:
    """Those of --nodelist, else all, without those of --exclude."""
    choices = choices_within(desk, "-x", "n[2,9]")
    assert desk.last_io is not None
    assert wish_of(choices, HOSTS, desk.last_io).hosts == ("n1", "n3")
    assert wish_of(choices_within(desk, "-w", "n[1-2]", "-x", "n2"), HOSTS, desk.last_io).hosts == ("n1",)
    with pytest.raises(CommandError, match="--exclude leaves no host of the allocation"):
        wish_of(choices_within(desk, "-x", "n[1-3]"), HOSTS, desk.last_io)


def test_what_a_step_has_from_its_job_is_told(desk: Desk) -> None:
    """An option of a job's request that is given to a step is named, unless --quiet says not to."""
    desk.type("sinfo", "--version")
    io = desk.last_io
    assert io is not None
    say_without_effect(PARSER.parse(["--mem=4G", "-n2", "-t", "5", "prog"]), io)
    say_without_effect(PARSER.parse(["--mem=4G", "-Q", "prog"]), io)
    io.flush()
    assert io.stderr.getvalue().decode().splitlines() == [  # type: ignore[attr-defined]
        "srun: --mem has no effect on a step: it has what its job has.",
        "srun: --time has no effect on a step: it has what its job has.",
    ]


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--input=data", "true"], "--input data: use a redirection of the shell"),
        (["--jobid=7", "true"], "--jobid 7: a step runs only within its own job."),
    ],
)
def test_what_is_refused_before_a_job_is_submitted(desk: Desk, argv: list[str], sentence: str) -> None:
    """Nothing is submitted that its own step would refuse."""
    result = desk.type("srun", *argv)
    assert (result.code, sentence in result.err, desk.client.asked) == (1, True, [])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_signal_that_comes_while_an_answer_is_being_left_ends_the_job(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python drops an exception that is raised there: srun went on for ever."""

    class Left(ScriptedClient):
        def watch(self, refs: list[common_pb2.JobRef]) -> Iterator[jobs_pb2.JobChange]:
            self.asked.append(refs)
            try:
                yield jobs_pb2.JobChange(job=7, state=common_pb2.RUN if len(self.asked) == 1 else common_pb2.DONE)
            finally:
                if len(self.asked) == 1:
                    signal.raise_signal(signal.SIGTERM)

    client = Left()
    monkeypatch.setattr(following, "Client", lambda io: client)
    desk.client.submit_results = [jobs_pb2.SubmitResult(job=7, queue="normal")]
    assert desk.type("srun", "true").code == INTERRUPTED
    _, asked = client.asked
    assert ([ref.job for ref in asked.filter.refs], asked.action) == ([7], jobs_pb2.TERMINATE)
