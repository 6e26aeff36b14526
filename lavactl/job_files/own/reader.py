"""Reader of lava's own job file. A key that it does not have is refused: it would be a mistake."""

import shlex
from difflib import get_close_matches

from lavactl.errors import CommandError
from lavactl.job_files import told
from lavactl.job_files.model import (
    ACTIONS,
    EVENTS,
    LAUNCHES,
    RESTARTS,
    RESUMING,
    REVOCABLE,
    SPREADS,
    JobFile,
    success_of,
)
from lavactl.job_files.own.autoscale import read_autoscale
from lavactl.job_files.own.keys import CONVENTIONS, OF_ONE_ROLE, OPTION_KEYS, TABLES
from lavactl.job_files.text.durations import read_field as duration
from lavactl.job_files.text.fields import Fields, one_of
from lavactl.job_files.text.nodes import Mapping, Scalar, Sequence
from lavactl.options import FLAG
from lavactl.submit import job_options
from lavactl.submit.submission import KINDS
from lavactl.text import units
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.job_files.own.keys import Key

KIND = "job"
CODE_MAX = 255
NO_MORE = one_of(RESUMING[1:]).replace(" or ", " and ")
EVENT_TEXTS = "an event or a list of events: " + one_of(EVENTS)


def read_own(fields: Fields) -> JobFile:
    """Job of a document in lava's own form.

    Raises:
        FileError: a key or a value is wrong.
    """
    job = JobFile(fields.reading.file, fields.place(), KIND)
    for key in OPTION_KEYS:
        _read_option(job, fields, key)
    if fields.has("revocable"):
        if fields.has("roles"):
            raise fields.wrong("revocable", "each role says this for itself in a job with roles.")
        job.options.append(("R", fields.word("revocable", REVOCABLE, "")))
    _read_command(job, fields)
    job.environment = [f"{name}={value}" for name, value in _variables(fields, "environment").items()]
    job.umask = _umask(fields)
    job.submit_cwd = fields.text("submission-directory")
    if fields.has("roles"):
        _read_roles(job, fields)
    _read_rules(job, fields)
    fields.reading.refuse_unread([key.name for table in TABLES.values() for key in table])
    return job


def _read_option(job: JobFile, fields: Fields, key: "Key") -> None:
    if not fields.has(key.name):
        fields.get(key.name)
    elif KINDS[key.option] == FLAG:
        if fields.flag(key.name):
            job.add(key.option, "", fields, key.name)
    elif key.option == "hang" and isinstance(fields.get(key.name), Mapping):
        parts = fields.pairs(key.name).items()
        job.add(key.option, ":".join(f"{name}={value}" for name, value in parts), fields, key.name)
    elif key.option == "W" and fields.text("run-limit").endswith("s"):
        job.run_limit_s = round(duration(fields, "run-limit"))
    else:
        texts = _lines(fields, key.name) if key.kind == "lines" else [fields.text(key.name)]
        for text in texts:
            job.add(key.option, text, fields, key.name)


def _lines(fields: Fields, key: str) -> list[str]:
    return fields.texts(key) if isinstance(fields.get(key), Sequence) else [fields.text(key)]


def _read_command(job: JobFile, fields: Fields) -> None:
    if fields.has("command") and fields.has("script"):
        raise fields.wrong("script", "a job has a command or a script, not both.")
    if fields.has("script"):
        job.command, job.is_script = fields.required("script"), True
    elif isinstance(fields.get("command"), Sequence):
        job.command = shlex.join(fields.texts("command"))
    else:
        job.command = fields.text("command")
    fields.get("script")


def _variables(fields: Fields, key: str) -> dict[str, str]:
    found = fields.pairs(key)
    for name in found:
        if not name or "=" in name or "\0" in name:
            raise fields.wrong(key, f"{name[:80]!r} is no name of a variable.")
    return found


def _umask(fields: Fields) -> int | None:
    text = fields.text("umask")
    if text and not (text.isascii() and text.isdigit() and set(text) <= set("01234567") and int(text, 8) <= 0o777):
        raise fields.wrong("umask", f"expected an octal number such as 0022, found {text}.")
    return int(text, 8) if text else None


def _read_roles(job: JobFile, fields: Fields) -> None:
    for key in OPTION_KEYS:
        if key.option in OF_ONE_ROLE and fields.has(key.name):
            raise fields.wrong(key.name, "each role says this for itself in a job with roles.")
    if job.is_script:
        raise fields.wrong("script", "a job with roles has commands.")
    assert job.tasks_rules
    named = fields.named("roles")
    if not named:
        raise fields.wrong("roles", "there is no role.")
    for name, role in named:
        job.roles.append(_role(name, role))
        is_without = not (job.roles[-1].command.strip() or job.roles[-1].argv or job.command.strip())
        if is_without and job.roles[-1].launch != messages.LAUNCH_NONE:
            role.refuse_unread()  # one of them may be meant as its command
            raise role.wrong("", "this role has no command.")
    _check_order(job, named)


