"""Values over values: the fields of one mapping laid over those of another, places and all."""

import copy

from lavactl.job_files.text.nodes import Mapping, Node, Place, Scalar, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Plain = str | dict[str, "Plain"] | list["Plain"]


def merged(base: Mapping, patch: Mapping) -> Mapping:
    """Mapping with the fields of a patch over it: mappings are merged, lists of named things by their names."""
    found = copy.copy(base)
    found.entries, found.keys = dict(base.entries), dict(base.keys)
    for key, value in patch:
        old = found.entries.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            value = merged(old, value)
        elif isinstance(old, Sequence) and isinstance(value, Sequence):
            value = _merged_list(old, value)
        found.entries[key], found.keys[key] = value, patch.keys[key]
    return found


def _merged_list(base: Sequence, patch: Sequence) -> Sequence:
    named = {one.text("name"): one for one in patch.items if isinstance(one, Mapping) and one.text("name")}
    if len(named) < len(patch.items):
        return patch
    old = {one.text("name") for one in base.items if isinstance(one, Mapping)}
    items = [
        merged(one, named[one.text("name")]) if isinstance(one, Mapping) and one.text("name") in named else one
        for one in base.items
    ]
    return Sequence(base.place, items + [one for name, one in named.items() if name not in old])


def replaced(base: "Node | None", patch: "Node | None") -> "Node | None":
    """List of named things with those of a patch in place of the ones of their names; the one that is there, alone."""
    if not isinstance(base, Sequence) or not isinstance(patch, Sequence):
        return patch or base
    names = {one.text("name") for one in patch.items if isinstance(one, Mapping)}
    kept = [one for one in base.items if not isinstance(one, Mapping) or one.text("name") not in names]
    return Sequence(patch.place, kept + patch.items)


def with_defaults(base: Mapping, defaults: Mapping) -> Mapping:
    """Mapping with the fields that it has not, at any depth."""
    found = copy.copy(base)
    found.entries, found.keys = dict(base.entries), dict(base.keys)
    for key, value in defaults:
        old = base.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            found.entries[key] = with_defaults(old, value)
        elif old is None:
            found.entries[key], found.keys[key] = value, defaults.keys[key]
    return found


def node_of(value: "Plain", place: Place) -> Node:
    """Plain value as if it stood at a place of the file."""
    if isinstance(value, dict):
        return Mapping(place, {key: node_of(one, place) for key, one in value.items()}, dict.fromkeys(value, place))
    if isinstance(value, list):
        return Sequence(place, [node_of(one, place) for one in value])
    return Scalar(place, value)


def changed(base: Mapping, path: "tuple[str, ...]", change: "Callable[[Mapping], Mapping]") -> Mapping:
    """Mapping in which one below it is changed: a step is a key, or KEY=NAME for the thing of that name in a list.

    A path that leads nowhere changes nothing.
    """
    if not path:
        return change(base)
    key, _, name = path[0].partition("=")
    old = base.get(key)
    new: Node | None = None
    if isinstance(old, Sequence) and name:
        items = [
            changed(one, path[1:], change) if isinstance(one, Mapping) and one.text("name") == name else one
            for one in old.items
        ]
        new = Sequence(old.place, items)
    elif isinstance(old, Mapping):
        new = changed(old, path[1:], change)
    return base if new is None else with_field(base, key, new)


def with_field(base: Mapping, key: str, value: Node) -> Mapping:
    """Mapping with one field set."""
    found = copy.copy(base)
    found.entries, found.keys = dict(base.entries), dict(base.keys)
    found.entries[key], found.keys[key] = value, base.keys.get(key, value.place)
    return found
