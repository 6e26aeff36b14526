"""Cluster rules drawn from a seed: shares, limits and orders of queues in any combination."""

from random import Random
from typing import Any

from lavad.core.model.policy import Policy
from lavad.core.model.priorities.job_order import JobOrder
from lavad.core.model.rules.hosts import HostRule
from lavad.core.model.rules.names import Names
from lavad.core.model.rules.queues import Queue
from lavad.core.model.rules.resources import Limit
from lavad.core.model.rules.users import Fairshare, Share, UserRule

USERS = ("ann", "bob", "cel", "dan")
GROUPS = {"art": Names(False, frozenset(USERS[:2])), "bio": Names(False, frozenset(USERS[2:]))}
HOSTS = Names(False, frozenset({"n1", "n9"}))


def policy(rng: Random, with_backfill: bool = False) -> Policy:
    """Three queues, four users in two groups."""
    shared = _fairshare(rng) if rng.random() < 0.6 else None
    return Policy(
        queues=(
            Queue("priority", 43, **_rules(rng, shared, with_backfill)),
            Queue("short", 30, **_rules(rng, shared, with_backfill)),
            Queue("normal", rng.choice((30, 20)), **_rules(rng, shared, with_backfill)),
        ),
        user_priority_max=10,
        priority_step=rng.choice((0, 0, 1)),
        priority_step_s=60.0,
        user_groups=GROUPS,
        user_rules=_user_rules(rng),
        each_user_rules={"bio": UserRule(slots=rng.choice((2, 4)))} if rng.random() < 0.2 else {},
        host_rules={"n5": HostRule(user_slots=1)} if rng.random() < 0.2 else {},
        limits=tuple(_limit(rng, number) for number in range(rng.choice((0, 0, 1, 2)))),
    )


def _rules(rng: Random, shared: Fairshare | None, with_backfill: bool) -> dict[str, Any]:
    def some(*values: Any) -> Any:
        return rng.choice((None, None, None, None, None, None, *values))

    return {
        "fairshare": shared if rng.random() < 0.5 else None,
        "order": rng.choice((JobOrder.SUBMISSION, JobOrder.SUBMISSION, JobOrder.ROUND_ROBIN)),
        "slot_limit": some(3, 6),
        "user_slot_limit": some(2, 4),
        "host_slot_limit": some(1, 2),
        "processor_slot_limit": some(1.0, 2.0),
        "accept_interval": some(61.0),
        "backfill_depth": rng.choice((0, 1, 2)) if with_backfill else 0,
        "hosts": some(HOSTS, Names(True, frozenset({"n2"}))) or Names(),
        "host_preference": some((("n3", 2), ("n1", -1))) or (),
    }


def _fairshare(rng: Random) -> Fairshare:
    below = (Share("ann", 2, _one("ann")), Share("default", 1, GROUPS["art"], True)) if rng.random() < 0.7 else ()
    shares = [Share("art", rng.choice((1, 3)), GROUPS["art"], below=below)]
    shares.append(
        rng.choice(
            (
                Share("bio", 1, GROUPS["bio"], True),
                Share("others", 1, Names(True, GROUPS["art"].names)),
                Share("default", 2, Names(True, GROUPS["art"].names), True),
            )
        )
    )
    queues = rng.choice(((), ("normal", "short"), ("short", "priority", "normal")))
    decays = rng.random() < 0.3
    return Fairshare(
        tuple(shares), committed_run_time_factor=rng.choice((0.0, 0.5)), queues=queues, does_run_time_decay=decays
    )


def _one(name: str) -> Names:
    return Names(False, frozenset({name}))


def _user_rules(rng: Random) -> dict[str, UserRule]:
    rules = {}
    if rng.random() < 0.3:
        rules["art"] = UserRule(slots=rng.choice((2, 5)))
    if rng.random() < 0.2:
        rules["cel"] = UserRule(slots_per_processor=1.0)
    if rng.random() < 0.2:
        rules["default"] = UserRule(slots=4)
    return rules


def _limit(rng: Random, number: int) -> Limit:
    whats: tuple[dict[str, Any], ...] = (
        {"slots": 3},
        {"jobs": 2},
        {"memory_mib": 3000},
        {"resources": (("ngpus_physical", 1.0),)},
    )
    wheres: tuple[dict[str, Any], ...] = (
        {"per_host": Names()},
        {"per_host": HOSTS, "per_user": Names()},
        {"hosts": HOSTS},
        {"per_user": Names()},
        {"users": GROUPS["bio"]},
        {"queues": _one("normal"), "per_project": Names()},
    )
    what = rng.choice(whats)
    # A job's memory depends on its placement: a later attempt may find one that an earlier did not.
    is_fixed = "slots" in what or "jobs" in what
    who = rng.choice(wheres if is_fixed else wheres[:2])
    return Limit(f"l{number}", **what, **who)
