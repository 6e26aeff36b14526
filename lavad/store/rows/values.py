"""Encodings of core values in rows, and their decoders: ``rows`` writes with them, ``restore`` and ``history`` read.

JSON is plain ASCII, so that no odd byte in a user's text can make a database refuse a row; text columns are cleaned for
the same reason. Decoding ignores unknown fields and fills in missing ones, so rows outlive versions.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from json.encoder import encode_basestring_ascii as quote
from typing import TYPE_CHECKING, Any

from lavad.core.job_group_events import JobGroup
from lavad.core.model import (
    Allocation,
    Alternative,
    Device,
    HostFacts,
    HostShare,
    Key,
    Launch,
    OutputFiles,
    PostState,
    Request,
    ResourceShare,
    RoleRequest,
    RunChange,
    Shared,
    SpecialOptions,
    gpu_use,
    special_options,
)
from lavad.core.model.activity import ACTIVE, Activity, Hang
from lavad.core.model.advance_reservation import AdvanceReservation, ReservationKind, ReservationTimes
from lavad.core.model.gpu_use import GpusByHost
from lavad.core.model.progress import Progress
from lavad.core.model.rules.budgets import Amounts, Span
from lavad.core.model.rules.names import MemberChange
from lavad.core.model.usage import NO_ONE, Departed, HostUsage, gpus_of_attempt, of_attempt
from lavad.core.model.windows import Window
from lavad.core.state.attempts import NEVER_RESIZED, Attempt, JobEnd, Resizing
from lavad.core.state.budgets import BudgetAccount, Budgets
from lavad.core.state.jobs.checkpoints import NO_CHECKPOINTS, CheckpointRequest, Checkpoints
from lavad.core.state.records import Claim, Host, LockId
from lavad.store.rows.task_values import decode_rules, rules_values
from lavad.store.writer.batch import Row

if TYPE_CHECKING:
    from sqlalchemy import Row as SqlRow

_LARGEST = 2**63 - 1
# The stored fields; those that the policy derives from a request are derived again.
_BY_RULES = frozenset({"queue_hosts", "avoids"})
_STORED = {
    kind: tuple(field.name for field in fields(kind) if field.init and field.name not in _BY_RULES)
    for kind in (Shared, SpecialOptions, Request, RoleRequest, HostFacts, Resizing)
}
_APART = frozenset({"tasks", "special"})  # fields of the shared facts whose own fields are stored
_RARE = frozenset({"service_class"})  # fields of a request that are stored only where they are set
_CACHED = 10_000  # distinct submissions whose text is kept; more than any site has at once
_shared_texts: dict[Shared, str] = {}
_hosts_texts: dict[Allocation, str] = {}  # of single hosts: elements of an array share it
_encode = json.JSONEncoder(separators=(",", ":")).encode

__all__ = ["quote"]


def clean(text: str) -> str:
    """Clean a text for any database: no NUL, no lone surrogate."""
    if text.isprintable():
        return text
    return text.replace("\0", "").encode(errors="replace").decode()


def finite(seconds: float) -> float:
    """Return the number, or 0 if it is not finite."""
    return seconds if -1e300 < seconds < 1e300 else 0.0


def bounded(number: int) -> int:
    """Return the number, at most what 64 bits hold."""
    return number if number <= _LARGEST else _LARGEST


def detail(**values: str | int | bool) -> str:
    """Encode the details of an event as JSON; empty values are left out."""
    return _encode({name: value for name, value in values.items() if value != ""})


def decode_detail(text: str) -> dict[str, Any]:
    """Decode the JSON of ``detail``."""
    values: dict[str, Any] = json.loads(text) if text else {}
    return values


def name_of(words: bytes) -> str:
    """Return the job's name: the first of its packed texts."""
    return clean(words.partition(b"\0")[0].decode(errors="replace"))


# -- allocations -----------------------------------------------------------------------------------------------------


def hosts_text(allocation: Allocation) -> str:
    """Encode an allocation as JSON: [[host, slots, memory, [gpus], [tasks by role], {other fields, if any}], ...]."""
    if len(allocation) != 1:
        return "[" + ",".join([_share_text(share) for share in allocation]) + "]"
    text = _hosts_texts.get(allocation)
    if text is None:
        if len(_hosts_texts) >= _CACHED:
            _hosts_texts.clear()
        text = _hosts_texts[allocation] = f"[{_share_text(allocation[0])}]"
    return text


