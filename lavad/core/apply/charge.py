"""Charging of attempts to their limits and share accounts.

An attempt is charged at the dispatch and discharged when the job leaves it, in one function each; the charge is kept
for each attempt, so that the same is taken back whatever has become of the job meanwhile. The CPU time that hosts
report is charged as it comes.
"""

from collections.abc import Iterable
from dataclasses import replace

from lavad.core.activity_events import BudgetWarned
from lavad.core.cluster import Cluster
from lavad.core.model import HOLDING, Key, Shared
from lavad.core.model.allocation import slots_of
from lavad.core.model.host_config import REVOCABLE
from lavad.core.model.progress import SAVED_EVERY_S, Progress
from lavad.core.model.usage import NO_ONE, HostUsage, of_attempt, taken
from lavad.core.state.attempts import Attempt
from lavad.core.state.budgets import Budgets
from lavad.core.state.fairshare import Account, Shares, Used, decayed_run_s
from lavad.core.state.hosts.revocable import is_revocable
from lavad.core.state.limits import Charge, Limits
from lavad.core.state.records import Job


def charge(cluster: Cluster, attempt: Attempt, shared: Shared) -> None:
    """Charge an attempt for its allocation."""
    if not (cluster.limits or cluster.shares or cluster.budgets or shared.job_group):
        return
    consumer = cluster.limits.consumer(shared.user, shared.queue, shared.project, shared.job_group, shared.application)
    account = cluster.shares.account_of(shared.queue, shared.user, shared.user_group)
    one = cluster.charges[attempt.key] = Charge(consumer, account, attempt, shared.run_limit_s)
    cluster.limits.charge(consumer, one.allocation)
    cluster.limits.note_start(one.allocation, attempt.dispatched_at)
    if cluster.budgets:
        one.budgets = cluster.budgets.of(shared.user, shared.project, shared.queue)
        for budget in one.budgets:
            budget.running[attempt.key] = one
    if account is not None:
        rate = cluster.shares.trees[shared.queue].run_fading
        _move(one, account, 1, one.start, rate)
    is_charged_cpu = account is not None or bool(one.budgets)
    if is_charged_cpu and (attempt.usage or attempt.departed is not NO_ONE):  # a running attempt that is charged anew
        note_cpu(cluster, attempt, of_attempt(attempt).cpu_s)


def discharge(cluster: Cluster, attempt: Attempt, queue: str, now: float, cpu_s: float) -> None:
    """Discharge an attempt that the job has left, with the CPU time it has used."""
    one = cluster.charges.pop(attempt.key)
    if one is None:
        return
    cluster.limits.charge(one.consumer, one.allocation, -1)
    for budget in one.budgets:
        budget.end(attempt.key, one, now, cpu_s)
        cluster.budgets.touch(budget)
    account, tree = one.account, cluster.shares.trees.get(queue)
    if account is None or tree is None:
        return
    _move(one, account, -1, now, tree.run_fading)
    run_s = max(0.0, now - one.start)
    gpu_s = one.gpus * run_s
    tree.charge(account, Used(cpu_s, one.slots * decayed_run_s(run_s, tree.run_fading), gpu_s, now))
    cluster.charged[account.path] = account


def charge_more(cluster: Cluster, shared: Shared, cpu_s: float, now: float) -> None:
    """Charge CPU time that a host reported after the job was discharged."""
    for budget in cluster.budgets.of(shared.user, shared.project, shared.queue) if cpu_s > 0 else ():
        budget.add_cpu(cpu_s, now)
        cluster.budgets.touch(budget)
    tree = cluster.shares.trees.get(shared.queue)
    account = cluster.shares.account_of(shared.queue, shared.user, shared.user_group) if tree is not None else None
    if tree is not None and account is not None and cpu_s > 0:
        tree.charge(account, Used(cpu_s, 0.0, 0.0, now))
        cluster.charged[account.path] = account


def _move(one: Charge, account: Account, sign: int, now: float, rate: float) -> None:
    for part in account.chain():
        if rate:
            part.running.move_decayed(sign * one.slots, one.start, now, rate)
        part.running.move(sign * one.slots, sign * one.gpus, one.run_limit_s, one.start)
        if sign < 0:
            part.running.cpu_s = max(0.0, part.running.cpu_s - one.cpu_s) if part.running.slots else 0.0


def recharge(cluster: Cluster, job: Job, shared: Shared) -> None:
    """Charge a running job again after it was switched, grown or shrunk.

    Earlier usage is kept by ``Attempt.charged_since``: slots times seconds stay what they were.
    """
    attempt = job.attempt
    one = cluster.charges.pop(attempt.key) if attempt is not None else None
    if attempt is None or one is None:
        return
    cluster.limits.charge(one.consumer, one.allocation, -1)
    for budget in one.budgets:
        budget.running.pop(attempt.key, None)
    tree = cluster.shares.trees.get(job.shared.queue)
    if one.account is not None and tree is not None:
        _move(one, one.account, -1, one.start, tree.run_fading)
    charge(cluster, attempt, shared)


