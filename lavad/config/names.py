"""User and host lists as sets of names: ``all ~u1``, ``g1 u2``, ``h1+2 others``, ``node[01-64]``, nested groups.

A group's members are resolved once, at any depth. A host need not have joined yet; one that lsf.cluster does not list
although it lists others gets a warning.
"""

import fnmatch
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lavad.config.accounts import NoEgroup
from lavad.config.grammar import Cell
from lavad.config.site import Site
from lavad.config.values import Wrong, bare
from lavad.core.model.rules.names import ALL, NONE, MemberChange, Names

RESERVED = frozenset({"all", "default", "others", "none", "lost_and_found", "allremote"})
NAME_MAX = 59
NO_CHANGES: Mapping[str, MemberChange] = {}
_NAME = re.compile(r"[A-Za-z0-9_][\w.\-]*\Z")
_RANGE = re.compile(r"([^\[\]]*)\[([\d,\-\s]+)\]([^\[\]]*)$")
_RANGE_MAX = 100_000


def union(one: Names, other: Names) -> Names:
    """Return the union."""
    if one.is_all and other.is_all:
        return Names(True, one.names & other.names)
    if one.is_all or other.is_all:
        wide, narrow = (one, other) if one.is_all else (other, one)
        return Names(True, wide.names - narrow.names)
    return Names(False, one.names | other.names)


def minus(one: Names, other: Names) -> Names:
    """Return the names of the first set that are not in the second."""
    if other.is_all:
        return Names(False, (other.names - one.names) if one.is_all else (one.names & other.names))
    return Names(True, one.names | other.names) if one.is_all else Names(False, one.names - other.names)


def check_name(name: str, what: str) -> None:
    """Refuse a name for a queue or group that could be confused with LSF's own words.

    Raises:
        Wrong: it says why.
    """
    if not _NAME.match(name) or len(name) > NAME_MAX:
        raise Wrong(f"expected the name of a {what}: up to {NAME_MAX} letters, digits, dots, dashes and underscores")
    if name.lower() in RESERVED:
        raise Wrong(f"{name} is a word of LSF's own and can't name a {what}")


def expand_range(word: str) -> list[str]:
    """Expand ``node[01-03,7]``; any other word is itself. Numbers keep their width."""
    found = _RANGE.match(word)
    if not found:
        return [word]
    names: list[str] = []
    for part in found[2].split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdigit() or (dash and (not last.isdigit() or int(last) < int(first))):
            raise Wrong(f"{word}: expected a range such as node[1-64] or node[01-16,20]")
        if int(last or first) - int(first) > _RANGE_MAX:
            raise Wrong(f"{word}: more than {_RANGE_MAX} names")
        width = len(first) if first.startswith("0") else 0
        names += [f"{found[1]}{number:0{width}}{found[3]}" for number in range(int(first), int(last or first) + 1)]
    return names


def combine(text: str, of_word: Callable[[str], Names]) -> Names:
    """Evaluate a list: the union of its words, without those behind a ``~``.

    Raises:
        Wrong: nothing is named, or something is excluded from nothing.
    """
    words = bare(text).split()
    found, gone = NONE, NONE
    for word in words:
        if word.startswith("~"):
            gone = union(gone, of_word(word[1:]))
        else:
            found = union(found, of_word(word))
    if not words or all(word.startswith("~") for word in words):
        raise Wrong("expected names, or all and behind it the names that are left out, each after a ~")
    return minus(found, gone)


def users(text: str, site: Site) -> Names:
    """Evaluate a list of users and user groups."""
    return combine(text, lambda word: user_word(word, site))


def user_word(word: str, site: Site) -> Names:
    """Evaluate a user, or a group of lsb.users or of Unix. ``name/`` is a group and no user."""
    name = word.removesuffix("/")
    if name == "all":
        return ALL
    if name in ("none", ""):
        return NONE
    if name in site.user_groups:
        return site.user_groups[name]
    if word == name and site.accounts.is_user(name):
        return Names(False, frozenset((name,)))
    members = site.accounts.group(name)
    if members is not None:
        site.user_groups[name] = Names(False, members)
        return site.user_groups[name]
    if word != name:
        raise Wrong(f"{word}: there is no such user group")
    if not _NAME.match(name):
        raise Wrong(f"{word}: expected the name of a user or group")
    site.nobodies.append(name)  # accounts may exist on other hosts only, and groups elsewhere: only a warning
    return Names(False, frozenset((name,)))


def hosts(text: str, site: Site) -> Names:
    """Evaluate a list of hosts and host groups, without preferences."""
    return combine(text, lambda word: host_word(word, site))