def _share_text(share: HostShare) -> str:
    gpus, tasks = ",".join(map(str, share.gpus)), ",".join(map(str, share.tasks_by_role))
    has_more = share.resources or share.cpus or share.gpu_memory_mib or share.gpu_roles
    rest = f",{_rest_text(share)}" if has_more else ""
    return f"[{quote(share.host)},{share.slots},{share.memory_mib},[{gpus}],[{tasks}]{rest}]"


def _rest_text(share: HostShare) -> str:
    rest = {
        "resources": [one if one.device_roles else one[:3] for one in share.resources],
        "gpu_memory_mib": share.gpu_memory_mib,
        "cpus": share.cpus,
        "cpus_idle": share.cpus_idle,
        "gpu_roles": share.gpu_roles,
    }
    return _encode({name: value for name, value in rest.items() if value})


def decode_hosts(text: str) -> Allocation:
    """Decode the JSON of ``hosts_text``; an empty text is an empty allocation."""
    return allocation_of(json.loads(text) if text else [])


def allocation_of(shares: list[list[Any]]) -> Allocation:
    """Decode the parsed JSON of ``hosts_text``."""
    return tuple([_share(*values) for values in shares])


def _share(
    host: str, slots: int, memory: int, gpus: list[int], tasks: list[int], rest: dict[str, list[Any]] | None = None
) -> HostShare:
    if not rest:
        return HostShare(host, slots, memory, tuple(gpus), tuple(tasks))
    resources = tuple(
        [ResourceShare(name, amount, *map(tuple, lists)) for name, amount, *lists in rest.get("resources", ())]
    )
    cpus = tuple([tuple(task) for task in rest.get("cpus", ())])
    gpu_memory, idle = tuple(rest.get("gpu_memory_mib", ())), tuple(rest.get("cpus_idle", ()))
    roles = tuple(rest.get("gpu_roles", ()))
    return HostShare(host, slots, memory, tuple(gpus), tuple(tasks), resources, gpu_memory, cpus, idle, roles)


def allocation_row(attempt: Attempt) -> Row:
    """Build the row of an attempt that some host has not yet released."""
    return (
        *attempt.key,
        attempt.version,
        attempt.dispatched_at,
        int(attempt.launched),
        attempt.launch_due,
        attempt.started_at,
        attempt.pid,
        hosts_text(attempt.allocation),
        _names_text(attempt.staged),
        _names_text(attempt.unreleased),
        _attempt_words(attempt),
    )


def _attempt_words(attempt: Attempt) -> str:
    is_special = attempt.again or attempt.suspended_at or attempt.suspended or attempt.is_unconstrained
    is_special = is_special or attempt.limits_version or attempt.lease_s
    is_special = is_special or bool(attempt.warned or attempt.warnings or attempt.pre_exec)
    more = f',"more":{_encode(_seldom(attempt))}' if is_special else ""
    if attempt.resizing is not NEVER_RESIZED:
        more += f',"size":{_resizing_text(attempt.resizing)}'
    if attempt.activity is not ACTIVE:
        more += f',"activity":{_activity_text(attempt.activity)}'
    if attempt.checkpoints is not NO_CHECKPOINTS:
        more += f',"checkpoints":{_encode(attempt.checkpoints)}'
    if attempt.usage or attempt.departed is not NO_ONE:
        more += f',"used":{_usage_text(attempt)}'
    if attempt.progress is not None:
        more += f',"progress":{_encode([clean(one) if isinstance(one, str) else one for one in attempt.progress])}'
    signal = "null" if attempt.last_signal is None else _encode(attempt.last_signal)
    return (
        f'{{"home":{quote(attempt.exec_home)},"cwd":{quote(attempt.exec_cwd)},"start":{quote(attempt.start_reason)},'
        f'"kill":{quote(attempt.kill_reason)},"doomed":{quote(attempt.doomed)},"signal":{signal}{more}}}'
    )


_FIGURES = ("cpu_s", "memory_mib_max", "memory_mib_mean", "user_s", "system_s", "seconds")


