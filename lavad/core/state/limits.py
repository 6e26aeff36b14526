"""Limits on what users, groups, queues, projects and hosts may use at a time, and the usage that counts for each.

Every limit of the configuration files is a ``Rule``: a resource, a maximum, and the jobs that share it. Each set of
jobs that share a maximum has one ``Counter``; a job's counters depend only on its user, queue, project, job group
and application profile, and are found once for all jobs alike (a ``Consumer``). So a start or an end costs the limits
that match it.
A job counts from its dispatch until it has ended, also while it is suspended.
"""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lavad.core.job_group_events import JobGroup
from lavad.core.language.job_groups import lineage
from lavad.core.language.numbers import number_text
from lavad.core.model import PARTS, Allocation, HostFacts, HostShare, Request
from lavad.core.model.allocation import slots_of
from lavad.core.model.policy import Policy
from lavad.core.model.rules.names import ALL, NONE, Names
from lavad.core.model.rules.queues import Queue
from lavad.core.model.rules.resources import Limit
from lavad.core.model.rules.users import UserRule
from lavad.core.model.windows import Window, is_open
from lavad.core.state.attempts import Attempt
from lavad.core.state.fairshare import Account
from lavad.core.state.hosts.table import HostTable

if TYPE_CHECKING:
    from lavad.core.state.budgets import BudgetAccount

SLOTS, JOBS, MEMORY = "slots", "jobs", "mem"
DEVICES = ("ngpus_physical", "ngpus", "gpu")  # names of GPUs in a limit
_CONSUMERS_KEPT = 100_000
UNLIMITED = float("inf")
# User, queue, project and application profile; empty where a rule does not count them separately.
Members = tuple[str, str, str, str]
_TOGETHER: Members = ("", "", "", "")


class LimitKind(Enum):
    """Place in the configuration where a limit is written; each has its own pending reason."""

    QUEUE = "QJOB_LIMIT"
    QUEUE_USER = "UJOB_LIMIT"
    QUEUE_PROCESSOR = "PJOB_LIMIT"
    QUEUE_HOST = "HJOB_LIMIT"
    QUEUE_REST = "JOB_ACCEPT_INTERVAL"
    HOST_USER = "JL/U"
    USER = "MAX_JOBS"
    GROUP = "MAX_JOBS of a group"
    USER_PROCESSOR = "JL/P"
    GROUP_PROCESSOR = "JL/P of a group"
    SECTION = "Limit"
    UNKNOWN_USER = "no account on the host"
    LACKING = "lacking on the host"
    JOB_GROUP = "limit of a job group"


KEPT_OFF = frozenset({LimitKind.UNKNOWN_USER, LimitKind.LACKING})  # hosts that a user's jobs avoid for a while


@dataclass(frozen=True, slots=True)
class Rule:
    """A limit: at most ``amount`` of ``what``; if ``by_processor``, on each host that times its processors.

    Jobs of all these users, queues, projects and hosts count together, except over dimensions marked ``each_``.
    """

    kind: LimitKind
    what: str
    amount: float
    name: str = ""
    users: Names = ALL
    queues: Names = ALL
    projects: Names = ALL
    hosts: Names | None = None  # None: any hosts
    each_user: bool = False
    each_queue: bool = False
    each_project: bool = False
    each_host: bool = False
    by_processor: bool = False
    windows: tuple[Window, ...] = ()
    rest_s: float = 0.0  # counts dispatches of any job within so many seconds, instead of running jobs
    is_share: bool = False  # the amount is a part of each host's memory, swap space or /tmp
    applications: Names = ALL
    each_application: bool = False

    @property
    def is_of_hosts(self) -> bool:
        """True if usage depends on the hosts of a job."""
        return self.hosts is not None or self.each_host

    def holds(self, user: str, queue: str, project: str, application: str) -> bool:
        """True if the limit applies to these jobs."""
        is_queues = queue in self.queues and project in self.projects
        return is_queues and user in self.users and application in self.applications


