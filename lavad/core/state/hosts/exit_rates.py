"""Abnormal ends of jobs on each host within a period (EXIT_RATE).

An end is not counted if it is unknown: the host went down or was cut off, or the job's shepherd was killed. Of a job of
tasks the ends of its tasks count, each on its own host, and not the job's. Volatile: after a restart the count begins
anew; hosts closed by it stay closed.
"""

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from lavad.core.model.reasons import is_done
from lavad.core.model.task_values import TaskReport
from lavad.core.state.attempts import Attempt
from lavad.core.state.records import Job

if TYPE_CHECKING:
    from lavad.core import events as e

KEPT_MAX = 10_000  # ends of one host
LOST = "TERM_UNKNOWN"  # LSF does not count the ends on an unavailable host either
EXTERNAL_SIGNAL = "TERM_EXTERNAL_SIGNAL"


class AbnormalEnd(NamedTuple):
    """An abnormal end."""

    at: float
    user: str
    job: int
    is_by_lsf: bool  # it was killed, by a user or a limit
    is_start: bool  # its command was never started
    detail: str


class ExitRates:
    """Recent abnormal ends by host. ``fresh``: hosts with ends that lava did not order, not looked at since."""

    def __init__(self) -> None:
        self.fresh: set[str] = set()
        self._by_host: dict[str, deque[AbnormalEnd]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_host)

    def note_end(self, job: Job, attempt: Attempt, event: "e.JobFinished", began_at: float) -> None:
        """Count the end of a job; one that was started shows that its host can start jobs."""
        if began_at:
            self.note_start(attempt.lead)
        if not event.status or is_done(event.status, event.reason) or event.is_lost or event.reason.startswith(LOST):
            return
        is_ended = bool(attempt.kill_reason or attempt.doomed)
        is_start = not began_at and bool(event.detail) and not is_ended
        is_by_lsf = is_ended or (
            event.reason.startswith("TERM_") and not event.reason.startswith(EXTERNAL_SIGNAL) and not is_start
        )
        self._note(attempt.lead, AbnormalEnd(event.at, job.shared.user, job.id, is_by_lsf, is_start, event.detail))

    def note_task_end(self, job: Job, host: str, state: TaskReport, at: float) -> None:
        """Count the end of a task that was not ordered; one that was started shows that its host can start jobs."""
        if state.started:
            self.note_start(host)
        if state.status:
            is_by_lsf = state.reason.startswith("TERM_") and not state.reason.startswith(EXTERNAL_SIGNAL)
            is_start = not state.started
            self._note(host, AbnormalEnd(at, job.shared.user, job.id, is_by_lsf, is_start, state.detail))

    def _note(self, host: str, end: AbnormalEnd) -> None:
        self._by_host.setdefault(host, deque(maxlen=KEPT_MAX)).append(end)
        if not end.is_by_lsf:
            self.fresh.add(host)

    def note_start(self, host: str) -> None:
        """Note that a job was started on the host: earlier failed starts were not the host's fault."""
        failures = self._by_host.get(host)
        if failures is not None and any(one.is_start for one in failures):
            self._by_host[host] = deque((one for one in failures if not one.is_start), KEPT_MAX)

    def forget(self, host: str) -> None:
        """Restart the count of a host that was opened or removed."""
        self._by_host.pop(host, None)
        self.fresh.discard(host)

    def take_fresh(self) -> set[str]:
        """Hosts with ends that have not been looked at; they count as looked at from now on."""
        fresh, self.fresh = self.fresh, set()
        return fresh

    def of(self, host: str, moment: float) -> deque[AbnormalEnd]:
        """Abnormal ends on the host since then; older ones are dropped."""
        failures = self._by_host.get(host, deque())
        while failures and failures[0].at < moment:
            failures.popleft()
        if not failures:
            self._by_host.pop(host, None)
        return failures

    def since(self, moment: float) -> Iterator[tuple[str, deque[AbnormalEnd]]]:
        """Each host with its abnormal ends since then; older ones are dropped."""
        for host in list(self._by_host):
            failures = self.of(host, moment)
            if failures:
                yield host, failures
