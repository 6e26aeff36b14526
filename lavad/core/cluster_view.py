"""Read-only view of the cluster: the type by which scheduling and queries know it.

Only properties and look-ups: mypy refuses to assign an attribute, to add or remove an item, and to call what changes
state. Parts such as the host table are the live ones; a test refuses assignments to their attributes.
"""

from collections.abc import Iterator, Mapping, Set
from typing import Protocol

from lavad.core.model import JobState, Key, QueueWindow, Request, Shared
from lavad.core.model.policy import Policy
from lavad.core.state.advance_reservations import AdvanceReservations
from lavad.core.state.attempts import Attempt
from lavad.core.state.budgets import Budgets
from lavad.core.state.changes import Changes
from lavad.core.state.counters import JobCounters
from lavad.core.state.dependencies import Dependants
from lavad.core.state.fairshare import Shares
from lavad.core.state.hosts.table import HostTable
from lavad.core.state.jobs.absolute_priorities import AbsolutePriorities
from lavad.core.state.jobs.external_statuses import ExternalStatusTable
from lavad.core.state.jobs.job_groups import JobGroups
from lavad.core.state.limits import Limits
from lavad.core.state.paged import PagedView
from lavad.core.state.pending import Bucket, BucketKey
from lavad.core.state.pools import Pools
from lavad.core.state.preemptable import PreemptableJobs, PreemptionRules
from lavad.core.state.records import ArrayRecord, Claim, Host, Job


class PendingView(Protocol):
    """All buckets of pending jobs."""

    @property
    def buckets(self) -> Mapping[BucketKey, Bucket]:
        """All buckets, oldest first."""

    def request_of(self, shared: Shared) -> Request:
        """The request to place for such a job."""

    def key_of(self, shared: Shared) -> BucketKey | None:
        """Key of the bucket of jobs with these shared facts; None if none of them is pending."""

    def __len__(self) -> int: ...


class ClusterView(Protocol):
    """All state of the master, to be read only; described at ``Cluster``."""

    @property
    def policy(self) -> Policy:
        """Policy in force, with the administrators' queue states."""

    @property
    def version(self) -> int:
        """Version of the state; raised by every change that may affect placement."""

    @property
    def changes(self) -> Changes:
        """Changes since the scheduler last took them."""

    @property
    def changed_attempts(self) -> Set[Key]:
        """Attempts whose slots changed since then."""

    @property
    def jobs(self) -> Mapping[int, Job | ArrayRecord]:
        """Jobs and arrays by number."""

    @property
    def attempts(self) -> PagedView[Attempt]:
        """Attempts that hold resources."""

    @property
    def remembered(self) -> Mapping[int, Job | ArrayRecord]:
        """Forgotten jobs that other jobs depend on."""

    @property
    def external_statuses(self) -> ExternalStatusTable:
        """First words of the external statuses of jobs."""

    @property
    def replacing(self) -> Mapping[Key, Attempt]:
        """Attempts of jobs of tasks that have lost hosts and go on."""

    @property
    def resizable(self) -> Mapping[Key, Attempt]:
        """Started attempts that can be resized."""

    @property
    def lenders(self) -> Mapping[Key, Attempt]:
        """Suspended attempts whose resources are lent, in order of suspension."""

    @property
    def claims(self) -> Mapping[tuple[int, int], Claim]:
        """Resources claimed for a job, by job and index."""

    @property
    def hosts(self) -> Mapping[str, Host]:
        """Hosts by name."""

    @property
    def table(self) -> HostTable:
        """Free resources of all hosts."""

    @property
    def limits(self) -> Limits:
        """Limits with their usage."""

    @property
    def absolute(self) -> AbsolutePriorities:
        """Absolute priorities of pending jobs."""

    @property
    def budgets(self) -> Budgets:
        """Budgets with what was used of them."""

    @property
    def shares(self) -> Shares:
        """Fairshare accounts with their usage."""

    @property
    def preemption_rules(self) -> PreemptionRules:
        """Queues that may preempt jobs of others."""

    @property
    def preemptable(self) -> PreemptableJobs:
        """Running jobs that may be preempted."""

    @property
    def pools(self) -> Pools:
        """Resource pools with their usage."""

    @property
    def slot_reserve_pauses(self) -> Mapping[tuple[int, int], float]:
        """Jobs that reserve no slots until then."""

    @property
    def reserved(self) -> AdvanceReservations:
        """Advance reservations."""

    @property
    def pending(self) -> PendingView:
        """Pending jobs that may start."""

    @property
    def counters(self) -> JobCounters:
        """Numbers of jobs by state."""

    @property
    def job_groups(self) -> JobGroups:
        """Job groups."""

    @property
    def dependants(self) -> Dependants:
        """Dependency conditions of pending jobs."""

    @property
    def windows(self) -> Mapping[str, QueueWindow]:
        """Run windows of queues, as of the last tick."""

    def holder(self, key: Key) -> Job | None:
        """The job whose present attempt this is, or None if the attempt is over."""

    def bearer(self, job_id: int, index: int) -> Job | ArrayRecord:
        """The record with the parameters of a job or element: its array, unless it was changed by itself."""

    def find_bearer(self, job_id: int, index: int) -> Job | ArrayRecord | None:
        """The same; None if the job was forgotten before a silent host has released it."""

    def attempts_of(self, job_id: int) -> list[Attempt]:
        """Present attempts of a job, or of an array's elements."""

    def kept_slots(self) -> Iterator[tuple[Shared, int]]:
        """Slots claimed for each pending job, with the job's shared facts."""

    def present_state(self, job_id: int, index: int) -> JobState | None:
        """State of a job or element, also of one that is only an index of its array."""
