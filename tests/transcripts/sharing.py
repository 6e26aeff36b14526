"""Words for shares and limits in the rules of a transcript:

    queue=normal,30,user_slot_limit=2,shares=art:3/bio:1,robin    a queue (once one is named, the default ones are gone)
    queue=day,30,on=n1  partition=p1,n1,ann:3/bob:1    a queue of one host; a host partition of it
    user=ann,slots=2  group=art,slots=4  each=art,slots=1  host=n1,user_slots=1
    limit=l1,slots=3,per_user    per_user, per_host, users:ann+bob, queues:q, projects:p, hosts:n1+n2,
                                 resource=lic:1

The users are ann, bob and cel; ann and bob are the group art, cel is bio.
"""

from collections.abc import Callable, Iterable
from typing import Any

from lavad.core.model.priorities.host_partition import HostPartition
from lavad.core.model.priorities.job_order import JobOrder
from lavad.core.model.rules.hosts import HostRule
from lavad.core.model.rules.names import Names
from lavad.core.model.rules.queues import Queue
from lavad.core.model.rules.resources import Limit
from lavad.core.model.rules.users import Fairshare, Share, UserRule

NUMBERS = ("pending_jobs", "pending_slots")
GROUPS = {"art": Names(False, frozenset({"ann", "bob"})), "bio": Names(False, frozenset({"cel"}))}


def _queue(values: dict[str, Any], name: str, priority: str, *rules: str) -> None:
    chosen: dict[str, Any] = {}
    for word, value in (rule.partition("=")[::2] for rule in rules):
        if word == "shares":
            chosen["fairshare"] = Fairshare(tuple(map(_share, value.split("/"))))
        elif word == "robin":
            chosen["order"] = JobOrder.ROUND_ROBIN
        elif word == "on":
            chosen["hosts"] = Names(False, frozenset({value}))
        else:
            chosen[word] = float(value) if word == "processor_slot_limit" else int(value)
    values["queues"] = (*values.get("queues", ()), Queue(name, int(priority), **chosen))


def _partition(values: dict[str, Any], name: str, host: str, shares: str) -> None:
    fairshare = Fairshare(tuple(map(_share, shares.split("/"))))
    one = HostPartition(name, Names(False, frozenset({host})), fairshare)
    values["host_partitions"] = (*values.get("host_partitions", ()), one)


def _share(text: str) -> Share:
    name, _, shares = text.partition(":")
    if name == "default":
        return Share(name, int(shares), Names(), True)
    return Share(name, int(shares), GROUPS.get(name, Names(False, frozenset({name}))))


def _user(values: dict[str, Any], name: str, *rules: str) -> None:
    values.setdefault("user_rules", {})[name] = UserRule(**_numbers(rules))


def _each(values: dict[str, Any], name: str, *rules: str) -> None:
    values.setdefault("each_user_rules", {})[name] = UserRule(**_numbers(rules))


def _host(values: dict[str, Any], name: str, *rules: str) -> None:
    values.setdefault("host_rules", {})[name] = HostRule(**_numbers(rules))


def _numbers(rules: Iterable[str]) -> dict[str, Any]:
    pairs = (rule.partition("=") for rule in rules)
    return {word: float(value) if word == "slots_per_processor" else int(value) for word, _, value in pairs}


def _limit(values: dict[str, Any], name: str, *rules: str) -> None:
    chosen: dict[str, Any] = {}
    for rule in rules:
        word, _, number = rule.partition("=")
        who, _, names = rule.partition(":")
        if word == "resource":
            name_of, _, amount = number.partition(":")
            chosen["resources"] = (*chosen.get("resources", ()), (name_of, float(amount)))
        elif number:
            chosen[word] = float(number) if word in ("slots_per_processor", "memory_share") else int(number)
        else:
            chosen[who] = Names(False, frozenset(names.split("+"))) if names else Names()
    values["limits"] = (*values.get("limits", ()), Limit(name, **chosen))


PARTS: dict[str, Callable[..., None]] = {
    "queue": _queue,
    "partition": _partition,
    "user": _user,
    "group": _user,
    "each": _each,
    "host": _host,
    "limit": _limit,
}
