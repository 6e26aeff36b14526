"""State of the cluster. It changes through ``apply.events`` only.

Indexes by state and by host are maintained, so that no operation on a job scans all jobs.
"""

from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lavad.core.model import LOAD, JobState, Key, QueueWindow, Request, Shared
from lavad.core.model.allocation import slots_of
from lavad.core.model.policy import Policy
from lavad.core.model.rules.queues import Queue
from lavad.core.model.windows import Calendar
from lavad.core.state.advance_reservations import AdvanceReservations
from lavad.core.state.attempts import Attempt
from lavad.core.state.budgets import Budgets
from lavad.core.state.changes import Changes
from lavad.core.state.counters import JobCounters, PendingCounters
from lavad.core.state.dependencies import Dependants
from lavad.core.state.fairshare import Account, Shares
from lavad.core.state.hosts.exit_rates import ExitRates
from lavad.core.state.hosts.job_commands import job_commands
from lavad.core.state.hosts.load_thresholds import LoadThresholds
from lavad.core.state.hosts.table import HostTable
from lavad.core.state.hosts.timed_rusage import TimedRusage
from lavad.core.state.hosts.unentered import UnenteredShares
from lavad.core.state.jobs.absolute_priorities import AbsolutePriorities
from lavad.core.state.jobs.admissions import Admissions
from lavad.core.state.jobs.external_statuses import ExternalStatusTable
from lavad.core.state.jobs.job_groups import JobGroups
from lavad.core.state.jobs.job_names import Names
from lavad.core.state.jobs.migrations import Migrations
from lavad.core.state.jobs.texts import Texts
from lavad.core.state.limits import Charge, Limits
from lavad.core.state.paged import Paged
from lavad.core.state.pending import PendingIndex
from lavad.core.state.pools import Pools
from lavad.core.state.preemptable import PreemptableJobs, PreemptionRules
from lavad.core.state.records import ArrayRecord, Claim, Host, Job, QueueState

if TYPE_CHECKING:
    from lavad.core.model.rules.names import MemberChange
    from lavad.core.model.task_rules import TaskEvent, TaskKey

FINISHED_KEPT = 50_000  # ended jobs in memory; the store has the older ones


