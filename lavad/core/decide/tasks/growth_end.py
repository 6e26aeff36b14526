"""End of a growth under way that does not come about, of a job of tasks or any other."""

from lavad.core import events as e
from lavad.core.state.attempts import Attempt


def give_growth_up(attempt: Attempt, now: float, retry_at: float, reason: str, gone: str = "") -> list[e.Event]:
    """Events that end a growth under way: its new hosts are released. ``gone``: that host has nothing of it.

    Nothing of the job was ever started there, so their shares are free without a report.
    """
    new = [share.host for share in attempt.resizing.growth if attempt.share_on(share.host) is None]
    freed = [e.HostReleased(now, attempt.key, host, assumed=host != gone) for host in new]
    return [*freed, e.GrowthGivenUp(now, attempt.key, attempt.version + 1, retry_at, reason)]