def _check_order(job: JobFile, named: list[tuple[str, Fields]]) -> None:
    """Refuse roles that would start after roles that are not there, or after each other."""
    left = {role.name: {*role.after, *role.after_done} for role in job.roles}
    for role, (_, fields) in zip(job.roles, named, strict=True):
        for key, names in (("after", role.after), ("after-done", role.after_done)):
            if unknown := sorted(set(names) - left.keys()):
                raise fields.wrong(key, f"there is no role {unknown[0]}.")
    places = dict(named)
    while left:
        free = [name for name, before in left.items() if not before & left.keys()]
        if not free:
            first = places[min(left)]
            key = "after" if first.has("after") else "after-done"
            raise first.wrong(key, f"the roles {', '.join(sorted(left))} start after each other.")
        for name in free:
            del left[name]


def _role(name: str, fields: Fields) -> messages.Role:
    least, most = _tasks(fields)
    role = messages.Role(name=name, tasks_min=least, tasks_max=most, may_be_absent=least == 0)
    role.slots_per_task = fields.number("slots", 1, 1, 1 << 20)
    role.spares = fields.number("spares", 0, 0, 1 << 20)
    words = _lines(fields, "requirement") if fields.has("requirement") else []
    words += [fields.word("revocable", REVOCABLE, "")] if fields.has("revocable") else []
    if words:
        role.requirement = job_options.requirement(words)
    fields.get("requirement"), fields.get("revocable")
    _fill_command(role, fields)
    role.launch = fields.word("launch", LAUNCHES, messages.LAUNCH_EACH)
    role.image, role.cwd = fields.text("image"), fields.text("directory")
    role.environment.extend(
        f"{name}={value}".encode("utf-8", "surrogateescape")
        for name, value in _variables(fields, "environment").items()
    )
    role.ports.extend(_ports(fields))
    role.after.extend(fields.texts("after"))
    role.after_any = fields.flag("after-any")
    role.after_done.extend(fields.texts("after-done"))
    role.restart = fields.word("restart", RESTARTS, messages.RESTART_NEVER)
    role.restarts_max = fields.number("restarts", 0)
    role.group = fields.number("group", 0)
    role.completions = fields.number("completions", 0)
    role.restart_pause_s = duration(fields, "restart-pause")
    role.restart_pause_max_s = duration(fields, "restart-pause-max")
    role.stable_s = duration(fields, "stable-after")
    role.success_min = fields.number("success-min", success_of(role))
    role.failed_enough = fields.number("failed-enough", 0)
    role.succeeded_enough = fields.number("succeeded-enough", 0)
    role.run_limit_s = duration(fields, "run-limit")
    role.spread = fields.word("spread", {word: word for word in SPREADS}, "")
    role.policies.extend(_policies(fields, has_tasks=True))
    _fill_values(role, fields)
    return role


def _fill_command(role: messages.Role, fields: Fields) -> None:
    if fields.has("command") and fields.has("argv"):
        raise fields.wrong("argv", "a role has a command or an argv, not both.")
    role.command = fields.text("command")
    role.argv.extend(fields.texts("argv"))


def _fill_values(role: messages.Role, fields: Fields) -> None:
    """Fill in what bsub's own parsers read."""
    try:
        if fields.has("gpu"):
            role.gpu.CopyFrom(job_options.gpu_request(fields.text("gpu")))
        if fields.has("memory-limit"):
            role.memory_limit_mib = job_options.memory_mib(fields.text("memory-limit"), "M")
    except CommandError as error:
        key = "memory-limit" if role.gpu.text or not fields.has("gpu") else "gpu"
        raise fields.wrong(key, str(error).partition(": ")[2]) from None
    fields.get("gpu"), fields.get("memory-limit")


def _tasks(fields: Fields) -> tuple[int, int]:
    text = fields.text("tasks", "1").replace(",", "-")
    least, dash, most = text.partition("-")
    try:
        low, high = units.read_count(least.strip(), 0), units.read_count((most if dash else least).strip())
        if low > high:
            raise ValueError(text)
    except ValueError:
        raise fields.wrong("tasks", f"expected a number, or least and most such as 2-8, found {text}.") from None
    return low, high


