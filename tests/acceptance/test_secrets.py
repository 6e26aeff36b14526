"""The promises of decision 0029 about a job's secrets, one test each: jobs of another user than root, on two hosts."""

import os
import re
import sqlite3
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.acceptance.personal import Cluster, a_cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

TOKEN, PASSWORD = "hunter-4ab1c7", "swordfish-90fe2d"
URL = f"postgres://ann:{PASSWORD}@db/x"
OWN = f"""\
name: own
secrets: {{TOKEN: {TOKEN}}}
roles:
  a: {{tasks: 1, command: 'ulimit -c > {{folder}}/core; echo "$TOKEN" > {{folder}}/told; exec sleep 600'}}
  b: {{tasks: 2, requirement: "span[ptile=1]", command: exec sleep 600}}
"""
KUBERNETES = f"""\
apiVersion: v1
kind: Secret
metadata: {{name: db}}
stringData: {{password: {PASSWORD}}}
---
apiVersion: batch/v1
kind: Job
metadata: {{name: from-kubernetes}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: c
        command: [sh, -c, 'echo "$URL" > {{folder}}/url; exec sleep 600']
        env:
        - {{name: PW, valueFrom: {{secretKeyRef: {{name: db, key: password}}}}}}
        - {{name: URL, value: "postgres://ann:$(PW)@db/x"}}
"""


class Kept(NamedTuple):
    """A cluster with two jobs that have secrets."""

    cluster: Cluster
    user: Cluster
    jobs: tuple[int, ...]
    folder: Path


@pytest.fixture(scope="module")
def kept(open_directory: Path, public_commands: Path, account: str) -> Iterator[Kept]:
    """Both jobs run, submitted by an ordinary user, and their tasks have the secrets."""
    folder = open_directory / "work"
    folder.mkdir()
    folder.chmod(0o777)
    with a_cluster(open_directory / "C", 2, 4, commands=public_commands) as cluster:
        user = cluster.as_seen_by(account).at(folder)
        jobs = []
        for name, text in (("own", OWN), ("kubernetes", KUBERNETES)):
            file = folder / f"{name}.yaml"
            file.write_text(textwrap.dedent(text).replace("{folder}", str(folder)))
            said = user.run("lavactl", "run", "-f", str(file))
            jobs += map(int, re.findall(r"Job <(\d+)>", said.stdout))
            assert not holds_secret(
                said.stdout + said.stderr + user.run("lavactl", "run", "--dry-run", "-f", str(file)).stdout
            )
            file.unlink()
        assert len(jobs) == 2
        wait_for(lambda: have_told(folder), 60, "the tasks to run")
        assert ((folder / "told").read_text(), (folder / "url").read_text()) == (f"{TOKEN}\n", f"{URL}\n")
        assert (folder / "core").read_text() == "0\n"
        for name in ("told", "url"):
            (folder / name).unlink()
        yield Kept(cluster, user, tuple(jobs), folder)


def have_told(folder: Path) -> bool:
    """True if the files of both tasks have a whole line."""
    return all(read(folder / name).endswith(b"\n") for name in ("told", "url"))


def holds_secret(text: str | bytes) -> bool:
    """True if a text has one of the secrets."""
    data = text.encode() if isinstance(text, str) else text
    return any(one.encode() in data for one in (TOKEN, PASSWORD))


def processes() -> list[Path]:
    """Directories of all processes in /proc."""
    return [Path("/proc", name) for name in os.listdir("/proc") if name.isdigit()]


def read(path: Path) -> bytes:
    """Content; nothing of a process that has gone."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_no_command_shows_them(kept: Kept) -> None:
    """Neither to the owner nor to an administrator; `lavactl show` has their names."""
    for who in (kept.cluster, kept.user):
        for job in map(str, kept.jobs):
            for words in (
                ("lavactl", "show", job), ("lavactl", "show", "-o", "json", job), ("bjobs", "-l", job),
                ("bhist", "-l", job), ("lavactl", "tasks", "-json", job), ("bjobs", "-o", "all", "-json", job),
            ):  # fmt: skip
                done = who.run(*words)
                assert not holds_secret(done.stdout + done.stderr), words
        assert "TOKEN" in who.says("lavactl", "show", str(kept.jobs[0]))


def test_only_the_tasks_have_them_in_their_environment(kept: Kept, account: str) -> None:
    """No daemon, shepherd or command has them, no command line; the kernel shows the tasks' to no other user."""
    having: list[Path] = []

    def all_have() -> bool:
        having[:] = [one for one in processes() if holds_secret(read(one / "environ"))]
        return len(having) >= 4

    wait_for(all_have, 60, "all four tasks to run")
    user = int(subprocess.run(["id", "-u", account], capture_output=True, text=True, check=True).stdout)
    assert {one.stat().st_uid for one in having} == {user}
    assert not [one for one in processes() if holds_secret(read(one / "cmdline"))]
    for one in having:
        other = subprocess.run(
            ["runuser", "-u", "nobody", "--", "cat", str(one / "environ")], capture_output=True, check=False
        )
        assert other.returncode != 0
        assert not other.stdout


def test_no_log_has_them_and_no_other_user_can_read_a_file_that_has(kept: Kept) -> None:
    """The journals and records of hosts, and the database, are closed to others."""
    having = [
        path
        for folder, _, names in os.walk(kept.cluster.directory)
        for path in (Path(folder, name) for name in names)
        if path.is_file() and holds_secret(read(path))
    ]
    assert having
    assert not [
        path for path in having if path.suffix == ".log" or "log" in path.relative_to(kept.cluster.directory).parts
    ]
    for path in having:
        other = subprocess.run(["runuser", "-u", "nobody", "--", "cat", str(path)], capture_output=True, check=False)
        assert other.returncode != 0, path


def test_of_the_database_only_the_submission_has_them(kept: Kept) -> None:
    """History and accounting, which other programs read, do not: a dump of these tables may be given away."""
    path = next(kept.cluster.directory.rglob("lava.db"))
    found = set()
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        tables = [row[0] for row in connection.execute("select name from sqlite_master where type = 'table'")]
        for table in tables:
            rows = connection.execute(f'select * from "{table}"')
            columns = [column[0] for column in rows.description]
            for row in rows:
                found |= {
                    (table, name)
                    for name, value in zip(columns, row, strict=True)
                    if isinstance(value, str | bytes) and holds_secret(value)
                }
    assert found == {("specs", "spec")}


def test_they_are_there_again_after_restarts_and_a_requeue(kept: Kept) -> None:
    """Of the master, of the agents, and of the job itself."""
    for daemon in ("lavad", *(f"agent-{host}" for host in kept.cluster.hosts())):
        kept.cluster.kill(daemon)
    kept.cluster.up()
    kept.cluster.says("brequeue", *map(str, kept.jobs))
    wait_for(lambda: have_told(kept.folder), 60, "the tasks to run again")
    assert ((kept.folder / "told").read_text(), (kept.folder / "url").read_text()) == (f"{TOKEN}\n", f"{URL}\n")