class Cluster:
    """All state of the master: jobs, attempts, hosts, indexes."""

    def __init__(self, policy: Policy, name: str = "lava", term: int = 1) -> None:
        self.name = name
        self.term = term
        self.policy = policy
        self.next_job = 1
        self.lost_jobs: list[range] = []  # job numbers used before the database lost commits
        self.jobs: dict[int, Job | ArrayRecord] = {}
        self.attempts: Paged[Attempt] = Paged()
        self.changed_attempts: set[Key] = set()  # attempts whose slots changed since the last pass
        self.staging: Paged[Attempt] = Paged()  # not all hosts have staged, or the start is not reported yet
        self.resizable: dict[Key, Attempt] = {}  # started attempts that can be resized
        self.replacing: dict[Key, Attempt] = {}  # attempts that have lost hosts and go on, of jobs of tasks
        self.resizing: dict[Key, Attempt] = {}  # those of both with a resize under way, which has a deadline
        self.lenders: dict[Key, Attempt] = {}  # suspended attempts whose resources are lent, in order of suspension
        # By job and index: what happened to tasks, to be decided upon in the same step; without an event: it runs.
        self.task_news: dict[tuple[int, int], deque[tuple[TaskKey, TaskEvent | None]]] = {}
        self.timed_tasks: dict[tuple[int, int], None] = {}  # jobs with delayed actions
        self.parts_changed: set[Key] = set()  # attempts that may hang by what has ended since the last step
        self.hanging: dict[Key, float] = {}  # attempts whose policy acts upon a hang by then
        self.has_leases = False  # an attempt has had one since this master began
        self.claims: dict[tuple[int, int], Claim] = {}  # by job and index: resources claimed for it
        self.hosts: dict[str, Host] = {}
        self.unentered = UnenteredShares(self.hosts)
        self.table = HostTable()
        self.timed_rusage = TimedRusage()
        self.table.configure(policy)
        self.group_changes: dict[str, MemberChange] = {}  # of host groups, by name; the policy's groups have them
        self.configured = policy  # as in the files; ``policy`` also has the administrators' queue states
        self.queue_states: dict[str, QueueState] = {}
        self.job_groups = JobGroups()
        self.limits = Limits(policy, self.table)
        self.shares = Shares(policy)
        self.budgets = Budgets(policy)
        self.exceptions_due = 0.0  # when exceptions of running jobs are looked for next
        self.absolute = AbsolutePriorities(policy)
        self.charges: Paged[Charge] = Paged()  # charges of attempts that their jobs have not left
        self.charged: dict[str, Account] = {}  # share accounts by path with usage that is not stored yet
        self.preemption_rules = PreemptionRules(policy)
        self.preemptable = PreemptableJobs(self.preemption_rules.victims)
        self.pools = Pools(policy)
        self.load_rules = LoadThresholds(policy)
        self.slot_reserve_pauses: dict[tuple[int, int], float] = {}  # jobs that reserve no slots until then
        self.migrations = Migrations(self.hosts)
        self.hosts_to_check: set[str] = set()  # hosts beyond a loadStop threshold, or with jobs suspended for load
        self.locked_hosts: set[str] = set()
        self.exit_rates = ExitRates()
        self.reserved = AdvanceReservations()
        self.pending = self.new_pending_index()
        self.finished: OrderedDict[tuple[int, int], Job] = OrderedDict()  # oldest first
        self.ended_arrays: OrderedDict[int, float] = OrderedDict()  # job -> end of its last element
        self.request_ids: OrderedDict[tuple[str, bytes], int] = OrderedDict()  # user and id -> job
        self.counters = JobCounters(PendingCounters(policy), bool(policy.service_classes))
        self.dependants = Dependants()
        self.displaced: set[int] = set()  # jobs whose place in lists is not that of their number, or was not once
        self.capped: set[int] = set()  # arrays with a job limit, elements of which were changed by themselves and wait
        self.remembered: dict[int, Job | ArrayRecord] = {}  # forgotten jobs that other jobs depend on
        self.external_statuses = ExternalStatusTable()
        self.names = Names()
        self.texts = Texts()
        self.alarms: list[tuple[float, int]] = []  # heap of (time, job to check)
        self.windows: dict[str, QueueWindow] = {}  # of queues with windows, as of the last tick
        self.calendar = Calendar()
        self._interned: dict[Shared, Shared] = {}
        self._requests: dict[Request, Request] = {}
        self.admissions = Admissions()
        self.applied = 0  # events and reconfigurations

    def resized(self, key: Key) -> Attempt | None:
        """The attempt if its allocation may change while it runs, by its job's wish or because it has lost hosts."""
        return self.resizable.get(key) or self.replacing.get(key)

    @property
    def version(self) -> int:
        """Version of the state; raised by every change that may affect placement."""
        return self.applied + self.table.unlogged_changes

    @property
    def changes(self) -> Changes:
        """Changes since the scheduler last took them."""
        pending, table = self.pending, self.table
        return Changes(
            pending.changed_buckets,
            pending.shrunk_buckets,
            table.freed_hosts,
            table.closed_hosts,
            table.changed_values,
            self.changed_attempts,
            self.limits.relaxed_limits,
        )

    def take_changes(self) -> Changes:
        """Take the changes, of which none are left: a later change never alters what was taken."""
        changes, pending, table = self.changes, self.pending, self.table
        pending.changed_buckets, pending.shrunk_buckets = set(), set()
        table.freed_hosts, table.closed_hosts, table.changed_values = set(), set(), set()
        self.changed_attempts, self.limits.relaxed_limits = set(), set()
        return changes

    def intern(self, shared: Shared) -> Shared:
        """The one object for all equal shared facts."""
        known = self._interned.get(shared)
        if known is None:
            request = self._requests.setdefault(shared.request, shared.request)
            if request is not shared.request:
                shared = _with_request(shared, request)
            known = self._interned[shared] = shared
        return known

    # -- configuration ---------------------------------------------------------------------------------------------

    def new_pending_index(self) -> PendingIndex:
        """An empty index. With advance reservations the run limit of every job matters, since it decides which slots it
        may use until one begins; so it does for those that a budget has to be enough for."""
        queues = self.policy.queues
        urgent = [queue.served_at for queue in queues if queue.backfill_depth or queue.in_order]
        most_urgent = max(urgent, default=float("-inf"))  # queues below it have to regard reservations
        return PendingIndex(
            frozenset(
                queue.name
                for queue in queues
                if queue.is_timed or self.reserved or queue.served_at <= most_urgent or self.budgets.has(queue.name)
            ),
            frozenset(queue.name for queue in queues if queue.backfill_depth > 1) | self.preemption_rules.preemptors,
            self.limits.by_project or self.budgets.by_project,
            {queue.name: hosts for queue in queues if (hosts := queue.own_hosts) is not None},
            self._exclusive_resources(),
            job_commands(self.policy),
            self.limits.by_application or self.pools.by_application,
        )

    def _exclusive_resources(self) -> frozenset[str]:
        """Host resources that are only for jobs that name them, or that bear what they say of the host."""
        by_rules = frozenset(name for rule in self.policy.host_rules.values() for name in rule.exclusive_resources)
        return by_rules.union(*{host.facts.exclusive_resources for host in self.hosts.values()})

    def take_queue_states(self) -> None:
        """Apply administrators' queue states over the configured ones. The new policy object invalidates caches."""
        self.policy = replace(self.configured, queues=tuple(map(self._ruled, self.configured.queues)))

    def _ruled(self, queue: Queue) -> Queue:
        state = self.queue_states.get(queue.name)
        return (
            queue if state is None or queue.is_removed else replace(queue, open=state.is_open, active=state.is_active)
        )

    def begin(self, now: float) -> None:
        """Finish a restart: the silence timeout of hosts begins now, and all dependency conditions are evaluated."""
        self.dependants.stir_all()
        for host in self.hosts.values():
            host.seen_at = now

    # -- volatile: no event, no row ----------------------------------------------------------------------------------

    def heard(self, name: str, now: float) -> bool:
        """Note a message from that host. True if it was silent, so that the caller issues a command."""
        host = self.hosts.get(name)
        if host is None:
            return False
        host.seen_at = now
        return host.is_silent

    def observe_load(self, name: str, load: Sequence[float]) -> None:
        """Set a host's load indices. If jobs may have to be suspended or resumed for it, the next tick decides."""
        host = self.hosts.get(name)
        if host is None:
            return
        self.table.set_load(host.row, load)
        if self.load_rules:
            self.check_load(name)

    def observe_gpus(self, name: str, unfit: int) -> bool:
        """Set the GPUs of a host, as a mask, that no job is to be given: faulty ones, and those whose memory is held.

        Return True if one is fit again.
        """
        host = self.hosts.get(name)
        return host is not None and self.table.set_unfit_gpus(host.row, unfit)

    def check_load(self, name: str) -> None:
        """Compare a host's load with thresholds: beyond its own loadSched it takes no jobs, beyond any loadStop it is
        noted."""
        host = self.hosts[name]
        is_busy = self.load_rules.has_host_rules and self.load_rules.is_busy(self.table, host.row)
        if is_busy is not host.is_busy:
            host.is_busy = is_busy
            self.table.set_usable(host.row, host.is_usable and not host.avoid_until)
        if self.load_rules.stops and host.attempts:
            was_stopped = any(LOAD in self.attempts[key].suspended for key in host.attempts)
            if was_stopped or self.load_rules.is_beyond(self.table, host.row):
                self.hosts_to_check.add(name)

    def rest(self, job: int, index: int, now: float) -> None:
        """Bar a job that gave up its slot reservation from another one for a while. Lost by a restart, which does no
        harm."""
        record = self.find_bearer(job, index)
        queue = self.policy.queue(record.shared.queue) if record is not None else None
        self.slot_reserve_pauses = {one: until for one, until in self.slot_reserve_pauses.items() if until > now}
        self.slot_reserve_pauses[job, index] = now + (queue.slot_reserve_s if queue is not None else 0.0)

    def excuse_silence(self, seconds: float, now: float) -> None:
        """Extend the silence timeouts by the time in which the master itself did not listen, or its clock was set."""
        for host in self.hosts.values():
            host.seen_at = min(now, host.seen_at + seconds)

    # -- look-ups ------------------------------------------------------------------------------------------------

    def is_named(self, word: str) -> bool:
        """Return True for the cluster's own name, which stands for all its hosts unless a host or a group has it."""
        return word == self.name and word not in self.hosts and word not in self.policy.host_groups

    def element(self, job_id: int, index: int) -> Job | None:
        """The plain job (index 0), or the element if it is live, was changed by itself, or ended recently; None for any
        other pending element."""
        job = self.jobs.get(job_id)
        if isinstance(job, ArrayRecord):
            return job.job_of(index) or self.finished.get((job_id, index))
        return job if index == 0 else None

    def bearer(self, job_id: int, index: int) -> Job | ArrayRecord:
        """The record with the parameters of a job or element: its array, unless it was changed by itself."""
        record = self.jobs[job_id]
        if isinstance(record, Job) or index not in record.changed:
            return record
        return self.element(job_id, index) or record

    def find_bearer(self, job_id: int, index: int) -> Job | ArrayRecord | None:
        """The same; None if the job was forgotten before a silent host has released it."""
        return self.bearer(job_id, index) if job_id in self.jobs else None

    def holder(self, key: Key) -> Job | None:
        """The job whose present attempt this is, or None if the attempt is over."""
        attempt = self.attempts.get(key)
        return self.holder_of(attempt) if attempt is not None else None

    def holder_of(self, attempt: Attempt) -> Job | None:
        """The job whose present attempt this is, or None if the attempt is over."""
        return None if attempt.over else self.element(attempt.key.job, attempt.key.index)

    def attempts_of(self, job_id: int) -> list[Attempt]:
        """Present attempts of a job, or of an array's elements."""
        record = self.jobs.get(job_id)
        jobs = record.live.values() if isinstance(record, ArrayRecord) else (record,)
        return [job.attempt for job in jobs if job is not None and job.attempt is not None]

    def kept_slots(self) -> Iterator[tuple[Shared, int]]:
        """Slots claimed for each pending job, with the job's shared facts."""
        for claim in self.claims.values():
            yield self.bearer(claim.job, claim.index).shared, slots_of(claim.allocation)

    def live_jobs(self) -> Iterator[Job]:
        """Jobs and elements with an allocation."""
        for attempt in self.attempts.values():
            if not attempt.over:
                job = self.element(attempt.key.job, attempt.key.index)
                if job is not None:
                    yield job

    def present_state(self, job_id: int, index: int) -> JobState | None:
        """State of a job or element, also of one that is only an index of its array."""
        job = self.jobs.get(job_id)
        if isinstance(job, ArrayRecord):
            return job.state_of(index)
        return job.state if job is not None and index == 0 else None


def _with_request(shared: Shared, request: Request) -> Shared:
    return replace(shared, request=request)
