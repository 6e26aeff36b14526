"""sbatch: from directives and options to the job that is submitted."""

from pathlib import Path

import pytest

from lavactl.submit.submission import NO_MAIL
from protos import common_pb2, jobs_pb2
from tests.lavactl.scripted import NOW, Desk, a_job

SCRIPT = b"""#!/bin/bash
#SBATCH --job-name=train
#SBATCH --nodes=2 --ntasks-per-node=4
#SBATCH -c 2
#SBATCH --gpus-per-node=a100:4
#SBATCH --mem=64G
#SBATCH -t 1-12:00:00
#SBATCH -p gpu,normal
#SBATCH --account=proj
#SBATCH --output=logs/%x-%j.out   # a remark
#SBATCH --mail-type=END

module load cuda
#SBATCH --partition=never-read
srun python train.py
"""


def test_a_script_with_directives(desk: Desk) -> None:
    """The directives before the first command count; what has no effect is named."""
    result = desk.type("sbatch", stdin=SCRIPT)
    assert (result.code, result.out) == (0, "Submitted batch job 1201\n")
    assert result.err == f"sbatch: --mail-type {NO_MAIL}\n"
    spec, role = desk.spec, desk.spec.roles[0]
    assert (spec.name, list(spec.queues), spec.project, spec.output) == (
        "train",
        ["gpu", "normal"],
        "proj",
        "logs/%x-%j.out",
    )
    assert (spec.run_limit_s, spec.memory_limit_mib, spec.is_script) == (129600, 65536, True)
    assert (role.tasks_min, role.tasks_max, role.slots_per_task) == (8, 8, 2)
    assert role.requirement == "rusage[mem=65536MB/host] span[ptile=4]"
    assert role.gpu.text == "num=4:j_exclusive=yes:gmodel=a100"
    assert spec.output_overwrite
    variables = dict(entry.decode().split("=", 1) for entry in spec.environment)
    assert variables["SLURM_NTASKS"] == "8"
    assert variables["SLURM_CPUS_PER_TASK"] == "2"
    assert spec.slurm.command == "sbatch"


def test_the_command_line_wins_over_the_environment_over_the_script(desk: Desk, tmp_path: Path) -> None:
    """Option by option."""
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\n#SBATCH -p script -t 10 -A script\ntrue\n")
    desk.environ |= {"SBATCH_PARTITION": "variable", "SBATCH_TIMELIMIT": "20", "SLURM_JOB_ID": "7", "MINE": "1"}
    desk.type("sbatch", "--partition=line", str(script), "a", "b c")
    spec = desk.spec
    assert (list(spec.queues), spec.run_limit_s, spec.project, spec.name) == (["line"], 1200, "script", "job.sh")
    assert list(spec.slurm.arguments) == ["a", "b c"]
    names = [entry.partition(b"=")[0] for entry in spec.environment]
    assert b"MINE" in names
    assert b"SLURM_JOB_ID" not in names


