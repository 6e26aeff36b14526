"""Share lists of LSF's files: ``USER_SHARES[[u1,10] [grp,20] [grp2@,5] [default,1] [others,3]]``, and their groups."""

import re

from lavad.config import names
from lavad.config.site import Site
from lavad.config.values import LARGEST, Wrong, bare
from lavad.core.model.rules.names import ALL, NONE, Names
from lavad.core.model.rules.users import Share

_PAIR = re.compile(r"\s*\[\s*([^\[\],\s]+?)(@?)\s*,\s*(\d{1,10})\s*\]")
_QUEUE_FORM = re.compile(r"USER_SHARES\s*\[(.*)\]\s*$", re.IGNORECASE | re.DOTALL)


def queue_shares(text: str, site: Site) -> tuple[Share, ...]:
    """Read FAIRSHARE of a queue."""
    found = _QUEUE_FORM.match(text.strip())
    if not found:
        raise Wrong("expected USER_SHARES[[user or group, shares] ...]")
    return share_list(found[1], site)


def share_list(text: str, site: Site) -> tuple[Share, ...]:
    """Read ``[name,shares] ...`` as share accounts, with those of groups below them."""
    pairs = pairs_of(text)
    named = NONE
    accounts = {}
    for name, each, _ in pairs:
        if name not in ("default", "others"):
            accounts[name, each] = names.user_word(name, site)
            named = names.union(named, accounts[name, each])
    rest = names.minus(ALL, named)
    return tuple(_share(name, each, number, accounts.get((name, each), rest), site) for name, each, number in pairs)


def _share(name: str, each: bool, number: int, users: Names, site: Site) -> Share:
    below = () if each else site.group_shares.get(name, ())
    return Share(name, number, users, each or name == "default", below)


def pairs_of(text: str) -> list[tuple[str, bool, int]]:
    """Return (name, True for a share for each member, shares) of a list, in its order."""
    pairs, at, seen = [], 0, set()
    stripped = bare(text)
    while at < len(stripped):
        found = _PAIR.match(stripped, at)
        if not found:
            raise Wrong("expected [user or group, shares] one after another")
        if not 0 < int(found[3]) <= LARGEST:
            raise Wrong(f"{found[1]}: expected a number of shares above 0")
        if found[1] in seen:
            raise Wrong(f"{found[1]}: there twice")
        seen.add(found[1])
        pairs.append((found[1], bool(found[2]), int(found[3])))
        at = found.end()
    if not pairs:
        raise Wrong("expected at least one [user or group, shares]")
    return pairs
