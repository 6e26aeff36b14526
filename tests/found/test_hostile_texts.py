"""Texts that end in files of root, command lines and the terminals of others, sent raw by an ordinary user."""

import json

from lavad.api import texts
from protos.jobs_pb2 import JobSpec
from tests.acceptance.personal import Cluster, wait_for

# Submits jobs as they are, without any check of a command, and prints the number or the refusal of each.
SUBMIT = """\
import json, os, sys
from google.protobuf.json_format import ParseDict
from lavactl.wire.connection import Connection
from protos import frames, jobs_pb2
items = [jobs_pb2.SubmitItem(request_id=os.urandom(16), spec=ParseDict(one, jobs_pb2.JobSpec()))
         for one in json.loads(sys.stdin.read())]
batch = jobs_pb2.SubmitBatch(items=items).SerializeToString()
for answer in Connection(os.environ["LAVA_SOCKET"]).answers("/lava.v1.JobService/Submit", batch, 60.0):
    print(json.dumps([[one.job, one.error] for one in jobs_pb2.SubmitReplies.FromString(answer).results]))
"""
JOB = {"command": "true", "cwd": "/", "roles": [{}]}
BY_THE_MASTER = "JobSpec.submit_host"  # set there, whatever a request says
LINES = [
    field
    for field in texts.texts_of(JobSpec.DESCRIPTOR)
    if field.full_name == f"{JobSpec.DESCRIPTOR.full_name}.{field.name}"
    and texts.key_of(field) not in texts.PROGRAMS | texts.PARAGRAPHS | {BY_THE_MASTER}
]


def of_tasks(**rules: object) -> dict[str, object]:
    """A job of tasks that prints the names it knows."""
    role = {"name": "main", "tasksMin": 1, "tasksMax": 1, "launch": "LAUNCH_EACH", "command": "cat /etc/hosts"}
    return {"cwd": "/", "roles": [role], "tasks": {"format": 1, **rules}}


def submitted(cluster: Cluster, jobs: list[dict[str, object]]) -> list[tuple[int, str]]:
    """Answers to raw submissions: the job's number, or 0 and the refusal."""
    done = cluster.run("python", "-c", SUBMIT, stdin=json.dumps(jobs))
    assert done.returncode == 0, done
    return [(int(job), error) for job, error in json.loads(done.stdout)]


def test_no_line_gets_into_etc_hosts(cluster: Cluster, account: str) -> None:
    """A subdomain with a line end is refused with a sentence; one without is in the names of the job's tasks."""
    user = cluster.as_seen_by(account)
    forged = {"conventions": [{"name": "jobset", "options": ["subdomain=a\n6.6.6.6 bank.example"]}]}
    good = {"conventions": [{"name": "jobset", "options": ["subdomain=net"]}]}
    (none, error), (job, nothing) = submitted(user, [of_tasks(**forged), of_tasks(**good)])
    assert (none, error) == (0, "Bad options: it can't hold a line end")
    assert nothing == ""
    user.becomes(job, "DONE")
    hosts = user.says("lavactl", "logs", str(job), "main/0")
    assert ".net" in hosts
    assert "6.6.6.6" not in hosts


def test_every_text_of_a_job_is_a_line(cluster: Cluster, account: str) -> None:
    """Raw jobs with a forged line in one of their texts are refused, each with a sentence that names it."""
    user, before = cluster.as_seen_by(account), len(cluster.log("lavad"))
    forged = "x\nUserId=root(0) GroupId=root(0)"
    jobs: list[dict[str, object]] = [
        {**JOB, field.json_name: [forged] if field.is_repeated else forged} for field in LINES
    ]
    answers = submitted(user, jobs)
    assert [job for job, _ in answers] == [0] * len(jobs)
    assert [error for _, error in answers] == [f"Bad {field.name}: it can't hold a line end" for field in LINES]
    assert "Traceback" not in cluster.log("lavad")[before:]


def test_an_address_is_no_option_of_the_mail_program(cluster: Cluster, account: str) -> None:
    """A raw request with an option in place of an address is refused, and the commands say what they expect."""
    user = cluster.as_seen_by(account)
    for address in ("-bs", "ann -C/etc/shadow"):
        ((job, error),) = submitted(user, [{**JOB, "mailUser": address}])
        assert (job, "is no address such as ann" in error) == (0, True)
    assert user.run("bsub", "-u", "-bs", "true").returncode != 0


def test_names_of_others_do_not_move_the_cursor(cluster: Cluster, account: str, other_account: str) -> None:
    """Each text of a user is shown to others on one line, by every command that lists jobs."""
    user, other = cluster.as_seen_by(account), cluster.as_seen_by(other_account)
    forged = "echo \x1b[2J; echo '\nUserId=root(0)'"
    ((job, error),) = submitted(user, [{**JOB, "command": forged, "description": "a\nUserId=root(0)", "hold": True}])
    assert error == ""
    wait_for(lambda: cluster.state(job) == "PSUSP", 60, "the job to be held")
    for words in LISTINGS:
        done = other.run(*words, str(job))
        shown = done.stdout + done.stderr
        assert "\x1b" not in shown, words
        assert not [line for line in shown.splitlines() if line.startswith("UserId=root(0)")], words
    cluster.run("bkill", str(job))


LISTINGS = (
    ("bjobs", "-u", "all"), ("bjobs", "-l", "-u", "all"), ("bjobs", "-w", "-u", "all"), ("bjobs", "-UF", "-u", "all"),
    ("bjobs", "-u", "all", "-o", "jobid command description job_name proj_name"),
    ("bjobs", "-u", "all", "-json", "-o", "jobid command description"),
    ("bhist", "-l", "-u", "all"), ("bhist", "-u", "all"), ("squeue", "-j"), ("scontrol", "show", "job"),
    ("sacct", "-a", "--parsable2", "-o", "jobid,jobname,account,comment,workdir", "-j"),
)  # fmt: skip
