"""What a dispatched job counts for while it holds its attempt: the limits it falls under, and its share account.

Both are charged at the dispatch and discharged when the job leaves the attempt, in one place each; what was charged is
kept for each attempt, so that the same is taken back whatever has become of the job meanwhile. The CPU time that hosts
report is charged as it comes.
"""

from collections.abc import Iterable

from lavad.core.cluster import Cluster
from lavad.core.model import HOLDING, Key, Shared
from lavad.core.model.usage import NO_ONE, HostUsage, taken
from lavad.core.state.fairshare import Account, Shares, Used, decayed_run_s
from lavad.core.state.limits import Charge, Limits
from lavad.core.state.records import Attempt, Job
from lavad.core.state.usage import of_attempt


def charge(cluster: Cluster, attempt: Attempt, shared: Shared) -> None:
    """The attempt holds its allocation from now on."""
    if not (cluster.limits or cluster.shares):
        return
    consumer = cluster.limits.consumer(shared.user, shared.queue, shared.project)
    account = cluster.shares.account_of(shared.queue, shared.user, shared.user_group)
    one = cluster.charges[attempt.key] = Charge(consumer, account, attempt, shared.run_limit_s)
    cluster.limits.charge(consumer, one.allocation)
    cluster.limits.note_start(one.allocation, attempt.dispatched_at)
    if account is not None:
        rate = cluster.shares.trees[shared.queue].run_fading
        _move(one, account, 1, one.start, rate)
        if attempt.usage or attempt.departed is not NO_ONE:  # it runs already, and is charged anew
            note_cpu(cluster, attempt, of_attempt(attempt).cpu_s)


def discharge(cluster: Cluster, attempt: Attempt, queue: str, now: float, cpu_s: float) -> None:
    """The job has left the attempt, having used so much CPU time."""
    one = cluster.charges.pop(attempt.key)
    if one is None:
        return
    cluster.limits.charge(one.consumer, one.allocation, -1)
    account, tree = one.account, cluster.shares.trees.get(queue)
    if account is None or tree is None:
        return
    _move(one, account, -1, now, tree.run_fading)
    run_s = max(0.0, now - one.start)
    gpu_s = one.gpus * run_s
    tree.charge(account, Used(cpu_s, one.slots * decayed_run_s(run_s, tree.run_fading), gpu_s, now))
    cluster.charged[account.path] = account


def charge_more(cluster: Cluster, shared: Shared, cpu_s: float, now: float) -> None:
    """A job that has been discharged had used more CPU time: a host of it told later than its first."""
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
    """A running job counts elsewhere, or counts for more or less: it was switched, or has grown or shrunk.

    What it held before is in ``Attempt.charged_since``: slots times seconds stay what they were.
    """
    attempt = job.attempt
    one = cluster.charges.pop(attempt.key) if attempt is not None else None
    if attempt is None or one is None:
        return
    cluster.limits.charge(one.consumer, one.allocation, -1)
    tree = cluster.shares.trees.get(job.shared.queue)
    if one.account is not None and tree is not None:
        _move(one, one.account, -1, one.start, tree.run_fading)
    charge(cluster, attempt, shared)


def note_cpu(cluster: Cluster, attempt: Attempt, more_s: float) -> None:
    """A host reported that the attempt has used more CPU time than it had before."""
    one = cluster.charges.get(attempt.key)
    if one is not None and one.account is not None and more_s > 0:
        one.cpu_s += more_s
        for part in one.account.chain():
            part.running.cpu_s += more_s


def recount(cluster: Cluster) -> None:
    """Under other rules limits and shares count anew what runs; what accounts have used stays theirs."""
    used = cluster.shares.used()
    cluster.limits, cluster.shares = Limits(cluster.policy, cluster.table), Shares(cluster.policy)
    cluster.shares.adopt(used)
    cluster.charged.clear()
    cluster.charges.clear()
    for key, attempt in cluster.attempts.items():
        job = cluster.element(key.job, key.index)
        if job is not None and is_charged(attempt, job):
            charge(cluster, attempt, job.shared)


def is_charged(attempt: Attempt, job: Job) -> bool:
    """Does the job hold this attempt?"""
    return not attempt.over and job.attempt is attempt and job.state in HOLDING


def touched_accounts(cluster: Cluster) -> dict[str, Used]:
    """What the accounts charged since the last call have used, by path: their rows are to be written anew."""
    found = {path: account.used for path, account in cluster.charged.items()}
    cluster.charged = {}
    return found


def observe(cluster: Cluster, name: str, usages: tuple[tuple[Key, HostUsage], ...]) -> None:
    """What attempts use on that host, as far as they hold something there: a host speaks of itself alone."""
    for key, usage in usages:
        attempt = cluster.attempts.get(key)
        if attempt is not None and name in attempt.unreleased:
            note_usage(cluster, attempt, ((name, usage),))


def note_usage(cluster: Cluster, attempt: Attempt, said: Iterable[tuple[str, HostUsage]]) -> None:
    """What hosts say that an attempt has used there; its account is charged with what is new."""
    before = attempt.usage
    attempt.usage = taken(before, said)
    if cluster.charges:
        more_s = sum(one.cpu_s for one in attempt.usage.values()) - sum(one.cpu_s for one in before.values())
        note_cpu(cluster, attempt, more_s)
