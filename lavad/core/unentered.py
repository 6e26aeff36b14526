"""Host shares that were booked last, before they are entered with their hosts: that is done when somebody looks there.

Most attempts of a replay come and go without that, and a gang has hundreds of hosts. Entered in the order in which they
were booked, so that nobody can tell the difference.
"""

from typing import TYPE_CHECKING

from lavad.core.model import Allocation, Key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lavad.core.records import Host

_SHARES_MAX = 4096  # entered within a millisecond


class Unentered:
    """Shares by attempt. ``hosts`` is the cluster's."""

    __slots__ = ("_count", "_hosts", "by_attempt")

    def __init__(self, hosts: "Mapping[str, Host]") -> None:
        self._hosts = hosts
        self._count = 0
        self.by_attempt: dict[Key, Allocation] = {}

    def note(self, key: Key, shares: Allocation) -> None:
        """The attempt has these shares besides what it had."""
        if key in self.by_attempt or self._count > _SHARES_MAX:
            self.enter()
        self._count += len(shares)
        self.by_attempt[key] = shares

    def drop(self, key: Key, shares: Allocation) -> bool:
        """The attempt has none of these any more; False, and nothing is done, where they are entered, or some are."""
        if self.by_attempt.get(key) is not shares:
            return False
        del self.by_attempt[key]
        self._count -= len(shares)
        return True

    def enter(self) -> None:
        """Let all hosts know what they hold."""
        noted, self.by_attempt, self._count = self.by_attempt, {}, 0
        for key, shares in noted.items():
            for share in shares:
                self._hosts[share.host].entered[key] = share
