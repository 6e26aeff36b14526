"""Invariants of the cluster's state. Checked after every step in tests, and by ``lavad --check``.

Each check recounts from the records what ``apply`` maintains incrementally.
"""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from lavad.core.apply.enqueue import counted, is_listed
from lavad.core.apply.resize import has_lost_hosts, is_resizable
from lavad.core.cluster import Cluster
from lavad.core.language.dependency import clauses_of
from lavad.core.language.requirements.parts import sizes_of
from lavad.core.model import FINAL, HOLDING, PARTS, WAITING, JobState, Key, Shared
from lavad.core.model.ranges import Ranges
from lavad.core.scheduling.capacity.headroom import Headroom
from lavad.core.state.attempts import Attempt
from lavad.core.state.counters import Kind
from lavad.core.state.hosts.shared_gpus import SharedGpus, joined
from lavad.core.state.limits import Consumer, LimitKind, Limits
from lavad.core.state.records import ArrayRecord, Job
from lavad.core.state.tasks import ENDED, JobTasks, TaskList


def check(cluster: Cluster) -> None:
    """Check all invariants."""
    _check_hosts(cluster)
    _check_open(cluster)
    _check_site(cluster)
    _check_attempts(cluster)
    _check_tasks(cluster)
    _check_resizable(cluster)
    _check_lending(cluster)
    _check_pools(cluster)
    _check_arrays(cluster)
    _check_buckets(cluster)
    _check_dependants(cluster)
    _check_counters(cluster)
    _check_places(cluster)
    _check_kinds(cluster)
    _check_job_groups(cluster)
    _check_limits(cluster)
    _check_shares(cluster)


def _check_hosts(cluster: Cluster) -> None:
    table = cluster.table
    for name, host in cluster.hosts.items():
        shares = [*host.attempts.values(), *host.claims.values()]
        facts = host.facts
        assert table.slots_free[host.row] == facts.slots - sum(s.slots for s in shares), f"{name}: slots do not add up"
        eased = sum(cluster.timed_rusage.eased_on(key, name, "mem") for key in host.attempts) // PARTS
        memory = facts.memory_mib - sum(s.memory_mib for s in shares) + eased
        assert table.memory_free_mib[host.row] == memory, f"{name}: memory does not add up"
        whole = {key: share for key, share in host.attempts.items() if not share.gpu_memory_mib}
        gpus = [gpu for key, share in whole.items() if _holds_gpus(cluster, key) for gpu in share.gpus]
        assert len(gpus) == len(set(gpus)), f"{name}: a GPU is held twice"
        shared: dict[int, SharedGpus] = {}
        for share in shares:
            for gpu, mib in zip(share.gpus, share.gpu_memory_mib, strict=False):
                size = facts.devices[gpu].memory_mib if gpu < len(facts.devices) else 0
                shared[gpu] = joined(shared.get(gpu), size, mib)
        assert not set(shared) & set(gpus), f"{name}: a GPU held by one job is used by another"
        assert table.gpu_shared.get(host.row, {}) == shared, f"{name}: memory of GPUs does not add up"
        held = sum(1 << gpu for gpu in {gpu for share in shares for gpu in share.gpus})
        cpus = [cpu for share in shares for task in (*share.cpus, share.cpus_idle) for cpu in task]
        assert len(cpus) == len(set(cpus)), f"{name}: a processor is held twice"
        unfit = table.gpu_unfit.get(host.row, 0)
        fit = ((1 << facts.gpus) - 1) & ~unfit
        assert table.gpu_free[host.row] == fit & ~held, f"{name}: free GPUs are not those not held"
        assert table.gpus_free[host.row] == table.gpu_free[host.row].bit_count(), f"{name}: GPUs do not add up"
        assert table.attempts[host.row] == len(shares), f"{name}: attempts do not add up"
        exclusive = [key for key in host.attempts if cluster.attempts[key].takes_whole_hosts]
        assert not exclusive or len(shares) == 1, f"{name}: an exclusive job shares its host"
        assert bool(exclusive) == bool(table.taken_whole[host.row]), f"{name}: exclusive mark is wrong"


