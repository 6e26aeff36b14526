"""Changes of the cluster since the scheduler last took them: what waits for one of them has to be examined again."""

from collections.abc import Set
from typing import NamedTuple

from lavad.core.model import Key
from lavad.core.state.limits import Counter
from lavad.core.state.pending import BucketKey


class Changes(NamedTuple):
    """Changes of a cluster between two slices; hosts are rows of its table."""

    changed_buckets: Set[BucketKey]  # new ones, and those with another head
    shrunk_buckets: Set[BucketKey]  # they lost entries, so that their reservations may be outdated
    freed_hosts: Set[int]  # with more free resources
    closed_hosts: Set[int]
    changed_values: Set[str]  # of those that blocked requirements depend on
    changed_attempts: Set[Key]  # started, ended or with other slots
    relaxed_limits: Set[Counter]  # limits of which less is used

    @property
    def may_free(self) -> bool:
        """True if resources may have been released: on hosts, or by attempts that are about to."""
        return bool(self.freed_hosts or self.changed_attempts)
