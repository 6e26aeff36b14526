"""The site's program eadmin: it is told of the exceptions of jobs, all of an interval at once, as LSF does.

It runs as lavad's user, from LSF_SERVERDIR. Each line of its input is the exception, the job's id, its owner, its queue
and its run time in seconds.
"""

import asyncio
import logging
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from lavad.config.accounts import is_safe
from lavad.core.activity_events import JobWarned
from lavad.core.cluster import Cluster
from lavad.core.decide.clock.exceptions import rules_of
from lavad.core.events import Event, JobFinished
from lavad.core.model import Key
from lavad.core.model.rules.exceptions import EXCEPTIONS, UNDERRUN

log = logging.getLogger(__name__)
LIMIT_S = 60.0  # for one run of eadmin
KEPT = 100_000  # exceptions of an interval


class Found(NamedTuple):
    """Exception of a job."""

    what: str
    key: Key
    user: str
    queue: str
    run_s: float

    @property
    def line(self) -> str:
        """Line of eadmin's input."""
        element = f"[{self.key.index}]" if self.key.index else ""
        return f"{self.what} {self.key.job}{element} {self.user} {self.queue} {self.run_s:.0f}\n"


class JobExceptions:
    """Exceptions that eadmin has not been told yet. Volatile: those of the last interval before a restart are not told.

    ``directory`` returns LSF_SERVERDIR of the files as they are now; empty: none.
    """

    def __init__(self, cluster: Cluster, directory: Callable[[], str]) -> None:
        self._cluster = cluster
        self._directory = directory
        self._found: list[Found] = []
        self._due = 0.0
        self._running: asyncio.Task[None] | None = None

    def notify(self, events: list[Event]) -> None:
        """Note the exceptions among events; jobs that end too soon are found by their ends."""
        for event in events:
            if isinstance(event, JobWarned) and event.about in EXCEPTIONS:
                self._note(event.about, event.key, event.at)
            elif isinstance(event, JobFinished) and event.status:
                self._note_early(event)

    def _note(self, what: str, key: Key, at: float) -> None:
        job, attempt = self._cluster.element(key.job, key.index), self._cluster.attempts.get(key)
        if job is not None and attempt is not None and len(self._found) < KEPT:
            run_s = at - attempt.started_at
            self._found.append(Found(what, key, job.shared.user, job.shared.queue, run_s))

    def _note_early(self, event: JobFinished) -> None:
        job = self._cluster.element(event.key.job, event.key.index)
        rule = rules_of(self._cluster.policy).get(job.shared.queue) if job is not None else None
        if job is None or rule is None or not event.started_at or len(self._found) >= KEPT:
            return
        run_s = event.at - event.started_at
        if run_s < rule.underrun_s:
            self._found.append(Found(UNDERRUN, event.key, job.shared.user, job.shared.queue, run_s))

    def look(self, now: float) -> None:
        """Run eadmin if there is something to tell, the interval is over and it does not run."""
        if not self._found or now < self._due or (self._running is not None and not self._running.done()):
            return
        self._due = now + self._cluster.policy.exceptions_told_every_s
        found, self._found = self._found, []
        self._running = asyncio.get_running_loop().create_task(self._tell(found))

    async def _tell(self, found: list[Found]) -> None:
        for one in found:
            log.info("exception=%s", one.line.rstrip())
        directory = self._directory()
        if directory:
            await asyncio.to_thread(_run, Path(directory, "eadmin"), "".join(one.line for one in found))


def _run(program: Path, told: str) -> None:
    """Run eadmin, if the site has one that only root and lavad's user may change."""
    if not os.access(program, os.X_OK):
        return
    real = program.resolve()
    if not all(map(is_safe, (real, real.parent, program.parent))):
        log.warning("eadmin=refused path=%s reason='another user than root and lavad may change it'", program)
        return
    try:
        done = subprocess.run([program], input=told, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        log.warning("eadmin=killed path=%s reason='it took longer than %.0f seconds'", program, LIMIT_S)
    except OSError as error:
        log.warning("eadmin=failed path=%s reason=%r", program, error.strerror)
    else:
        if done.returncode:
            log.warning("eadmin=failed path=%s code=%d said=%r", program, done.returncode, done.stderr[:200])
