"""Admitted submissions, by what was submitted: most jobs of a user are alike, and are read and checked once.

An admission is known until hosts or rules change.
"""

from collections.abc import Hashable

from lavad.core.model import Shared
from lavad.core.model.policy import Policy
from lavad.core.state.hosts.table import HostTable

_KEPT = 4096

Submitted = tuple[Shared, Hashable]  # shared facts as submitted, and the options that a queue's rules are combined with


class Admissions:
    """Shared facts of admitted jobs, with the caller of then."""

    __slots__ = ("_known", "_policy", "_versions")

    def __init__(self) -> None:
        self._known: dict[Submitted, tuple[object, Shared]] = {}
        self._policy: Policy | None = None
        self._versions = (0, 0)

    def find(self, submitted: Submitted, caller: object, policy: Policy, table: HostTable) -> Shared | None:
        """Shared facts of an equal submission of the same caller under these rules."""
        versions = (table.facts_version, table.site.version)
        if policy is not self._policy or versions != self._versions:
            self._known.clear()
            self._policy, self._versions = policy, versions
        known = self._known.get(submitted)
        return known[1] if known is not None and known[0] == caller else None

    def note(self, submitted: Submitted, caller: object, admitted: Shared) -> None:
        """Keep an admission under the rules of the last ``find``."""
        if len(self._known) >= _KEPT:
            self._known.clear()
        self._known[submitted] = caller, admitted
