"""Exclusive compute units (cu[excl]): the units of a job are closed to all others while it runs.

Closed are all hosts of each unit with a host of the job, as configured when the share is allocated; a host's part of
that ends when the host has released the share.
"""

from collections.abc import Iterable
from functools import lru_cache

from lavad.core.language.requirements import cu
from lavad.core.model import Request
from lavad.core.state.attempts import Attempt
from lavad.core.state.hosts.table import HostTable


def kept_type(request: Request) -> str | None:
    """Type of the units that a job uses exclusively, empty for the default type; None if it uses none exclusively."""
    return None if request.is_basic else _kept_type(request)


@lru_cache(maxsize=4096)
def _kept_type(request: Request) -> str | None:
    return next((units.type for units in units_of(request) if units.exclusive), None)


def units_of(request: Request) -> tuple[cu.ComputeUnits, ...]:
    """All compute unit requirements of a job, in any of its alternatives."""
    roles = (*request.roles, *(role for one in request.alternatives for role in one.roles))
    texts = (request.cu, *(one.cu for one in request.alternatives), *(role.cu for role in roles))
    return tuple(cu.parse(text) for text in dict.fromkeys(texts) if text)


def unit_rows(table: HostTable, kind: str) -> list[list[int]]:
    """Rows of each compute unit of a type, in configured order; a host belongs to its first unit."""
    kind = kind or table.unit_type
    units = [unit for unit in table.units if not kind or unit.type == kind]

    def make() -> list[list[int]]:
        seen: set[int] = set()
        found = []
        for unit in units:
            mine = [row for row, name in enumerate(table.names) if row not in seen and name in unit.hosts]
            seen.update(mine)
            found.append(mine)
        return found

    return table.cached(("units", kind), make)


def keep(table: HostTable, attempt: Attempt, rows: list[int], request: Request | None) -> None:
    """Close the units of newly allocated hosts to other jobs, if the request is exclusive."""
    attempt.keeps_units = kept_type(request) if request is not None else None
    if attempt.keeps_units is None:
        return
    for row in rows:
        for members in unit_rows(table, attempt.keeps_units):
            if row in members:
                table.keep(attempt.key, row, members)


def let_go(table: HostTable, attempt: Attempt, rows: Iterable[int]) -> None:
    """Note that these hosts have released their shares of the attempt."""
    if attempt.keeps_units is not None:
        for row in rows:
            table.keep_no_more(attempt.key, row)


def unit_mates(table: HostTable, rows: Iterable[int], kind: str) -> set[int]:
    """All hosts of the units that these hosts belong to."""
    own = set(rows)
    return {one for members in unit_rows(table, kind) if own.intersection(members) for one in members}
