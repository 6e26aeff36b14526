"""Records of bparams, blimits and bresources: parameters, limits, resource pools."""

import re
from collections.abc import Mapping

from lavad.api.privacy import Sight
from lavad.config.params import PARAMETERS
from lavad.config.site import Honoured
from lavad.core.cluster import Cluster
from lavad.core.decide.clock.budgets import warning_of
from lavad.core.language.numbers import number_text
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.budgets import HOUR_S, UNITS
from lavad.core.model.rules.names import ALL, Names
from lavad.core.model.rules.resources import Limit, Pool
from lavad.core.model.rules.users import Fairshare
from lavad.core.queries.limit_usage import LimitUsage, limit_usage
from lavad.core.queries.pool_usage import pool_usage
from lavad.core.state.limits import LimitKind
from protos import cluster_pb2 as pb

_PLAIN = Fairshare(())
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_SPACES = ("tmp", "swp")  # resources with parameters of their own in a Limit section


def parameters_reply(policy: Policy, usage_interval_s: float = 0.0) -> pb.ParametersReply:
    """List every supported parameter of lsb.params with its value, set or default, and the usage interval (seconds)."""
    reply = pb.ParametersReply()
    if usage_interval_s:
        about = "seconds between two looks at a running job; LAVA_USAGE_INTERVAL in lava.conf"
        reply.parameters.add(name="SBD_SLEEP_TIME", value=number_text(usage_interval_s), about=about)
    present = _present(policy)
    for name, known in PARAMETERS.items():
        if isinstance(known, Honoured):
            written = policy.parameters.get(name)
            value = written if written is not None else present.get(name, "")
            reply.parameters.add(name=name, value=value, about=_plain(known.about), is_set=written is not None)
    return reply


def _plain(about: str) -> str:
    """The text of a page without its Markdown, for a terminal."""
    return _LINK.sub(r"\1", about).replace("`", "")


def installation_reply(settings: Mapping[str, str]) -> pb.ParametersReply:
    """List the effective settings of lsf.conf."""
    reply = pb.ParametersReply()
    for name, value in sorted(settings.items()):
        reply.parameters.add(name=name, value=value, is_set=True)
    return reply


def _present(policy: Policy) -> dict[str, str]:
    """Return the values of parameters that the file does not set."""
    return {
        "DEFAULT_QUEUE": " ".join(policy.default_queues) or policy.default_queue,
        "DEFAULT_PROJECT": policy.default_project,
        "DEFAULT_APPLICATION": policy.default_application,
        "DEFAULT_JOBGROUP": policy.default_job_group,
        "MBD_SLEEP_TIME": "60",
        "JOB_ACCEPT_INTERVAL": "0",
        "CLEAN_PERIOD": f"{policy.clean_period_s:.0f}",
        "MAX_JOB_ARRAY_SIZE": str(policy.max_array_size),
        "JOB_DEP_LAST_SUB": "N",
        "RESOURCE_RESERVE_PER_TASK": "Y" if policy.reserves_per_task else "N",
        "SUB_TRY_INTERVAL": f"{policy.retry_submit_s:.0f}",
        "CPU_TIME_FACTOR": f"{_PLAIN.cpu_time_factor:g}",
        "RUN_TIME_FACTOR": f"{_PLAIN.run_time_factor:g}",
        "RUN_JOB_FACTOR": f"{_PLAIN.run_job_factor:g}",
        "COMMITTED_RUN_TIME_FACTOR": f"{_PLAIN.committed_run_time_factor:g}",
        "GPU_RUN_TIME_FACTOR": f"{_PLAIN.gpu_run_time_factor:g}",
        "HIST_HOURS": f"{_PLAIN.hist_hours:g}",
        "ENABLE_HIST_RUN_TIME": "N",
        "RUN_TIME_DECAY": "N",
    }


def limits_reply(cluster: Cluster, sight: Sight) -> pb.LimitsReply:
    """List the Limit sections as configured, with their usage; not that of a user whose jobs the caller may not see."""
    reply = pb.LimitsReply()
    in_use = [one for one in limit_usage(cluster) if one.kind is LimitKind.SECTION]
    for limit in cluster.policy.limits:
        record = reply.limits.add(name=limit.name, configured=_configured(limit))
        lines: dict[tuple[str, ...], pb.LimitUsage] = {}
        for one in in_use:
            if one.name != limit.name or (one.user and not sight.has_summary_of(one.user, "")):
                continue
            users, queues = _who(one.user, one.users), _who(one.queue, one.queues)
            projects, apps = _who(one.project, one.projects), _who(one.application, one.applications)
            who = (users, queues, _where(one), projects, apps)
            if who not in lines:
                lines[who] = record.usage.add(users=users, queues=queues, hosts=who[2], projects=projects, apps=apps)
            lines[who].used[one.what.upper()] = f"{number_text(one.used)}/{number_text(one.most)}"
    return reply