def _holds_gpus(cluster: Cluster, key: Key) -> bool:
    attempt = cluster.attempts[key]
    return "gpus" not in attempt.lends and not (attempt.over and attempt.preemptions)


def _check_site(cluster: Cluster) -> None:
    held: Counter[tuple[str, int]] = Counter()
    for host in cluster.hosts.values():
        for key, share in (*host.attempts.items(), *((None, share) for share in host.claims.values())):
            for one in share.resources:
                amounts = cluster.table.site.amounts(one.name)
                store = amounts.store(host.row) if amounts is not None else None
                eased = cluster.timed_rusage.eased_on(key, share.host, one.name) if key is not None else 0
                if store is not None:
                    held[one.name, store.rows[0]] += one.amount - eased
    for amounts in cluster.table.site.numeric():
        for store in amounts.stores:
            assert store.taken == held[amounts.name, store.rows[0]], f"{amounts.name}: what is held does not add up"


def _check_open(cluster: Cluster) -> None:
    table = cluster.table
    open_rows = table.open_rows()
    assert [table.is_open(row) for row in range(len(table))] == open_rows.tolist(), "hosts' doors are wrong"
    free = table.slots_free[: len(table)][open_rows].clip(0)
    assert table.slots_open == free.sum(), "open slots do not add up"


def _check_attempts(cluster: Cluster) -> None:
    present: set[tuple[int, int]] = set()
    for key, attempt in cluster.attempts.items():
        for share in attempt.booked:
            held = cluster.hosts[share.host].attempts.get(key)
            wanted = share if share.host in attempt.unreleased else None
            assert held == wanted, f"{key}: on {share.host} {held} is booked, it should be {wanted}"
        on = {share.host for share in attempt.booked}
        assert attempt.unreleased <= on, f"{key}: waits for {attempt.unreleased - on}, where it has nothing"
        if attempt.over:
            assert attempt.unreleased, f"{key}: over and released, yet kept"
            continue
        assert (key.job, key.index) not in present, f"{key}: two present attempts of one job"
        present.add((key.job, key.index))
        job = cluster.element(key.job, key.index)
        assert job is not None, f"{key}: attempt without a job"
        assert job.attempt is attempt, f"{key}: attempt is not the job's"
        assert job.state in HOLDING, f"{key}: holds an allocation in {job.state.name}"
        assert (job.state is JobState.STAGING) == (key in cluster.staging), f"{key}: staging index is wrong"


def _check_places(cluster: Cluster) -> None:
    """Check that all jobs but the displaced ones stand in the order of their numbers, in memory and in their queues."""
    assert cluster.displaced <= cluster.jobs.keys(), "a job that is forgotten is noted as displaced"
    records = [record for record in cluster.jobs.values() if record.id not in cluster.displaced]
    assert all(record.position == record.id for record in records), "a job is displaced and not noted so"
    numbers = [record.id for record in records]
    assert numbers == sorted(numbers), "jobs are not in the order of their numbers"
    waiting = [one for one in cluster.jobs.values() if isinstance(one, Job) and one.state in WAITING]
    assert all(one.attempt is None and one.end is None for one in waiting), "a job that waits has a run"


def _check_tasks(cluster: Cluster) -> None:
    """Check that tasks are counted right, and alive only on hosts that their attempt holds."""
    for record in cluster.jobs.values():
        for job in (record,) if isinstance(record, Job) else record.live.values():
            if job.tasks is not None:
                _check_tasks_of(job, job.tasks)


