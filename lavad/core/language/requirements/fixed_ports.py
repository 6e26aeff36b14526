"""Fixed ports: numbers that a role's program names itself, each a resource of which every host has one.

They are no part of a requirement's text as users write it: no resource of a site has such a name.
"""

from collections.abc import Iterable

from lavad.core.language.requirements.rusage import Per, Phase, Reserve
from lavad.core.model import PARTS, Launch

_PREFIX = "port."


def reserves_of(ports: Iterable[int], launch: Launch) -> tuple[Reserve, ...]:
    """Reservations of a role's fixed ports: one for each task, or for the process that stands for all of a host."""
    per = Per.HOST if launch in (Launch.FIRST, Launch.HOST) else Per.TASK
    return tuple([Reserve(f"{_PREFIX}{port}", (Phase(PARTS),), per) for port in ports])


def is_port(name: str) -> bool:
    """True for the resource of a fixed port."""
    return name.startswith(_PREFIX)


def ports_of(reserves: Iterable[Reserve]) -> tuple[int, ...]:
    """Return the numbers of the fixed ports among these reservations."""
    return tuple([int(port_of(one.name)) for one in reserves if is_port(one.name)])


def port_of(name: str) -> str:
    """Return the number of the port whose resource has this name."""
    return name.removeprefix(_PREFIX)
