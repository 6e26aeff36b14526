"""Restart in place of a gang that loses a task: 64 real processes, and 5,000 simulated tasks.

The gang of 64 runs on a personal cluster of four hosts; one of its tasks is killed, again and again, and the time is
taken until the last task of the gang has started anew, or until the lost one has if only that one is restarted. The
5,000 tasks have no processes: what is measured is lavad's own work from the report of the end to the last report of a
new run, each report in a message of its own. ``python -m benchmarks.restarts [--rounds N] [--tasks N]``.
"""

import argparse
import os
import signal
import subprocess
import time

from benchmarks.figures import Figures
from benchmarks.personal import Personal, cluster
from lavad.core.commands import ReportTasks
from lavad.core.model import Key
from lavad.core.model.task_rules import TaskEvent, TaskPhase
from lavad.core.model.task_values import TaskReport
from lavad.core.step import step
from tests.builders import a_host
from tests.task_jobs import TaskStory, a_policy, a_task_role

GANG, HOSTS, SIMULATED_HOSTS = 64, 4, 100
SETTLE_S = 60.0
JOB = """
name: gang
roles:
  worker:
    tasks: {gang}
    command: echo $LAVA_ROLE_INDEX $LAVA_TASK_RUN $$ $(date +%s.%N) >> {starts}; exec sleep 3600
policies:
  - {{on: failed, do: {action}}}
restarts: 1000
"""


class Gang:
    """A running job of 64 tasks, each of which writes a line when it starts."""

    def __init__(self, personal: Personal, action: str) -> None:
        self._starts = personal.directory.parent / f"starts-{action}"
        file = personal.directory.parent / f"{action}.yaml"
        file.write_text(JOB.format(gang=GANG, starts=self._starts, action=action))
        subprocess.run(
            personal.command("lavactl", "run", "-f", str(file)),
            check=True, env=personal.environment, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        self.await_starts(GANG)

    def lines(self) -> list[list[str]]:
        """Index, run, process id and time of each start so far."""
        return [line.split() for line in self._starts.read_text().splitlines()] if self._starts.exists() else []

    def await_starts(self, count: int) -> list[list[str]]:
        """All starts, once there are so many."""
        end = time.monotonic() + SETTLE_S
        while len(found := self.lines()) < count:
            if time.monotonic() > end:
                raise RuntimeError(f"{len(found)} of {count} tasks started within {SETTLE_S:.0f} s")
            time.sleep(0.02)
        return found

    def lose(self, index: int, restarted: int) -> float:
        """Seconds from the end of a task until so many tasks have started anew."""
        known = self.lines()
        pid = next(int(words[2]) for words in reversed(known) if int(words[0]) == index)
        began = time.time()
        os.kill(pid, signal.SIGKILL)
        again = self.await_starts(len(known) + restarted)[len(known) :]
        return max(float(words[3]) for words in again) - began


def measure_gang(figures: Figures, rounds: int) -> None:
    """restart_task_ms, restart_gang_ms: from the end of one task to the last start."""
    with cluster(HOSTS, GANG // HOSTS) as personal:
        for key, action, restarted in (
            ("restart_task_ms", "restart-task", 1),
            ("restart_gang_ms", "restart-job", GANG),
        ):
            gang = Gang(personal, action)
            figures.put_percentiles(key, [gang.lose(7 * n % GANG, restarted) for n in range(rounds)], 50, 99)
            subprocess.run(
                personal.command("bkill", "0"), check=True, env=personal.environment, stdout=subprocess.DEVNULL
            )


def _report_each(story: TaskStory, key: Key, now: TaskPhase, then: TaskPhase) -> None:
    """Report of its own for each task in one phase: it is in the next."""
    for task, record in list(story.tasks(key).of_role(0)):
        if record.phase is now:
            ended = 0.0 if then is TaskPhase.RUNNING else story.now
            report = TaskReport(task, record.run, then, 7, record.started or story.now, ended, 143 << 8 if ended else 0)
            step(story.cluster, ReportTasks(record.host, key, (report,)), story.now)


def measure_simulated(figures: Figures, tasks: int) -> None:
    """simulated_restart_cpu_s: lavad's work for a gang of so many tasks that loses one and is restarted."""
    story = TaskStory(*(a_host(f"h{number}", -(-tasks // SIMULATED_HOSTS)) for number in range(SIMULATED_HOSTS)))
    key = story.begin(a_task_role(tasks=tasks), policies=[a_policy(TaskEvent.FAILED)], restarts_max=3)
    _report_each(story, key, TaskPhase.STARTING, TaskPhase.RUNNING)
    began = time.process_time()
    story.ends(key, 0, tasks // 2, code=1)
    _report_each(story, key, TaskPhase.STOPPING, TaskPhase.EXITED)
    _report_each(story, key, TaskPhase.STARTING, TaskPhase.RUNNING)
    figures.put("simulated_restart_cpu_s", time.process_time() - began)
    if story.phases(key) != "R" * tasks:
        raise RuntimeError("not every task runs again")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--tasks", type=int, default=5000, help="of the simulated gang")
    arguments = parser.parse_args()
    found = Figures()
    measure_simulated(found, arguments.tasks)
    measure_gang(found, arguments.rounds)