def _check_tasks_of(job: Job, tasks: JobTasks) -> None:
    fresh, known = TaskList(tasks.records), tasks.records
    for name in ("alive", "waiting", "placed", "idle"):
        assert getattr(known, name) == getattr(fresh, name), f"{job.key}: its tasks are indexed wrongly ({name})"
    unplaced = ({role: some for role, some in one.unplaced.items() if some} for one in (known, fresh))
    assert next(unplaced) == next(unplaced), f"{job.key}: its tasks without a place are indexed wrongly"
    numbers = known.restarting, known.held_back, known.waiting_alone, +known.counts
    assert numbers == (fresh.restarting, fresh.held_back, fresh.waiting_alone, +fresh.counts), (
        f"{job.key}: tasks are counted wrongly"
    )
    attempt = job.attempt
    assert attempt is None or attempt.tasks is tasks, f"{job.key}: its attempt has other tasks"
    held = attempt.unreleased if attempt is not None else frozenset[str]()
    for key in known.alive:
        assert known[key].host in held, f"{job.key}: {tasks.label(key)} is alive on {known[key].host}, not its host"
    is_launched = attempt is not None and attempt.launched
    assert is_launched or not known.alive, f"{job.key}: tasks are alive before all hosts have staged"


def _is_short(attempt: Attempt) -> bool:
    """True if a job of tasks may lack places: it waits for some, is being ended, or has ended tasks that need none."""
    tasks = attempt.tasks
    if tasks is None:
        return False
    is_changing = tasks.replacement is not None or tasks.verdict is not None
    return is_changing or any(one.phase in ENDED and not one.host for one in tasks.records.values())


def _check_resizable(cluster: Cluster) -> None:
    """Check the resize indexes, the bounds of sizes, and lead hosts."""
    resizable = {
        key: attempt
        for key, attempt in cluster.attempts.items()
        if not attempt.over and attempt.started_at and is_resizable(cluster.jobs[key.job].shared)
    }
    assert cluster.resizable == resizable, f"resizable {set(cluster.resizable)} are not {set(resizable)}"
    lost = {key: attempt for key, attempt in cluster.attempts.items() if not attempt.over and has_lost_hosts(attempt)}
    assert cluster.replacing == lost, f"replacing {set(cluster.replacing)} are not {set(lost)}"
    waited = {key for key, attempt in (resizable | lost).items() if attempt.resizing.due}
    assert set(cluster.resizing) == waited, f"resizing {set(cluster.resizing)} are not {waited}"
    for key, attempt in (resizable | lost).items():
        request, change = cluster.jobs[key.job].shared.request, attempt.resizing
        sizes = sizes_of(attempt.allocation, len(request.roles))
        more = sizes_of(change.growth, len(request.roles))
        for role, tasks, coming in zip(request.roles, sizes, more, strict=True):
            assert _is_short(attempt) or role.tasks_min - role.spares <= tasks, (
                f"{key}: {tasks} tasks of {role.name or 'its role'} are too few"
            )
            assert tasks + coming <= role.tasks_max, f"{key}: {tasks} tasks and {change.growth} too many"
        assert bool(change.due) or not (change.growth or change.added), f"{key}: it grows and nobody waits for it"
        assert change.version <= attempt.version, f"{key}: its allocation is newer than itself"


def _check_lending(cluster: Cluster) -> None:
    """Check that suspended attempts lend, claims are booked, and preemptable attempts are indexed."""
    lenders = {key for key, attempt in cluster.attempts.items() if attempt.lends}
    assert set(cluster.lenders) == lenders, f"lenders {set(cluster.lenders)} are not {lenders}"
    for key in lenders:
        job = cluster.holder(key)
        assert job is not None, f"{key}: lends after its end"
        assert job.state in (JobState.SSUSP, JobState.USUSP, JobState.UNKWN, JobState.ZOMBI), f"{key}: lends and runs"
    for name, host in cluster.hosts.items():
        kept = {key: share for key, claim in cluster.claims.items() for share in claim.allocation if share.host == name}
        assert host.claims == kept, f"{name}: claims {host.claims} are not {kept}"
    _check_preemptable(cluster)


