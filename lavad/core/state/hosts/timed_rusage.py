"""rusage[...:duration=:decay=]: what a job holds grows less with time, so that others may have it.

Nothing of this is an event or a row: how much is held follows from when the job was dispatched and what time it is, so
a restart finds the same. A share is booked in full; what has been let go of it since is kept here, and taken again just
before the share is given back.
"""

from functools import lru_cache
from typing import TYPE_CHECKING

from lavad.core.language.requirements.rusage import PARTS, Reserve, parse
from lavad.core.model import HostShare, Key, Request

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lavad.core.state.hosts.table import HostTable
    from lavad.core.state.records import Attempt

STEP_S = 10.0  # how often amounts that fall in a straight line are looked at


@lru_cache(maxsize=4096)
def timed_reserves(request: Request) -> tuple[Reserve, ...]:
    """Reservations that change while a job runs; of jobs with terms or roles of several kinds there are none."""
    if len(request.roles) != 1 or request.alternatives or ":duration=" not in request.roles[0].rusage:
        return ()
    return tuple([one for one in parse(request.roles[0].rusage)[0].reserves if one.is_timed])


class TimedRusage:
    """The attempts whose reservations change, and how much of each share is let go: thousandths by host and name."""

    def __init__(self) -> None:
        self._timed: dict[Key, tuple[Attempt, tuple[Reserve, ...]]] = {}
        self._eased: dict[Key, dict[tuple[str, str], int]] = {}
        self._due_at = 0.0

    def note(self, attempt: "Attempt", request: Request | None) -> None:
        """An attempt has taken shares."""
        reserves = timed_reserves(request) if request is not None and request.roles[0].rusage else ()
        if reserves:
            self._timed[attempt.key] = attempt, reserves
            self._due_at = 0.0

    def __contains__(self, key: Key) -> bool:
        return key in self._timed

    def forget(self, key: Key) -> None:
        """The attempt has given back all shares."""
        self._timed.pop(key, None)
        self._eased.pop(key, None)

    def eased_on(self, key: Key, host: str, name: str) -> int:
        """So much of a share is let go."""
        return self._eased.get(key, {}).get((host, name), 0)

    def ease(self, table: "HostTable", now: float) -> None:
        """Let go what is not held any more at that time."""
        if not self._timed or now < self._due_at:
            return
        self._due_at = now + STEP_S
        for key, (attempt, reserves) in self._timed.items():
            for share in attempt.allocation:
                if share.host in attempt.unreleased:
                    self._ease_share(table, key, share, reserves, now - attempt.dispatched_at)

    def _ease_share(
        self, table: "HostTable", key: Key, share: HostShare, reserves: "Iterable[Reserve]", elapsed_s: float
    ) -> None:
        eased = self._eased.setdefault(key, {})
        for one in reserves:
            full = _full(share, one.name)
            let_go = full - full * one.held(elapsed_s) // max(1, one.largest)
            if one.name == "mem":
                let_go = let_go // PARTS * PARTS  # memory is counted in whole MiB
            more = let_go - eased.get((share.host, one.name), 0)
            if more:
                eased[share.host, one.name] = let_go
                table.ease(table.rows[share.host], one.name, more)

    def let_go_again(self, table: "HostTable") -> None:
        """Resources of the site were booked anew, in full."""
        for eased in self._eased.values():
            for (host, name), amount in eased.items():
                if name != "mem":
                    table.ease(table.rows[host], name, amount)

    def take_again(self, table: "HostTable", key: Key, host: str) -> None:
        """Book in full what was let go of a share: it is given back now."""
        eased = self._eased.get(key)
        for place in [place for place in eased or () if place[0] == host]:
            assert eased is not None
            table.ease(table.rows[host], place[1], -eased.pop(place))


def _full(share: HostShare, name: str) -> int:
    if name == "mem":
        return share.memory_mib * PARTS
    return sum(one.amount for one in share.resources if one.name == name)