def _kept_off_for(user: str, lacking: str) -> Rule:
    """The rule that keeps a user's jobs off hosts that lack this; nothing: the user's account."""
    kind = LimitKind.LACKING if lacking else LimitKind.UNKNOWN_USER
    users = Names(False, frozenset({user}))
    return Rule(kind, JOBS, 1, lacking or user, users, each_host=True, rest_s=-1.0)


class Counter:
    """Usage of one limit by the jobs that share it. ``members`` names them if the rule counts them separately."""

    __slots__ = ("members", "rule", "used", "used_on")

    def __init__(self, rule: Rule, members: Members) -> None:
        self.rule = rule
        self.members = members
        self.used = 0.0  # on all hosts that count
        self.used_on: NDArray[np.float64] = np.zeros(0)  # by row, if the rule counts each host separately

    def __repr__(self) -> str:
        amounts = f"{number_text(self.used)}/{number_text(self.rule.amount)}"
        return f"{self.rule.kind.value} {self.rule.name} {self.members} {amounts}"

    def on_rows(self, rows: int) -> NDArray[np.float64]:
        """Usage on each host."""
        self.used_on = _long_enough(self.used_on, rows)
        return self.used_on[:rows]


def _long_enough(column: NDArray[np.float64], rows: int, fresh: float = 0.0) -> NDArray[np.float64]:
    return column if len(column) >= rows else np.concatenate([column, np.full(rows + 64 - len(column), fresh)])


@dataclass(frozen=True, slots=True, eq=False)
class Consumer:
    """Counters of all jobs of one user, queue, project and job group.

    ``is_of_hosts``: a limit on its jobs depends on their hosts. ``counts_resources``: one on any hosts counts neither
    slots nor jobs.
    """

    overall: tuple[Counter, ...] = ()  # on any hosts
    on_hosts: tuple[Counter, ...] = ()  # each host separately
    among_hosts: tuple[Counter, ...] = ()  # on some hosts together
    is_of_hosts: bool = field(init=False)
    counts_resources: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_of_hosts", bool(self.on_hosts or self.among_hosts))
        resources = any(counter.rule.what not in (SLOTS, JOBS) for counter in self.overall)
        object.__setattr__(self, "counts_resources", resources)

    @property
    def counters(self) -> tuple[Counter, ...]:
        return (*self.overall, *self.on_hosts, *self.among_hosts)


NOBODY = Consumer()


