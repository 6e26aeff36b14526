"""Variables of containers as the tasks' programs find them: the line of the shell is run by the shell."""

import os
import subprocess

from lavactl.job_files.dry_run import describe
from lavactl.job_files.understanding import understand_text

JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {{name: j}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: c
        command: {command}
        env: {env}
        envFrom: [{{secretRef: {{name: s}}}}]
---
apiVersion: v1
kind: Secret
metadata: {{name: s}}
data: {{PASSWORD: aHVudGVyMg==, un-like: eA==}}
"""
ADDRESS = "valueFrom: {fieldRef: {fieldPath: status.podIP}}"


def told(env: str, command: str = "[env]") -> tuple[dict[str, str], str]:
    """Variables of the task's program, and the text of a dry run."""
    found = understand_text(JOB.format(env=env, command=command), "f", "ann")
    (job,) = found.jobs
    (role,) = job.roles
    assert job.rules is not None
    given = dict(os.fsdecode(one).split("=", 1) for one in [*job.rules.secrets, *role.environment])
    words = list(role.argv) or ["/bin/sh", "-c", role.command]
    around = {"PATH": os.environ["PATH"], "LAVA_TASK_ADDRESS": "10.0.0.7"}
    out = subprocess.run(words, env=around | given, capture_output=True, text=True, check=True).stdout
    return dict(line.split("=", 1) for line in out.splitlines() if "=" in line), describe(found)


def test_a_later_value_has_a_secret_in_it() -> None:
    """It is a secret itself: neither the command nor the dry run shows it."""
    found, said = told("[{name: URL, value: 'db://me:$(PASSWORD)@db'}, {name: ALL, value: '$(URL)/$$x'}]")
    assert (found["URL"], found["ALL"]) == ("db://me:hunter2@db", "db://me:hunter2@db/$x")
    assert "secrets: PASSWORD, un-like, URL, ALL" in said
    assert "hunter2" not in said


def test_a_later_value_has_a_secret_and_the_address_in_it() -> None:
    """The shell of the task puts both in."""
    found, said = told(f"[{{name: IP, {ADDRESS}}}, {{name: URL, value: '$(PASSWORD)@$(IP)'}}]")
    assert found["URL"] == "hunter2@10.0.0.7"
    assert "hunter2" not in said


def test_names_that_the_shell_does_not_allow() -> None:
    """Names with - and . reach the program, and values that refer to them."""
    env = f"[{{name: my-ip, {ADDRESS}}}, {{name: a.b, value: it's}}, {{name: WHERE, value: 'http://$(my-ip):$(a.b)'}}]"
    found, _ = told(env, "[env, 'ARG=$(my-ip)']")
    assert {name: found[name] for name in ("my-ip", "a.b", "WHERE", "ARG")} == {
        "my-ip": "10.0.0.7",
        "a.b": "it's",
        "WHERE": "http://10.0.0.7:it's",
        "ARG": "10.0.0.7",
    }


def test_a_secret_whose_name_the_shell_drops_is_named() -> None:
    """It is set where the program runs without a shell, and else named to the user."""
    found, said = told("[]")
    assert found["un-like"] == "x"
    assert "the variable un-like" not in said
    _, said = told(f"[{{name: IP, {ADDRESS}}}]")
    assert "env: ignored: the variable un-like is not set: the shell takes no such name of a secret." in said


def test_the_last_of_one_name_counts() -> None:
    """A container's own value takes the place of a secret of that name."""
    found, said = told("[{name: PASSWORD, value: mine}]")
    assert found["PASSWORD"] == "mine"
    assert "secrets: un-like\n" in said


PAI = """\
protocolVersion: 2
name: j
type: job
prerequisites: [{protocolVersion: 2, name: i, type: dockerimage, uri: x}]
secrets: {a-b: one, a_b: two}
taskRoles:
  w:
    dockerImage: i
    resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}
    commands: ["echo <% $secrets.a-b %> '<% $secrets.a_b %>'"]
"""


def test_secrets_of_openpai_with_names_alike() -> None:
    """Each keeps its value."""
    (job,) = understand_text(PAI, "f", "ann").jobs
    assert job.rules is not None
    around = dict(os.fsdecode(one).split("=", 1) for one in job.rules.secrets)
    words = ["/bin/sh", "-c", job.roles[0].command]
    assert subprocess.run(words, env=around, capture_output=True, text=True, check=True).stdout == "one two\n"