@pytest.mark.parametrize(
    ("options", "tasks", "requirement", "gpu"),
    [
        (["-n8"], 8, "", ""),
        (["-N1", "-n8"], 8, "span[hosts=1]", ""),
        (["-N3"], 3, "span[ptile=1]", ""),
        (["-N2", "-n4", "--gpus=8"], 4, "span[ptile=2]", "num=4:j_exclusive=yes"),
        (["--ntasks-per-node=4"], 4, "span[hosts=1]", ""),
        (["--gres=gpu:2"], 1, "", "num=2:j_exclusive=yes"),
        (["-n4", "--gpus-per-task=1"], 4, "", "num=1/task:j_exclusive=yes"),
        (["--gpus=2"], 1, "", "num=2:j_exclusive=yes"),
        (["-C", "ib&gpu", "--mem-per-cpu=1G", "-c4"], 1, "select[(ib && gpu)] rusage[mem=4096MB/task]", ""),
        (["-L", "matlab:2"], 1, "rusage[matlab=2]", ""),
        (["-N5", "-n2"], 2, "span[ptile=1]", ""),
        (["--gres=disk:3", "--gpus-per-node=2"], 1, "rusage[disk=3/host]", "num=2:j_exclusive=yes"),
        (["-n4", "--gpus-per-task=1", "--gres=disk:5"], 4, "rusage[disk=5/host]", "num=1/task:j_exclusive=yes"),
        (["--gpus=4", "--gpus-per-node=2"], 2, "span[ptile=1]", "num=2:j_exclusive=yes"),
        (["-n8", "--gpus=a100:4", "--gpus-per-node=2"], 8, "span[ptile=4]", "num=2:j_exclusive=yes:gmodel=a100"),
        (["--gpus=8", "--gpus-per-task=2"], 4, "", "num=2/task:j_exclusive=yes"),
        (["-N2", "--gpus-per-node=4", "--gpus-per-task=2"], 4, "span[ptile=2]", "num=2/task:j_exclusive=yes"),
        (["--gres=gpu:2", "--gpus-per-node=2"], 1, "", "num=2:j_exclusive=yes"),
        (["--gpus=0"], 1, "", ""),
    ],
)
def test_shapes(desk: Desk, options: list[str], tasks: int, requirement: str, gpu: str) -> None:
    """Tasks, spread, GPUs and memory in lava's words."""
    result = desk.type("sbatch", *options, "--wrap", "true")
    assert result.code == 0, result
    role = desk.spec.roles[0]
    assert (role.tasks_min, role.requirement, role.gpu.text) == (tasks, requirement, gpu)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["-N3", "-n4"], "4 tasks on 3 hosts: lava fills one host after the other"),
        (["-t", "5m"], "--time 5m: expected minutes, h:m:s or days-h:m:s."),
        (["--mem=lots"], "--mem lots: expected a size such as 4G."),
        (["--gpus=3", "-N2"], "--gpus 3: the hosts cannot have equal parts of them"),
        (["--gpus=5", "--gpus-per-node=2"], "--gpus and the GPUs of each host: 5 is no multiple of 2."),
        (["-N3", "--gpus=4", "--gpus-per-node=2"], "make 2 hosts, and 3 are asked for."),
        (["-n1", "--gpus=4", "--gpus-per-node=2"], "make 2 hosts, and 1 are asked for."),
        (["-n2", "--gpus=4", "--gpus-per-task=1"], "--gpus and --gpus-per-task make 4 tasks, and 2 are asked for."),
        (["--gres=gpu:1", "--gpus-per-node=2"], "--gres asks for 1 GPUs on each host, --gpus-per-node for 2."),
        (["--gres=gpu:a100:1", "--gpus-per-task=h100:1"], "of one model; a100 and h100 are asked for."),
        (["--gres=gpu:a100:1,gpu:h100:1"], "--gres gpu:a100:1,gpu:h100:1: expected gpu[:model][:count]"),
        (["-w", "n1", "-x", "n1"], "no host is left of those that --nodelist and --nodefile name."),
        (["--signal=B:R:USR1"], "expected [B:]signal[@seconds]"),
        (["--mail-type=LUNCH"], "--mail-type LUNCH: expected words of NONE, BEGIN, END"),
        (["--mail-user=-x"], "--mail-user -x: expected addresses such as ann or ann@example.org."),
        (["--signal=USR1@0"], "expected [B:]signal[@seconds]"),
        (["--exclusive=user"], "only --exclusive, for whole hosts, is supported."),
        (["-d", "when:1"], "--dependency when:1: expected one of after, afterany"),
        (["--signal=FOO"], "--signal FOO: expected [B:]signal[@seconds]"),
        (["--uid=bob"], "--uid is not supported: a job runs as its own user."),
        (["-a", "x"], "--array x: expected indices such as 0-15:4%2"),
    ],
)
def test_what_is_refused(desk: Desk, options: list[str], sentence: str) -> None:
    """One sentence, exit code 1, nothing submitted."""
    result = desk.type("sbatch", *options, "--wrap", "true")
    assert result.code == 1
    assert result.err.startswith("sbatch: error: ")
    assert sentence in result.err
    assert not any(isinstance(one, jobs_pb2.SubmitItem) for one in desk.client.asked)