def _check_preemptable(cluster: Cluster) -> None:
    queues = cluster.preemptable.queues
    slots = dict.fromkeys(queues, 0)
    for key, attempt in cluster.attempts.items() if queues else ():
        job = cluster.holder(key)
        runs = job is not None and job.state is JobState.RUN and not attempt.is_ending and job.shared.queue in queues
        assert (key in cluster.preemptable) == runs, (
            f"{key}: it runs and may be asked for room {runs}, the index differs"
        )
        if runs and job is not None:
            slots[job.shared.queue] += attempt.slots
    assert cluster.preemptable.slots == slots, (
        f"preemptable jobs hold {slots} slots, counted are {cluster.preemptable.slots}"
    )


def _check_pools(cluster: Cluster) -> None:
    """Check that each pool's usage is that of its attempts."""
    pools = cluster.pools
    for number, slots in pools.host_slots.items():
        joined = sum(host.facts.slots for name, host in cluster.hosts.items() if name in pools.pools[number].hosts)
        assert slots == joined, f"pool {pools.pools[number].name} counts {slots} slots of hosts, there are {joined}"
    for number, pool in enumerate(pools.pools):
        used = dict.fromkeys(pools.used[number], 0.0)
        for key, attempt in cluster.attempts.items():
            if pools.pool_of(key) == number:
                held = [share for share in attempt.booked if share.host in attempt.unreleased]
                for name, amount in pools.amounts(number, held).items():
                    used[name] += amount
        assert pools.used[number] == used, f"pool {pool.name} uses {used}, counted are {pools.used[number]}"


def _check_arrays(cluster: Cluster) -> None:
    for record in cluster.jobs.values():
        if isinstance(record, Job):
            assert (record.attempt is not None) == (record.state in HOLDING), f"{record.key}: attempt and state differ"
            assert (record.end is not None) == (record.state in FINAL), f"{record.key}: end and state differ"
            continue
        ended = sum(1 for code in record.ended if code)
        total = len(record.pending) + len(record.blocked) + len(record.held) + len(record.live) + ended
        total += len(record.apart)
        _check_blocked(record)
        _check_apart(cluster, record)
        assert total == len(record.indices), f"array {record.id}: {total} of {len(record.indices)} elements"
        assert record.done + record.exited == ended, f"array {record.id}: ended elements do not add up"
        for index in record.live:
            assert index not in record.pending, f"array {record.id}[{index}]: lives and waits"
            assert index not in record.held, f"array {record.id}[{index}]: lives and is held"


def _check_apart(cluster: Cluster, array: ArrayRecord) -> None:
    """Check that elements changed by themselves are in one place only, and in their buckets if they may start."""
    assert array.apart.keys() <= array.changed <= {*array.indices}, (
        f"array {array.id}: {array.changed} were not changed"
    )
    for index, job in array.apart.items():
        name = f"array {array.id}[{index}]"
        assert job.state in (JobState.PEND, JobState.PSUSP), f"{name}: waits by itself as {job.state}"
        assert job.attempt is None, f"{name}: waits and holds hosts"
        assert job.end is None, f"{name}: waits and has ended"
        assert job.attempts == array.attempts.get(index, 0), f"{name}: its attempts are counted twice"
        for others in (array.pending, array.blocked, array.held, array.live):
            assert index not in others, f"{name}: waits by itself and with others"
    listed = {index for index, job in array.apart.items() if array.may_start(job)}
    assert array.listed == listed, f"array {array.id}: {array.listed} are listed, {listed} may start"
    is_capped = bool(array.apart and array.limit)
    assert not is_capped or array.id in cluster.capped, f"array {array.id}: its limit is overlooked"
    for job in (*array.live.values(), *array.apart.values()):
        assert (job.index in array.changed) == (job.part > 0), f"{job.key}: changed by itself, or not"
        assert job.part <= array.newest_part, f"{job.key}: its spec is no part"


