"""Checkpoints in the database: an open request outlives the master, and bhist tells of each."""

from dataclasses import replace
from pathlib import Path

from lavad.core import commands as c
from lavad.core.model import SpecialOptions
from lavad.core.order_kinds import CheckpointOrder
from tests.builders import ANN, a_job
from tests.store.fingerprint import fingerprint
from tests.store.test_tasks import a_story


def test_an_open_request_outlives_the_master(tmp_path: Path) -> None:
    """The host hears it again, and what it says then is told once."""
    with a_story(f"{tmp_path}/lava.db") as story:
        job = a_job()
        number = story.submit(job._replace(shared=replace(job.shared, special=SpecialOptions(checkpointable=True))))
        story.plan()
        key, host = story.key(number), story.where(number)[0]
        story.started(host, key)
        story.do(c.CheckpointJob(story.target(number), ANN, ends=True))
        assert fingerprint(story.restored()) == fingerprint(story.cluster)
        story.restart()
        orders = story.back(host, c.HeldAttempt(key, None, launched=True))
        assert [one.request.number for one in orders if isinstance(one, CheckpointOrder)] == [1]
        failed = c.ReportCheckpoint(host, key, 1, 100.0, "there is no room", ends=True)
        for report in (failed, failed, c.ReportCheckpoint(host, key, 0, 200.0)):
            story.do(report)
        assert fingerprint(story.restored()) == fingerprint(story.cluster)
        assert story.told(number)[-3:] == [
            "Checkpoint requested by user or administrator <ann> to end the job",
            "Checkpoint failed: there is no room",
            "Periodic checkpoint succeeded",
        ]
