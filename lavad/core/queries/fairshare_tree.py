"""Fairshare as shown to users: the accounts of a queue's share tree at a moment, and a job's position among them."""

from collections import Counter
from dataclasses import dataclass

from lavad.core.cluster_view import ClusterView
from lavad.core.model import Shared
from lavad.core.model.priorities.host_partition import HostPartition
from lavad.core.state.fairshare import Account, Tree


@dataclass(frozen=True, slots=True)
class ShareRow:
    """One account, in the columns of ``bqueues -r``. Times are in seconds, as they count for the priority."""

    path: str  # tree/group/user
    name: str
    depth: int  # 1: right below the root
    is_group: bool
    shares: int
    priority: float
    started: int  # slots of dispatched jobs that have not ended
    reserved: int  # slots kept for its pending jobs
    cpu_time_s: float
    run_time_s: float
    gpu_run_time_s: float


def share_tree(cluster: ClusterView, queue: str, now: float) -> tuple[ShareRow, ...]:
    """Accounts of a fairshare queue, groups before their members; empty for other queues.

    At each level the account with the highest priority goes first. Accounts of ``default`` and ``group@`` appear with
    their first job.
    """
    tree = cluster.shares.trees.get(queue)
    return _rows(cluster, tree, now) if tree is not None else ()


def partition_tree(cluster: ClusterView, partition: HostPartition, now: float) -> tuple[ShareRow, ...]:
    """Accounts of a host partition; unused ones if no queue uses its hosts."""
    tree = cluster.shares.partitions.get(partition.name)
    return _rows(cluster, tree or Tree(partition.tree_name, partition.fairshare), now)


def _rows(cluster: ClusterView, tree: Tree, now: float) -> tuple[ShareRow, ...]:
    kept = _kept(cluster, tree)
    return tuple(_row(tree, account, kept[account.path], now) for account in tree.accounts())


def _kept(cluster: ClusterView, tree: Tree) -> Counter[str]:
    """Slots kept for pending jobs, by the path of each account they belong to."""
    found: Counter[str] = Counter()
    for shared, slots in cluster.kept_slots():
        account = cluster.shares.account_of(shared.queue, shared.user, shared.user_group)
        if account is not None and cluster.shares.trees[shared.queue] is tree:
            found.update({one.path: slots for one in account.chain()})
    return found


def _row(tree: Tree, account: Account, kept: int, now: float) -> ShareRow:
    running, used = account.running, account.used.faded(now, tree.fading)
    return ShareRow(
        account.path,
        account.name,
        account.path.count("/"),
        bool(account.children),
        account.shares,
        tree.priority(account, now),
        running.slots,
        kept,
        used.cpu_s + running.cpu_s,
        tree.counted_run_s(running, used, now),
        used.gpu_s + running.gpu_s(now),
    )


def turn(cluster: ClusterView, shared: Shared, now: float) -> str:
    """Position of the account among its siblings, at the highest level where one of them goes before it; else empty."""
    tree = cluster.shares.trees.get(shared.queue)
    account = cluster.shares.account_of(shared.queue, shared.user, shared.user_group)
    if tree is None or account is None:
        return ""
    for one in reversed(list(account.chain())):
        assert one.parent is not None
        mine = tree.priority(one, now)
        before = sum(tree.priority(other, now) > mine for other in one.parent.children.values())
        if before:
            path = one.path.lstrip("@")  # of a host partition
            return f"{before} of {len(one.parent.children)} accounts go before {path}, which has priority {mine:.3f}"
    return ""
