"""Tasks in the database: a restarted master goes on with each of them, and bhist tells what happened to them."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from lavad.core import commands as c
from lavad.core import invariants
from lavad.core.cluster import Cluster
from lavad.core.model import JobState, Key
from lavad.core.model.ranges import Ranges
from lavad.core.model.task_rules import TaskAction, TaskEvent, TaskKey, TaskPhase
from lavad.core.state.records import ArrayRecord
from lavad.core.step import Outcome
from lavad.store import schema
from lavad.store.database import database, url
from lavad.store.lsf_logs.fields import DONE, EXIT
from lavad.store.lsf_logs.log_files import ACCT, LogFiles, Position, Rules
from lavad.store.lsf_logs.recorder import Recorder
from lavad.store.reading.accounts import AccountFilter, ended
from lavad.store.reading.history import HistoryFilter, JobRange, read_page
from lavad.store.reading.restore import SharedTexts, restore
from lavad.store.rows.rows import RowMaker
from lavad.store.rows.task_values import tasks_of
from lavad.store.writer import batch
from lavad.store.writer_process import Database
from protos.common_pb2 import RESTART_ON_FAILURE
from tests import lsf_log_parser
from tests.builders import ANN, ROOT, a_host
from tests.store.fingerprint import fingerprint
from tests.task_jobs import FIRST, TaskStory, a_policy, a_task_role, a_task_spec, starts, submission

A, E, P, S = TaskAction, TaskEvent, TaskPhase, JobState


class SavedStory(TaskStory):
    """A story whose steps are written to a database, as far as it is open."""

    def __init__(self, where: str) -> None:
        self.rows, self.number, self.database = RowMaker(), 0, Database(url.parse(where))
        self.database.open(0.0)
        self.engine = database.reading_engine(url.parse(where))
        self.written: list[int] = []  # rows of tasks in each step
        super().__init__(*(a_host(f"h{number}", 2) for number in (1, 2, 3)))

    def do(self, command: c.Command) -> Outcome:
        """One step, and its rows."""
        outcome = super().do(command)
        made = self.rows.rows_for(outcome.events, self.cluster)
        if made:
            self.number += 1
            self.written.append(len(made.tasks))
            self.database.commit(batch.unpack(made.pack(self.number)))
        return outcome

    def restored(self) -> Cluster:
        """The cluster as a new master finds it."""
        cluster = Cluster(self.cluster.policy)
        with self.engine.begin() as connection:
            restore(connection, cluster, self.now)
        return cluster

    def restart(self) -> None:
        """Another master takes over; the hosts' agents come back with what they have."""
        self.cluster = self.restored()
        self.rows = RowMaker()
        self.rows.adopt(self.cluster)
        self.cluster.begin(self.now)

    def told(self, job: int) -> list[str]:
        """Lines of bhist -l."""
        with self.engine.begin() as connection:
            page = read_page(connection, HistoryFilter(self.now, (JobRange(job, None),)), SharedTexts())
        return [note.text for one in page.jobs for note in one.notes]


@contextmanager
def a_story(where: str) -> Iterator[SavedStory]:
    story = SavedStory(where)
    try:
        yield story
    finally:
        story.engine.dispose()
        story.database.drop()


def _roles(**worker: Any) -> tuple[Any, Any]:
    return a_task_role("ps", launch=FIRST), a_task_role("worker", 3, **worker)


def _restored_alike(story: SavedStory) -> None:
    found = story.restored()
    assert fingerprint(found) == fingerprint(story.cluster)


def _life(story: SavedStory) -> Key:
    """A job that has been through a restart in place, and is in the middle of another one."""
    delayed = a_policy(E.EVICTED, action=A.TERMINATE, timeout_s=60.0)
    key = story.begin(*_roles(policies=[a_policy(E.FAILED, action=A.RESTART_ROLE), delayed]), restarts_max=3)
    _restored_alike(story)
    story.runs(key)
    story.ends(key, 1, 0, code=3)
    story.stops(key)
    story.runs(key)
    story.do(c.KillJob(c.Target(key.job, None, "worker", 2), ANN))
    story.stops(key)
    story.ends(key, 1, 1, code=4)
    return key


def test_a_restarted_master_knows_each_task(tmp_path: Path) -> None:
    """Phase, run, place, ports, restarts and delayed actions; then it goes on where the other one stopped."""
    with a_story(f"{tmp_path}/lava.db") as story:
        key = _life(story)
        _restored_alike(story)
        before = story.phases(key)
        story.restart()
        invariants_hold(story)
        assert story.phases(key) == before
        assert "T" in before
        assert story.task(key, 1, 1).ports
        story.do(c.Tick())
        story.join(a_host("h1", 2))