class Limits:
    """All limits of a policy, and those of job groups, with their counters.

    ``relaxed_limits``: counters that have decreased since the scheduler last took them. Every job group has a counter,
    without a limit an infinite one, so that a limit that is set later finds its jobs counted.
    """

    def __init__(self, policy: Policy, table: HostTable, groups: Iterable[JobGroup] = ()) -> None:
        self.rules = tuple(rules_of(policy))
        self.by_project = any(rule.each_project or rule.projects != ALL for rule in self.rules)
        self.by_application = any(rule.each_application or rule.applications != ALL for rule in self.rules)
        self.windows = tuple(window for rule in self.rules for window in rule.windows)
        self.zone = policy.zone
        self.relaxed_limits: set[Counter] = set()
        self._rests_s = {rule.rest_s for rule in self.rules if rule.rest_s}
        self._last_starts: NDArray[np.float64] = np.zeros(0)  # by row of the host table; -inf: none
        self._dispatch_intervals: list[tuple[float, int]] = []  # heap of (time at which the host takes jobs again, row)
        self._kept_off: dict[str, list[Counter]] = {}  # by user
        self._rows_off: dict[Rule, dict[int, float]] = {}  # of their rules: rows to avoid, until when
        self._table = table
        self._numbers_for_many: list[int] = []  # of rules that do not list their users
        self._numbers_by_user: dict[str, list[int]] = {}
        for number, rule in enumerate(self.rules):
            if rule.users.is_all:
                self._numbers_for_many.append(number)
            for user in () if rule.users.is_all else rule.users.names:
                self._numbers_by_user.setdefault(user, []).append(number)
        self._facts_version = -1
        self._made: dict[Rule, tuple[NDArray[np.float64], NDArray[np.bool_]]] = {}
        self._counters: dict[tuple[int, Members], Counter] = {}
        self._consumers: dict[tuple[str, str, str, str, str], Consumer] = {}
        self._names_of_groups: dict[str, set[tuple[str, str, str, str, str]]] = {}  # of consumers, by job group
        self._of_groups: dict[str, Counter] = {}
        self._limited_groups: set[str] = set()
        for group in groups:
            self.limit_group(group.path, group.limit)

    def __bool__(self) -> bool:
        return bool(self.rules or self._kept_off or self._limited_groups)

    def consumer(self, user: str, queue: str, project: str, job_group: str = "", application: str = "") -> Consumer:
        """Counters that apply to jobs of this user, queue, project, job group and application profile."""
        if not (self.rules or job_group) and user not in self._kept_off:
            return NOBODY
        application = application if self.by_application else ""
        name = (user, queue, project if self.by_project else "", job_group, application)
        found = self._consumers.get(name)
        if found is None:
            if len(self._consumers) >= _CONSUMERS_KEPT:
                self._consumers.clear()
                self._names_of_groups.clear()
            if job_group:
                self._names_of_groups.setdefault(job_group, set()).add(name)
            found = self._consumers[name] = self._consumer(user, queue, project, job_group, application)
        return found

    def _consumer(self, user: str, queue: str, project: str, job_group: str, application: str) -> Consumer:
        found: tuple[list[Counter], list[Counter], list[Counter]] = ([], [], [])
        numbers = sorted([*self._numbers_by_user.get(user, ()), *self._numbers_for_many])
        for number in numbers:
            rule = self.rules[number]
            if rule.holds(user, queue, project, application):
                place = 1 if rule.each_host else 2 if rule.hosts is not None else 0
                found[place].append(self._counter(number, rule, (user, queue, project, application)))
        if user in self._kept_off:
            found[1].extend(self._kept_off[user])
        found[0].extend([self._of_group(path) for path in lineage(job_group)])
        return Consumer(*map(tuple, found)) if any(found) else NOBODY

    def _counter(self, number: int, rule: Rule, job: Members) -> Counter:
        members = (
            job[0] if rule.each_user else "",
            job[1] if rule.each_queue else "",
            job[2] if rule.each_project else "",
            job[3] if rule.each_application else "",
        )
        found = self._counters.get((number, members))
        if found is None:
            found = self._counters[number, members] = Counter(rule, members)
        return found

    @property
    def counters(self) -> Iterable[Counter]:
        """Counters in use since the start."""
        return (*self._counters.values(), *self._of_groups.values())

    # -- job groups --------------------------------------------------------------------------------------------------

    def _of_group(self, path: str) -> Counter:
        found = self._of_groups.get(path)
        if found is None:
            rule = Rule(LimitKind.JOB_GROUP, JOBS, UNLIMITED, path)
            found = self._of_groups[path] = Counter(rule, _TOGETHER)
        return found

    def limit_group(self, path: str, most: int | None) -> None:
        """Set the most jobs in this job group, and below it, that hold slots at once; None: any number."""
        counter = self._of_group(path)
        before, amount = counter.rule.amount, UNLIMITED if most is None else most
        counter.rule = replace(counter.rule, amount=amount)
        (self._limited_groups.discard if most is None else self._limited_groups.add)(path)
        if amount > before:
            self.relaxed_limits.add(counter)

    def drop_group(self, path: str) -> None:
        """Remove the counter of a job group that has no jobs and none below it."""
        if path in self._limited_groups:
            self.limit_group(path, None)
        self._of_groups.pop(path, None)
        for name in self._names_of_groups.pop(path, ()):
            self._consumers.pop(name, None)

    def used_by_group(self, path: str) -> int:
        """Number of jobs in this job group, and below it, that hold slots."""
        counter = self._of_groups.get(path)
        return round(counter.used) if counter is not None else 0

    # -- counting ----------------------------------------------------------------------------------------------------

    def charge(self, consumer: Consumer, allocation: Allocation, sign: int = 1) -> None:
        """Count an allocation or, with ``sign`` -1, take it off when the job has ended."""
        for counter in consumer.overall:
            counter.used += sign * amount_of(counter.rule, allocation)
        for counter in consumer.among_hosts:
            counter.used += sign * amount_of(counter.rule, shares_on(counter.rule, allocation))
        for counter in consumer.on_hosts:
            if counter.rule.rest_s:
                continue
            used_on = counter.on_rows(len(self._table))
            for share in shares_on(counter.rule, allocation):
                used_on[self._table.rows[share.host]] += sign * amount_of(counter.rule, (share,))
        if sign < 0:
            self.relaxed_limits.update(consumer.overall)
            if consumer.is_of_hosts:  # free slots there may have been refused because of these limits
                self._table.freed_hosts.update([self._table.rows[share.host] for share in allocation])
            for counter in consumer.among_hosts:
                if shares_on(counter.rule, allocation):
                    self._table.freed_hosts.update(np.flatnonzero(self.members_of(counter.rule)).tolist())

    # -- hosts that lack what the jobs of a user need: the account, a directory, a program of the site ----------------

    def keep_off(self, user: str, row: int, until: float, lacking: str = "") -> None:
        """Refuse jobs of this user on that host until the given time: it lacks the account, or what is named."""
        rule = _kept_off_for(user, lacking)
        if rule not in self._rows_off:
            self._kept_off.setdefault(user, []).append(Counter(rule, (user, "", "", "")))
            self._rows_off[rule] = {}
            self._forget_consumers(user)
        self._rows_off[rule][row] = until
        heapq.heappush(self._dispatch_intervals, (until, row))

    def rows_lacking(self, user: str, lacking: str, now: float) -> frozenset[int]:
        """Rows of the hosts that jobs of this user avoid for this reason."""
        rows = self._rows_off.get(_kept_off_for(user, lacking), {})
        return frozenset(row for row, until in rows.items() if until > now)

    def _forget_consumers(self, user: str) -> None:
        self._consumers = {name: one for name, one in self._consumers.items() if name[0] != user}

    def _end_keeping_off(self, now: float) -> None:
        for user, counters in list(self._kept_off.items()):
            for counter in list(counters):
                rows = self._rows_off[counter.rule]
                for row in [row for row, until in rows.items() if until <= now]:
                    del rows[row]
                if not rows:
                    del self._rows_off[counter.rule]
                    counters.remove(counter)
                    self._forget_consumers(user)
            if not counters:
                del self._kept_off[user]

    def _kept_off_rows(self, rule: Rule, now: float) -> NDArray[np.float64]:
        found = np.zeros(len(self._table))
        found[[row for row, until in self._rows_off.get(rule, {}).items() if until > now]] = 1.0
        return found

    # -- interval between two dispatches to a host (JOB_ACCEPT_INTERVAL)
    # -------------------------------------------------

    def note_start(self, allocation: Allocation, at: float) -> None:
        """Note a dispatch: its hosts take no job of such a queue for a while."""
        if not self._rests_s:
            return
        self._last_starts = _long_enough(self._last_starts, len(self._table), -UNLIMITED)
        for row in [self._table.rows[share.host] for share in allocation]:
            if at > self._last_starts[row]:
                self._last_starts[row] = at
                for rest_s in self._rests_s:
                    heapq.heappush(self._dispatch_intervals, (at + rest_s, row))

    def resting(self, rule: Rule, now: float) -> NDArray[np.float64]:
        """1 for each host that a rule on dispatch intervals, or on what hosts lack, closes now; else 0."""
        if rule.kind in KEPT_OFF:
            return self._kept_off_rows(rule, now)
        hosts = len(self._table)
        self._last_starts = _long_enough(self._last_starts, hosts, -UNLIMITED)
        return (self._last_starts[:hosts] + rule.rest_s > now).astype(np.float64)

    def end_rests(self, now: float) -> None:
        """Mark hosts as changed whose dispatch interval, or avoidance for what they lack, has ended."""
        if self._kept_off:
            self._end_keeping_off(now)
        while self._dispatch_intervals and self._dispatch_intervals[0][0] <= now:
            self._table.freed_hosts.add(heapq.heappop(self._dispatch_intervals)[1])

    def dispatch_intervals(self) -> list[tuple[float, int]]:
        """Hosts in a dispatch interval, with the time at which each ends."""
        return list(self._dispatch_intervals)

    def rests_after(self, at: float) -> list[float]:
        """Ends of the dispatch intervals after a dispatch at that time, one for each interval configured."""
        return [at + rest_s for rest_s in self._rests_s]

    @property
    def has_rests(self) -> bool:
        """True if a queue has a dispatch interval."""
        return bool(self._rests_s)

    @property
    def rest_ends_at(self) -> float:
        """Time at which the next dispatch interval ends."""
        return self._dispatch_intervals[0][0] if self._dispatch_intervals else UNLIMITED

    def is_active(self, rule: Rule, now: float) -> bool:
        """True if the limit is in force at this time of the week."""
        return not rule.windows or is_open(rule.windows, self.zone, now)

    def ceilings_on(self, rule: Rule) -> NDArray[np.float64]:
        """Maximum on each host."""
        return self._by_facts(rule)[0]

    def members_of(self, rule: Rule) -> NDArray[np.bool_]:
        """True for hosts that the limit applies to."""
        return self._by_facts(rule)[1]

    def _by_facts(self, rule: Rule) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Maximums and hosts of a rule, cached until facts of a host change."""
        if self._facts_version != self._table.facts_version:
            self._facts_version = self._table.facts_version
            self._made.clear()
        if rule not in self._made:
            self._made[rule] = self._ceilings_on(rule), self._members_of(rule)
        return self._made[rule]

    def _members_of(self, rule: Rule) -> NDArray[np.bool_]:
        hosts = rule.hosts
        return np.array([hosts is None or name in hosts for name in self._table.names], dtype=bool)

    def _ceilings_on(self, rule: Rule) -> NDArray[np.float64]:
        facts = self._table.facts
        most = np.full(len(facts), float(rule.amount))
        if rule.by_processor:
            most = np.floor(most * np.array([max(1, one.cpus) for one in facts]) + 1e-9)
        if rule.is_share:
            most = np.floor(most * np.array([_size_of(one, rule.what) for one in facts]))
        most[~self._members_of(rule)] = UNLIMITED
        return most


def _size_of(facts: HostFacts, what: str) -> int:
    """Memory, swap space or space in /tmp of a host in MiB."""
    return facts.tmp_mib if what == "tmp" else facts.swap_mib if what == "swp" else facts.memory_mib


def shares_on(rule: Rule, allocation: Allocation) -> Allocation:
    """Shares that count for a limit on hosts."""
    hosts = rule.hosts
    return allocation if hosts is None else tuple([share for share in allocation if share.host in hosts])


def amount_of(rule: Rule, shares: Allocation) -> float:
    """Amount of a limit that these shares of one job use."""
    if rule.what == SLOTS:
        return sum([share.slots for share in shares])
    if rule.what == JOBS:
        return 1.0 if shares else 0.0
    if rule.what == MEMORY:
        return sum([share.memory_mib for share in shares])
    return sum([_resource_of(share, rule.what) for share in shares])


def _resource_of(share: HostShare, name: str) -> float:
    if name in DEVICES:
        return float(len(share.gpus))
    return sum([one.amount for one in share.resources if one.name == name]) / PARTS


def least_of(rule: Rule, request: Request) -> float:
    """Least amount that a job with this request adds to a limit that counts on all hosts."""
    if rule.what == SLOTS:
        return request.slots_min
    if rule.what == JOBS:
        return 1.0
    if rule.what == MEMORY:
        return sum(role.memory_mib for role in request.roles)
    if rule.what in DEVICES:
        return sum(role.gpus * (role.tasks_min if role.gpus_per_task else 1) for role in request.roles)
    return 0.0


# -- limits of a policy ----------------------------------------------------------------------------------------------


def rules_of(policy: Policy) -> Iterable[Rule]:
    """All limits of the policy, in the order in which pending reasons name them."""
    for queue in policy.queues:
        yield from _of_queue(queue)
    yield from _of_users(policy)
    yield from _of_hosts(policy)
    for limit in policy.limits:
        yield from _of_section(limit)


def _of_queue(queue: Queue) -> Iterable[Rule]:
    mine = Names(False, frozenset({queue.name}))
    if queue.slot_limit is not None:
        yield Rule(LimitKind.QUEUE, SLOTS, queue.slot_limit, queues=mine)
    if queue.user_slot_limit is not None:
        yield Rule(LimitKind.QUEUE_USER, SLOTS, queue.user_slot_limit, queues=mine, each_user=True)
    if queue.processor_slot_limit is not None:
        amount = queue.processor_slot_limit
        yield Rule(LimitKind.QUEUE_PROCESSOR, SLOTS, amount, queues=mine, each_host=True, by_processor=True)
    if queue.host_slot_limit is not None:
        yield Rule(LimitKind.QUEUE_HOST, SLOTS, queue.host_slot_limit, queues=mine, each_host=True)
    if queue.accept_interval:
        yield Rule(LimitKind.QUEUE_REST, JOBS, 1, queues=mine, each_host=True, rest_s=queue.accept_interval)


def _of_users(policy: Policy) -> Iterable[Rule]:
    for name, row, users, is_group, each in user_rows(policy):
        kind = LimitKind.GROUP if is_group else LimitKind.USER
        on_processor = LimitKind.GROUP_PROCESSOR if is_group else LimitKind.USER_PROCESSOR
        if row.slots is not None:
            yield Rule(kind, SLOTS, row.slots, name, users, each_user=each)
        if row.slots_per_processor is not None:
            amount = row.slots_per_processor
            yield Rule(on_processor, SLOTS, amount, name, users, each_user=each, each_host=True, by_processor=True)


def user_rows(policy: Policy) -> Iterable[tuple[str, UserRule, Names, bool, bool]]:
    """Rows of lsb.users as (name, row, users, True for a group's, True if each user has it separately).

    A user's own row precedes that of ``group@``, and that the default. The default also applies to groups without a
    row, each as a whole, unless DEFAULT_LIMIT_IGNORE_USER_GROUP says otherwise.
    """
    groups = policy.user_groups
    own = frozenset(name for name in policy.user_rules if name not in groups and name != "default")
    placed = own
    for name, row in policy.user_rules.items():
        if name in groups:
            yield name, row, groups[name], True, False
        elif name != "default":
            yield name, row, Names(False, frozenset({name})), False, False
    for name, row in policy.each_user_rules.items():
        members = groups.get(name, NONE)
        users = (
            Names(members.is_all, members.names | placed) if members.is_all else Names(False, members.names - placed)
        )
        yield f"{name}@", row, users, False, True
        placed = placed | members.names if not members.is_all else placed
    default = policy.user_rules.get("default")
    if default is None:
        return
    if not any(groups.get(name, NONE).is_all for name in policy.each_user_rules):
        yield "default", default, Names(True, placed), False, True
    if not policy.default_limits_ignore_groups:
        for name in groups:
            if name not in policy.user_rules and name not in policy.each_user_rules:
                yield name, default, groups[name], True, False


def _of_hosts(policy: Policy) -> Iterable[Rule]:
    named = frozenset(name for name in policy.host_rules if name != "default")
    for name, row in policy.host_rules.items():
        if row.user_slots is not None:
            hosts = Names(True, named) if name == "default" else Names(False, frozenset({name}))
            yield Rule(LimitKind.HOST_USER, SLOTS, row.user_slots, hosts=hosts, each_user=True, each_host=True)


def _of_section(limit: Limit) -> Iterable[Rule]:
    each = {
        "each_user": limit.per_user is not None,
        "each_queue": limit.per_queue is not None,
        "each_project": limit.per_project is not None,
    }
    users = limit.users or limit.per_user or ALL
    queues = limit.queues or limit.per_queue or ALL
    projects = limit.projects or limit.per_project or ALL
    applications = limit.applications or limit.per_application or ALL
    hosts = limit.hosts if limit.hosts is not None else limit.per_host
    is_each_host = limit.per_host is not None

    def rule(what: str, amount: float, by_processor: bool = False, is_share: bool = False) -> Rule:
        return Rule(
            LimitKind.SECTION, what, amount, limit.name, users, queues, projects, hosts,
            each["each_user"], each["each_queue"], each["each_project"], is_each_host or by_processor, by_processor,
            limit.windows, is_share=is_share, applications=applications,
            each_application=limit.per_application is not None,
        )  # fmt: skip

    if limit.slots is not None:
        yield rule(SLOTS, limit.slots)
    if limit.slots_per_processor is not None:
        yield rule(SLOTS, limit.slots_per_processor, True)
    if limit.jobs is not None:
        yield rule(JOBS, limit.jobs)
    if limit.memory_mib is not None:
        yield rule(MEMORY, limit.memory_mib)
    if limit.memory_share is not None:
        yield rule(MEMORY, limit.memory_share, is_share=True)
    for name, amount in limit.resources:
        yield rule(SLOTS if name == "slots" else MEMORY if name == "mem" else name, amount)
    for name, amount in limit.resource_shares:
        yield rule(name, amount, is_share=True)


def text_of(counter: Counter) -> str:
    """Pending reason for a named limit."""
    rule = counter.rule
    word = _WHAT.get(rule.what, rule.what)
    who = [
        text
        for text, is_told in (
            ("user(s)", rule.each_user or rule.users != ALL),
            ("queue(s)", rule.each_queue or rule.queues != ALL),
            ("host(s)", rule.is_of_hosts),
            ("project(s)", rule.each_project or rule.projects != ALL),
            ("application(s)", rule.each_application or rule.applications != ALL),
        )
        if is_told
    ]
    about = " and/or ".join(who) or "all jobs"
    amount = f"{number_text(100 * rule.amount)}%" if rule.is_share else number_text(rule.amount)
    return (
        f"Resource limit defined on {about} has been reached"
        f" (Resource: {word}, Limit Name: {rule.name}, Limit Value: {amount})"
    )


_WHAT = {SLOTS: "slots", JOBS: "jobs", MEMORY: "mem"}


class Charge:
    """Charge of one attempt: its limits, its share account and its usage. ``cpu_s`` is as reported by hosts so far."""

    __slots__ = ("account", "allocation", "budgets", "consumer", "cpu_s", "gpus", "run_limit_s", "slots", "start")

    def __init__(self, consumer: Consumer, account: Account | None, attempt: Attempt, run_limit_s: int) -> None:
        self.consumer = consumer
        self.account = account
        self.allocation: Allocation = attempt.booked
        self.slots = slots_of(self.allocation)
        self.gpus = sum([len(share.gpus) for share in self.allocation])
        self.run_limit_s = run_limit_s
        self.start = attempt.charged_since
        self.cpu_s = 0.0
        self.budgets: tuple[BudgetAccount, ...] = ()
