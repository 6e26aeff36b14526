"""Abnormal ends of jobs on each host within a period (EXIT_RATE).

An end is not counted if it is unknown: the host went down or was cut off, or the job's shepherd was killed. Volatile:
after a restart the count begins anew; hosts closed by it stay closed.
"""

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from lavad.core.state.records import Attempt, Job

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
    """Recent abnormal ends by host."""

    def __init__(self) -> None:
        self._by_host: dict[str, deque[AbnormalEnd]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_host)

    def note_end(self, job: Job, attempt: Attempt, event: "e.JobFinished", began_at: float) -> None:
        """Count the end of a job; one that was started shows that its host can start jobs."""
        if began_at:
            self.note_start(attempt.lead)
        if not event.status or event.is_lost or event.reason.startswith(LOST):
            return
        is_ended = bool(attempt.kill_reason or attempt.doomed)
        is_start = not began_at and bool(event.detail) and not is_ended
        is_by_lsf = is_ended or (
            event.reason.startswith("TERM_") and not event.reason.startswith(EXTERNAL_SIGNAL) and not is_start
        )
        failures = self._by_host.setdefault(attempt.lead, deque(maxlen=KEPT_MAX))
        failures.append(AbnormalEnd(event.at, job.shared.user, job.id, is_by_lsf, is_start, event.detail))

    def note_start(self, host: str) -> None:
        """Note that a job was started on the host: earlier failed starts were not the host's fault."""
        failures = self._by_host.get(host)
        if failures is not None and any(one.is_start for one in failures):
            self._by_host[host] = deque((one for one in failures if not one.is_start), KEPT_MAX)

    def forget(self, host: str) -> None:
        """Restart the count of a host that was opened or removed."""
        self._by_host.pop(host, None)

    def since(self, moment: float) -> Iterator[tuple[str, deque[AbnormalEnd]]]:
        """Each host with its abnormal ends since then; older ones are dropped."""
        for host, failures in list(self._by_host.items()):
            while failures and failures[0].at < moment:
                failures.popleft()
            if failures:
                yield host, failures
            else:
                del self._by_host[host]
