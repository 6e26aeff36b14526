"""Timed reservations (rusage[...:duration=:decay=]): the reserved amount decreases while the job runs.

No event or row belongs to this: the amount follows from the dispatch time and the present time, so a restart finds the
same. A share is booked in full; the part freed since is kept here, and taken again just before the share is released.
"""

from functools import lru_cache
from typing import TYPE_CHECKING

from lavad.core.language.requirements.rusage import Reserve, parse
from lavad.core.model import PARTS, HostShare, Key, Request

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lavad.core.state.attempts import Attempt
    from lavad.core.state.hosts.table import HostTable

STEP_S = 10.0  # interval at which linear decay is applied


@lru_cache(maxsize=4096)
def timed_reserves(request: Request) -> tuple[Reserve, ...]:
    """Reservations that change while a job runs; none for jobs with alternatives or several roles."""
    role = request.single_role
    if role is None or request.alternatives or ":duration=" not in role.rusage:
        return ()
    return tuple([one for one in parse(role.rusage)[0].reserves if one.is_timed])


class TimedRusage:
    """Attempts with timed reservations, and the freed part of each share, in thousandths by host and resource."""

    def __init__(self) -> None:
        self._timed: dict[Key, tuple[Attempt, tuple[Reserve, ...]]] = {}
        self._eased: dict[Key, dict[tuple[str, str], int]] = {}
        self._due_at = 0.0

    def note(self, attempt: "Attempt", request: Request | None) -> None:
        """Note an attempt that has been allocated shares."""
        role = request.single_role if request is not None else None
        reserves = timed_reserves(request) if request is not None and role is not None and role.rusage else ()
        if reserves:
            self._timed[attempt.key] = attempt, reserves
            self._due_at = 0.0

    def __contains__(self, key: Key) -> bool:
        return key in self._timed

    def forget(self, key: Key) -> None:
        """Forget an attempt that has released all shares."""
        self._timed.pop(key, None)
        self._eased.pop(key, None)

    def eased_on(self, key: Key, host: str, name: str) -> int:
        """Freed part of a share, in thousandths."""
        return self._eased.get(key, {}).get((host, name), 0)

    def ease(self, table: "HostTable", now: float) -> None:
        """Free what is not reserved any more at that time."""
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
        """Free the same parts again, after site-defined resources were booked anew in full."""
        for eased in self._eased.values():
            for (host, name), amount in eased.items():
                if name != "mem":
                    table.ease(table.rows[host], name, amount)

    def take_again(self, table: "HostTable", key: Key, host: str) -> None:
        """Book the freed part of a share again: the share is being released."""
        eased = self._eased.get(key)
        for place in [place for place in eased or () if place[0] == host]:
            assert eased is not None
            table.ease(table.rows[host], place[1], -eased.pop(place))


def _full(share: HostShare, name: str) -> int:
    if name == "mem":
        return share.memory_mib * PARTS
    return sum(one.amount for one in share.resources if one.name == name)