def note_cpu(cluster: Cluster, attempt: Attempt, more_s: float) -> None:
    """Charge additional CPU time that a host has reported."""
    one = cluster.charges.get(attempt.key)
    if one is not None and (one.account is not None or one.budgets) and more_s > 0:
        one.cpu_s += more_s
        for part in one.account.chain() if one.account is not None else ():
            part.running.cpu_s += more_s


def recount(cluster: Cluster) -> None:
    """Recount limits and shares from running jobs after a reconfiguration; past usage of accounts is kept."""
    used = cluster.shares.used()
    cluster.limits = Limits(cluster.policy, cluster.table, cluster.job_groups)
    cluster.shares = Shares(cluster.policy)
    cluster.shares.adopt(used)
    budgets, cluster.budgets = cluster.budgets, Budgets(cluster.policy)
    cluster.budgets.take_over(budgets.accounts.values())
    cluster.charged.clear()
    cluster.charges.clear()
    for key, attempt in cluster.attempts.items():
        job = cluster.element(key.job, key.index)
        if job is not None and is_charged(attempt, job):
            charge(cluster, attempt, job.shared)


def budget_warned(cluster: Cluster, event: BudgetWarned) -> None:
    """Note that a budget has warned in this period."""
    account = cluster.budgets.accounts.get((event.budget, event.consumer))
    if account is not None:
        account.turn(event.at)
        account.has_warned = True
        cluster.budgets.touch(account)


def is_charged(attempt: Attempt, job: Job) -> bool:
    """True if the attempt is its job's present one."""
    return not attempt.over and job.attempt is attempt and job.state in HOLDING


def settle_revocable(cluster: Cluster, attempt: Attempt, at: float) -> None:
    """Note the use of revocable hosts so far, before the attempt's shares change."""
    if REVOCABLE in cluster.pending.exclusive:
        used = revocable_slot_s(cluster, attempt, at)
        attempt.resizing = replace(attempt.resizing, revocable_slot_s=used, revocable_until=at)


def revocable_slot_s(cluster: Cluster, attempt: Attempt, at: float) -> float:
    """Slots times seconds that the attempt has had on revocable hosts."""
    if REVOCABLE not in cluster.pending.exclusive:
        return 0.0
    known = ((cluster.hosts.get(share.host), share.slots) for share in attempt.booked)
    slots = sum(slots for host, slots in known if host is not None and is_revocable(host.facts))
    change = attempt.resizing
    return change.revocable_slot_s + slots * max(0.0, at - (change.revocable_until or attempt.dispatched_at))


def slot_seconds(cluster: Cluster, attempt: Attempt, at: float) -> tuple[float, float]:
    """Slots times seconds that the attempt has had: on all hosts, and on revocable ones."""
    on_all = slots_of(attempt.booked) * max(0.0, at - attempt.charged_since)
    return on_all, revocable_slot_s(cluster, attempt, at)


def gpu_seconds(attempt: Attempt, at: float) -> float:
    """GPUs times seconds that the attempt has had, as its share account is charged for them."""
    gpus = sum([len(share.gpus) for share in attempt.booked])
    return gpus * max(0.0, at - attempt.charged_since) if gpus else 0.0


def touched_accounts(cluster: Cluster) -> dict[str, Used]:
    """Usage of the accounts charged since the last call, by path: rows to be written."""
    found = {path: account.used for path, account in cluster.charged.items()}
    cluster.charged = {}
    return found


def observe(cluster: Cluster, name: str, usages: tuple[tuple[Key, HostUsage], ...]) -> None:
    """Note the usage of attempts on a host, as far as they have a share there."""
    for key, usage in usages:
        attempt = cluster.attempts.get(key)
        if attempt is not None and name in attempt.unreleased:
            note_usage(cluster, attempt, ((name, usage),))


def observe_progress(cluster: Cluster, name: str, key: Key, progress: Progress, now: float) -> bool:
    """Note the progress of an attempt as told by a host, unless a newer one is known.

    Returns True if it is to be kept over a restart: the last one kept is old.
    """
    attempt = cluster.attempts.get(key)
    if attempt is None or attempt.over or name not in attempt.unreleased:
        return False
    if attempt.progress is not None and progress.at < attempt.progress.at:
        return False
    attempt.progress = progress
    return now - attempt.progress_saved_at >= SAVED_EVERY_S


def note_usage(cluster: Cluster, attempt: Attempt, said: Iterable[tuple[str, HostUsage]]) -> None:
    """Note the usage of an attempt as reported by hosts, and charge the increase of CPU time."""
    before = attempt.usage
    attempt.usage = taken(before, said)
    if cluster.charges:
        more_s = sum(one.cpu_s for one in attempt.usage.values()) - sum(one.cpu_s for one in before.values())
        note_cpu(cluster, attempt, more_s)
