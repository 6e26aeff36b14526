"""Write-behind buffer of host shares: most attempts of a replay come and go before a host's are next read."""

from typing import TYPE_CHECKING

from lavad.core.model import Allocation, Key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lavad.core.state.records import Host

_SHARES_MAX = 4096  # entered within a millisecond


class UnenteredShares:
    """Write-behind buffer of host shares by attempt. ``hosts`` is the cluster's."""

    __slots__ = ("_count", "_hosts", "by_attempt")

    def __init__(self, hosts: "Mapping[str, Host]") -> None:
        self._hosts = hosts
        self._count = 0
        self.by_attempt: dict[Key, Allocation] = {}

    def note(self, key: Key, shares: Allocation) -> None:
        """Add shares to those that the attempt has."""
        if key in self.by_attempt or self._count > _SHARES_MAX:
            self.enter()
        self._count += len(shares)
        self.by_attempt[key] = shares

    def drop(self, key: Key, shares: Allocation) -> bool:
        """Remove shares of an attempt; False, without effect, if any of them is entered already."""
        if self.by_attempt.get(key) is not shares:
            return False
        del self.by_attempt[key]
        self._count -= len(shares)
        return True

    def enter(self) -> None:
        """Enter the buffered shares with their hosts."""
        noted, self.by_attempt, self._count = self.by_attempt, {}, 0
        for key, shares in noted.items():
            for share in shares:
                self._hosts[share.host].entered[key] = share
