"""lsb.serviceclasses: service classes with the goal GUARANTEE, which say whose jobs have parts of resource pools.

Jobs belong to a class because they name it (bsub -sla) or, with AUTO_ATTACH=Y, by its ACCESS_CONTROL alone. A class
that lava can't honour is named and left out: its guarantee would hold slots for other jobs than those it is meant for.
"""

import re
from collections.abc import Mapping

from lavad.config import names
from lavad.config import values as v
from lavad.config.grammar import Cell, Document, Row
from lavad.config.site import Fields, Honoured, Ignored, Site, Table, check_sections, missed, required, sets
from lavad.config.values import Wrong
from lavad.core.model.rules.names import ALL, Names
from lavad.core.model.rules.resources import ServiceClass

GUARANTEE = "GUARANTEE"
_GOAL = re.compile(r"\[\s*(\w+)[^\[\]]*\]\s*\\?\s*")
_ACCESS = re.compile(r"(\w+)\s*\[([^\[\]]*)\]\s*")
_GROUPS, _LICENCES = "FAIRSHARE_GROUPS", "LIC_PROJECTS"


# Service classes by name, in the order of the file, with the place of the name; None: left out, as a complaint says.
ServiceClasses = Mapping[str, tuple[Cell, ServiceClass] | None]


def _goals(text: str) -> tuple[str, ...]:
    if _GOAL.sub("", text):
        raise Wrong("expected [GUARANTEE]")
    return tuple(word.upper() for word in _GOAL.findall(text))


def queue_list(text: str, site: Site) -> Names:
    """Read names of queues, or all."""
    found = names.combine(text, lambda word: ALL if word == "all" else Names(False, frozenset((word,))))
    for queue in sorted(found.names - site.queue_names):
        raise Wrong(f"{queue}: there is no such queue")
    return found


def _profiles(text: str, site: Site) -> Names:
    found = frozenset(text.split())
    for profile in sorted(found - site.application_names):
        raise Wrong(f"{profile}: there is no such application profile")
    return Names(False, found)


_READERS = {
    "USERS": ("users", names.users),
    "QUEUES": ("queues", queue_list),
    "APPS": ("applications", _profiles),
    _GROUPS: ("groups", names.users),
}


def _access(text: str, site: Site) -> Fields:
    found, at = Fields(), 0
    while text[at:].strip():
        part = _ACCESS.match(text, at)
        word = part[1].upper() if part else ""
        if part is None or (word not in _READERS and word != _LICENCES):
            raise Wrong("expected QUEUES[...], USERS[...], APPS[...] and FAIRSHARE_GROUPS[...], those that matter")
        field, read = _READERS.get(word, ("", names.users))
        if word == _LICENCES:
            found["licences"] = True
        elif field in found:
            raise Wrong(f"{word} is there twice")
        else:
            found[field] = read(part[2], site)
        at = part.end()
    return found


_OF_OTHER_GOALS = Ignored("for other goals than GUARANTEE")
SERVICE_CLASS: Table = {
    "NAME": sets("name", str, "the class's name; required"),
    "GOALS": sets(
        "goals", _goals, "`[GUARANTEE]`; required. A class with DEADLINE, VELOCITY or THROUGHPUT is left out"
    ),
    "ACCESS_CONTROL": Honoured(
        _access,
        "`QUEUES[...] USERS[...] APPS[...] FAIRSHARE_GROUPS[...]`: which jobs belong to it; all. Groups count as users",
    ),
    "AUTO_ATTACH": sets("attaches", v.switch, "Y: jobs belong to it without `bsub -sla`; N: only jobs that name it. N"),
    "DESCRIPTION": sets("description", str, "shown by `bsla`"),
    "USER_GROUP": missed("ACCESS_CONTROL says it", lambda text: text.strip().lower() not in ("", "all")),
    **dict.fromkeys(("PRIORITY", "CONTROL_ACTION"), _OF_OTHER_GOALS),
    **dict.fromkeys(("CONSUMER", "EGO_RES_REQ", "MAX_HOST_IDLE_TIME"), Ignored("no EGO")),
}
SECTIONS: Mapping[str, Table | Ignored] = {"ServiceClass": SERVICE_CLASS}


def read_service_classes(document: Document, site: Site) -> ServiceClasses:
    """Read all classes."""
    check_sections(document, SECTIONS, site)
    found: dict[str, tuple[Cell, ServiceClass] | None] = {}
    for section in document.of("ServiceClass"):
        for row in section.rows:
            name = required(row, "NAME", section, site)
            if name in found:
                site.wrong(row["NAME"], f"ServiceClass: the name {name} is there twice")
            elif name:
                one = _service_class(name, row, site)
                found[name] = (row["NAME"], one) if one is not None else None
    return found


def _service_class(name: str, row: Row, site: Site) -> ServiceClass | None:
    fields = site.read(row, SERVICE_CLASS)
    goals = fields.get("goals", ())
    others = [goal for goal in goals if goal != GUARANTEE]
    left_out = f"the service class {name} is left out"
    if not goals:
        site.warn(row.get("GOALS", row["NAME"]), f"GOALS: expected [GUARANTEE]; {left_out}")
    elif others:
        site.warn(row["GOALS"], f"GOALS: lava has no {' and '.join(others)}; {left_out}")
    elif fields.get("licences"):
        site.warn(row["ACCESS_CONTROL"], f"{_LICENCES}: lava has no such consumers; {left_out}")
    else:
        return ServiceClass(
            name,
            _users(fields, row, site),
            fields.get("queues", ALL),
            fields.get("applications", ALL),
            attaches=fields.get("attaches", False),
            access=row["ACCESS_CONTROL"].text.strip() if "ACCESS_CONTROL" in row else "",
            description=fields.get("description", ""),
        )
    return None


def _users(fields: Fields, row: Row, site: Site) -> Names:
    """Return the users that both USERS and FAIRSHARE_GROUPS name."""
    users: Names = fields.get("users", ALL)
    if "groups" not in fields:
        return users
    site.warn(row["ACCESS_CONTROL"], f"{_GROUPS}: counts for all jobs of the groups' members, whatever their -G says")
    return names.minus(users, names.minus(ALL, fields["groups"]))
