"""Host list of a job (-m): hosts that it may use, preferences, and its first host."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from lavad.core.language.near import hint
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.names import Names
from lavad.core.model.rules.queues import QueueHosts


class Named(NamedTuple):
    """One word of -m. Higher preference goes first; ``others`` are all hosts that no other word names."""

    name: str
    preference: int = 0
    is_excluded: bool = False
    is_first: bool = False


def parse(words: Iterable[str]) -> Iterator[Named]:
    """Parse ``h1+2``, ``group``, ``~h3``, ``h1!``, ``others``, ``all``.

    Raises:
        Refused: a word without a name, or a preference that is no number.
    """
    for word in words:
        body = word.removeprefix("~")
        name, plus, preference = body.partition("+")
        name, mark = (name.removesuffix("!"), name.endswith("!"))
        if not name or (plus and not (preference.isascii() and preference.isdigit() and len(preference) < 10)):
            raise Refused(f"-m: expected a host or group, perhaps with +n, ~ or !; found {word!r}")
        yield Named(name.removesuffix("/"), int(preference or 0), body is not word and word[0] == "~", mark)


def check(words: Iterable[str], known: Collection[str]) -> None:
    """Refuse names that are neither a host nor a group."""
    for one in parse(words):
        if one.name not in known and one.name not in ("all", "others"):
            raise Refused(f"{one.name}: Bad host name, host group name or cluster name{hint(one.name, known)}")


class Chosen(NamedTuple):
    """Rank of each host that may be used, the smallest first: (preference, place in the list).

    ``first`` are the candidates for the job's first host; None: any.
    """

    ranks: Mapping[str, tuple[int, int]]
    first: frozenset[str] | None = None


def chosen(words: tuple[str, ...], hosts: list[str], groups: Mapping[str, Names]) -> Chosen:
    """Select from these hosts by the words."""
    found: dict[str, tuple[int, int]] = {}
    excluded: set[str] = set()
    others: int | None = None
    first: frozenset[str] | None = None
    known = set(hosts)
    parts = list(parse(words))
    for place, one in enumerate(parts):
        members = _members(one.name, hosts, known, groups)
        if one.is_excluded:
            excluded.update(members)
        elif one.name == "others":
            others = one.preference
        else:
            first = (first or frozenset()).union(members) if one.is_first else first
            at = place if one.name in known else len(parts)  # hosts of a group have equal rank
            for name in members:
                found.setdefault(name, (-one.preference, at))
    if others is None and all(one.is_excluded for one in parts):
        others = 0
    if others is not None:
        for name in hosts:
            found.setdefault(name, (-others, len(parts) + 1))
    return Chosen({name: rank for name, rank in found.items() if name not in excluded}, first)


def confined(found: Chosen, words: tuple[str, ...], queue: QueueHosts) -> Chosen:
    """Restrict to the queue's hosts. The queue's preferences count if the job has none of its own."""
    ranks = {name: rank for name, rank in found.ranks.items() if name in queue.names}
    if not any(one.preference for one in parse(words)):
        levels = dict(queue.preference)
        ranks = {name: (-levels.get(name, 0), place) for name, (_, place) in ranks.items()}
    return Chosen(ranks, found.first)


def _members(name: str, hosts: list[str], known: set[str], groups: Mapping[str, Names]) -> list[str]:
    if name in known:
        return [name]
    if name == "all":
        return hosts
    group = groups.get(name)
    return [host for host in hosts if host in group] if group is not None else []
