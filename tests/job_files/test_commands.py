"""bsub -yaml and -json, lavactl run and show: files submitted as a whole or not at all."""

import subprocess
import sys
from pathlib import Path

import pytest

from lavad.api.details import shown_spec
from protos import cluster_pb2, jobs_pb2
from tests.lavactl.scripted import Desk

ROOT = Path(__file__).resolve().parents[2]
VOLCANO = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: pair}
spec:
  queue: default
  plugins: {env: []}
  tasks:
    - {name: a, replicas: 1, template: {spec: {restartPolicy: Never, containers: [{name: c, command: [run, a b]}]}}}
    - {name: b, replicas: 2, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}
"""
TWO = "command: one\nname: first\n---\ncommand: two\nname: second\nqueue: short\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A job file with one job of Volcano."""
    path = tmp_path / "job.yaml"
    path.write_text(VOLCANO, encoding="utf-8")
    return path


def results(*jobs: int) -> list[jobs_pb2.SubmitResult]:
    """Answers of the master that took these jobs."""
    return [jobs_pb2.SubmitResult(job=job, queue="normal") for job in jobs]


def test_a_job_of_another_system_is_submitted(desk: Desk, file: Path) -> None:
    """Its roles, its command beside it for the role without one, and what was ignored on standard error."""
    result = desk.type("bsub", "-yaml", str(file), "-P", "lab", "work", "hard")
    assert (result.code, result.out) == (0, "Job <1201> is submitted to queue <normal>.\n")
    assert f"{file}:9: spec.tasks[1].template.spec.containers[0].image: i is used only where" in result.err
    spec = desk.spec
    assert (spec.name, spec.project, spec.command, spec.tasks.origin) == ("pair", "lab", "work hard", "volcano")
    assert [(role.name, role.tasks_max, list(role.argv)) for role in spec.roles] == [
        ("a", 1, ["run", "a b"]),
        ("b", 2, []),
    ]
    assert spec.cwd == spec.submit_cwd == "/home/alice/run"
    assert b"PATH=/usr/bin" in spec.environment


def test_a_command_that_is_missing_is_asked_for(desk: Desk, file: Path) -> None:
    """Nothing is submitted; the sentence names the place and the remedy."""
    result = desk.type("bsub", "-json", str(file))
    assert (result.code, result.out, desk.client.asked) == (255, "", [])
    assert result.err == (
        f"{file}:9:83: spec.tasks[1].template.spec.containers[0].command: role b has no command: its image's own is not"
        " known to lava; give one beside the file, as in bsub -yaml FILE COMMAND. Job not submitted.\n"
    )


def test_a_queue_named_default_may_be_the_clusters(desk: Desk, file: Path) -> None:
    """As no queue has that name the cluster's default queue is taken, and the user told; elsewhere it is that."""
    result = desk.type("bsub", "-yaml", str(file), "work")
    assert "there is no queue default: the cluster's default queue is taken." in result.err
    assert list(desk.spec.queues) == []
    desk.client.queue_records = [cluster_pb2.QueueRecord(name="default")]
    desk.client.submit_results = results(5)
    desk.type("bsub", "-yaml", str(file), "work")
    assert list(desk.spec.queues) == ["default"]
    desk.client.submit_results = results(6)
    desk.type("bsub", "-yaml", str(file), "-q", "short", "work")
    assert list(desk.spec.queues) == ["short"]


def test_options_beside_the_file_win(desk: Desk) -> None:
    """One by one, as those of a command line over a script's."""
    text = "command: one\nqueue: long\nslots: 4\nenvironment: {PATH: /opt, B: 2}\nrun-limit: 90s\n"
    result = desk.type("bsub", "-yaml", "-", "-q", "short", "-W", "5", stdin=text.encode())
    assert result.code == 0, result
    assert (list(desk.spec.queues), desk.spec.roles[0].tasks_min, desk.spec.run_limit_s) == (["short"], 4, 300)
    assert [entry for entry in desk.spec.environment if entry.startswith((b"PATH=", b"B="))] == [b"PATH=/opt", b"B=2"]


@pytest.mark.parametrize("option", ["-n", "-R", "-gpu", "-nnodes", "-rnc"])
def test_what_each_role_says_is_not_said_beside(desk: Desk, file: Path, option: str) -> None:
    """-n and its like would be taken and mean nothing."""
    result = desk.type("bsub", "-yaml", str(file), option, "2", "work")
    assert result.code == 255
    assert f"{option}: each role of {file} says this for itself" in result.err
    assert desk.client.asked == []


def test_all_jobs_of_a_file_or_none(desk: Desk) -> None:
    """A wrong document keeps the others out; each wrong one is told."""
    wrong = f"{TWO}---\ncommand: three\nslots: many\n---\nquue: x\ncommand: four\n"
    result = desk.type("lavactl", "run", "-f", "-", stdin=wrong.encode())
    assert (result.code, desk.client.asked) == (255, [])
    assert "standard input:11:1: quue: there is no such key; is queue meant?" in result.err
    bad_option = f"{TWO}---\ncommand: three\nslots: many\n"
    result = desk.type("lavactl", "run", "-f", "-", stdin=bad_option.encode())
    assert (result.code, desk.client.asked) == (255, [])
    assert "standard input:9:8: slots: -n many: expected min[,max]" in result.err