def _usage_text(attempt: Attempt) -> str:
    """Encode the usage of an attempt that must survive a restart: of each host, and of hosts it has left."""
    hosts = {host: [getattr(usage, name) for name in _FIGURES] for host, usage in attempt.usage.items()}
    used = {"hosts": hosts, "departed": list(attempt.departed[:-1])}
    gpus = tuple((host, one.gpus) for host, one in attempt.usage.items() if one.gpus)
    for name, some in (("gpus", gpus), ("gone", attempt.departed.gpus)):
        if some:
            used[name] = json.loads(gpus_text(some))
    return _encode(used)


def _take_usage(attempt: Attempt, values: dict[str, Any]) -> None:
    gpus = dict(_gpus_of(values.get("gpus", [])))  # in older rows also of hosts that were left
    gone = _gpus_of(values.get("gone", []))
    attempt.usage = {
        host: HostUsage(**dict(zip(_FIGURES, figures, strict=True)), gpus=gpus.pop(host, ()))
        for host, figures in values["hosts"].items()
    }
    gone = (*gone, *gpus.items())
    if any(values["departed"]) or gone:
        attempt.departed = Departed(*values["departed"])._replace(gpus=gone)


_SELDOM = (
    "again",
    "held_again",
    "excludes",
    "leaves_silent",
    "suspended",
    "suspended_at",
    "lends",
    "preemptions",
    "is_unconstrained",
    "limits_version",
    "lease_s",
    "warned",
    "warnings",
    "pre_exec",
    "changed",
)


def _seldom(attempt: Attempt) -> dict[str, Any]:
    """Return the rarely set fields: of attempts that are suspended, forced, to be requeued, or have changed limits."""
    return {name: value for name in _SELDOM if (value := getattr(attempt, name))}


def decode_attempt(row: "SqlRow[Any]") -> Attempt:
    """Build the attempt of a row of ``allocations``."""
    words = json.loads(row.detail)
    key = Key(row.job, row.idx, row.attempt)
    attempt = Attempt(key, decode_hosts(row.hosts), row.dispatched_at, bool(row.launched), words["start"])
    attempt.version, attempt.launch_due = row.version, row.launch_due
    attempt.started_at, attempt.pid = row.started_at, row.pid
    attempt.exec_home, attempt.exec_cwd = words["home"], words["cwd"]
    attempt.kill_reason, attempt.doomed = words["kill"], words["doomed"]
    attempt.last_signal = tuple(words["signal"]) if words.get("signal") else None
    for name, value in words.get("more", {}).items():
        setattr(attempt, name, tuple(value) if name == "lends" else value)
    if attempt.changed is not None:
        limit_s, files = attempt.changed
        attempt.changed = RunChange(limit_s, OutputFiles(*files) if files is not None else None)
    attempt.warnings = tuple((at, about, text) for at, about, text in attempt.warnings)
    if words.get("size"):
        attempt.resizing = _resizing(words["size"])
    if words.get("progress"):
        attempt.progress = Progress(*words["progress"])
    if words.get("activity"):
        attempt.activity = _activity(words["activity"])
    if words.get("checkpoints"):
        number, asked, known = words["checkpoints"][:3]
        attempt.checkpoints = Checkpoints(number, asked and CheckpointRequest(*asked), known)
    if words.get("used"):
        _take_usage(attempt, words["used"])
    attempt.staged, attempt.unreleased = frozenset(json.loads(row.staged)), frozenset(json.loads(row.unreleased))
    return attempt


def _activity_text(activity: Activity) -> str:
    """Encode what was told of a job's activity; parts that are inactive are reported again."""
    hang = activity.hang
    known = None if hang is None else [*hang[:-1], [list(one) for one in hang.stacks]]
    return _encode({"hang": known, "hangs": activity.hangs, "unused": dict(activity.unused)})


def _activity(values: dict[str, Any]) -> Activity:
    hang = None
    if values["hang"] is not None:
        since, inactive_s, number, due, stacks = values["hang"]
        hang = Hang(since, inactive_s, number, due, tuple([(host, told) for host, told in stacks]))
    return Activity(hang=hang, hangs=values["hangs"], unused=values["unused"])


_SIZES = ("growth", "leaving", "added")


