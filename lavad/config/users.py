"""lsb.users: user groups, and limits of users and groups."""

from collections.abc import Container, Mapping

from lavad.config import names, shares
from lavad.config import values as v
from lavad.config.grammar import Cell, Document, Row
from lavad.config.site import Fields, Honoured, Ignored, Site, Table, check_sections, missed, required, sets
from lavad.config.values import Wrong
from lavad.core.model.rules.names import ALL, Names
from lavad.core.model.rules.users import GroupRow, Share, UserRule


def _administrators(text: str, site: Site) -> Fields:
    words = [word.partition("[")[0] for word in text.split()]
    found = names.users(" ".join(words), site)
    if found.is_all:
        raise Wrong("expected users; all can't administer a group")
    return {"administrators": found.names}


USER_GROUP: Table = {
    "GROUP_NAME": sets("name", str, "the group's name; required"),
    "GROUP_MEMBER": sets("member_text", str, "users and groups, `(all)`, `~user`, or `(!)`: what `egroup -u` says"),
    "USER_SHARES": sets("share_text", str, "`([user,shares] ...)`: how the group's share is divided inside it"),
    "GROUP_ADMIN": Honoured(
        _administrators,
        "users who may control the jobs of the group's members, as administrators of a queue those of the queue",
    ),
    "PRIORITY": missed("no priorities by group"),
}
USER: Table = {
    "USER_NAME": sets(
        "name",
        str,
        "user, group, `group@` (each of its members) or `default` (every other user, and every other group as a whole)",
    ),
    "MAX_JOBS": sets("slots", v.integer, "slots in use at once"),
    "JL/P": sets("slots_per_processor", v.decimal, "slots for each processor of a host"),
    "MAX_PEND_JOBS": sets("pending_jobs", v.integer, "jobs that wait at once; more are refused"),
    "MAX_PEND_SLOTS": sets("pending_slots", v.integer, "slots that waiting jobs ask for"),
    "PRIORITY": missed("no priorities by user"),
}
SECTIONS: Mapping[str, Table | Ignored] = {
    "UserGroup": USER_GROUP,
    "User": USER,
    "UserMap": missed("one cluster only: accounts are not mapped"),
}


def read_users(document: Document, site: Site) -> Fields:
    """Read user groups into ``site``; return the policy's fields."""
    check_sections(document, SECTIONS, site)
    rows = _group_rows(document, site)
    cells = {name: row["GROUP_MEMBER"] for name, row in rows.items()}
    names.resolve_groups(cells, site.user_groups, lambda word: names.user_word(word, site), "-u", site)
    found = {name: site.read(row, USER_GROUP) for name, row in rows.items()}
    _resolve_shares({name: row["USER_SHARES"] for name, row in rows.items() if _has(row, "USER_SHARES")}, site)
    groups = tuple(_group(name, fields, cells, site) for name, fields in found.items())
    return {"user_group_rows": groups, **_rules(document, site)}


def _has(row: Row, name: str) -> bool:
    return name in row and bool(row[name].text)


def _group_rows(document: Document, site: Site) -> dict[str, Row]:
    rows: dict[str, Row] = {}
    for section in document.of("UserGroup"):
        for row in section.rows:
            name = required(row, "GROUP_NAME", section, site)
            if name and required(row, "GROUP_MEMBER", section, site):
                add_named(rows, name, row, row["GROUP_NAME"], "user group", site)
    return rows


def add_named(rows: dict[str, Row], name: str, row: Row, cell: Cell, what: str, site: Site) -> None:
    """Keep a row under its name, unless the name is invalid or taken."""
    try:
        names.check_name(name, what)
    except Wrong as error:
        return site.wrong(cell, f"{name}: {error}")
    if name in rows:
        return site.wrong(cell, f"{name}: there is a {what} of this name already")
    rows[name] = row
    return None


def _group(name: str, fields: Fields, cells: Mapping[str, Cell], site: Site) -> GroupRow:
    pairs: tuple[tuple[str, int], ...] = ()
    if fields.get("share_text") and name in site.group_shares:
        pairs = tuple((one + "@" * each, number) for one, each, number in shares.pairs_of(fields["share_text"]))
    words = tuple(shown(word, cells) for word in cells[name].text.split())
    return GroupRow(name, words, pairs, fields.get("administrators", frozenset()))


def shown(word: str, groups: Container[str]) -> str:
    """Format a member for lists: a group with a slash behind it."""
    return word + "/" if word in groups else word


def _resolve_shares(cells: Mapping[str, Cell], site: Site) -> None:
    """Read USER_SHARES of groups, inner groups first; cycles were refused with the members."""

    def resolve(name: str, above: tuple[str, ...]) -> tuple[Share, ...]:
        if name in above:
            raise Wrong("its shares contain its own")
        if name in cells and name not in site.group_shares:
            for inner, _, _ in shares.pairs_of(cells[name].text):
                resolve(inner, (*above, name))
            site.group_shares[name] = shares.share_list(cells[name].text, site)
        return site.group_shares.get(name, ())

    for name, cell in cells.items():
        try:
            resolve(name, ())
        except Wrong as error:
            site.wrong(cell, f"group {name}: USER_SHARES: {error}")
        site.warn_of_strangers(cell)


def _rules(document: Document, site: Site) -> Fields:
    rules: dict[str, UserRule] = {}
    each: dict[str, UserRule] = {}
    for section in document.of("User"):
        for row in section.rows:
            name = required(row, "USER_NAME", section, site)
            if not name:
                continue
            fields = site.read(row, USER)
            fields.pop("name", None)
            target, plain = (each, name[:-1]) if name.endswith("@") else (rules, name)
            if plain in target:
                site.wrong(row["USER_NAME"], f"{name}: there is a row for it already")
                continue
            if _is_known(plain, target is each, row["USER_NAME"], site):
                target[plain] = UserRule(**fields)
    return {"user_rules": rules, "each_user_rules": each}


def _is_known(name: str, must_be_group: bool, cell: Cell, site: Site) -> bool:
    try:
        found: Names = ALL if name == "default" else names.user_word(name, site)
        if must_be_group and name not in site.user_groups:
            raise Wrong("name@ takes a group of users")
        if found.is_all and name in ("all",):
            raise Wrong("expected a user, a group or default")
    except Wrong as error:
        site.wrong(cell, f"USER_NAME = {cell.text}: {error}")
        return False
    site.warn_of_strangers(cell)
    return True