def _ports(fields: Fields) -> list[messages.PortRequest]:
    parent = fields.child("ports")
    found = []
    for name, node in parent.node:
        if isinstance(node, Scalar):
            found.append(messages.PortRequest(name=name, count=parent.number(name, 1, 1, 1000)))
        else:
            port = parent.child(name)
            found.append(
                messages.PortRequest(
                    name=name,
                    count=port.number("count", 1, 1, 1000),
                    number=port.number("number", 0, 0, 65535),
                    is_preferred=port.flag("preferred"),
                    is_own=port.flag("own"),
                )
            )
    return found


def _policies(fields: Fields, has_tasks: bool) -> list[messages.TaskPolicy]:
    found = []
    for one in fields.children("policies"):
        policy = messages.TaskPolicy(exit_codes=_codes(one, "exit-codes"), timeout_s=duration(one, "after"))
        texts = _lines(one, "on") if one.has("on") else []
        for text in texts:
            if text not in EVENTS:
                raise one.wrong("on", f"expected {EVENT_TEXTS}, found {text}.")
            policy.events.append(EVENTS[text])
        if bool(texts) == bool(policy.exit_codes):
            raise one.wrong("", "a policy is for events (on) or for exit-codes, one of them.")
        if not one.has("do"):
            raise one.wrong("", "a policy needs an action (do).")
        policy.action = one.word("do", ACTIONS, messages.IGNORE)
        if policy.action == messages.RESUME_JOB and not set(texts) & set(RESUMING):
            raise one.wrong("do", f"resume is for a job that is being aborted, which meets only {NO_MORE}.")
        if one.has("task"):
            if not has_tasks:
                raise one.wrong("task", "a policy for one task belongs to its role.")
            policy.index_plus_one = one.number("task", 0) + 1
        policy.uncounted = one.flag("uncounted")
        found.append(policy)
    return found


def _codes(fields: Fields, key: str) -> list[int]:
    found = []
    for text in fields.texts(key):
        if not units.is_digits(text) or not 0 < int(text) <= CODE_MAX:
            raise fields.wrong(key, f"expected exit codes from 1 to {CODE_MAX}, found {text}.")
        found.append(int(text))
    return found


def _read_rules(job: JobFile, fields: Fields) -> None:
    if job.rules is None:
        given = next((key.name for key in TABLES["job"] if key.name in _RULES and fields.has(key.name)), "")
        if given:
            raise fields.wrong(given, "this is for jobs with roles.")
        return
    rules = job.rules
    rules.policies.extend(_policies(fields, has_tasks=False))
    rules.restarts_max = fields.number("restarts", 0)
    rules.restarts_when_failed = fields.flag("restart-when-failed")
    rules.success_min = fields.number("success-min", 0)
    rules.succeeded_enough = fields.number("succeeded-enough", 0)
    rules.needs_each = fields.flag("needs-each")
    rules.final_codes.extend(_codes(fields, "final-codes"))
    rules.free_codes.extend(_codes(fields, "free-codes"))
    rules.has_replace, rules.replace_s = fields.has("replace-within"), duration(fields, "replace-within")
    rules.restart_pause_s = duration(fields, "restart-pause")
    rules.restart_pause_max_s = duration(fields, "restart-pause-max")
    rules.stable_s = duration(fields, "stable-after")
    rules.has_ttl, rules.ttl_s = fields.has("ttl"), duration(fields, "ttl")
    rules.owner_name, rules.origin = fields.text("told-name"), fields.text("origin")
    rules.secrets.extend(
        f"{name}={value}".encode("utf-8", "surrogateescape") for name, value in _variables(fields, "secrets").items()
    )
    if fields.has("autoscale"):
        read_autoscale(rules.autoscale, fields.child("autoscale"), job.roles)
    fields.get("autoscale")
    _read_conventions(job, fields.child("conventions"))


def _read_conventions(job: JobFile, parent: Fields) -> None:
    rules = job.tasks_rules
    for name, _ in parent.node:
        if name not in CONVENTIONS:
            near = get_close_matches(name, CONVENTIONS, 1)
            hint = f"is {near[0]} meant?" if near else f"there are {', '.join(CONVENTIONS)}."
            raise parent.wrong(name, f"there is no such convention; {hint}")
        options = parent.pairs(name)
        for key, value in options.items():
            if fault := told.fault(name, key, value, [role.name for role in job.roles]):
                raise parent.child(name).wrong(key, fault)
        rules.conventions.add(name=name, options=[f"{key}={value}" for key, value in options.items()])
    for name, remark in told.remarks(job):
        parent.note(name, remark)


_RULES = frozenset(
    ("policies", "restarts", "restart-when-failed", "success-min", "succeeded-enough", "needs-each", "final-codes",
     "free-codes", "replace-within", "restart-pause", "restart-pause-max", "stable-after", "ttl", "conventions",
     "told-name", "origin", "secrets", "autoscale")
)  # fmt: skip