def _resizing_text(change: Resizing) -> str:
    """Encode a resize in progress."""
    rest = {name: value for name, value in _as_dict(change).items() if name not in _SIZES}
    shares = ",".join([f'"{name}":{hosts_text(getattr(change, name))}' for name in _SIZES])
    return f"{_encode(rest)[:-1]},{shares}}}"


def _resizing(values: dict[str, Any]) -> Resizing:
    known = _known(Resizing, values)
    known.update({name: allocation_of(values.get(name, [])) for name in _SIZES})
    known["joined"] = tuple((host, version) for host, version in values.get("joined", ()))
    known.update({name: tuple(values.get(name, ())) for name in ("wishes", "told", "freed")})
    return Resizing(**known)


# -- claims, adoptions, advance reservations ---------------------------------------------------------------------------

CLAIM = "claim"


def claim_name(job: int, index: int) -> tuple[str, str]:
    """Return kind and name of a claim's row."""
    return CLAIM, f"{job}[{index}]"


def claim_row(claim: Claim) -> Row:
    """Build the row of a claim: resources being freed for a pending job."""
    victims = [list(key) for key in claim.victims]
    content = (
        f'{{"job":{claim.job},"index":{claim.index},"hosts":{hosts_text(claim.allocation)},'
        f'"victims":{_encode(victims)},"until":{claim.until!r},"reason":{quote(claim.reason)},'
        f'"partial":{"true" if claim.is_partial else "false"}}}'
    )
    return (*claim_name(claim.job, claim.index), content)


def decode_claim(content: str) -> Claim:
    """Decode the content of ``claim_row``."""
    values = json.loads(content)
    victims = tuple(Key(*key) for key in values["victims"])
    allocation = allocation_of(values["hosts"])
    rest = (victims, values["until"], values["reason"], bool(values.get("partial")))
    return Claim(values["job"], values["index"], allocation, *rest)


ADOPTED = "adopted"


def adopted_row(term: int, content: Mapping[str, Any]) -> Row:
    """Build the row of an adoption by an administrator in this term: which numbers were lost, and since when."""
    return (ADOPTED, str(term), _encode(content))


RESERVATION = "reservation"
RESERVATION_NUMBER = "reservation number"


def reservation_row(one: AdvanceReservation) -> Row:
    """Build the row of an advance reservation."""
    values = {field.name: getattr(one, field.name) for field in fields(one)}
    times = {field.name: getattr(one.times, field.name) for field in fields(one.times)}
    times["windows"] = [(window.start, window.end) for window in one.times.windows]
    return (RESERVATION, clean(one.name), _encode({**values, "kind": one.kind.value, "times": times}))


def decode_reservation(content: str) -> AdvanceReservation:
    """Decode the content of ``reservation_row``."""
    values = json.loads(content)
    times = values["times"]
    times["windows"] = tuple(Window(start, end) for start, end in times["windows"])
    times["skipped"] = tuple((begin, end) for begin, end in times["skipped"])
    values |= {name: tuple(values[name]) for name in ("holders", "queues")}
    values["hosts"] = tuple((host, slots) for host, slots in values["hosts"])
    values |= {"kind": ReservationKind(values["kind"]), "times": ReservationTimes(**times)}
    return AdvanceReservation(**values)


JOB_GROUP = "job group"


def job_group_row(one: JobGroup) -> Row:
    """Build the row of a job group."""
    values = {field.name: getattr(one, field.name) for field in fields(one) if field.name != "path"}
    return (JOB_GROUP, clean(one.path), _encode(values))


def decode_job_group(path: str, content: str) -> JobGroup:
    """Decode the content of ``job_group_row``."""
    values = json.loads(content)
    return JobGroup(path, **{field.name: values[field.name] for field in fields(JobGroup) if field.name in values})


HOST_LOCK = "host lock"


def host_lock_row(host: str, by: str, until: float) -> Row:
    """Build the row of a locked host."""
    return (HOST_LOCK, host, _encode({"by": clean(by), "until": until}))


def decode_host_lock(content: str) -> tuple[str, float]:
    """Decode the content of ``host_lock_row``: who locked it, until when."""
    values = json.loads(content)
    return values["by"], values["until"]


LOCK_IDS = "lock ids"


def lock_ids_row(host: Host) -> Row | None:
    """Build the row of the lock IDs that a host is closed with; None if there are none."""
    if not host.lock_ids:
        return None
    values = {name: [clean(one.by), one.at, clean(one.comment)] for name, one in host.lock_ids.items()}
    return (LOCK_IDS, host.facts.name, _encode(values))