def invariants_hold(story: SavedStory) -> None:
    """News of restored jobs are decided upon with the first step."""
    story.do(c.Tick())
    invariants.check(story.cluster)


def test_a_restarted_master_goes_on_with_a_work_queue(tmp_path: Path) -> None:
    """It knows which tasks have run, whose place each has, which are still to come, and until when one pauses."""
    with a_story(f"{tmp_path}/lava.db") as story:
        rules = {"restart": RESTART_ON_FAILURE, "restarts_max": 5, "restart_pause_s": 10.0}
        key = story.begin(a_task_role(tasks=2, completions=5, **rules))
        story.runs(key)
        story.ends(key, 0, 1)
        story.runs(key)
        story.ends(key, 0, 0, code=1)
        _restored_alike(story)
        story.restart()
        invariants_hold(story)
        assert story.phases(key) == "WDRWW"
        assert story.task(key, 0, 2).place == 1
        assert story.task(key, 0, 0).not_before == story.now + 10.0
        assert story.tasks(key).owed(0) == 2
        story.join(a_host("h1", 2), (c.HeldAttempt(key, c.ReportStaged("h1", key), True),))
        story.now += 10.0
        story.do(c.Tick())
        while story.state(key.job) is not S.DONE:
            story.runs(key)
            story.ends(key, *min(story.tasks(key).records.alive))
        assert story.phases(key) == "DDDDD"


@pytest.mark.slow
@pytest.mark.postgres
def test_postgresql_keeps_the_same(postgres_url: str) -> None:
    """The other database has the same values."""
    with a_story(postgres_url) as story:
        _life(story)
        assert fingerprint(story.restored()) == fingerprint(story.cluster)


def test_starts_that_were_decided_before_the_restart(tmp_path: Path) -> None:
    """The new master repeats the orders that a host lacks, of the same runs."""
    with a_story(f"{tmp_path}/lava.db") as story:
        key = story.begin(*_roles())
        story.restart()
        held = c.HeldAttempt(key, None, True)
        assert starts(story.join(a_host("h2", 2), (held,))) == {"h2": [(1, 1, 1), (1, 2, 1)]}


def test_an_ended_job_keeps_its_tasks(tmp_path: Path) -> None:
    """For bjobs -l, as long as it is in memory."""
    with a_story(f"{tmp_path}/lava.db") as story:
        key = story.begin(*_roles())
        story.runs(key)
        for task in ((0, 0), (1, 0), (1, 1), (1, 2)):
            story.ends(key, *task)
        assert story.state(key.job) is S.DONE
        _restored_alike(story)
        assert {one.phase for one in story.tasks(key).records.values()} == {P.DONE}


def test_each_change_writes_the_changed_tasks_alone(tmp_path: Path) -> None:
    """A report on one task is one row, however many tasks the job has."""
    with a_story(f"{tmp_path}/lava.db") as story:
        key = story.begin(*_roles())
        before = len(story.written)
        story.runs(key, (1, 0))
        assert story.written[before:] == [1]
        with story.engine.begin() as connection:
            assert connection.scalar(select(func.count()).select_from(schema.tasks)) == 4


def test_the_history_tells_of_failures_and_restarts(tmp_path: Path) -> None:
    """In a user's words; tasks that were ended for a restart have no lines of their own."""
    with a_story(f"{tmp_path}/lava.db") as story:
        key = _life(story)
        told = "\n".join(story.told(key.job))
        assert "Task worker[0] exited with exit code 3 on h1" in told
        assert "Role worker restarted (1 of 3): failed" in told
        assert "Signal <KILL> requested by user or administrator <ann> for worker[2]" in told
        assert "exit code 143" not in told


def test_the_history_tells_why_the_system_ended_tasks(tmp_path: Path) -> None:
    """No user has asked for it: there was an administrator without a name."""
    with a_story(f"{tmp_path}/lava.db") as story:
        key = story.begin(*_roles())
        story.runs(key)
        story.do(c.RevokeHost("h1", ROOT, 60.0, "spot"))
        told = "\n".join(story.told(key.job))
        assert "ps[0], worker[0] ended: host h1 is revoked" in told
        assert "administrator <>" not in told


