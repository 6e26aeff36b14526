"""Administrators of a simulated cluster: reconfigurations and closed or inactivated queues while jobs run."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from lavad.core import commands as c
from lavad.core.model.policy import Policy
from lavad.core.model.priorities.job_order import JobOrder
from lavad.core.model.rules.hosts import HostRule
from lavad.simulator.cluster.world import World

ROOT = c.Caller("root", 0, True)


def _without_short(policy: Policy) -> Policy:
    return replace(policy, queues=tuple(queue for queue in policy.queues if queue.name != "short"))


def _by_slowdown(policy: Policy) -> Policy:
    changed = tuple(
        replace(queue, order=JobOrder.SLOWDOWN, backfill_depth=2) if queue.name == "normal" else queue
        for queue in policy.queues
    )
    return replace(policy, queues=changed)


def _in_order(policy: Policy) -> Policy:
    return replace(policy, queues=tuple(replace(queue, in_order=True, backfill_depth=1) for queue in policy.queues))


def _fewer_slots(policy: Policy) -> Policy:
    return replace(policy, host_rules={"default": HostRule(slots=2)})


VARIANTS: tuple[Callable[[Policy], Policy], ...] = (_without_short, _by_slowdown, _in_order, _fewer_slots)


class Rulers:
    """Random policy changes; has a random generator of its own, so that the rest of a seed stays as it is."""

    def __init__(self, world: World, changes: int) -> None:
        self.world = world
        self.rng = Random(f"rules {world.seed}")
        self.changes = changes
        self.files = world.master.cluster.configured  # in force at the end

    def begin(self, trouble_s: float) -> None:
        """Spread the changes over the trouble phase."""
        for _ in range(self.changes):
            self.world.after(self.rng.uniform(1, trouble_s), self.rng.choice((self._reconfigure, self._rule)))

    def _reconfigure(self) -> None:
        policy = self.files
        for variant in self.rng.sample(VARIANTS, self.rng.randint(0, 2)):
            policy = variant(policy)
        self.world.master.ask(c.Reconfigure(policy))

    def _rule(self) -> None:
        queue = self.rng.choice(self.world.master.cluster.policy.queues).name
        self.world.master.ask(c.RuleQueue(queue, self.rng.choice(tuple(c.QueueAction)), ROOT, "for a while"))

    def settle(self) -> bool:
        """Restore the first configuration, open and activate every queue; return True if that changed anything."""
        cluster = self.world.master.cluster
        if cluster.configured == self.files and cluster.policy == self.files:
            return False
        self.world.master.ask(c.Reconfigure(self.files))
        for queue in self.files.queues:
            self.world.master.ask(c.RuleQueue(queue.name, c.QueueAction.OPEN, ROOT))
            self.world.master.ask(c.RuleQueue(queue.name, c.QueueAction.ACTIVATE, ROOT))
        return True