def add_budgets(reply: pb.LimitsReply, cluster: Cluster, now: float, sight: Sight) -> None:
    """List the budgets with what is used of them; one for each has a record for each consumer so far.

    That of a user whose jobs the caller may not see is left out.
    """
    budgets = cluster.budgets
    for rule in budgets.rules:
        if rule.per_user is None and rule.per_project is None:
            budgets.account(rule, "")
        accounts = sorted((one for one in budgets.accounts.values() if one.rule is rule), key=lambda one: one.consumer)
        for one in accounts:
            if rule.per_user is not None and one.consumer and not sight.has_summary_of(one.consumer, ""):
                continue
            span, amounts = rule.span(now, cluster.policy.zone), (one.used(now), one.reserved(now), rule.amounts)
            is_warned = bool(warning_of(one, now))
            for unit, used, reserved, bound in zip(UNITS, *amounts, strict=True):
                if bound != float("inf"):
                    reply.budgets.add(
                        name=rule.name, consumer=one.consumer, begin=span.begin, end=span.end, resource=unit,
                        used=used / HOUR_S, reserved=reserved / HOUR_S, bound=bound / HOUR_S, is_warned=is_warned,
                    )  # fmt: skip


def _who(one: str, names: Names) -> str:
    """Return the consumer that a usage line is about, or the consumers that the limit counts together."""
    return one or (names_text(names) if names != ALL else "")


def _where(one: LimitUsage) -> str:
    return one.host or (names_text(one.hosts) if one.hosts is not None else "")


def _memory(limit: Limit) -> str | None:
    if limit.memory_share is not None:
        return f"{100 * limit.memory_share:g}%"
    return None if limit.memory_mib is None else f"{limit.memory_mib} M"


def _configured(limit: Limit) -> dict[str, str]:
    amounts = {
        "SLOTS": limit.slots,
        "SLOTS_PER_PROCESSOR": limit.slots_per_processor,
        "JOBS": limit.jobs,
        "MEM": _memory(limit),
    }
    consumers = {
        "USERS": limit.users, "PER_USER": limit.per_user, "QUEUES": limit.queues, "PER_QUEUE": limit.per_queue,
        "HOSTS": limit.hosts, "PER_HOST": limit.per_host, "PROJECTS": limit.projects, "PER_PROJECT": limit.per_project,
        "APPS": limit.applications, "PER_APP": limit.per_application,
    }  # fmt: skip
    said = {name: names_text(names) for name, names in consumers.items() if names is not None}
    said |= {name: f"{amount}" for name, amount in amounts.items() if amount is not None}
    own = [f"[{name},{number_text(amount)}]" for name, amount in limit.resources if name not in _SPACES]
    said |= {name.upper(): f"{number_text(amount)} M" for name, amount in limit.resources if name in _SPACES}
    said |= {name.upper(): f"{100 * share:g}%" for name, share in limit.resource_shares}
    return said | ({"RESOURCE": " ".join(own)} if own else {})


def pools_reply(cluster: Cluster, request: pb.PoolsRequest) -> pb.PoolsReply:
    """List the resource pools as configured, with their capacity and usage, and what else the request asks for.

    Raises:
        Refused: there is no such queue.
    """
    reply = pb.PoolsReply()
    records = {pool.name: _add_pool(reply, pool) for pool in cluster.policy.pools}
    for one in pool_usage(cluster):
        name, pool = one.resource, one.pool
        records[pool.name].amounts.add(
            resource=name,
            total=one.total,
            free=one.free,
            guaranteed=one.guaranteed,
            deserved=pool.deserved.get(name),
            largest=pool.largest.get(name),
            own=one.own,
            used=one.used,
            borrowed=one.borrowed,
            overcommitted=one.is_overcommitted,
        )
    if request.hosts:
        for text, names in {names_text(pool.hosts): pool.hosts for pool in cluster.policy.pools}.items():
            reply.host_lists.add(hosts=text, names=sorted(name for name in cluster.hosts if name in names))
    if request.queue:
        _add_queue(reply, cluster.policy, request.queue)
    return reply


def _add_queue(reply: pb.PoolsReply, policy: Policy, queue: str) -> None:
    """Say which of the pools are for jobs of the queue, or lend to them."""
    if policy.queue(queue) is None:
        raise Refused(f"{queue}: No such queue")
    for record, pool in zip(reply.pools, policy.pools, strict=True):
        record.takes_queue = queue in pool.queues
        record.lends_to_queue = pool.lends and queue in pool.borrowers


def _add_pool(reply: pb.PoolsReply, pool: Pool) -> pb.PoolRecord:
    users, queues, hosts = (names_text(names) for names in (pool.users, pool.queues, pool.hosts))
    applications, borrowers = ("" if one == ALL else names_text(one) for one in (pool.applications, pool.borrowers))
    return reply.pools.add(
        name=pool.name,
        users=users,
        queues=queues,
        hosts=hosts,
        lends=pool.lends,
        applications=applications,
        borrowers=borrowers,
        service_class=pool.service_class,
    )


def names_text(names: Names) -> str:
    """Format a consumer list as it could be written in the file."""
    words = sorted(names.names - {""})  # jobs without a profile are none of ``all`` profiles
    return " ".join(["all", *(f"~{word}" for word in words)] if names.is_all else words)