def test_arrays_and_their_files(desk: Desk) -> None:
    """--array=0-9 is 1-10 of lava; the element's own number is in the default name of its output."""
    desk.type("sbatch", "--parsable", "-a", "0-9%3", "--wrap", "true")
    spec = desk.spec
    assert [(part.first, part.last) for part in spec.array] == [(1, 10)]
    assert (spec.array_limit, spec.slurm.array_base, spec.output) == (3, 1, "slurm-%A_%a.out")


def test_dependencies(desk: Desk) -> None:
    """Conditions of lava; an element is one index further where the array begins at 0."""
    desk.client.jobs = [
        a_job(
            job=5,
            index=4,
            array=jobs_pb2.ArrayCounts(spec="x[1-10]"),
            spec=jobs_pb2.JobSpec(slurm=jobs_pb2.SlurmTerms(command="sbatch", array_base=1)),
        )
    ]
    desk.type("sbatch", "-d", "afterok:3:4,afterany:5_3", "--wrap", "true")
    assert desk.spec.dependency == '(done(3) && done(4)) && ended("5[4]")'
    desk.client.submit_results.append(jobs_pb2.SubmitResult(job=1202, queue="normal"))
    desk.type("sbatch", "-d", "afternotok:3?after:4", "--kill-on-invalid-dep=yes", "--wrap", "true")
    assert (desk.spec.dependency, desk.spec.ends_orphan) == ("exit(3) || started(4)", True)


def test_times_and_signals(desk: Desk) -> None:
    """--begin, and --signal as a command beside the job that finds the right processes."""
    desk.type("sbatch", "-b", "now+2hours", "--signal=B:USR1@120", "--hold", "--wrap", "true")
    spec = desk.spec
    assert (spec.begin_time, spec.warning_time_s, spec.hold) == (NOW + 7200, 120, True)
    assert "kill -s USR1" in spec.warning_action
    assert "LS_JOBPID" in spec.warning_action


@pytest.mark.parametrize(
    ("text", "name", "seconds", "is_for_script"),
    [
        ("BUS@60", "BUS", 60, False),
        ("B:BUS", "BUS", 60, True),
        ("10@5", "USR1", 5, False),
        ("RB:SIGTERM@300", "TERM", 300, True),
    ],
)
def test_marks_of_a_signal_end_in_a_colon(desk: Desk, text: str, name: str, seconds: int, is_for_script: bool) -> None:
    """Without one a B is the beginning of a name; R, which only some reservations of Slurm heed, is told."""
    result = desk.type("sbatch", f"--signal={text}", "--wrap", "true")
    spec = desk.spec
    assert (f"kill -s {name} " in spec.warning_action, spec.warning_time_s) == (True, seconds)
    assert ("LAVA_TASK_SERIAL" in spec.warning_action) == is_for_script
    assert ("R of --signal has no effect" in result.err) == text.startswith("R")


@pytest.mark.parametrize(
    ("options", "events", "note"),
    [
        (["--mail-type=END", "--mail-user=ann@x.org,bob"], "done exit", ""),
        (["--mail-type=begin,fail"], "start exit", ""),
        (["--mail-type=ALL,NONE"], "start done exit", ""),
        (["--mail-type=NONE"], "", ""),
        (["--mail-type=FAIL,TIME_LIMIT_80"], "exit", "--mail-type TIME_LIMIT_80 has no effect: mail is sent at the"),
        (["--mail-type=END", "-a", "1-9"], "", "--mail-type has no effect: each element of an array"),
        (["--mail-type=END,ARRAY_TASKS", "-a", "1-9"], "done exit", ""),
        (["--mail-type=END", "-a", "1-9", "-Q"], "", ""),
    ],
)
def test_mail(desk: Desk, tmp_path: Path, options: list[str], events: str, note: str) -> None:
    """Events of Slurm that lava sends mail for, where the site names a program for it."""
    (tmp_path / "agent.lsf").mkdir()
    (tmp_path / "agent.lsf" / "lsf.conf").write_text("LSB_MAILPROG=/usr/sbin/sendmail\n")
    desk.environ["LAVA_SOCKET"] = str(tmp_path / "agent.sock")
    result = desk.type("sbatch", *options, "--wrap", "true")
    assert result.code == 0, result
    spec = desk.spec
    assert (spec.mail_events, note in result.err, bool(result.err)) == (events, True, bool(note))
    assert spec.mail_user == ("ann@x.org,bob" if "user" in options[-1] else "")


