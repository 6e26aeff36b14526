"""A cluster as the seed rows' tests use it: submit a job file, and look at its tasks and their output."""

import json
import os
import re
import textwrap
from collections.abc import Callable
from pathlib import Path

from tests.acceptance.personal import Cluster, wait_for

ENDED = ("DONE", "EXIT")


class Site:
    """A cluster, and a folder for the files of one test."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder

    def in_folder(self, folder: Path) -> "Site":
        """The same cluster with another folder, which every user may enter."""
        for path in (folder, *folder.parents):
            if path.stat().st_uid == os.geteuid() and path != Path("/"):
                path.chmod(path.stat().st_mode | 0o055)
        return Site(self.cluster, folder)

    def file(self, text: str, name: str = "job.yaml") -> Path:
        """A job file with this text."""
        path = self.folder / name
        path.write_text(textwrap.dedent(text))
        return path

    def run(self, text: str, *options: str, name: str = "job.yaml") -> int:
        """Submit a job file; the job's number."""
        done = self.cluster.run("lavactl", "run", "-f", str(self.file(text, name)), *options)
        found = re.findall(r"Job <(\d+)> is submitted", done.stdout)
        assert (done.returncode, len(found)) == (0, 1), done
        return int(found[0])

    def refusal(self, text: str, name: str = "bad.yaml") -> str:
        """Words with which a job file is refused; nothing of it is submitted."""
        done = self.cluster.run("lavactl", "run", "-f", str(self.file(text, name)))
        assert done.returncode != 0, done
        assert "submitted" not in done.stdout
        assert "Traceback" not in done.stderr
        return done.stderr

    def tasks(self, job: int) -> dict[str, dict[str, str]]:
        """Rows of ``lavactl tasks`` by task: ``worker/0``."""
        done = self.cluster.run("lavactl", "tasks", "-json", str(job))
        if done.returncode:
            return {}
        return {row["TASK"]: row for row in json.loads(done.stdout)["RECORDS"]}

    def phases(self, job: int) -> dict[str, str]:
        """State of each task."""
        return {name: row["STAT"] for name, row in self.tasks(job).items()}

    def runs(self, job: int, *tasks: str, limit_s: float = 60) -> None:
        """Wait until these tasks run; without names, all."""

        def are_running() -> bool:
            found = self.phases(job)
            wanted = tasks or tuple(found)
            return bool(wanted) and all(found.get(one) == "RUN" for one in wanted)

        wait_for(are_running, limit_s, f"tasks of job {job} to run: {self.phases(job)}")

    def ends(self, job: int, state: str = "DONE", limit_s: float = 60) -> None:
        """Wait for the end of the job, which must be of this kind."""
        wait_for(lambda: self.cluster.state(job) in ENDED, limit_s, f"the end of job {job}: {self.phases(job)}")
        assert self.cluster.state(job) == state, self._account(job)

    def _account(self, job: int) -> str:
        """Return what is known of a job, for a failure."""
        return "".join(self.cluster.run(*words, str(job)).stdout for words in (("bjobs", "-l"), ("lavactl", "logs")))

    def log(self, job: int, task: str, run: int = 0) -> str:
        """Output of one task."""
        options = ["--attempt", str(run)] if run else []
        done = self.cluster.run("lavactl", "logs", str(job), task, *options)
        assert done.returncode == 0, done
        return done.stdout

    def environment(self, job: int, task: str) -> dict[str, str]:
        """The environment that a task has printed with ``env``."""
        lines = self.log(job, task).splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def wait(self, condition: Callable[[], bool], what: str, limit_s: float = 60) -> None:
        """Wait for a condition."""
        wait_for(condition, limit_s, what)
