"""Absolute priority scheduling (APS_PRIORITY): the weights, limits and grace periods of a queue's factors.

A job's value is the sum of its factors, each of which is the sum of its subfactors: every one of them is multiplied by
its weight, kept within plus and minus its limit, and nothing while the job has waited for less than its grace period.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from lavad.core.model.reasons import Refused

FS, RSRC, WORK, ADMIN = "FS", "RSRC", "WORK", "ADMIN"
PROC, MEM, SWAP, JPRIORITY, QPRIORITY, APP = "PROC", "MEM", "SWAP", "JPRIORITY", "QPRIORITY", "APP"
FACTORS: Mapping[str, tuple[str, ...]] = {FS: (), RSRC: (PROC, MEM, SWAP), WORK: (JPRIORITY, QPRIORITY, APP)}
NAMES = tuple(name for factor, parts in FACTORS.items() for name in (factor, *parts))
SYSTEM = "system"


class Given(NamedTuple):
    """A value that an administrator has set of one job (bmod -aps). ``kind``: system, in place of the calculated value;
    admin, added to it; empty: nothing."""

    kind: str = ""
    value: float = 0.0


NOTHING_GIVEN = Given()
_GIVEN = re.compile(r"(system|admin)=([-+]?(?:\d{1,9}(?:\.\d{0,9})?|\.\d{1,9}))$", re.IGNORECASE)
_GIVEN_MAX = 1_000_000.0


def read_given(text: str) -> Given:
    """Read ``system=value`` or ``admin=value``; nothing means nothing.

    Raises:
        Refused: it has another form, or its value is 0 or too large.
    """
    if not text:
        return NOTHING_GIVEN
    found = _GIVEN.match(text.strip())
    if not found or not 0 < abs(float(found[2])) <= _GIVEN_MAX:
        raise Refused(f"-aps: expected system=value or admin=value, a value up to {_GIVEN_MAX:.0f} that is not 0")
    return Given(found[1].lower(), float(found[2]))


class Factor(NamedTuple):
    """Weight of a factor or subfactor, and what bounds it; a limit or grace period of 0 is none."""

    weight: float = 0.0
    limit: float = 0.0
    grace_s: float = 0.0

    def bounded(self, amount: float) -> float:
        """The weighted amount, kept within the limit."""
        value = self.weight * amount
        return max(-self.limit, min(self.limit, value)) if self.limit else value

    def of(self, amount: float, waited_s: float) -> float:
        """Its part of the value of a job that has waited for so long."""
        return 0.0 if waited_s < self.grace_s else self.bounded(amount)


NO_FACTOR = Factor()
Amounts = Mapping[str, float]  # of a job, by subfactor


@dataclass(frozen=True, slots=True)
class AbsolutePriority:
    """APS_PRIORITY of a queue, by factor and subfactor; those without a weight are not among them, or have weight 0."""

    factors: tuple[tuple[str, Factor], ...]
    _by_name: dict[str, Factor] = field(init=False, compare=False, repr=False)
    _parts: dict[str, tuple[tuple[str, Factor], ...]] = field(init=False, compare=False, repr=False)
    grace_ends: tuple[float, ...] = field(init=False, compare=False, repr=False)  # seconds after a job's submission

    def __post_init__(self) -> None:
        by_name = dict(self.factors)
        parts = {name: tuple((one, by_name[one]) for one in inner if one in by_name) for name, inner in FACTORS.items()}
        ends = {factor.grace_s for factor in by_name.values() if factor.weight and factor.grace_s}
        object.__setattr__(self, "_by_name", by_name)
        object.__setattr__(self, "_parts", parts)
        object.__setattr__(self, "grace_ends", tuple(sorted(ends)))

    def of(self, name: str) -> Factor:
        """The factor or subfactor of that name."""
        return self._by_name.get(name, NO_FACTOR)

    @property
    def has_share(self) -> bool:
        """True if the dynamic priority of the job's user counts."""
        return self.of(FS).weight != 0

    def part(self, name: str, amounts: Amounts, waited_s: float) -> float:
        """Value of RSRC or WORK."""
        inner = self._parts[name]
        if not inner:
            return 0.0
        return self.of(name).of(sum([factor.of(amounts[one], waited_s) for one, factor in inner]), waited_s)

    def value(self, amounts: Amounts, waited_s: float) -> float:
        """Value of a job without the share of its user and what an administrator has added."""
        return self.part(RSRC, amounts, waited_s) + self.part(WORK, amounts, waited_s)

    def share(self, dynamic_priority: float) -> float:
        """Value of FS."""
        return self.of(FS).bounded(dynamic_priority)

    def values(self, amounts: Amounts, waited_s: float) -> dict[str, float]:
        """Values of all factors and subfactors with a weight but FS, in the order of the manual."""
        found = {}
        for name, inner in FACTORS.items():
            if name != FS and self.of(name).weight:
                found[name] = self.part(name, amounts, waited_s)
                found |= {one: self.of(one).of(amounts[one], waited_s) for one in inner if self.of(one).weight}
        return found