def test_a_refusal_takes_the_others_back(desk: Desk) -> None:
    """Jobs that were submitted before one that the master refuses are ended."""
    desk.client.submit_results = [*results(1), jobs_pb2.SubmitResult(error="No such queue")]
    result = desk.type("lavactl", "run", "-f", "-", stdin=TWO.encode())
    assert result.code == 255
    assert "Job <1>, submitted before it, is being ended." in result.err
    assert "standard input:4:1: No such queue. Job not submitted." in result.err
    assert [ref.job for ref in desk.client.asked[-1].filter.refs] == [1]


def test_jobs_of_a_flow_wait_for_each_other(desk: Desk) -> None:
    """By the numbers that they were given."""
    text = (ROOT / "tests/job_files/samples/volcano-jobflow.yaml").read_text(encoding="utf-8")
    desk.client.submit_results = results(11, 12, 13)
    result = desk.type("lavactl", "run", "-f", "-", stdin=text.encode())
    assert result.out == "".join(f"Job <{job}> is submitted to queue <normal>.\n" for job in (11, 12, 13))
    found = [one.spec.dependency for one in desk.client.asked]
    assert found == ["", "done(11)", "done(11) && done(12)"]


def test_wait_for_all_jobs_of_a_file(desk: Desk) -> None:
    """With -K the exit code is that of the first job that failed."""
    desk.client.submit_results = results(1, 2)
    desk.client.changes = [jobs_pb2.JobChange(job=1, state=7, hosts=["n1"])]
    assert desk.type("bsub", "-K", "-yaml", "-", stdin=TWO.encode()).code == 0


def test_dry_run_submits_nothing(desk: Desk, file: Path) -> None:
    """It prints what was understood, and what was ignored; no cluster is needed."""
    result = desk.type("lavactl", "run", "-f", str(file), "--dry-run")
    assert (result.code, result.err, desk.client.asked) == (0, "", [])
    assert result.out.startswith("Job 1: Volcano Job, line 1\n  bsub -J pair -q default\n")
    assert f"{file}:9: spec.tasks[1].template.spec.containers[0].command: missing:" in result.out
    assert desk.type("lavactl", "run", "-f", str(file), "-o", "json").out.startswith("{")


def test_a_dry_run_refuses_what_a_submission_would(desk: Desk) -> None:
    """At the place of the field, and without asking the cluster; a plan is not printed."""
    result = desk.type("lavactl", "run", "--dry-run", "-f", "-", stdin=b"command: one\nname: x\nslots: many\n")
    assert (result.code, result.out, desk.client.asked) == (255, "", [])
    assert "standard input:3:8: slots: " in result.err
    plain = desk.type("lavactl", "run", "--dry-run", "-f", "-", stdin=b"command: one\n")
    assert (plain.code, "  command: one\n" in plain.out) == (0, True)


def test_a_refused_queue_is_shown_where_it_stands(desk: Desk) -> None:
    """The master's sentence about a queue has the line of the queue, in lava's form and in another system's."""
    for text, place in (
        ("command: one\nname: x\nqueue: nope\n", "3:8: queue: "),
        (VOLCANO.replace("queue: default", "queue: nope"), "5:10: spec.queue: "),
    ):
        desk.client.submit_results = [jobs_pb2.SubmitResult(error="nope: No such queue")]
        result = desk.type("lavactl", "run", "-f", "-", "work", stdin=text.encode())
        assert result.code == 255
        assert f"standard input:{place}nope: No such queue. Job not submitted.\n" in result.err


def test_arguments_alone_give_way_to_a_command(desk: Desk) -> None:
    """Arguments whose program is the image's are run as a command, unless one is given beside the file."""
    text = (
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\n"
        "spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, args: [-v, x]}]}}}\n"
    )
    desk.client.submit_results = results(1)
    desk.type("lavactl", "run", "-f", "-", stdin=text.encode())
    assert list(desk.spec.roles[0].argv) == ["-v", "x"]
    desk.client.submit_results = results(2)
    result = desk.type("lavactl", "run", "-f", "-", "work", "-v", stdin=text.encode())
    assert (desk.spec.command, list(desk.spec.roles[0].argv)) == ("work -v", [])
    assert "are run as a command, unless one is given beside the file." in result.err


def test_files_that_cannot_be_read(desk: Desk, tmp_path: Path) -> None:
    """One sentence, whatever the file is."""
    (tmp_path / "binary").write_bytes(b"\xff\xfe\n")
    for name, said in (("none", "No such file or directory"), (".", "Is a directory"), ("binary", "no UTF-8 text")):
        result = desk.type("bsub", "-yaml", str(tmp_path / name))
        assert result.code == 255
        assert said in result.err
        assert result.err.count("\n") == 1
    assert desk.type("lavactl", "run").code == 255
    assert desk.type("lavactl", "run", "-f", "x", "-o", "xml").code == 255
    queue = b"apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: q}\n"
    assert "there is no job in this file." in desk.type("lavactl", "run", "-f", "-", stdin=queue).err


