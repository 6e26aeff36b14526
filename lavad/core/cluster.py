"""The cluster's state. ``apply`` is the one door through which it changes; everything else here reads.

Indexes by state and by host are kept from the first job on: nothing ever scans all jobs in the path of a job.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from lavad.core.apply import allocate, batch_dispatch, charge, claims, enqueue, resize, start_conditions
from lavad.core.apply import jobs as apply
from lavad.core.events import Event
from lavad.core.model import FINAL, HOLDING, LOAD, HostFacts, JobState, Key, QueueWindow, Request, Shared
from lavad.core.model.advance_reservation import AdvanceReservation
from lavad.core.model.allocation import slots_of
from lavad.core.model.host_config import as_configured
from lavad.core.model.policy import Policy, Queue
from lavad.core.model.usage import HostUsage, taken
from lavad.core.model.windows import Calendar
from lavad.core.state.advance_reservations import Reserved
from lavad.core.state.counters import Tally, Waiting
from lavad.core.state.dependencies import Dependants
from lavad.core.state.fairshare import Account, Shares
from lavad.core.state.hosts.exit_rates import ExitRates
from lavad.core.state.hosts.load_thresholds import LoadRules
from lavad.core.state.hosts.table import HostTable
from lavad.core.state.hosts.timed_rusage import Easing
from lavad.core.state.job_names import Names
from lavad.core.state.limits import Limits
from lavad.core.state.paged import Paged
from lavad.core.state.pending import PendingIndex
from lavad.core.state.pools import Pools
from lavad.core.state.preemptable import Rights, Runners
from lavad.core.state.records import ArrayRecord, Attempt, Claim, Host, Job, QueueState, Unentered

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
        self.unentered = Unentered(self.hosts)
        self.table = HostTable()
        self.easing = Easing()
        self.table.configure(policy)
        self.configured = policy  # as the files have it; ``policy`` is that with what administrators did to queues
        self.queue_states: dict[str, QueueState] = {}
        self.limits = Limits(policy, self.table)
        self.shares = Shares(policy)
        self.charges: Paged[charge.Charge] = Paged()  # what attempts count for, as long as their jobs hold them
        self.charged: dict[str, Account] = {}  # share accounts by path whose used time has changed, until it is stored
        self.rights = Rights(policy)
        self.runners = Runners(self.rights.victims)
        self.pools = Pools(policy)
        self.load_rules = LoadRules(policy)
        self.rests: dict[tuple[int, int], float] = {}  # jobs that save no slots until then
        self.unsettled: set[str] = set()  # hosts whose load may stop jobs, or lets some go on that it has stopped
        self.exit_rates = ExitRates()
        self.reserved = Reserved()
        self.pending = self._pending_index()
        self.finished: OrderedDict[tuple[int, int], Job] = OrderedDict()  # oldest first
        self.ended_arrays: OrderedDict[int, float] = OrderedDict()  # job -> when its last element ended
        self.request_ids: OrderedDict[tuple[str, bytes], int] = OrderedDict()  # user and id -> job
        self.tally = Tally(Waiting(policy))
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
        self._applied = 0  # events, and changes of the rules

    # -- change ------------------------------------------------------------------------------------------------

    def apply(self, event: Event) -> None:
        """Let a fact take effect.

        Raises:
            IllegalTransition: the event can't meet the state the job is in.
        """
        self.apply_all((event,))

    def apply_all(self, events: Sequence[Event]) -> None:
        """Let facts take effect one after the other. Many dispatches together cost less than each by itself."""
        starts = batch_dispatch.all_starts(self, events) if len(events) >= batch_dispatch.MANY else None
        if starts is not None:
            self._applied += len(starts)
            batch_dispatch.dispatch_all(self, starts)
            return
        self._applied += len(events)
        for event in events:
            if self.reserved.by_name:
                self.reserved.note(self, event)
            apply.HANDLERS[type(event)](self, event)

    @property
    def version(self) -> int:
        """Raised by everything that may change what can be placed where."""
        return self._applied + self.table.untold

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

    def take_policy(self, policy: Policy) -> None:
        """Other rules from now on. Whatever is derived from the rules is made anew here; jobs stay as they are."""
        had_growth = self.policy.priority_growth
        self._applied += 1
        self.configured = policy
        self.table.configure(policy)
        for host in self.hosts.values():
            for share in (*host.attempts.values(), *host.claims.values()):
                self.table.move_resources(host.row, share.resources, 1)
        self.easing.let_go_again(self.table)
        self.take_queue_states()
        charge.recount(self)
        self.tally.take_waiting(Waiting(policy))
        self.rights = Rights(policy)
        if self.rights.victims != self.runners.queues:
            self.runners = Runners(self.rights.victims)
            for job in self.live_jobs():
                self.runners.note(job)
        self.load_rules = LoadRules(policy)
        for name in self.hosts:
            self._look_at_load(name)
        self.pools = Pools(policy)
        for attempt in self.attempts.values():
            held = [share for share in attempt.booked if share.host in attempt.unreleased]
            allocate.enter_in_pool(self, attempt, held)
        self.sort_pending(had_growth != self.policy.priority_growth)

    def sort_pending(self, is_reordered: bool = False) -> None:
        """Put waiting jobs into buckets anew where other things make them alike than before."""
        pending = self._pending_index()
        if is_reordered or not pending.is_like(self.pending):
            for bucket in self.pending.buckets.values():
                for entry in bucket:
                    record = self.jobs[entry.job]
                    pending.add(record.shared, enqueue.entry(self, record), isinstance(record, ArrayRecord))
            self.pending = pending

    def _pending_index(self) -> PendingIndex:
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

    # -- what restore uses: rows are truth, so state is taken over without an event ------------------------------

    def adopt_host(self, facts: HostFacts, closed_by: str = "", comment: str = "") -> None:
        """A host known from before the restart, as its agent offered it; unusable until that says hello."""
        counting = as_configured(self.policy, facts)
        host = Host(counting, self.table.add(counting), self.unentered, facts)
        host.closed_by, host.comment = closed_by, comment
        self.hosts[facts.name] = host

    def adopt_job(self, job: Job) -> None:
        """A plain job as its row has it. Its attempt, if it has one, comes by ``adopt_attempt``."""
        job.shared = start_conditions.adapted(self, self.intern(job.shared), job.terms)
        self.jobs[job.id] = job
        self._note_reservation(job)
        self.next_job = max(self.next_job, job.id + 1)
        self.tally.add(job.shared, job.state)
        if job.state in FINAL:
            self.finished[job.id, 0] = job
            return
        start_conditions.adopt(self, job)
        if job.may_start:
            self.pending.add(job.shared, enqueue.entry(self, job), False)

    def order_jobs(self) -> None:
        """All were adopted, in whatever order: lists go by their numbers, as if nothing had been restarted."""
        ordered = sorted(self.jobs.items())
        self.jobs.clear()
        self.jobs.update(ordered)

    def adopt_array(self, array: ArrayRecord) -> None:
        """An array as its rows have it: pending and held sets, ended elements, live elements in ``live``."""
        array.shared = start_conditions.adapted(self, self.intern(array.shared), array.terms)
        self.jobs[array.id] = array
        self._note_reservation(array)
        self.next_job = max(self.next_job, array.id + 1)
        array.divide()
        self.tally.add(array.shared, JobState.PEND, len(array.pending) + len(array.blocked))
        self.tally.add(array.shared, JobState.PSUSP, len(array.held))
        for job in array.live.values():
            job.array, job.shared = array, array.shared
            self.tally.add(array.shared, job.state)
            array.counts[job.state] += 1
        if array.is_over:
            self.ended_arrays[array.id] = array.over_at
        else:
            start_conditions.adopt(self, array)
        enqueue.list_array(self, array)

    def adopt_ended_element(self, array: ArrayRecord, job: Job) -> None:
        """An ended element that is still recent enough to be shown."""
        job.array, job.shared = array, array.shared
        self.finished[job.id, job.index] = job

    def adopt_attempt(self, attempt: Attempt) -> None:
        """A live attempt: its host shares are taken again. Unknown hosts are made up, silent, from the share."""
        job = self.element(attempt.key.job, attempt.key.index)
        if job is not None and job.state in HOLDING and job.attempts == attempt.key.attempt:
            job.attempt = attempt
            attempt.over = False
            if job.state is JobState.STAGING:
                self.staging[attempt.key] = attempt
        else:
            attempt.over = True
        self.attempts[attempt.key] = attempt
        self.touched.add(attempt.key)
        self.has_leases = self.has_leases or bool(attempt.lease_s)
        if attempt.lends:
            self.lenders[attempt.key] = attempt
        if job is not None and not attempt.over:
            self.runners.note(job)
            resize.note_resizable(self, job)
        for share in attempt.booked:
            if share.host in attempt.unreleased:
                if share.host not in self.hosts:
                    self.adopt_host(HostFacts(share.host, share.slots, share.memory_mib))
                allocate.take(self, attempt, (share,))
        if not attempt.over and job is not None:
            charge.charge(self, attempt, job.shared)

    def _note_reservation(self, record: Job | ArrayRecord) -> None:
        name = record.shared.request.reservation
        if name:
            self.reserved.enter(name, record.id)

    def adopt_reservation(self, one: AdvanceReservation) -> None:
        """An advance reservation; before jobs are, which are sorted by its being there."""
        self.reserved.put(one)
        self.sort_pending()

    def adopt_claim(self, claim: Claim) -> None:
        """Room that was being cleared for a job. Its hosts are known: attempts have been adopted."""
        claims.book_claim(self, claim)

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

    def observe(self, name: str, usages: tuple[tuple[Key, HostUsage], ...]) -> None:
        """What attempts use on that host, as far as they hold something there: a host speaks of itself alone."""
        for key, usage in usages:
            attempt = self.attempts.get(key)
            if attempt is not None and name in attempt.unreleased:
                self.note_usage(attempt, ((name, usage),))

    def note_usage(self, attempt: Attempt, said: Iterable[tuple[str, HostUsage]]) -> None:
        """What hosts say that an attempt has used there; its account is charged with what is new."""
        before = attempt.usage
        attempt.usage = taken(before, said)
        if self.charges:
            more_s = sum(one.cpu_s for one in attempt.usage.values()) - sum(one.cpu_s for one in before.values())
            charge.note_cpu(self, attempt, more_s)

    def observe_load(self, name: str, load: Sequence[float]) -> None:
        """Newest load indices of a host. Where jobs may have to stop for it, or go on, the next tick looks at it."""
        host = self.hosts.get(name)
        if host is None:
            return
        self.table.set_load(host.row, load)
        if self.load_rules:
            self._look_at_load(name)

    def _look_at_load(self, name: str) -> None:
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

    def adopt_remembered(self, record: Job | ArrayRecord) -> None:
        """A job that was forgotten long ago, for those who wait for what became of it."""
        record.shared = start_conditions.adapted(self, record.shared, record.terms)
        self.remembered[record.id] = record

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
