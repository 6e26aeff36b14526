"""Section cu[...]: number and preference of the compute units of a job."""

from dataclasses import dataclass, replace

from lavad.core.language.requirements.lexer import bad, count

PREFERENCES = ("config", "maxavail", "minavail")


@dataclass(frozen=True, slots=True)
class ComputeUnits:
    """Compute units of a job. ``type`` empty: the smallest configured. ``most`` 0: any number of units."""

    type: str = ""
    most: int = 0  # maxcus
    preference: str = "config"
    usable_slots: int = 0  # minimum of a unit
    balance: bool = False  # equal parts in as few units as possible
    exclusive: bool = False  # no other job in these units


def parse(text: str, at: int = 0) -> ComputeUnits:
    """Parse ``type=rack:maxcus=2:pref=maxavail:usablecuslots=4:balance:excl``.

    Raises:
        Refused: bad syntax, with the character.
    """
    units = ComputeUnits()
    for part in text.split(":"):
        start = at + len(part) - len(part.lstrip())
        name, equals, value = (piece.strip() for piece in part.partition("="))
        units = _with(units, name, equals, value, start)
        at += len(part) + 1
    return units


def _with(units: ComputeUnits, name: str, equals: str, value: str, at: int) -> ComputeUnits:
    if name in ("balance", "excl") and not equals:
        return replace(units, balance=True) if name == "balance" else replace(units, exclusive=True)
    if name == "type" and value:
        return replace(units, type=value)
    if name == "maxcus":
        return replace(units, most=count(value, at))
    if name == "usablecuslots":
        return replace(units, usable_slots=count(value, at))
    if name == "pref" and value in PREFERENCES:
        return replace(units, preference=value)
    raise bad(at, f"cu takes type, maxcus, pref, usablecuslots, balance and excl, found {name + equals + value!r}")


def text_of(units: ComputeUnits) -> str:
    """Text that parses to the same value."""
    parts = [f"type={units.type}"] if units.type else []
    parts += [f"maxcus={units.most}"] if units.most else []
    parts += [f"pref={units.preference}"] if units.preference != "config" or not parts else []
    parts += [f"usablecuslots={units.usable_slots}"] if units.usable_slots else []
    parts += ["balance"] if units.balance else []
    parts += ["excl"] if units.exclusive else []
    return ":".join(parts)
