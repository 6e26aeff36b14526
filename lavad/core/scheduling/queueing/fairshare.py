"""Whose bucket goes next where queues are shared: each account has its own lane, and lanes compete.

Inside a lane buckets stand in one order that never changes (queue, job priority, position, job), so a start costs no
more than putting one account back into its place. All queues without shares have one lane in common.

Invariants: during a pass the priority of an account only falls, by what it starts; so the place that was noted for it
in a heap is never too far behind, and it is enough to look again at whoever comes out first.
"""

import heapq

from lavad.core.scheduling.queueing.blocked import BlockedBuckets
from lavad.core.scheduling.queueing.blocked_columns import NOBODY_WOKEN
from lavad.core.scheduling.queueing.due_queue import DueQueue
from lavad.core.scheduling.queueing.ordering import Ranking
from lavad.core.state.fairshare import Account, Tree

First = tuple[float, ...]  # the rank of the first job
NOBODY: First = (2.0**62, 0.0, 0.0)


class ShareQueue:
    """Due buckets and, during a slice, woken ones, of one account and queue priority.

    ``order`` has due buckets by the rank they had when they became due; a rank is checked when its turn comes.
    ``woken`` are blocked buckets that freed hosts might fit.
    """

    __slots__ = ("account", "number", "order", "priority", "tree", "woken")

    def __init__(
        self, number: int, tree: Tree | None = None, account: Account | None = None, priority: int = 0
    ) -> None:
        self.number = number
        self.priority = priority  # of the queues whose buckets stand here
        self.tree = tree
        self.account = account
        self.order = DueQueue()
        self.woken = NOBODY_WOKEN

    def __lt__(self, other: "ShareQueue") -> bool:
        return self.number < other.number

    def first(self, blocked: BlockedBuckets) -> First:
        """Rank of the bucket that goes first here; ``NOBODY`` when the lane is empty."""
        first: First = self.order.first[:4] if self.order else NOBODY
        return min(first, blocked.rank(self.woken.first)) if self.woken else first


_Noted = tuple[float, First, int, Account]


class FairshareSelector:
    """The accounts of one tree that have something to start in queues of one priority, level by level."""

    def __init__(self, ranking: Ranking, tree: Tree, blocked: BlockedBuckets) -> None:
        self._ranking = ranking
        self._tree = tree
        self._blocked = blocked
        self._lanes: dict[Account, ShareQueue] = {}
        self._heaps: dict[Account, list[_Noted]] = {}
        self._noted: set[Account] = set()  # those that stand in a heap

    def enter(self, lane: ShareQueue) -> None:
        """The lane has something to start."""
        account = lane.account
        assert account is not None
        self._lanes[account] = lane
        for one in account.chain():
            if one in self._noted:
                return
            assert one.parent is not None
            self._noted.add(one)
            heapq.heappush(self._heaps.setdefault(one.parent, []), self._note(one))

    def _note(self, account: Account) -> _Noted:
        """Where the account stands among its siblings: by priority, then who was there first."""
        lane = self._lanes.get(account)
        first = lane.first(self._blocked) if lane is not None else (0.0, 0.0, float(account.place))
        return -self._ranking.priority(self._tree, account), first, account.place, account

    def winner(self) -> ShareQueue | None:
        """The lane whose turn it is; None when nobody is left."""
        return self._winner_of(self._tree.root)

    def _winner_of(self, group: Account) -> ShareQueue | None:
        heap = self._heaps.get(group, [])
        while heap:
            account = heap[0][3]
            now = self._note(account)
            if now[:2] > heap[0][:2]:
                heapq.heapreplace(heap, now)
                continue
            lane = self._lanes.get(account)
            if lane is None:
                lane = self._winner_of(account)
            elif not (lane.order or lane.woken):
                del self._lanes[account]
                lane = None
            if lane is not None:
                return lane
            heapq.heappop(heap)
            self._noted.discard(account)
        return None
