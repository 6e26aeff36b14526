"""Fairshare selection: each account has its own queue of buckets, and accounts compete by dynamic priority,
whose formula is in ``core.state.fairshare``.

Within a share queue buckets stand in one fixed order (queue, job priority, position, job), so a start costs one move of
an account in a heap. All queues without fairshare have one share queue in common.

Invariants: during a pass the priority of an account only falls, through its starts; so an account's noted position in a
heap is never too late, and only the first one has to be checked again.

Under absolute priorities (APS_PRIORITY) the dynamic priority of a user is one of several factors: accounts do not
compete first, but each of their first jobs by its value.
"""

import heapq

from lavad.core.model.priorities.absolute import AbsolutePriority
from lavad.core.scheduling.queueing.blocked import BlockedBuckets
from lavad.core.scheduling.queueing.blocked_columns import NONE_UNBLOCKED
from lavad.core.scheduling.queueing.due_queue import DueQueue
from lavad.core.scheduling.queueing.ordering import Ranking
from lavad.core.state.fairshare import Account, Tree

First = tuple[float, ...]  # the rank of the first job
NOBODY: First = (2.0**62, 0.0, 0.0)


class ShareQueue:
    """Due buckets and, during a slice, unblocked ones, of one account and queue priority.

    ``order`` holds due buckets by the rank they had when they became due; it is checked when they are popped.
    ``unblocked`` holds blocked buckets that freed hosts might fit. ``lead`` is what the account's share adds to the
    absolute priorities of its jobs, under ``absolute``.
    """

    __slots__ = ("absolute", "account", "lead", "number", "order", "priority", "tree", "unblocked")

    def __init__(
        self,
        number: int,
        tree: Tree | None = None,
        account: Account | None = None,
        priority: int = 0,
        absolute: AbsolutePriority | None = None,
    ) -> None:
        self.number = number
        self.priority = priority  # of the queues of its buckets
        self.tree = tree
        self.account = account
        self.absolute = absolute
        self.lead = 0.0
        self.order = DueQueue()
        self.unblocked = NONE_UNBLOCKED

    def __lt__(self, other: "ShareQueue") -> bool:
        return self.number < other.number

    def first(self, blocked: BlockedBuckets) -> First:
        """Rank of the first bucket; one behind all others if the share queue is empty."""
        first: First = self.order.first[:4] if self.order else NOBODY
        return min(first, blocked.rank(self.unblocked.first)) if self.unblocked else first

    def place(self, blocked: BlockedBuckets) -> First:
        """Place of the first bucket among those of other share queues: its rank, ahead by the account's lead."""
        first = self.first(blocked)
        return (first[0], first[1] - self.lead, *first[2:]) if self.lead else first


_Noted = tuple[float, First, int, Account]


class FairshareSelector:
    """Accounts of one share tree with candidates in queues of one priority, level by level."""

    def __init__(self, ranking: Ranking, tree: Tree, blocked: BlockedBuckets) -> None:
        self._ranking = ranking
        self._tree = tree
        self._blocked = blocked
        self._share_queues: dict[Account, ShareQueue] = {}
        self._heaps: dict[Account, list[_Noted]] = {}
        self._noted: set[Account] = set()  # accounts in a heap

    def enter(self, share_queue: ShareQueue) -> None:
        """Add a share queue that has candidates."""
        account = share_queue.account
        assert account is not None
        self._share_queues[account] = share_queue
        for one in account.chain():
            if one in self._noted:
                return
            assert one.parent is not None
            self._noted.add(one)
            heapq.heappush(self._heaps.setdefault(one.parent, []), self._note(one))

    def _note(self, account: Account) -> _Noted:
        """Order of the account among its siblings: by dynamic priority, then first come, first served."""
        share_queue = self._share_queues.get(account)
        first = share_queue.first(self._blocked) if share_queue is not None else (0.0, 0.0, float(account.place))
        return -self._ranking.priority(self._tree, account), first, account.place, account

    def winner(self) -> ShareQueue | None:
        """Share queue of the account with the best priority; None if no account has candidates."""
        return self._winner_of(self._tree.root)

    def _winner_of(self, group: Account) -> ShareQueue | None:
        heap = self._heaps.get(group, [])
        while heap:
            account = heap[0][3]
            now = self._note(account)
            if now[:2] > heap[0][:2]:
                heapq.heapreplace(heap, now)
                continue
            share_queue = self._share_queues.get(account)
            if share_queue is None:
                share_queue = self._winner_of(account)
            elif not (share_queue.order or share_queue.unblocked):
                del self._share_queues[account]
                share_queue = None
            if share_queue is not None:
                return share_queue
            heapq.heappop(heap)
            self._noted.discard(account)
        return None


class AbsoluteSelector:
    """Accounts of a queue with absolute priorities by their first jobs: the value of each, with the account's share.

    A start lowers the share of its own account alone, so a noted place is never too late (with a negative weight it is
    the first one that rises, which stays first).
    """

    def __init__(self, ranking: Ranking, tree: Tree, blocked: BlockedBuckets) -> None:
        self._ranking = ranking
        self._tree = tree
        self._blocked = blocked
        self._heap: list[tuple[First, ShareQueue]] = []
        self._noted: dict[ShareQueue, First] = {}

    def enter(self, share_queue: ShareQueue) -> None:
        """Add a share queue that has candidates, or one more that may be its first."""
        place = self._place(share_queue)
        noted = self._noted.get(share_queue)
        if noted is None or place < noted:
            self._noted[share_queue] = place
            heapq.heappush(self._heap, (place, share_queue))

    def _place(self, share_queue: ShareQueue) -> First:
        account, rule = share_queue.account, share_queue.absolute
        assert account is not None
        assert rule is not None
        share_queue.lead = rule.share(self._ranking.priority(self._tree, account))
        return share_queue.place(self._blocked)

    def winner(self) -> ShareQueue | None:
        """Share queue whose first job has the highest value; None if no account has candidates."""
        heap = self._heap
        while heap:
            noted, share_queue = heap[0]
            if self._noted.get(share_queue) != noted:  # noted a second time
                heapq.heappop(heap)
            elif not (share_queue.order or share_queue.unblocked):
                del self._noted[share_queue]
                heapq.heappop(heap)
            elif (place := self._place(share_queue)) > noted:
                self._noted[share_queue] = place
                heapq.heapreplace(heap, (place, share_queue))
            else:
                return share_queue
        return None


Selector = FairshareSelector | AbsoluteSelector