def _check_blocked(array: ArrayRecord) -> None:
    is_early = array.start_conditions is not None and array.start_conditions.is_early
    waiting = array.waiting()
    expected = waiting if is_early else waiting.intersection(array.unmet)
    paused = Ranges.from_sorted(sorted(index for index, one in array.retries.items() if one.at > 0))
    expected.update(waiting.intersection(paused))
    assert array.blocked == expected, f"array {array.id}: blocked {array.blocked} is not {expected}"
    assert not is_early or not array.pending, f"array {array.id}: may start before its time"
    for index in (*array.live, *(index for index, code in enumerate(array.ended) if code)):
        assert index not in array.unmet, f"array {array.id}[{index}]: started or ended, its condition unmet"
    counts = Counter(job.state for job in array.live.values())
    assert +array.counts == counts, f"array {array.id}: counts {array.counts} are not {counts}"


def _check_dependants(cluster: Cluster) -> None:
    waiting = {
        record.id
        for record in cluster.jobs.values()
        if record.start_conditions is not None and record.start_conditions.condition
    }
    assert set(cluster.dependants.conditions) == waiting, "dependent jobs are indexed wrongly"
    references: Counter[int] = Counter()
    for job, condition in cluster.dependants.conditions.items():
        references[cluster.jobs[job].shared.uid] += sum(1 for _ in clauses_of(condition))
    for uid in {record.shared.uid for record in cluster.jobs.values()}:
        assert cluster.dependants.references(uid) == references[uid], f"references of user {uid} are counted wrongly"
    for job in cluster.remembered:
        assert cluster.dependants.is_parent(job), f"job {job} is remembered for nobody"


def _records(cluster: Cluster) -> Iterator[Job | ArrayRecord]:
    """All that may be in a bucket."""
    for record in cluster.jobs.values():
        yield record
        yield from record.apart.values() if isinstance(record, ArrayRecord) else ()


def _check_buckets(cluster: Cluster) -> None:
    buckets = {key: {entry.job for entry in bucket} for key, bucket in cluster.pending.buckets.items()}
    listed = [entry.job for bucket in cluster.pending.buckets.values() for entry in bucket]
    assert len(listed) == len(set(listed)), "a job is in two buckets"
    known = {record.number for record in _records(cluster)}
    assert known >= set(listed), f"{set(listed) - known} are in buckets and do not wait"
    for record in _records(cluster):
        waits = is_listed(record)
        key = cluster.pending.key_of(record.shared)
        inside = key is not None and record.number in buckets[key]
        assert waits == inside, f"job {record.id}: waits {waits}, in its bucket {inside}"


def _check_counters(cluster: Cluster) -> None:
    slots: Counter[tuple[str, JobState]] = Counter()
    for record in cluster.jobs.values():
        each = record.shared.request.slots_min
        if isinstance(record, ArrayRecord):
            slots[record.shared.queue, JobState.PEND] += each * len(record.waiting())
            slots[record.shared.queue, JobState.PSUSP] += each * len(record.held)
            for job in (*record.live.values(), *record.apart.values()):
                slots[job.shared.queue, job.state] += job.shared.request.slots_min
        elif record.state not in FINAL:
            slots[record.shared.queue, record.state] += each
    kept = {key: count for key, count in cluster.counters.slots_by_queue.items() if count}
    assert kept == {key: count for key, count in slots.items() if count}, f"counters {kept} are not {dict(slots)}"


def _check_job_groups(cluster: Cluster) -> None:
    """Check that the jobs of each group are counted, ended ones in memory included, and that their groups exist."""
    jobs: Counter[tuple[str, JobState]] = Counter()
    for record in cluster.jobs.values():
        for shared, state, count in counted([record]):
            group = shared.job_group
            if group:
                assert not cluster.job_groups.missing(group), f"job {record.id} is in {group}, which does not exist"
                jobs[group, state] += count
    kept = {key: count for key, count in jobs.items() if count}
    assert cluster.counters.jobs_by_group == kept, f"jobs by group {cluster.counters.jobs_by_group} are not {kept}"