@dataclass(frozen=True, slots=True)
class Preferred:
    """Hosts with preference levels."""

    hosts: Names
    preference: tuple[tuple[str, int], ...]


def preferred_hosts(text: str, site: Site) -> Preferred:
    """Evaluate a list of hosts in which each word may end in ``+n``: a higher one is preferred.

    Unnamed hosts have the level of ``others+n`` or ``all+n``; levels are relative to that one, which becomes 0.
    """
    levels: dict[str, int] = {}
    plain, rest = [], 0
    for word in text.split():
        name, plus, written = word.partition("+")
        plain.append(name)
        if written and not written.isdigit():
            raise Wrong(f"{word}: expected a number after the +")
        level = int(written or 1) if plus else 0
        members = host_word(name, site) if not name.startswith("~") else NONE
        if members == ALL:
            rest = level
        elif members.is_all and plus:
            raise Wrong(f"{word}: a preference takes hosts or host groups, not all hosts but some")
        elif not members.is_all:
            levels |= dict.fromkeys(members.names, level)
    preference = tuple(sorted((name, level - rest) for name, level in levels.items() if level != rest))
    return Preferred(hosts(" ".join(plain), site), preference)


def host_word(word: str, site: Site) -> Names:
    """Evaluate a host, a host group, or a range or pattern of host names."""
    name = word.removesuffix("/")
    if name in ("all", "others"):
        return ALL
    if name in ("none", ""):
        return NONE
    if name in site.host_groups:
        return site.host_groups[name]
    if word != name:
        raise Wrong(f"{word}: there is no such host group")
    if "*" in name:
        return _matching(name, site)
    names = expand_range(name)
    for one in names:
        if not _NAME.match(one):
            raise Wrong(f"{word}: expected the name of a host or host group")
        if site.known_hosts and one not in site.known_hosts:
            site.strangers.append(one)
    return Names(False, frozenset(names))


def _matching(pattern: str, site: Site) -> Names:
    """Return the known hosts with such names: perhaps none where hosts join by themselves."""
    site.follows_hosts |= not site.hosts
    found = frozenset(fnmatch.filter(site.known_hosts, pattern))
    if not found:
        site.asides.append(f"{pattern}: no host has such a name; counts at badmin reconfig once such a host has joined")
    return Names(False, found)


def resolve_groups(
    members: Mapping[str, Cell],
    known: dict[str, Names],
    of_word: Callable[[str], Names],
    external: str,
    site: Site,
    changes: Mapping[str, MemberChange] = NO_CHANGES,
) -> None:
    """Resolve nested groups at any depth into ``known``, with ``changes`` of their members.

    ``external`` is the egroup option for this kind.
    """
    under_way: list[str] = []

    def resolve(name: str) -> Names:
        if name in under_way:
            raise Wrong(f"{' contains '.join([*under_way[under_way.index(name) :], name])}: a circle")
        if name not in known:
            under_way.append(name)
            outer = site.strangers, site.nobodies, site.asides
            site.strangers, site.nobodies, site.asides = [], [], []
            try:
                found = members_of(name)
                known[name] = changes[name].of(found) if name in changes else found
            finally:
                under_way.pop()
                site.warn_of_strangers(members[name])
                site.strangers, site.nobodies, site.asides = outer
        return known[name]

    def members_of(name: str) -> Names:
        try:
            return _members(name, members[name].text, word, external, site)
        except NoEgroup as error:
            site.warn(members[name], f"group {name}: {error}; the group has no members")
            return NONE

    def word(text: str) -> Names:
        name = text.removesuffix("/")
        return resolve(name) if name in members else of_word(text)

    for name, cell in members.items():
        try:
            resolve(name)
        except Wrong as error:
            known[name] = NONE
            site.wrong(cell, f"group {name}: {error}")


def is_external(text: str) -> bool:
    """Return True for members that egroup names."""
    return text.split() == ["!"]


def changed_words(words: tuple[str, ...], change: MemberChange | None) -> tuple[str, ...]:
    """Return the members of a group as written, with the change behind them."""
    if change is None:
        return words
    kept = [word for word in words if word not in change.deleted and word.removeprefix("~") not in change.added]
    is_all = "all" in kept
    are_hosts = not is_all and all(map(_NAME.match, kept))
    gone = [f"~{name}" for name in sorted(change.deleted) if not are_hosts or name not in words]
    return (*kept, *(() if is_all else sorted(change.added)), *gone)


def _members(name: str, text: str, word: Callable[[str], Names], external: str, site: Site) -> Names:
    if is_external(text):
        text = " ".join(site.accounts.external(external, name)) or "none"
    return combine(text, word)
