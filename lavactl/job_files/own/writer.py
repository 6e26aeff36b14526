"""Writer of lava's own job file: what it writes is read back as the same job."""

from lavactl.job_files.model import ACTIONS, EVENTS, LAUNCHES, RESTARTS, JobFile, success_of
from lavactl.job_files.own.autoscale import autoscale_values
from lavactl.job_files.own.keys import OPTION_KEYS, SEVERAL
from lavactl.job_files.text.durations import duration_text
from lavactl.options import FLAG
from lavactl.submit.submission import KINDS
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

ODD_BREAKS = frozenset("\r\x85\u2028\u2029")  # line breaks of YAML 1.1, which plain styles would turn into others


def as_values(job: JobFile) -> "dict[str, Any]":
    """A job as plain values under the keys of lava's own form. Secrets are left out."""
    found: dict[str, Any] = {}
    for key in OPTION_KEYS:
        values = [value for option, value in job.options if option == key.option]
        if values and KINDS[key.option] == FLAG:
            found[key.name] = True
        elif values:
            found[key.name] = values if key.option in SEVERAL and len(values) > 1 else values[-1]
    _keep(found, "run-limit", duration_text(job.run_limit_s) if job.run_limit_s else "")
    if job.after and "dependency" not in found:
        found["dependency"] = " && ".join(f'done("{name}")' for name in job.after)
    _keep(found, "submission-directory", job.submit_cwd)
    _keep(found, "umask", f"{job.umask:04o}" if job.umask is not None else "")
    _keep(found, "script" if job.is_script else "command", job.command)
    _keep(found, "environment", _pairs(job.environment))
    if job.rules is not None:
        found |= _rules(job.rules)
        found["roles"] = {role.name: _role(role) for role in job.roles}
    return found


def _keep(found: "dict[str, Any]", key: str, value: "Any") -> None:
    if value:
        found[key] = value


def _pairs(entries: "Iterable[str]") -> dict[str, str]:
    return {name: value for name, _, value in (entry.partition("=") for entry in entries)}


def _texts(entries: "Iterable[bytes]") -> list[str]:
    return [entry.decode("utf-8", "surrogateescape") for entry in entries]


def _rules(rules: messages.TaskRules) -> "dict[str, Any]":
    found: dict[str, Any] = {}
    _keep(found, "origin", rules.origin)
    _keep(found, "told-name", rules.owner_name)
    _keep(found, "restarts", rules.restarts_max)
    _keep(found, "restart-when-failed", rules.restarts_when_failed)
    _keep(found, "success-min", rules.success_min)
    _keep(found, "succeeded-enough", rules.succeeded_enough)
    _keep(found, "needs-each", rules.needs_each)
    _keep(found, "final-codes", list(rules.final_codes))
    _keep(found, "free-codes", list(rules.free_codes))
    if rules.has_replace:
        found["replace-within"] = duration_text(rules.replace_s)
    found |= _pauses(rules)
    if rules.has_ttl:
        found["ttl"] = duration_text(rules.ttl_s)
    _keep(found, "conventions", {one.name: _pairs(one.options) for one in rules.conventions})
    _keep(found, "policies", [_policy(one) for one in rules.policies])
    _keep(found, "autoscale", autoscale_values(rules.autoscale) if rules.autoscale.role else {})
    return found


def _pauses(given: "messages.Role | messages.TaskRules") -> "dict[str, Any]":
    values = {
        "restart-pause": given.restart_pause_s,
        "restart-pause-max": given.restart_pause_max_s,
        "stable-after": given.stable_s,
    }
    return {key: duration_text(value) for key, value in values.items() if value}


def _role(role: messages.Role) -> "dict[str, Any]":
    least = 0 if role.may_be_absent else role.tasks_min
    found: dict[str, Any] = {"tasks": role.tasks_max if least == role.tasks_max else f"{least}-{role.tasks_max}"}
    _keep(found, "completions", role.completions)
    _keep(found, "slots", role.slots_per_task if role.slots_per_task > 1 else 0)
    _keep(found, "spares", role.spares)
    _keep(found, "requirement", role.requirement)
    _keep(found, "gpu", role.gpu.text)
    _keep(found, "memory-limit", f"{role.memory_limit_mib}M" if role.memory_limit_mib else "")
    _keep(found, "launch", word_of(LAUNCHES, role.launch) if role.launch != messages.LAUNCH_EACH else "")
    _keep(found, "command", role.command)
    _keep(found, "argv", list(role.argv))
    _keep(found, "image", role.image)
    _keep(found, "directory", role.cwd)
    _keep(found, "environment", _pairs(_texts(role.environment)))
    _keep(found, "ports", {port.name: _port(port) for port in role.ports})
    _keep(found, "after", list(role.after))
    _keep(found, "after-any", role.after_any)
    _keep(found, "after-done", list(role.after_done))
    _keep(found, "restart", word_of(RESTARTS, role.restart) if role.restart != messages.RESTART_NEVER else "")
    _keep(found, "restarts", role.restarts_max)
    _keep(found, "group", role.group)
    found |= _pauses(role)
    if role.success_min != success_of(role):
        found["success-min"] = role.success_min
    _keep(found, "failed-enough", role.failed_enough)
    _keep(found, "succeeded-enough", role.succeeded_enough)
    _keep(found, "run-limit", duration_text(role.run_limit_s) if role.run_limit_s else "")
    _keep(found, "spread", role.spread)
    _keep(found, "policies", [_policy(one) for one in role.policies])
    return found


def _port(port: messages.PortRequest) -> "Any":
    if not port.number:
        return port.count or 1
    value = {"count": port.count or 1, "number": port.number}
    value |= {"preferred": True} if port.is_preferred else {}
    return value | {"own": True} if port.is_own else value


def _policy(policy: messages.TaskPolicy) -> "dict[str, Any]":
    found: dict[str, Any] = {}
    events = [word_of(EVENTS, event) for event in policy.events]
    _keep(found, "on", events[0] if len(events) == 1 else events)
    _keep(found, "exit-codes", list(policy.exit_codes))
    found["do"] = word_of(ACTIONS, policy.action)
    _keep(found, "after", duration_text(policy.timeout_s) if policy.timeout_s else "")
    if policy.index_plus_one:
        found["task"] = policy.index_plus_one - 1
    _keep(found, "uncounted", policy.uncounted)
    return found


def word_of(words: "Mapping[str, int]", number: int) -> str:
    """Word for a number of the wire."""
    return next(word for word, known in words.items() if known == number)


def write_json(jobs: "list[dict[str, Any]]") -> str:
    """JSON text of some jobs; several are a list."""
    import json

    return json.dumps(jobs[0] if len(jobs) == 1 else jobs, indent=2, ensure_ascii=False)


def write_yaml(jobs: "list[dict[str, Any]]") -> str:
    """YAML text of some jobs, each a document; texts of several lines are blocks."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Writer of blocks for texts of several lines, and of lists below their key."""

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
            super().increase_indent(flow, False)

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        style = "|" if "\n" in value and not any(line.endswith(" ") for line in value.split("\n")) else None
        if not ODD_BREAKS.isdisjoint(value):
            style = '"'
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    written = [yaml.dump(one, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=1 << 20) for one in jobs]
    return "---\n".join(written).removesuffix("\n")