def decode_lock_ids(content: str) -> dict[str, LockId]:
    """Decode the content of ``lock_ids_row``."""
    return {name: LockId(*one) for name, one in json.loads(content).items()}


HOST_GROUP = "host group"


def host_group_row(name: str, change: MemberChange) -> Row | None:
    """Build the row of the changes of a host group's members; None if there are none."""
    if not change:
        return None
    return (HOST_GROUP, name, _encode({"added": sorted(change.added), "deleted": sorted(change.deleted)}))


def decode_host_group(content: str) -> MemberChange:
    """Decode the content of ``host_group_row``."""
    values = json.loads(content)
    return MemberChange(frozenset(values["added"]), frozenset(values["deleted"]))


BUDGET = "budget"


def budget_row(account: BudgetAccount) -> tuple[str, str, str]:
    """Build the row of what ended attempts have used of a budget in its period."""
    content = [account.rule.name, account.consumer, *account.span, *account.ended, account.has_warned]
    return (BUDGET, f"{account.rule.name} {account.consumer}", _encode(content))


def adopt_budget(budgets: Budgets, content: str) -> None:
    """Decode the content of ``budget_row`` into an account."""
    rule, consumer, begin, end, slot_s, cpu_s, gpu_s, has_warned = json.loads(content)
    budgets.adopt(rule, consumer, Span(begin, end), Amounts(slot_s, cpu_s, gpu_s), has_warned)


def _names_text(names: frozenset[str]) -> str:
    return "[" + ",".join([quote(name) for name in sorted(names)]) + "]"


def end_values(end: JobEnd) -> Row:
    """Build the columns of a job's end, from ``ended_at`` on."""
    return (
        end.at,
        end.status,
        clean(end.reason),
        finite(end.cpu_s),
        bounded(end.memory_mib_max),
        end.started_at,
        end.pid,
        hosts_text(end.hosts) if end.hosts else "",
        finite(end.user_s),
        finite(end.system_s),
        finite(end.memory_mib_mean),
        _places_text(end) if end.exec_home or end.exec_cwd or end.post else "",
        gpus_text(end.gpus),
    )


def _places_text(end: JobEnd) -> str:
    """Encode the directories of an ended job, and what is known of its post-execution commands if it has any."""
    post = f",{int(end.post)},{end.posted_at!r}" if end.post else ""
    return f"[{quote(end.exec_home)},{quote(end.exec_cwd)}{post}]"


def post_of(places: str) -> PostState:
    """Return what the text of the directories says of the post-execution commands of an ended job."""
    known = json.loads(places)[2:] if places else ()
    return PostState(known[0]) if known else PostState.NONE


def outcome(end: JobEnd) -> Row:
    """Build the columns of an accounting row about a job's end."""
    figures = finite(end.user_s), finite(end.system_s), finite(end.memory_mib_mean)
    ended = (end.at, end.status, clean(end.reason), finite(end.cpu_s), bounded(end.memory_mib_max))
    return (*ended, *figures, gpus_text(end.gpus))


def outcome_of(attempt: Attempt, at: float, reason: str) -> Row:
    """Build the columns of an accounting row about an attempt that ended without an end of its job."""
    used = of_attempt(attempt)
    figures = (used.cpu_s, used.memory_mib_max, used.user_s, used.system_s, used.memory_mib_mean)
    return (at, 0, clean(reason), *figures, gpus_text(gpus_of_attempt(attempt)))


def gpus_text(gpus: GpusByHost) -> str:
    """Encode the use of GPUs as JSON: [[host, [figures, ...]], ...]; empty for none."""
    return _encode([[host, [gpu_use.encoded(one) for one in uses]] for host, uses in gpus]) if gpus else ""


def decode_gpus(text: str) -> GpusByHost:
    """Decode the text of ``gpus_text``."""
    return _gpus_of(json.loads(text)) if text else ()


def _gpus_of(values: list[Any]) -> GpusByHost:
    return tuple((host, tuple(map(gpu_use.decoded, uses))) for host, uses in values)


