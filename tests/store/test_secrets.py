"""Secrets of a job in a dump of PostgreSQL: in the record of its submission and nowhere else (decision 0029)."""

import subprocess

import pytest

from lavad.agent_links.spec_cache import Packed
from lavad.api import translate
from lavad.core import commands as c
from lavad.core.model import JobState
from lavad.core.model.task_rules import TaskAction, TaskEvent
from tests.builders import ANN
from tests.conftest import postgres_binaries
from tests.fakes.postgres import PostgresServer
from tests.store.test_tasks import a_story
from tests.task_jobs import a_policy, a_task_role, a_task_spec

pytestmark = pytest.mark.postgres

TOKEN = b"hunter-4ab1c7"


def test_a_dump_has_them_in_one_column_alone(postgres_server: PostgresServer) -> None:
    """After restarts of the job and of the master, its end and a requeue. PostgreSQL writes bytes in hexadecimal."""
    database = "secrets"
    with a_story(postgres_server.make_database(database)) as story:
        again = a_policy(TaskEvent.FAILED, action=TaskAction.RESTART_JOB)
        spec = a_task_spec(a_task_role(tasks=2), policies=[again], restarts_max=3, secrets=[b"TOKEN=" + TOKEN])
        new = translate.new_job(spec, Packed(spec.SerializeToString(), "", None), b"", ANN)
        job = story.do(c.SubmitJob(new, ANN, translate.asked_of(spec, ("normal",)))).reply.job
        story.plan()
        key = story.key(job)
        story.stage(key)
        story.runs(key)
        story.ends(key, 0, 0, code=3)
        story.stops(key)
        story.runs(key)
        for index in (0, 1):
            story.ends(key, 0, index)
        assert story.state(job) is JobState.DONE
        story.do(c.RequeueJob(c.Target(job), ANN, frozenset({JobState.DONE})))
        story.restart()
    programs = postgres_binaries()
    assert programs is not None
    words = (programs / "pg_dump", "-h", str(postgres_server.directory), "-U", "lava", database)
    dump = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout
    assert columns_with(dump, TOKEN) == {("specs", "spec")}


def columns_with(dump: str, secret: bytes) -> set[tuple[str, str]]:
    """Tables and columns whose data have the secret, as text or in hexadecimal; a row of statements as ("", "")."""
    found, table, columns = set(), "", [""]
    for line in dump.splitlines():
        if line.startswith("COPY "):
            table, _, rest = line.removeprefix("COPY public.").partition(" (")
            columns = rest.partition(")")[0].split(", ")
        elif line == "\\.":
            table, columns = "", [""]
        else:
            values = line.split("\t") if table else [line]
            found |= {
                (table, column)
                for column, value in zip(columns, values, strict=True)
                if secret.decode() in value or secret.hex() in value
            }
    return found