def test_hosts_of_lists_and_files(desk: Desk, tmp_path: Path) -> None:
    """Both name hosts in Slurm's notation; what is excluded is taken out."""
    (tmp_path / "hosts").write_text("n[3-4],n5\r\nn6\n")
    desk.type("sbatch", "-w", "n[1-2]", "-F", str(tmp_path / "hosts"), "-x", "n[2-3]", "--wrap", "true")
    assert list(desk.spec.hosts) == ["n1", "n4", "n5", "n6"]
    desk.client.submit_results.append(jobs_pb2.SubmitResult(job=1202, queue="normal"))
    desk.type("sbatch", "-x", "n2", "--wrap", "true")
    assert list(desk.spec.hosts) == ["others", "~n2"]


@pytest.mark.parametrize(
    ("export", "kept"),
    [
        ("ALL", {"A", "B", "PATH"}),
        ("NONE", {"PATH"}),
        ("A,C=3", {"A", "C", "PATH"}),
        ("ALL,C=3", {"A", "B", "C", "PATH"}),
    ],
)
def test_export(desk: Desk, export: str, kept: set[str]) -> None:
    """PATH always stays, so that a script finds srun."""
    desk.environ |= {"A": "1", "B": "2"}
    desk.type("sbatch", f"--export={export}", "--wrap", "true")
    names = {entry.partition(b"=")[0].decode() for entry in desk.spec.environment}
    assert names & {"A", "B", "C", "PATH"} == kept


@pytest.mark.parametrize(
    ("stdin", "sentence"),
    [
        (b"", "Batch script is empty!"),
        (b"echo hello\n", "This does not look like a batch script"),
        (b"#!/bin/sh\r\ntrue\r\n", "DOS line breaks"),
        (b"#!/bin/sh\n#SBATCH --nonsense\n", "line 2 of the script: unrecognized option '--nonsense'"),
        (b"#!/bin/sh\n#SBATCH -J a b\n", "line 2 of the script: b is no option"),
        (b"#!/bin/sh\n#SBATCH --uid=1\n", "line 2 of the script: --uid is not supported: a job runs as its own user."),
    ],
)
def test_scripts_that_are_none(desk: Desk, stdin: bytes, sentence: str) -> None:
    """Each is refused with its line where it has one."""
    result = desk.type("sbatch", stdin=stdin)
    assert (result.code, sentence in result.err) == (1, True), result


def test_a_refusal_of_the_master(desk: Desk) -> None:
    """In the words that wrappers look for, with the master's reason."""
    desk.client.submit_results = [jobs_pb2.SubmitResult(error="night: No such queue")]
    result = desk.type("sbatch", "-p", "night", "--wrap", "true")
    assert (result.code, result.out) == (1, "")
    assert result.err == "sbatch: error: Batch job submission failed: night: No such queue.\n"


def test_waiting_has_the_jobs_exit_code(desk: Desk) -> None:
    """--wait."""
    desk.client.changes = [
        jobs_pb2.JobChange(job=1201, state=common_pb2.RUN, hosts=["n1"]),
        jobs_pb2.JobChange(job=1201, state=common_pb2.EXIT, exit_status=3 << 8, hosts=["n1"]),
    ]
    assert desk.type("sbatch", "-W", "--wrap", "exit 3").code == 3
