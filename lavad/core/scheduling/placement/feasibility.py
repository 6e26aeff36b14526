"""Feasibility of a request: whether it could ever be placed on idle hosts.

Values that change by themselves, load indices and reports of elims, do not count against it: a condition on one is
taken as true. Exceptions: a cluster-wide resource must exist, and free slots, memory and licences never exceed those of
idle hosts.
"""

from dataclasses import replace

from lavad.core.language.requirements import select
from lavad.core.language.requirements.select_tree import EVERY, Chain, Defined, Name, Node, Number
from lavad.core.language.requirements.vocabulary import Vocabulary
from lavad.core.model import Alternative, Request, RoleRequest
from lavad.core.scheduling.capacity.free_resources import FreeResources
from lavad.core.scheduling.placement.place import place
from lavad.core.state.hosts.table import HostTable

_AT_LEAST = frozenset({">", ">="})
_ORDERED = frozenset({">", ">=", "<", "<=", "=="})


def choices_ever(idle: HostTable, request: Request) -> tuple[Alternative, ...]:
    """Alternatives of the request that fit on the emptied table, its own roles first; empty if it can never run.

    They are in the order of the request.
    """
    own = Alternative(request.roles, request.same, request.cu)
    return tuple([one for one in (own, *request.alternatives) if _has_place(idle, request, one)])


def choices_on_usable(table: HostTable, request: Request) -> tuple[Alternative, ...]:
    """Alternatives of the request that would fit if all usable hosts were idle; cached until a host is opened or
    closed."""
    key = ("ever", request, table.usable_version)
    return table.cached(key, lambda: choices_ever(table.emptied(), request))


def _has_place(idle: HostTable, request: Request, choice: Alternative) -> bool:
    roles = tuple([_lenient(idle, role) for role in choice.roles])
    same = _steady(idle, choice.same)
    return (
        place(FreeResources(idle), replace(request, roles=roles, same=same, cu=choice.cu, alternatives=())) is not None
    )


def _lenient(idle: HostTable, role: RoleRequest) -> RoleRequest:
    """Copy of the role without conditions on values that change by themselves."""
    if not role.select and not role.same:
        return role
    condition = idle.cached(("possible", role.select), lambda: _possible_text(idle, role.select))
    return replace(role, select=condition, same=_steady(idle, role.same))


def _steady(idle: HostTable, same: str) -> str:
    return ":".join([name for name in same.split(":") if idle.is_fixed(name)])


def _possible_text(idle: HostTable, text: str) -> str:
    asked = select.parse(text, vocabulary=Vocabulary(idle.site.resources, is_open=True))
    node = _possible(idle, asked)
    return "" if node == EVERY else select.text_of(node)


def _possible(idle: HostTable, node: Node) -> Node:
    """Condition that a host must meet for ``node`` ever to be true there."""
    moving = [name for name in select.names_in(node) if not idle.is_fixed(name)]
    if not moving:
        return node
    if not isinstance(node, Chain):
        return EVERY
    signs = {sign for sign, _ in node.rest}
    if signs <= {"&&", "||"}:
        return Chain(_possible(idle, node.first), tuple([(sign, _possible(idle, part)) for sign, part in node.rest]))
    match node:
        case Chain(Name(word), ((sign, Number()),)) if sign in _ORDERED:
            is_counted = word == "mem" or idle.is_moving(word)
            return node if is_counted and sign in _AT_LEAST else Defined(word)
    return EVERY