def test_a_file_is_named_on_the_command_line_alone(desk: Desk) -> None:
    """Not by a directive of a script."""
    result = desk.type("bsub", stdin=b"#!/bin/sh\n#BSUB -yaml other\ntrue\n")
    assert result.code == 255
    assert "-yaml names a job file and belongs on the command line." in result.err


def test_mail_about_a_job_of_tasks(desk: Desk) -> None:
    """None is sent, whatever the site's settings are: an option that asks for it is not swallowed."""
    file = b"roles: {worker: {tasks: 1, command: run}}\n"
    result = desk.type("bsub", "-N", "-yaml", "-", stdin=file)
    assert result.code == 0
    assert "-N has no effect: no mail is sent about jobs of tasks.\n" in result.err


def test_show_keeps_secrets(desk: Desk) -> None:
    """Their names are told, so that they can be given again; their values are not."""
    spec = jobs_pb2.JobSpec(name="x", command="y", cwd="/h", submit_cwd="/h")
    spec.roles.add(name="a", tasks_min=1, tasks_max=1, slots_per_task=1, launch="LAUNCH_EACH", command="c")
    spec.tasks.format = 1
    spec.tasks.secrets.append(b"KEY=hunter2")
    desk.client.jobs = [jobs_pb2.JobRecord(job=7, spec=spec)]
    result = desk.type("lavactl", "show", "7")
    assert "# Secrets are not shown: KEY.\n" in result.out
    assert "hunter2" not in result.out + desk.type("lavactl", "show", "-o", "json", "7").out


def test_the_master_tells_names_of_secrets_alone() -> None:
    """Callers who may see the job's details learn which secrets to give again, not their values."""
    stored = jobs_pb2.JobSpec(environment=[b"A=1"])
    stored.tasks.secrets.append(b"KEY=hunter2=3")
    shown = shown_spec(stored.SerializeToString())
    assert (list(shown.tasks.secrets), list(shown.environment)) == ([b"KEY="], [])


def test_show_asks_for_plain_jobs_and_arrays(desk: Desk) -> None:
    """A request for arrays alone would find no other job."""
    desk.client.jobs = [jobs_pb2.JobRecord(job=7, index=1, spec=jobs_pb2.JobSpec(name="x", command="y"))]
    assert "name: x\n" in desk.type("lavactl", "show", "7").out
    (request,) = desk.client.asked
    assert (request.arrays, request.details, request.filter.user) == (False, True, "all")


def test_the_queue_beside_lavactl_run(desk: Desk) -> None:
    """It wins over that of the file."""
    desk.type("lavactl", "run", "-f", "-", "-q", "short", stdin=b"command: x\nqueue: long\n")
    assert list(desk.spec.queues) == ["short"]


def test_show_of_jobs_that_cannot_be_shown(desk: Desk) -> None:
    """One sentence."""
    assert "Job <7> is not found" in desk.type("lavactl", "show", "7").err
    desk.client.jobs = [jobs_pb2.JobRecord(job=7)]
    assert "its details are not yours to see" in desk.type("lavactl", "show", "7").err
    assert desk.type("lavactl", "show", "x").code == 255
    assert desk.type("lavactl", "show").code == 255


def test_other_commands_start_without_yaml() -> None:
    """A plain bsub or bjobs imports neither PyYAML nor the readers of job files."""
    program = (
        "import sys, lavactl.commands.bsub, lavactl.commands.bjobs\n"
        "print([name for name in sys.modules if name.startswith(('yaml', 'lavactl.job_files'))])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert ran.stdout == "[]\n"


PAI = '{"jobName": "mnist", "image": "i", "taskRoles": [{"name": "a", "memoryMB": 64, "command": "true"}]}'


def test_a_name_of_openpai_is_to_be_unique_among_unfinished_jobs(desk: Desk, tmp_path: Path) -> None:
    """The master decides that; its refusal names the file. Files of other systems say nothing about their names."""
    path = tmp_path / "job.json"
    path.write_text(PAI, encoding="utf-8")
    desk.client.submit_results = [jobs_pb2.SubmitResult(error="Your job <7> of the name mnist has not ended yet")]
    result = desk.type("lavactl", "run", "-f", str(path))
    assert result.code != 0
    assert f"{path}" in result.err
    assert "Your job <7> of the name mnist has not ended yet" in result.err
    desk.client.submit_results = results(8, 9)
    assert desk.type("lavactl", "run", "-f", str(path)).out.startswith("Job <8> is submitted")
    desk.type("bsub", "true")
    assert [item.unique_name for item in desk.client.asked if isinstance(item, jobs_pb2.SubmitItem)] == [
        True,
        True,
        False,
    ]
