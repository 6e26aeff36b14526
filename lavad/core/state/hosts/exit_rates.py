"""Abnormal ends of jobs on each host within a period.

No rate counts a job of which it is not known how it ended: the host went down or was cut off, or what kept the job was
killed. Volatile: after a restart the count begins anew; that a host was closed is kept.
"""

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from lavad.core.state.records import Attempt, Job

if TYPE_CHECKING:
    from lavad.core import events as e

KEPT_MAX = 10_000  # ends of one host
LOST = "TERM_UNKNOWN"  # LSF does not count what a host that is unavailable ends either
EXTERNAL_SIGNAL = "TERM_EXTERNAL_SIGNAL"


class AbnormalEnd(NamedTuple):
    """An abnormal end."""

    at: float
    user: str
    job: int
    is_by_lsf: bool  # it was killed, by a person or a limit
    is_start: bool  # its command was never started
    detail: str


class ExitRates:
    """Recent failures by host."""

    def __init__(self) -> None:
        self._by_host: dict[str, deque[AbnormalEnd]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_host)

    def note_end(self, job: Job, attempt: Attempt, event: "e.JobFinished", began_at: float) -> None:
        """A job has ended; one that was started shows that its host can do that."""
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
        """A job was started there: failed starts before it were not the host's."""
        failures = self._by_host.get(host)
        if failures is not None and any(one.is_start for one in failures):
            self._by_host[host] = deque((one for one in failures if not one.is_start), KEPT_MAX)

    def forget(self, host: str) -> None:
        """The host was opened, or is gone: the count begins anew."""
        self._by_host.pop(host, None)

    def since(self, moment: float) -> Iterator[tuple[str, deque[AbnormalEnd]]]:
        """Each host with its failures since then; older ones are dropped."""
        for host, failures in list(self._by_host.items()):
            while failures and failures[0].at < moment:
                failures.popleft()
            if failures:
                yield host, failures
            else:
                del self._by_host[host]
