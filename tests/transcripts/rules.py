"""Rules of a transcript's cluster, from words: ``user_priority_max=100``; only the relevant ones are given.

``preempts.priority=short,normal+2`` lets a queue preempt others, ``requeue`` ends victims instead of suspending them.
``without=short`` leaves a queue out, ``slots.n1=2`` is MXJ of a host. ``rest.normal=60`` is JOB_ACCEPT_INTERVAL in
seconds, ``exclusive.n1=big`` are exclusive resources of a host. ``only.normal=n1,n2+3`` are the hosts of a queue, with
preferences. ``backfill.normal=1`` is the number of reservations of a queue, ``strict.normal`` keeps its jobs in strict
order, ``interactive.short=only`` is INTERACTIVE. ``pool.red=ann,own:4`` makes a resource pool, ``load.normal=r1m:1/2``
and ``host_load=mem:500/100`` are load thresholds. ``pre_exec_tries.normal=2`` is LOCAL_MAX_PREEXEC_RETRY of a queue,
``pre_exec_exits.normal`` its action EXIT.
``checkpoints.normal=saved,10`` is CHKPNT of a queue.
``aps.normal=WEIGHT[[PROC,1]]`` is APS_PRIORITY, without blanks.
Words for shares and limits are in ``sharing.py``.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from lavad.config.priorities.absolute import absolute_priority
from lavad.config.values import checkpoints
from lavad.core.model.policy import Policy
from lavad.core.model.rules.hosts import HostRule
from lavad.core.model.rules.names import ALL, Names
from lavad.core.model.rules.queues import Queue, Threshold
from lavad.core.model.rules.resources import Pool, ServiceClass
from tests.transcripts import sharing

NUMBERS = (
    "user_priority_max",
    "priority_step",
    "priority_step_s",
    "preempt_delay_s",
    "no_preempt_run_s",
    "no_preempt_finish_s",
    "preemptions_max",
    "claim_timeout_s",
    *sharing.NUMBERS,
)


def policy(words: Iterable[str]) -> Policy:
    """The default policy changed by these words."""
    values: dict[str, Any] = {"user_groups": sharing.GROUPS}
    queues = {queue.name: queue for queue in Policy().queues}
    pools: list[Pool] = []
    for word in words:
        name, _, value = word.partition("=")
        name, _, queue = name.partition(".")
        if name == "preempts":
            queues[queue] = replace(queues[queue], preempts=tuple(_level(one) for one in value.split(",")))
        elif name in sharing.PARTS:
            sharing.PARTS[name](values, *value.split(","))
        elif name == "pool":
            pools.append(_pool(queue, value))
        elif name == "rest":
            queues[queue] = replace(queues[queue], accept_interval=float(value))
        elif name == "exclusive":
            names = frozenset(value.split(","))
            values.setdefault("host_rules", {})[queue] = HostRule(resources=names, exclusive_resources=names)
        elif name == "only":
            queues[queue] = replace(queues[queue], **_own_hosts(value))
        elif name in ("slot_reserve", "memory_reserve"):
            with_memory = name == "memory_reserve"
            queues[queue] = replace(queues[queue], slot_reserve_s=float(value), reserves_memory=with_memory)
        elif name == "backfill":
            queues[queue] = replace(queues[queue], backfill_depth=int(value))
        elif name == "interactive":
            queues[queue] = replace(queues[queue], interactive=value)
        elif name == "aps":
            own = {one.name: one for one in values.get("queues", ())}
            made = replace(own.get(queue) or queues[queue], absolute=absolute_priority(value))
            queues[queue] = made
            if own:
                values["queues"] = tuple({**own, queue: made}.values())
        elif name == "strict":
            queues[queue] = replace(queues[queue], in_order=True)
        elif name == "load":
            queues[queue] = replace(queues[queue], thresholds=_bounds(value))
        elif name == "host_load":
            values["host_rules"] = {"default": HostRule(thresholds=_bounds(value))}
        elif name in ("stop_condition", "resume_condition"):
            queues[queue] = replace(queues[queue], **{name: value})
        elif name == "kills":
            queues[queue] = replace(queues[queue], terminate_when=frozenset(value.split(",")))
        elif name == "without":
            del queues[value]
        elif name == "slots":
            values.setdefault("host_rules", {})[queue] = HostRule(slots=int(value))
        elif name in ("pre_exec_tries", "pre_exec_exits"):
            tries, exits = (int(value), None) if name == "pre_exec_tries" else (None, True)
            rule = queues[queue].around
            new = replace(rule, tries_max=tries or rule.tries_max, exits=exits or rule.exits)
            queues[queue] = replace(queues[queue], around=new)
        elif name == "checkpoints":
            queues[queue] = replace(queues[queue], checkpoints=checkpoints(value.replace(",", " ")))
        elif name == "requeue":
            values["preempts_by_requeue"] = True
        elif name == "lends":
            values["preemptable_resources"] = frozenset(value.split(","))
        else:
            assert name in NUMBERS, f"{name} is no rule that a transcript can set"
            values[name] = int(value)
    values.setdefault("queues", tuple(queues.values()))
    classes = {
        pool.service_class: ServiceClass(pool.service_class, pool.users, attaches=pool.attaches)
        for pool in pools
        if pool.service_class
    }
    default = _default(values["queues"])
    return Policy(pools=tuple(pools), service_classes=classes, default_queue=default, **values)


def _default(queues: tuple[Queue, ...]) -> str:
    names = [queue.name for queue in queues]
    return "normal" if "normal" in names else names[0]


def _pool(name: str, text: str) -> Pool:
    """``ann,own:4,most:6,keeps,hosts:n1+n2``: users, guaranteed and largest number of slots, no loans, hosts; of a
    service class ``part:50,lends:short,app:md``: percentage of the slots, a queue that borrows, a profile,
    ``sla``: only for jobs that name the class, which is what stands behind the slash."""
    user, *rest = text.split(",")
    said = dict(word.partition(":")[::2] for word in rest)
    amounts = {
        field: {"slots": float(said[key])} for key, field in (("own", "guaranteed"), ("most", "largest")) if key in said
    }
    hosts = Names(False, frozenset(said["hosts"].split("+"))) if "hosts" in said else ALL
    lends, borrowers, applications = "keeps" not in said, _one(said, "lends"), _one(said, "app")
    return Pool(
        name, Names(False, frozenset((user,))), hosts=hosts, lends=lends, borrowers=borrowers,
        applications=applications, slots_share=float(said.get("part", 0)) / 100, attaches="sla" not in said,
        service_class=name.partition("/")[2], **amounts,
    )  # fmt: skip


def _one(said: dict[str, str], key: str) -> Names:
    return Names(False, frozenset((said[key],))) if key in said else ALL


def _own_hosts(text: str) -> dict[str, Any]:
    levels = dict(map(_level, text.split(",")))
    preference = tuple((name, level) for name, level in levels.items() if level)
    return {"hosts": Names(False, frozenset(levels)), "host_preference": preference}


def _bounds(text: str) -> tuple[Threshold, ...]:
    """``r1m:1/2,mem:500/100``: loadSched and loadStop of load indices."""
    bounds = []
    for word in text.split(","):
        index, _, both = word.partition(":")
        bounds.append(Threshold(index, *(float(one) if one else None for one in both.split("/"))))
    return tuple(bounds)


def _level(word: str) -> tuple[str, int]:
    name, _, level = word.partition("+")
    return name, int(level or 0)
