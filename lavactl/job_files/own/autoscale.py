"""The key ``autoscale`` of lava's own job file: the size of an elastic role follows a metric."""

from lavactl.job_files.own.keys import METRICS
from lavactl.job_files.text.durations import duration_text
from lavactl.job_files.text.durations import read_field as duration
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from lavactl.job_files.text.fields import Fields

COOLDOWN_S, INTERVAL_S, LIMIT_S = 60.0, 15.0, 10.0
SCRIPT = "script"


def read_autoscale(rule: messages.Autoscale, fields: "Fields", roles: "Sequence[messages.Role]") -> None:
    """Read the rule; the master checks its bounds against those of the role."""
    if not fields.has("metric"):
        raise fields.wrong("", f"a metric is needed: {' or '.join(METRICS)}.")
    rule.metric = fields.word("metric", {word: word for word in METRICS}, SCRIPT)
    rule.command = fields.text("command")
    if (rule.metric == SCRIPT) != bool(rule.command.strip()):
        raise fields.wrong("command", "a script needs a command, and other metrics take none.")
    rule.role = fields.text("role") or _only_elastic(fields, roles)
    rule.least, rule.most = fields.number("min", 0), fields.number("max", 0)
    rule.cooldown_s = duration(fields, "cooldown", COOLDOWN_S)
    rule.interval_s = duration(fields, "interval", INTERVAL_S)
    rule.limit_s = duration(fields, "limit", LIMIT_S)
    rule.target = fields.number("target", 1, 1)


def _only_elastic(fields: "Fields", roles: "Sequence[messages.Role]") -> str:
    found = [role.name for role in roles if role.tasks_min < role.tasks_max]
    if len(found) != 1:
        many = (
            f"roles {', '.join(found)} have ranges of tasks" if found else "no role has a range of tasks, such as 1-8"
        )
        raise fields.wrong("role", f"{many}: name the one that is meant.")
    return found[0]


def autoscale_values(rule: messages.Autoscale) -> "dict[str, Any]":
    """The rule as values of the file."""
    found: dict[str, Any] = {"metric": rule.metric, "role": rule.role}
    given = {
        "command": rule.command,
        "min": rule.least,
        "max": rule.most,
        "target": rule.target if rule.target > 1 else 0,
    }
    found |= {key: value for key, value in given.items() if value}
    times = {
        "cooldown": (rule.cooldown_s, COOLDOWN_S),
        "interval": (rule.interval_s, INTERVAL_S),
        "limit": (rule.limit_s, LIMIT_S),
    }
    return found | {key: duration_text(value) for key, (value, default) in times.items() if value != default}
