"""Hangs and unused hosts in the database: told once, whatever is restarted, and in bhist."""

from pathlib import Path

from lavad.core import commands as c
from lavad.core.model import Key
from lavad.core.model.gpu_use import GpuUse
from lavad.core.model.task_rules import TaskEvent
from lavad.core.model.usage import HostUsage, depart, gpus_of_attempt, taken
from lavad.core.orders import StacksOrder
from tests.builders import ANN
from tests.store.fingerprint import fingerprint
from tests.store.test_tasks import SavedStory, a_story
from tests.task_jobs import a_policy, a_task_role


def hanging(story: SavedStory) -> Key:
    """A job with a policy for hangs hangs; one of its two hosts has saved its stacks."""
    policy = a_policy(TaskEvent.HANGS)
    key = story.begin(a_task_role(tasks=4, policies=[policy]), restarts_max=3)
    story.runs(key)
    story.do(c.ReportActivity("h2", key, unused_s=60.0))
    story.do(c.ReportActivity("h1", key, inactive_s=300.0))
    story.do(c.ReportActivity("h2", key, inactive_s=300.0, unused_s=70.0))
    story.do(c.ReportStacks("h1", key, 1, "/out/stacks.h1"))
    return key


def test_a_hang_outlives_the_master_and_its_policy_acts(tmp_path: Path) -> None:
    """It is not told again, the stacks that are missing are asked for again, and the restart comes of it."""
    with a_story(f"{tmp_path}/lava.db") as story:
        key = hanging(story)
        assert fingerprint(story.restored()) == fingerprint(story.cluster)
        story.restart()
        held = c.HeldAttempt(key, None, launched=True)
        orders = [one for host in ("h1", "h2", "h3") for one in story.back(host, *([held] if host != "h3" else []))]
        assert [(one.host, one.number) for one in orders if isinstance(one, StacksOrder)] == [("h2", 1)]
        story.do(c.ReportActivity("h1", key, inactive_s=310.0))
        story.do(c.ReportActivity("h2", key, inactive_s=310.0, unused_s=80.0))
        story.do(c.ReportStacks("h2", key, 1, "", "there is no room"))
        assert story.phases(key) == "TTTT"
        story.stops(key)
        story.runs(key)
        assert fingerprint(story.restored()) == fingerprint(story.cluster)
        assert [line for line in story.told(key.job) if not line.startswith(("Submitted", "Dispatched"))] == [
            "Starting (Pid 4000)",
            "Host h2 has had no process of the job for 60 seconds",
            "Hangs: no output, no progress and no use of CPU, network or GPU for 300 seconds",
            "Stacks of its processes on h1 are in /out/stacks.h1",
            "No stacks were saved on h2: there is no room",
            "Job restarted (1 of 3): hangs",
        ]


def test_a_policy_that_was_due_while_there_was_no_master_acts(tmp_path: Path) -> None:
    """Without waiting for stacks any longer."""
    with a_story(f"{tmp_path}/lava.db") as story:
        key = hanging(story)
        story.now += 3600
        story.restart()
        story.do(c.Tick())
        assert story.phases(key) == "TTTT"


def test_the_use_of_gpus_in_two_stays_on_a_host_outlives_the_master(tmp_path: Path) -> None:
    """Of the host that was left and joined again, and of others that were left; nothing of it counts twice."""
    with a_story(f"{tmp_path}/lava.db") as story:
        key = story.begin(a_task_role(tasks=4))
        story.runs(key)
        attempt = story.cluster.attempts[key]
        for host in ("h1", "h2"):
            attempt.usage = taken(attempt.usage, [(host, HostUsage(gpus=(GpuUse(0, seconds=10.0),)))])
            depart(attempt, host)
        attempt.usage = taken(attempt.usage, [("h1", HostUsage(gpus=(GpuUse(0, seconds=5.0),)))])
        story.do(c.SignalJob(c.Target(key.job), 10, ANN))
        (restored,) = story.restored().attempts.values()
        assert dict(gpus_of_attempt(restored)) == {"h1": (GpuUse(0, seconds=15.0),), "h2": (GpuUse(0, seconds=10.0),)}
        restored.usage = taken(restored.usage, [("h1", HostUsage(gpus=(GpuUse(0, seconds=6.0),)))])
        assert dict(gpus_of_attempt(restored))["h1"] == (GpuUse(0, seconds=16.0),)
