"""Rule for hangs of bsub -hang: ``300``, or ``after=5m:first=30m:cpus=0.1:network=1000000:gpu-power=0.3:stacks=no``."""

import math

from lavactl.errors import CommandError
from lavactl.options import printable
from lavactl.wire import messages

SECONDS = {"s": 1, "m": 60, "h": 3600}
TIMES = {"after": "after_s", "first": "first_s"}
AMOUNTS = {"cpus": "cpus", "network": "network_bytes_s", "gpu-power": "gpu_power"}
STACKS = {"yes": False, "no": True}
EXPECTED = (
    "a time such as 300, 90s or 5m, or parts such as after=5m:first=30m:stacks=no; "
    "the parts are after, first, cpus, network, gpu-power and stacks, each once"
)
TIME_MAX_S, AMOUNT_MAX = 1e8, 1e12


def hang_rule(text: str) -> messages.HangRule:
    """Rule of an option's value.

    Raises:
        CommandError: it is malformed.
    """
    rule = messages.HangRule()
    given: set[str] = set()
    try:
        for part in text.split(":"):
            name, equals, value = part.strip().partition("=")
            name, value = (name.strip(), value.strip()) if equals else ("after", name)
            if name in given:
                raise ValueError(text)
            given.add(name)
            _fill(rule, name, value)
        if not rule.after_s:
            raise ValueError(text)
    except (KeyError, ValueError):
        raise CommandError(f"-hang {printable(text)}: expected {EXPECTED}.") from None
    return rule


def _fill(rule: messages.HangRule, name: str, value: str) -> None:
    if name == "stacks":
        rule.no_stacks = STACKS[value]
    elif name in TIMES:
        unit = SECONDS.get(value[-1:], 0)
        setattr(rule, TIMES[name], _positive(value[:-1] if unit else value, TIME_MAX_S) * (unit or 1))
    else:
        setattr(rule, AMOUNTS[name], _positive(value, AMOUNT_MAX))


def _positive(text: str, most: float) -> float:
    number = float(text)
    if not (math.isfinite(number) and 0 < number <= most):
        raise ValueError(text)
    return number


def hang_text(rule: messages.HangRule) -> str:
    """Value of the option that gives this rule."""
    values = [(name, getattr(rule, field)) for name, field in (TIMES | AMOUNTS).items()]
    # Every digit, those of rounding, too: the text is read again as the same rule.
    parts = [f"{name}={repr(value).removesuffix('.0')}" for name, value in values if value]
    return ":".join([*parts, *(["stacks=no"] if rule.no_stacks else [])])
