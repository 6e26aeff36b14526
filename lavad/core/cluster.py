"""The cluster's state. ``apply.events`` is the one door through which it changes.

Indexes by state and by host are kept from the first job on: nothing ever scans all jobs in the path of a job.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lavad.core.model import LOAD, JobState, Key, QueueWindow, Request, Shared
from lavad.core.model.allocation import slots_of
from lavad.core.model.policy import Policy, Queue
from lavad.core.model.windows import Calendar
from lavad.core.state.advance_reservations import AdvanceReservations
from lavad.core.state.counters import JobCounters, PendingCounters
from lavad.core.state.dependencies import Dependants
from lavad.core.state.fairshare import Account, Shares
from lavad.core.state.hosts.exit_rates import ExitRates
from lavad.core.state.hosts.load_thresholds import LoadThresholds
from lavad.core.state.hosts.table import HostTable
from lavad.core.state.hosts.timed_rusage import TimedRusage
from lavad.core.state.job_names import Names
from lavad.core.state.limits import Charge, Limits
from lavad.core.state.paged import Paged
from lavad.core.state.pending import PendingIndex
from lavad.core.state.pools import Pools
from lavad.core.state.preemptable import PreemptableJobs, PreemptionRules
from lavad.core.state.records import ArrayRecord, Attempt, Claim, Host, Job, QueueState, UnenteredShares

FINISHED_KEPT = 50_000  # ended jobs in memory; the store knows the older ones


class Cluster:
    """All of it: jobs, attempts, hosts, indexes."""

    def __init__(self, policy: Policy, name: str = "lava", term: int = 1) -> None:
        self.name = name
        self.term = term
        self.policy = policy
        self.next_job = 1
        self.lost_jobs: list[range] = []  # numbers that were given out and that the database has lost
        self.jobs: dict[int, Job | ArrayRecord] = {}
        self.attempts: Paged[Attempt] = Paged()
        self.touched: set[Key] = set()  # attempts that took or gave back slots since the scheduler last asked
        self.staging: Paged[Attempt] = Paged()  # not all hosts have answered, or the launch is not yet confirmed
        self.resizable: dict[Key, Attempt] = {}  # started attempts that may grow and shrink
        self.resizing: dict[Key, Attempt] = {}  # those of them whose change is waited for, with a date
        self.lenders: dict[Key, Attempt] = {}  # suspended so that others may use what they hold; the first is first
        self.has_leases = False  # some attempt has had one since this master began
        self.claims: dict[tuple[int, int], Claim] = {}  # by job and index: room that is being cleared for it
        self.hosts: dict[str, Host] = {}
        self.unentered = UnenteredShares(self.hosts)
        self.table = HostTable()
        self.easing = TimedRusage()
        self.table.configure(policy)
        self.configured = policy  # as the files have it; ``policy`` is that with what administrators did to queues
        self.queue_states: dict[str, QueueState] = {}
        self.limits = Limits(policy, self.table)
        self.shares = Shares(policy)
        self.charges: Paged[Charge] = Paged()  # what attempts count for, as long as their jobs hold them
        self.charged: dict[str, Account] = {}  # share accounts by path whose used time has changed, until it is stored
        self.rights = PreemptionRules(policy)
        self.runners = PreemptableJobs(self.rights.victims)
        self.pools = Pools(policy)
        self.load_rules = LoadThresholds(policy)
        self.rests: dict[tuple[int, int], float] = {}  # jobs that save no slots until then
        self.unsettled: set[str] = set()  # hosts whose load may stop jobs, or lets some go on that it has stopped
        self.exit_rates = ExitRates()
        self.reserved = AdvanceReservations()
        self.pending = self.new_pending_index()
        self.finished: OrderedDict[tuple[int, int], Job] = OrderedDict()  # oldest first
        self.ended_arrays: OrderedDict[int, float] = OrderedDict()  # job -> when its last element ended
        self.request_ids: OrderedDict[tuple[str, bytes], int] = OrderedDict()  # user and id -> job
        self.tally = JobCounters(PendingCounters(policy))
        self.dependants = Dependants()
        self.remembered: dict[int, Job | ArrayRecord] = {}  # forgotten jobs that somebody still waits for
        self.names = Names()
        self.alarms: list[tuple[float, int]] = []  # a heap: when to look at which job
        self.windows: dict[str, QueueWindow] = {}  # of queues that have windows, as the last tick saw them
        self.calendar = Calendar()
        self._interned: dict[Shared, Shared] = {}
        self._requests: dict[Request, Request] = {}
        # Of jobs submitted like these: the rules then, who asked, and for what besides; what was admitted.
        self.admissions: dict[Shared, tuple[Policy, object, object, Shared]] = {}
        self.applied = 0  # events, and changes of the rules

    @property
    def version(self) -> int:
        """Raised by everything that may change what can be placed where."""
        return self.applied + self.table.untold

    def intern(self, shared: Shared) -> Shared:
        """The one object that stands for all equal ones."""
        known = self._interned.get(shared)
        if known is None:
            request = self._requests.setdefault(shared.request, shared.request)
            if request is not shared.request:
                shared = _with_request(shared, request)
            known = self._interned[shared] = shared
        return known

    # -- rules -----------------------------------------------------------------------------------------------------

    def new_pending_index(self) -> PendingIndex:
        """Empty. Where slots are set apart for later, each job's run limit says whether it may use them until then."""
        queues = self.policy.queues
        urgent = [queue.priority for queue in queues if queue.backfill_depth or queue.in_order]
        most_urgent = max(urgent, default=float("-inf"))  # of those that make reservations: all behind must mind them
        return PendingIndex(
            frozenset(
                queue.name for queue in queues if queue.is_timed or self.reserved or queue.priority <= most_urgent
            ),
            frozenset(queue.name for queue in queues if queue.backfill_depth > 1) | self.rights.takers,
            self.limits.by_project,
            {queue.name: hosts for queue in queues if (hosts := queue.own_hosts) is not None},
            frozenset(name for rule in self.policy.host_rules.values() for name in rule.exclusive_resources),
        )

    def take_queue_states(self) -> None:
        """What administrators did to queues holds whatever the files say. A new object tells others to look again."""
        self.policy = replace(self.configured, queues=tuple(map(self._ruled, self.configured.queues)))

    def _ruled(self, queue: Queue) -> Queue:
        state = self.queue_states.get(queue.name)
        return (
            queue if state is None or queue.is_removed else replace(queue, open=state.is_open, active=state.is_active)
        )

    def begin(self, now: float) -> None:
        """Restored: from now on hosts that stay away count as silent after the usual time, and terms are looked at."""
        self.dependants.stir_all()
        for host in self.hosts.values():
            host.seen_at = now

    # -- volatile: no event, no row ----------------------------------------------------------------------------------

    def heard(self, name: str, now: float) -> bool:
        """A word came from that host. True when it had been silent, so that the caller says so by a command."""
        host = self.hosts.get(name)
        if host is None:
            return False
        host.seen_at = now
        return host.is_silent

    def observe_load(self, name: str, load: Sequence[float]) -> None:
        """Newest load indices of a host. Where jobs may have to stop for it, or go on, the next tick looks at it."""
        host = self.hosts.get(name)
        if host is None:
            return
        self.table.set_load(host.row, load)
        if self.load_rules:
            self.check_load(name)

    def check_load(self, name: str) -> None:
        """A host beyond its own loadSched takes no new jobs; one beyond any loadStop is to be looked at."""
        host = self.hosts[name]
        is_busy = self.load_rules.has_host_rules and self.load_rules.is_busy(self.table, host.row)
        if is_busy is not host.is_busy:
            host.is_busy = is_busy
            self.table.set_usable(host.row, host.is_usable and not host.avoid_until)
        if self.load_rules.stops and host.attempts:
            was_stopped = any(LOAD in self.attempts[key].suspended for key in host.attempts)
            if was_stopped or self.load_rules.is_beyond(self.table, host.row):
                self.unsettled.add(name)

    def rest(self, job: int, index: int, now: float) -> None:
        """A job has let its saved slots go: it saves none for a while. Forgotten by a restart, which does no harm."""
        record = self.jobs.get(job)
        queue = self.policy.queue(record.shared.queue) if record is not None else None
        self.rests = {one: until for one, until in self.rests.items() if until > now}
        self.rests[job, index] = now + (queue.slot_reserve_s if queue is not None else 0.0)

    def excuse_silence(self, seconds: float, now: float) -> None:
        """For so long the master itself did not listen, or its clock was set: no host was silent in that time."""
        for host in self.hosts.values():
            host.seen_at = min(now, host.seen_at + seconds)

    # -- read ----------------------------------------------------------------------------------------------------

    def element(self, job_id: int, index: int) -> Job | None:
        """The plain job (index 0), or the element if it lives or ended recently; None for a waiting element."""
        job = self.jobs.get(job_id)
        if isinstance(job, ArrayRecord):
            return job.live.get(index) or self.finished.get((job_id, index))
        return job if index == 0 else None

    def holder(self, key: Key) -> Job | None:
        """The job whose present attempt is this one, or None when the attempt is over."""
        attempt = self.attempts.get(key)
        return self.holder_of(attempt) if attempt is not None else None

    def holder_of(self, attempt: Attempt) -> Job | None:
        """The job whose present attempt this is, or None when it is over."""
        return None if attempt.over else self.element(attempt.key.job, attempt.key.index)

    def attempts_of(self, job_id: int) -> list[Attempt]:
        """What a job, or the elements of an array, hold hosts with."""
        record = self.jobs.get(job_id)
        jobs = record.live.values() if isinstance(record, ArrayRecord) else (record,)
        return [job.attempt for job in jobs if job is not None and job.attempt is not None]

    def kept_slots(self) -> Iterator[tuple[Shared, int]]:
        """Slots that are kept for waiting jobs, and what each of these was submitted with."""
        for claim in self.claims.values():
            yield self.jobs[claim.job].shared, slots_of(claim.allocation)

    def live_jobs(self) -> Iterator[Job]:
        """Jobs and elements that hold an allocation."""
        for attempt in self.attempts.values():
            if not attempt.over:
                job = self.element(attempt.key.job, attempt.key.index)
                if job is not None:
                    yield job

    def present_state(self, job_id: int, index: int) -> JobState | None:
        """State of a job or element, also of one that is only a number in its array."""
        job = self.jobs.get(job_id)
        if isinstance(job, ArrayRecord):
            return job.state_of(index)
        return job.state if job is not None and index == 0 else None


def _with_request(shared: Shared, request: Request) -> Shared:
    return replace(shared, request=request)
