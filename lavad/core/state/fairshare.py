"""Fairshare: usage of share accounts and their dynamic priorities.

A queue's shares form a tree of accounts: users, groups, groups inside groups. Each account's dynamic priority is its
number of shares over its present and past usage; the one with the highest goes first, at every level. The formula is
LSF's (Platform LSF, "Administering Platform LSF", chapter "Fairshare scheduling"). Times count for every slot, in
hours:

    shares / max(0.01, cpu * CPU_TIME_FACTOR + (past_run + run) * RUN_TIME_FACTOR
                       + (committed_run - run) * COMMITTED_RUN_TIME_FACTOR
                       + (1 + slots) * RUN_JOB_FACTOR + gpu * GPU_RUN_TIME_FACTOR)

``cpu`` is the CPU time of ended jobs and that of running ones so far; ``past_run`` counts only with
ENABLE_HIST_RUN_TIME. Usage of ended jobs decays continuously: it is worth a tenth after HIST_HOURS. Sums over running
jobs are kept as sums of slots and of slots times start, in whole microseconds, so that an account costs the same
however many jobs it runs. A job counts from its dispatch until it has ended, also while it is suspended.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import exp, log

from lavad.core.model.policy import Policy
from lavad.core.model.priorities.host_partition import partition_of
from lavad.core.model.priorities.job_order import JobOrder
from lavad.core.model.rules.names import ALL
from lavad.core.model.rules.users import Fairshare, Share

_HOUR = 3600.0
_MICRO = 1_000_000
_SMALLEST = 0.01  # of the denominator, as LSF has it

# Round robin is fairshare by slots in use alone, with equal shares for all users.
ROUND_ROBIN = Fairshare((Share("default", 1, ALL, True),), 0.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Used:
    """Usage of ended jobs, in seconds of CPU, slots and GPUs, decayed until ``as_of``."""

    cpu_s: float = 0.0
    run_s: float = 0.0
    gpu_s: float = 0.0
    as_of: float = 0.0

    def faded(self, now: float, rate: float) -> "Used":
        """Decay until a later moment; an earlier one changes nothing."""
        if now <= self.as_of:
            return self
        left = exp(-rate * (now - self.as_of)) if rate else 1.0
        return Used(self.cpu_s * left, self.run_s * left, self.gpu_s * left, now)

    def plus(self, more: "Used", rate: float) -> "Used":
        """Sum of both, as of the later moment."""
        mine, others = self.faded(more.as_of, rate), more.faded(self.as_of, rate)
        return Used(
            mine.cpu_s + others.cpu_s, mine.run_s + others.run_s, mine.gpu_s + others.gpu_s, max(mine.as_of, more.as_of)
        )


class Running:
    """Sums over the running jobs of an account; each job is added once and subtracted once."""

    __slots__ = ("_decayed", "_decayed_at", "_gpu_starts", "_slot_starts", "committed_s", "cpu_s", "gpus", "slots")

    def __init__(self) -> None:
        self.slots = 0
        self.gpus = 0
        self.committed_s = 0  # slots times run limits
        self.cpu_s = 0.0  # used so far, as reported by hosts
        self._slot_starts = 0  # slots times start, in microseconds: whole numbers add up exactly
        self._gpu_starts = 0
        self._decayed = 0.0  # run time that decays while it grows, as of ``_decayed_at``
        self._decayed_at = 0.0

    def move(self, slots: int, gpus: int, run_limit_s: int, start: float) -> None:
        """Add a dispatched job or, with negative numbers, subtract an ended one."""
        at = round(start * _MICRO)
        self.slots += slots
        self.gpus += gpus
        self.committed_s += slots * run_limit_s
        self._slot_starts += slots * at
        self._gpu_starts += gpus * at

    def move_decayed(self, slots: int, start: float, now: float, rate: float) -> None:
        """Same as ``move`` for decayed run time; called before it, since ``move`` changes the number of slots."""
        self._decayed = self.decayed_s(now, rate)
        self._decayed_at = max(now, self._decayed_at)
        self._decayed += slots * decayed_run_s(self._decayed_at - start, rate)

    def run_s(self, now: float) -> float:
        """Run time of its jobs times their slots, in seconds."""
        return max(0, self.slots * round(now * _MICRO) - self._slot_starts) / _MICRO

    def gpu_s(self, now: float) -> float:
        """Run time of its jobs times their GPUs, in seconds."""
        return max(0, self.gpus * round(now * _MICRO) - self._gpu_starts) / _MICRO

    def decayed_s(self, now: float, rate: float) -> float:
        """Run time in slot-seconds with decay: a second counts e^(-rate * age)."""
        if not rate:
            return self.run_s(now)
        most = self.slots / rate
        return most + (self._decayed - most) * exp(-rate * max(0.0, now - self._decayed_at))


def decayed_run_s(run_s: float, rate: float) -> float:
    """Decayed run time of a run of this length at its end."""
    return (1.0 - exp(-rate * run_s)) / rate if rate else run_s


class Account:
    """Share account of a user or group in one tree. ``children`` make it a group."""

    __slots__ = ("children", "name", "parent", "path", "place", "running", "share", "shares", "used")

    def __init__(self, name: str, parent: "Account | None", tree_name: str, share: Share | None) -> None:
        self.name = name
        self.parent = parent
        self.path: str = f"{parent.path}/{name}" if parent is not None else tree_name
        self.share = share
        self.shares = share.shares if share is not None else 1
        self.children: dict[str, Account] = {}
        self.place = len(parent.children) if parent is not None else 0  # among its siblings
        self.running = Running()
        self.used = Used()
        if parent is not None:
            parent.children[name] = self

    def chain(self) -> Iterator["Account"]:
        """The account and its ancestors, without the root."""
        account = self
        while account.parent is not None:
            yield account
            account = account.parent

    @property
    def path_in_tree(self) -> str:
        """Share attribute account path as LSF writes it: ``/group/user``."""
        return self.path[self.path.index("/") :]

    def __lt__(self, other: "Account") -> bool:
        return self.path < other.path

    def __repr__(self) -> str:
        return self.path


class Tree:
    """Share tree of one queue, or of several queues together."""

    def __init__(self, name: str, fairshare: Fairshare) -> None:
        self.name = name
        self.rules = fairshare
        self.fading = log(10.0) / (fairshare.hist_hours * _HOUR) if fairshare.hist_hours > 0 else 0.0
        self.run_fading = self.fading if fairshare.does_run_time_decay else 0.0
        self.root = Account(name, None, name, None)
        self._leaves: dict[tuple[str, str], Account | None] = {}
        self._add(fairshare.shares, self.root)

    def _add(self, shares: Iterable[Share], parent: Account) -> None:
        for share in shares:
            if not share.each and share.name != "default":
                account = Account(share.name, parent, self.name, share)
                self._add(share.below, account)

    def account_of(self, user: str, user_group: str = "") -> Account | None:
        """Account that this user's jobs are charged to; None if the user has no share.

        An account on the way to the group asked for (bsub -G) precedes all others; else a user's own account precedes
        that of a group, that ``group@``, ``default`` and ``others``; of several groups the first listed one is taken.
        """
        name = (user, user_group)
        if name not in self._leaves:
            self._leaves[name] = self._find(self.rules.shares, self.root, user, user_group)
        return self._leaves[name]

    def _find(self, shares: tuple[Share, ...], parent: Account, user: str, group: str) -> Account | None:
        ranked = sorted(
            (share for share in shares if user in share.users), key=lambda share: _precedence(share, user, group)
        )
        for share in ranked:
            if share.each or share.name == "default":
                return parent.children.get(user) or Account(user, parent, self.name, share)
            account = parent.children[share.name]
            found = self._find(share.below, account, user, group) if share.below else account
            if found is not None:
                return found
        return None

    def adopt(self, path: str, used: Used) -> bool:
        """Restore the usage of the account of that path; False if there is no such account any more."""
        _, *names = path.split("/")
        account, shares = self.root, self.rules.shares
        for name in names:
            child = account.children.get(name)
            if child is None:
                share = next((one for one in shares if _is_each(one) and name in one.users), None)
                if share is None:
                    return False
                child = Account(name, account, self.name, share)
            account = child
            shares = account.share.below if account.share is not None else ()
        if account.children or account is self.root:
            return False
        self.charge(account, used)
        return True

    def charge(self, account: Account, used: Used) -> None:
        """Add usage of ended jobs to the account and its ancestors."""
        for one in account.chain():
            one.used = one.used.plus(used, self.fading)

    def priority(self, account: Account, now: float, slots: int = 0, committed_s: int = 0) -> float:
        """Dynamic priority of the account, as if it held additional slots and committed run time."""
        rules, running, used = self.rules, account.running, account.used.faded(now, self.fading)
        seconds = (
            (used.cpu_s + running.cpu_s) * rules.cpu_time_factor
            + self.counted_run_s(running, used, now) * rules.run_time_factor
            + (running.committed_s + committed_s - running.run_s(now)) * rules.committed_run_time_factor
            + (used.gpu_s + running.gpu_s(now)) * rules.gpu_run_time_factor
        )
        jobs = (1 + running.slots + slots) * rules.run_job_factor
        return account.shares / max(_SMALLEST, seconds / _HOUR + jobs)

    def counted_run_s(self, running: Running, used: Used, now: float) -> float:
        """Counted run time: that of running jobs, and that of ended ones under ENABLE_HIST_RUN_TIME, decayed if
        configured."""
        past_s = used.run_s if self.rules.is_run_time_historic else 0.0
        return past_s + running.decayed_s(now, self.run_fading)

    def accounts(self) -> Iterator[Account]:
        """All accounts, groups before their members."""
        waiting = list(self.root.children.values())[::-1]
        while waiting:
            account = waiting.pop()
            yield account
            waiting.extend(list(account.children.values())[::-1])


def _is_each(share: Share) -> bool:
    return share.each or share.name == "default"


def _precedence(share: Share, user: str, group: str) -> tuple[bool, int]:
    """Sort key of shares for an account; shares of equal key stay in configured order."""
    if share.name == "others" and not share.each:
        kind = 4
    elif share.name == "default":
        kind = 3
    elif share.each:
        kind = 2
    elif share.name == user:
        kind = 0
    else:
        kind = 1
    return not _leads_to(share, group), kind


def _leads_to(share: Share, group: str) -> bool:
    return bool(group) and (share.name == group or any(_leads_to(one, group) for one in share.below))


class Shares:
    """Share trees of a policy, by queue; empty without fairshare queues and host partitions."""

    def __init__(self, policy: Policy) -> None:
        self.trees: dict[str, Tree] = {}
        self.partitions: dict[str, Tree] = {}  # by host partition, those whose hosts a queue uses
        self._dormant: dict[str, Used] = {}  # usage of accounts that the configuration does not have at present
        by_name: dict[str, Tree] = {}
        for queue in policy.queues:
            rules = ROUND_ROBIN if queue.order is JobOrder.ROUND_ROBIN else None
            rules = queue.fairshare or rules
            if rules is None and (partition := partition_of(queue, policy.host_partitions)) is not None:
                tree = self.partitions.get(partition.name)
                if tree is None:
                    tree = self.partitions[partition.name] = Tree(partition.tree_name, partition.fairshare)
                self.trees[queue.name] = tree
            elif rules is not None:
                name = rules.queues[0] if rules.queues else queue.name
                tree = by_name.get(name)
                if tree is None:
                    tree = by_name[name] = Tree(name, rules)
                self.trees[queue.name] = tree
                for other in rules.queues:
                    self.trees.setdefault(other, tree)

    def __bool__(self) -> bool:
        return bool(self.trees)

    def account_of(self, queue: str, user: str, user_group: str) -> Account | None:
        """Account that such jobs are charged to; None if the queue has no fairshare, or the user no share."""
        tree = self.trees.get(queue)
        return tree.account_of(user, user_group) if tree is not None else None

    def adopt(self, used: Mapping[str, Used]) -> None:
        """Restore usage by account path; usage without an account is kept until the configuration has it again."""
        by_name = {tree.name: tree for tree in self.trees.values()}
        for path, one in used.items():
            tree = by_name.get(path.partition("/")[0])
            if tree is None or not tree.adopt(path, one):
                self._dormant[path] = one

    def used(self) -> dict[str, Used]:
        """Usage by account path, of users only: that of groups follows from it."""
        found = dict(self._dormant)
        for tree in {tree.name: tree for tree in self.trees.values()}.values():
            for account in tree.accounts():
                if not account.children and account.used != Used():
                    found[account.path] = account.used
        return found