def decode_end(columns: Sequence[Any]) -> JobEnd | None:
    """Decode the columns of ``end_values``; None for a job that has not ended."""
    at, status, reason, cpu_s, memory_mib_max, started_at, pid, hosts, user_s, system_s, mean, places, gpus = columns
    if not at:
        return None
    home, cwd, *after = json.loads(places) if places else ("", "")
    post = (PostState(after[0]), after[1]) if after else (PostState.NONE, 0.0)
    ran = (started_at, decode_hosts(hosts), pid)
    return JobEnd(
        at, status, reason, cpu_s, memory_mib_max, *ran, user_s, system_s, mean, home, cwd, decode_gpus(gpus), *post
    )


# -- submissions -------------------------------------------------------------------------------------------------------


def shared_text(shared: Shared) -> str:
    """Encode the fields that many jobs of one submitter share, as JSON."""
    text = _shared_texts.get(shared)
    if text is None:
        if len(_shared_texts) >= _CACHED:
            _shared_texts.clear()
        text = _shared_texts[shared] = _encode(_as_dict(shared))
    return text


def _as_dict(value: Any) -> Any:
    if isinstance(value, Alternative | HostShare):
        return _as_dict(value._asdict())
    if isinstance(value, dict):
        return {name: _as_dict(part) for name, part in value.items()}
    if isinstance(value, Shared):
        known = {name: _as_dict(getattr(value, name)) for name in _STORED[Shared] if name not in _APART}
        known |= {name: getattr(value.special, name) for name in _STORED[SpecialOptions]}
        return known if value.tasks is None else known | {"tasks": rules_values(value.tasks)}
    if isinstance(value, Request | RoleRequest | HostFacts | Resizing):
        known = {name: _as_dict(getattr(value, name)) for name in _STORED[type(value)]}
        return {name: one for name, one in known.items() if one or name not in _RARE}
    if isinstance(value, tuple | frozenset):
        return [_as_dict(part) for part in (sorted(value) if isinstance(value, frozenset) else value)]
    return value


def decode_shared(text: str) -> Shared:
    """Decode the JSON of ``shared_text``."""
    values = json.loads(text)
    request = values["request"]
    roles = tuple(_role(role) for role in request["roles"])
    known: dict[str, Any] = {
        name: tuple(one) if isinstance(one, list) else one for name, one in _known(Request, request).items()
    }
    known["roles"] = roles
    known["alternatives"] = tuple(_alternative(one) for one in request.get("alternatives", ()))
    rules = decode_rules(values["tasks"]) if "tasks" in values else None
    special = special_options(**_known(SpecialOptions, values))
    apart = {"request": Request(**known), "tasks": rules, "special": special}
    return Shared(**{**_known(Shared, values), **apart})


def _role(values: dict[str, Any]) -> RoleRequest:
    ptile_by = tuple((name, tasks) for name, tasks in values.get("ptile_by", ()))
    return RoleRequest(
        **{**_known(RoleRequest, values), "launch": Launch(values.get("launch", 0)), "ptile_by": ptile_by}
    )


def _alternative(values: dict[str, Any]) -> Alternative:
    roles = tuple(_role(role) for role in values["roles"])
    return Alternative(roles, values.get("same", ""), values.get("cu", ""), values.get("delay_s", 0))


def _known(
    kind: type[Shared | SpecialOptions | Request | RoleRequest | HostFacts | Resizing], values: dict[str, Any]
) -> dict[str, Any]:
    names = _STORED[kind]
    return {name: value for name, value in values.items() if name in names}


# -- hosts -----------------------------------------------------------------------------------------------------------


def host_row(host: Host) -> Row:
    """Build the row of a host with its administrative state."""
    facts = _encode(_as_dict(host.offered))
    return (host.facts.name, facts, clean(host.closed_by), clean(host.comment), host.revoked_at, host.noticed_at)


def _device(fields: list[Any]) -> Device:
    """Decode a GPU; one of an earlier version has no slices."""
    device = Device(*fields)
    return device._replace(slices=tuple(device.slices))


def decode_facts(text: str) -> HostFacts:
    """Decode the last facts reported for a host."""
    values = _known(HostFacts, json.loads(text))
    devices = tuple(map(_device, values.get("devices", ())))
    names = {name: frozenset(values.get(name, ())) for name in ("resources", "exclusive_resources")}
    return HostFacts(**{**values, **names, "devices": devices})