def test_what_happened_in_the_queue_is_told_everywhere(tmp_path: Path) -> None:
    """A restart there has its line; a job that its policy completes is done in bhist, for bacct and in lsb.acct."""
    with a_story(f"{tmp_path}/lava.db") as story:
        again = a_policy(E.PENDING, action=A.RESTART_JOB, timeout_s=100.0)
        waits = story.do(submission(a_task_spec(a_task_role(tasks=99), policies=[again], restarts_max=5))).reply.job
        well = a_policy(E.PENDING, action=A.COMPLETE, timeout_s=50.0)
        done = story.do(submission(a_task_spec(a_task_role(tasks=99), policies=[well]))).reply.job
        story.wait(250.0)
        reason = "task worker[0] waited for more than {} s for a place"
        assert story.told(waits)[-1] == f"Job is restarted in its queue 2 times: {reason.format(100)}"
        assert story.told(done)[-1] == f"Done successfully. {reason.format(50)};"
        _restored_alike(story)
        for states, expected in (((), [done]), ((S.DONE,), [done]), ((S.EXIT,), [])):
            found = ended(partial(_read, story), AccountFilter(states=frozenset(states)))
            assert [one.job for one in found if one is not None] == expected
        assert _acct(story, tmp_path) == [(done, 0, DONE)]


def _read(story: SavedStory, query: Any) -> Any:
    with story.engine.begin() as connection:
        return query(connection)


def _acct(story: SavedStory, tmp_path: Path) -> list[tuple[int, int, int]]:
    """Job, index and state of each end in lsb.acct."""
    files = LogFiles(tmp_path / "logdir", Rules())
    files.open(Position("c"))
    teller = Recorder(story.engine, files, is_short=False, factors={}, clock=lambda: story.now)
    while teller.turn():
        pass
    files.close()
    return [(one["jobId"], one["idx"], one["jStatus"]) for one in lsf_log_parser.acct(tmp_path / "logdir" / ACCT)]


def test_elements_that_their_policy_completes_in_the_queue_are_done(tmp_path: Path) -> None:
    """Not those that were killed before it; the same after a restart, in bhist, for bacct and in lsb.acct."""
    with a_story(f"{tmp_path}/lava.db") as story:
        well = a_policy(E.PENDING, action=A.COMPLETE, timeout_s=50.0)
        spec = a_task_spec(a_task_role(tasks=99), policies=[well])
        spec.array.add(first=1, last=4)
        job = story.do(submission(spec)).reply.job
        story.do(c.KillJob(c.Target(job, Ranges.of(2)), ANN))
        story.wait(50.0)
        expected = [S.DONE, S.EXIT, S.DONE, S.DONE]
        for _ in range(2):
            array = story.cluster.jobs[job]
            assert isinstance(array, ArrayRecord)
            assert [array.state_of(index) for index in (1, 2, 3, 4)] == expected
            assert (array.done, array.exited, array.is_over) == (3, 1, True)
            _restored_alike(story)
            story.restart()
        with story.engine.begin() as connection:
            page = read_page(connection, HistoryFilter(story.now, (JobRange(job, None),)), SharedTexts())
        assert [one.job.state for one in page.jobs] == expected
        reason = "task worker[0] waited for more than 50 s for a place"
        assert [page.jobs[number].notes[-1].text for number in (0, 1)] == [
            f"Done successfully. {reason};",
            "Completed <exit>; TERM_OWNER: job killed by owner.",
        ]

        for states, indices in (((), [2, 1, 3, 4]), ((S.DONE,), [1, 3, 4]), ((S.EXIT,), [2])):
            found = ended(partial(_read, story), AccountFilter(states=frozenset(states)))
            assert [one.index for one in found if one is not None] == indices
        assert _acct(story, tmp_path) == [(job, 2, EXIT), *((job, index, DONE) for index in (1, 3, 4))]


def test_an_element_between_two_attempts(tmp_path: Path) -> None:
    """It is no object of its own then, and its tasks count on."""
    with a_story(f"{tmp_path}/lava.db") as story:
        spec = a_task_spec(a_task_role(tasks=2), policies=[a_policy(E.HOST_LOST)], restarts_max=3)
        spec.array.add(first=1, last=2)
        job = story.do(submission(spec)).reply.job
        story.plan()
        key = story.key(job, 1)
        story.stage(key)
        story.runs(key)
        (host,) = {record.host for record in story.tasks(key).records.values()}
        story.released(host, key)
        assert story.cluster.element(job, 1) is None
        restored = story.restored()
        assert fingerprint(restored) == fingerprint(story.cluster)
        array = restored.jobs[job]
        assert array.tasks[1].restarts == 1  # type: ignore[union-attr, index]


def test_restarts_that_an_earlier_version_counted_by_role(tmp_path: Path) -> None:
    """A job of that time goes on with them: its roles have no groups."""
    with a_story(f"{tmp_path}/lava.db") as story:
        job = story.cluster.jobs[story.begin(*_roles()).job]
        content = '{"version":3,"in_place":[[1,2]]}'
        assert tasks_of(job.shared, content, []).restarts_in_place == {TaskKey(1, 0): 2}