def _check_kinds(cluster: Cluster) -> None:
    """Check that jobs are counted by what decides their service class while there are classes, and only then."""
    jobs: Counter[tuple[Kind, JobState]] = Counter()
    for shared, state, count in counted(cluster.jobs.values()) if cluster.policy.service_classes else ():
        jobs[Kind(shared.user, shared.queue, shared.application, shared.request.service_class), state] += count
    kept = {key: count for key, count in jobs.items() if count}
    assert cluster.counters.jobs_by_kind == kept, f"jobs by kind {cluster.counters.jobs_by_kind} are not {kept}"


def _check_limits(cluster: Cluster) -> None:
    """Check that each limit's usage is that of the attempts."""
    if not (cluster.limits or cluster.job_groups):
        return
    fresh = Limits(cluster.policy, cluster.table, cluster.job_groups)
    for job in cluster.live_jobs():
        shared = job.shared
        if job.attempt is not None:
            fresh.charge(_consumer(fresh, shared), job.attempt.booked)
    groups = {one.rule.name for one in cluster.limits.counters if one.rule.kind is LimitKind.JOB_GROUP}
    assert groups == {group.path for group in cluster.job_groups}, "counters are not those of the job groups"
    expected = {(one.rule, one.members): one for one in fresh.counters}
    for counter in cluster.limits.counters:
        other = expected.get((counter.rule, counter.members))
        used = other.used if other is not None else 0.0
        assert abs(counter.used - used) < 1e-6, f"{counter} is counted wrongly: {used} are used"
        hosts = len(cluster.table)
        on_hosts = other.on_rows(hosts) if other is not None else np.zeros(hosts)
        assert np.allclose(counter.on_rows(hosts), on_hosts), f"{counter} is counted wrongly on some host"


def _consumer(limits: Limits, shared: Shared) -> Consumer:
    return limits.consumer(shared.user, shared.queue, shared.project, shared.job_group, shared.application)


def _check_shares(cluster: Cluster) -> None:
    """Check that each account's usage is that of the jobs charged to it or below it."""
    slots: Counter[str] = Counter()
    for job in cluster.live_jobs() if cluster.shares else ():
        account = cluster.shares.account_of(job.shared.queue, job.shared.user, job.shared.user_group)
        for one in account.chain() if account is not None and job.attempt is not None else ():
            slots[one.path] += sum(share.slots for share in job.attempt.booked) if job.attempt is not None else 0
    for tree in set(cluster.shares.trees.values()):
        for account in tree.accounts():
            held = account.running.slots
            assert held == slots[account.path], f"account {account}: {held} slots counted, {slots[account.path]} held"


def check_within_limits(cluster: Cluster, now: float) -> None:
    """Check that no limit is exceeded. Only for a cluster whose rules and jobs have not changed since jobs started."""
    headroom = Headroom(cluster.limits, cluster.table, now)
    for counter in cluster.limits.counters:
        assert headroom.left(counter) > -1e-6 or counter.rule.each_host, f"{counter} is exceeded"
        if counter.rule.each_host:
            assert (headroom.left_on(counter) > -1e-6).all(), f"{counter} is exceeded on some host"


def check_reserved(cluster: Cluster, now: float) -> None:
    """Check that reservations fit their hosts, now and later, and that no reservation's jobs exceed it.

    Only for a cluster whose hosts have not shrunk since reservations were made, and without forced jobs.
    """
    reserved, hosts = cluster.reserved, len(cluster.table)
    if not reserved:
        return
    timeline = reserved.timeline(cluster, now)
    for names in (timeline.now, *(moment.names for moment in timeline.moments)):
        total = sum((reserved.slots(cluster, name) for name in names), start=np.zeros(hosts, np.int64))
        assert (total <= cluster.table.slots_max[:hosts]).all(), f"{sorted(names)} have more than there is: {total}"
    for name in timeline.now:
        own, most = reserved.own(cluster, name, now), reserved.slots(cluster, name)
        assert (own <= most).all(), f"jobs of {name} have {own} of {most}"
