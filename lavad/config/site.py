"""State of reading one directory of LSF files: parameter tables, groups and hosts so far, complaints.

A table says of every parameter of a section whether it is honoured (and how it is read) or known and without effect
(and why). A name in no table is unknown, and is reported with a near known name.
"""

import difflib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from lavad.config.accounts import Accounts
from lavad.config.grammar import Cell, Complaint, Document, Row, Section
from lavad.config.values import Wrong
from lavad.core.language.near import NEAR, hint, without_digits
from lavad.core.language.requirements.lexer import UNIT_MIB
from lavad.core.language.requirements.vocabulary import Vocabulary
from lavad.core.model.rules.hosts import HostRule
from lavad.core.model.rules.names import MemberChange, Names
from lavad.core.model.rules.resources import Resource, SizeUnits
from lavad.core.model.rules.users import Share

Fields = dict[str, Any]
NAMED_MAX = 5  # unknown names reported for one line


class Fate(Enum):
    """Treatment of a parameter."""

    HONOURED = "honoured"
    IGNORED = "ignored"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Honoured:
    """Parameter with effect: ``read`` returns the values it sets, by field; ``about`` is its form or meaning."""

    read: Callable[[str, "Site"], Fields]
    about: str


@dataclass(frozen=True, slots=True)
class Ignored:
    """Known parameter without effect in lava; ``reason`` says why in a few words.

    ``is_missed`` returns True for a value whose effect a site may rely on: then ``badmin ckconfig`` names the parameter
    without -v, too.
    """

    reason: str
    is_missed: Callable[[str], bool] = lambda text: False


def missed(reason: str, is_missed: Callable[[str], bool] | None = None) -> Ignored:
    """Declare a parameter without effect that a site may rely on, unless its value asks for nothing."""
    return Ignored(
        reason, is_missed or (lambda text: text.strip(" ()-\"'").lower() not in ("", "n", "no", "none", "0"))
    )


Table = Mapping[str, Honoured | Ignored]


@dataclass(frozen=True, slots=True)
class Entry:
    """One setting as it was found, for ``badmin ckconfig -v``."""

    file: str
    line: int
    name: str
    fate: Fate
    note: str = ""


@dataclass(slots=True)
class Site:
    """State that later files need of earlier ones. ``turn_s`` is the length of a dispatch turn."""

    accounts: Accounts
    unit: str = ""  # LSF_UNIT_FOR_LIMITS; empty: not set
    has_tmp_unit: bool = False  # LSF_ENABLE_TMP_UNIT
    turn_s: float = 60.0  # MBD_SLEEP_TIME
    settings: dict[str, str] = field(default_factory=dict)  # lsf.conf
    complaints: list[Complaint] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    hosts: dict[str, HostRule] = field(default_factory=dict)  # Host section of lsf.cluster
    cpu_factors: dict[str, float] = field(default_factory=dict)  # by host model
    host_models: set[str] = field(default_factory=set)
    host_types: set[str] = field(default_factory=set)
    resources: dict[str, Resource] = field(default_factory=dict)
    user_groups: dict[str, Names] = field(default_factory=dict)
    group_shares: dict[str, tuple[Share, ...]] = field(default_factory=dict)
    host_groups: dict[str, Names] = field(default_factory=dict)
    group_changes: Mapping[str, MemberChange] = field(default_factory=dict)  # badmin hghostadd, hghostdel
    queue_names: frozenset[str] = frozenset()
    application_names: frozenset[str] = frozenset()
    unit_types: tuple[str, ...] = ()  # COMPUTE_UNIT_TYPES, the smallest first
    joined: frozenset[str] = frozenset()  # hosts whose agents have joined
    follows_hosts: bool = False  # a pattern was compared with ``joined``, since no file lists hosts
    strangers: list[str] = field(default_factory=list)  # unknown hosts of the present list
    nobodies: list[str] = field(default_factory=list)  # unknown users or groups of the present list
    asides: list[str] = field(default_factory=list)  # what has no effect of the present value
    told_columns: set[tuple[str, ...]] = field(default_factory=set)  # by file, name, and the columns of their table

    @property
    def size_units(self) -> SizeUnits:
        """Units of sizes in requirements, thresholds and lsb.resources."""
        unit_mib = UNIT_MIB[self.unit or "M"]
        return SizeUnits(unit_mib, unit_mib if self.has_tmp_unit else 1.0)

    @property
    def vocabulary(self) -> Vocabulary:
        """Names and units of requirements in the files."""
        return Vocabulary(self.resources, unit_mib=self.size_units.size_mib, tmp_unit_mib=self.size_units.tmp_mib)

    def wrong(self, cell: Cell, text: str) -> None:
        """Add an error: this configuration can't be used."""
        self.complaints.append(Complaint(cell.file, cell.line, text))

    def warn(self, cell: Cell, text: str) -> None:
        """Add a warning for the administrator; the configuration can be used."""
        self.complaints.append(Complaint(cell.file, cell.line, text, is_fatal=False))

    def warn_of_missing(self, cell: Cell, name: str, known: Collection[str], what: str) -> None:
        """Warn of a name that lsf.shared lacks, if it has any of that kind."""
        if known and name not in known:
            self.warn(cell, f"{name}: no {what} of lsf.shared{hint(name, known)}")

    def warn_of_strangers(self, cell: Cell) -> None:
        """Warn of unknown users, groups and hosts in the last list, and of what in it has no effect, if any."""
        if self.strangers:
            self._warn_of_hosts(cell, list(dict.fromkeys(self.strangers)))
            self.strangers = []
        if self.nobodies:
            self._warn_of_nobodies(cell, list(dict.fromkeys(self.nobodies)))
            self.nobodies = []
        for text in dict.fromkeys(self.asides):
            self.warn(cell, text)
        self.asides = []

    def _warn_of_hosts(self, cell: Cell, names: list[str]) -> None:
        """Warn of the first with a suggestion; names that differ only in their numbers are not suggested."""
        what = f"no host of {'lsf.cluster' if self.hosts else 'the cluster'}; counts once such a host has joined"
        known = [*self.known_hosts, *self.host_groups]
        is_numbered = without_digits(names[0]) in set(map(without_digits, self.known_hosts))
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        self.warn(cell, f"{names[0]}{more}: {what}{'' if is_numbered else hint(names[0], known, NEAR)}")

    @property
    def known_hosts(self) -> Collection[str]:
        """Return the hosts of lsf.cluster or, if it lists none, the joined ones; empty if neither is known."""
        return self.hosts or self.joined

    def _warn_of_nobodies(self, cell: Cell, names: list[str]) -> None:
        """Warn of names: each one near a known name on a line of its own, the first few others together."""
        known = [*self.user_groups, *self.accounts.known_users()]
        near = {name: close[0] for name in names if (close := difflib.get_close_matches(name, known, 1, NEAR))}
        what = "no user of this host and no user group; counts once there is such a user"
        for name, meant in near.items():
            self.warn(cell, f"{name}: {what}; did you mean {meant}?")
        far = [name for name in names if name not in near]
        if far:
            more = f" and {len(far) - NAMED_MAX} more" if len(far) > NAMED_MAX else ""
            self.warn(cell, f"{' '.join(far[:NAMED_MAX])}{more}: {what}")

    def note(self, cell: Cell, name: str, fate: Fate, text: str = "") -> None:
        """Record the treatment of a setting."""
        self.entries.append(Entry(cell.file, cell.line, name, fate, text))

    def warn_of_unknown(self, cell: Cell, name: str, known: Mapping[str, Any], what: str = "parameter") -> None:
        """Warn of a name that is in no table and has no effect."""
        self.warn(cell, f"{name}: unknown {what}, it has no effect{hint(name, known)}")

    def _refuse_unknown(self, cell: Cell, name: str, table: Table, what: str) -> None:
        self.note(cell, name, Fate.UNKNOWN)
        known = " ".join(word for word, meaning in table.items() if isinstance(meaning, Honoured))
        self.wrong(cell, f"{name}: unknown parameter of a {what}{hint(name, table)}; known are {known}")

    def read(
        self,
        row: Row,
        table: Table,
        *,
        extra: Callable[[str], Honoured | None] = lambda name: None,
        all_narrow: str = "",
    ) -> Fields:
        """Read the settings of a row, by field; every wrong value gets a complaint.

        Args:
            extra: finds a parameter whose name is not fixed (a load index), or None.
            all_narrow: kind of the row, if each of its settings restricts its consumers: a misspelt one would widen it
                to all, so that is an error.
        """
        fields: Fields = {}
        for name, cell in row.items():
            known = table.get(name) or extra(name)
            if known is None and all_narrow:
                self._refuse_unknown(cell, name, table, all_narrow)
            elif known is None:
                self.note(cell, name, Fate.UNKNOWN)
                if not self._is_told(row, name, cell):
                    self.warn_of_unknown(cell, name, table)
            elif isinstance(known, Ignored):
                self.note(cell, name, Fate.IGNORED, known.reason)
                if known.is_missed(cell.text) and not self._is_told(row, name, cell):
                    self.warn(cell, f"{name}: it has no effect: {known.reason}")
            else:
                self.note(cell, name, Fate.HONOURED)
                self._take(fields, name, cell, known)
        return fields

    def _is_told(self, row: Row, name: str, cell: Cell) -> bool:
        """Return True for a column without effect that an earlier row of the same table was told of."""
        if len(row) < 2 or len({one.line for one in row.values()}) > 1:
            return False
        column = (cell.file, name, *row)
        if column in self.told_columns:
            return True
        self.told_columns.add(column)
        return False

    def _take(self, fields: Fields, name: str, cell: Cell, known: Honoured) -> None:
        if not cell.text:
            return
        try:
            found = known.read(cell.text, self)
        except Wrong as error:
            self.wrong(cell, f"{name} = {_short(cell.text)}: {error}")
            return
        finally:
            self.warn_of_strangers(cell)
        for field_name, value in found.items():
            before = fields.get(field_name)
            fields[field_name] = before + value if isinstance(before, tuple) and field_name == "thresholds" else value


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def sets(name: str, read: Callable[[str], Any], about: str) -> Honoured:
    """Declare a parameter that sets one field from its text alone."""
    return Honoured(lambda text, site: {name: read(text)}, about)


def cell_of(section: Section) -> Cell:
    """Return the first line of a section, for complaints about all of it."""
    return Cell("", section.line, section.file)


def required(row: Row, name: str, section: Section, site: Site) -> str:
    """Return the text of a column that every row must have; empty after a complaint.

    A table without the column is left out as a whole, as in LSF, with one warning at its keywords.
    """
    cell = row.get(name)
    if cell is not None and cell.text:
        return cell.text
    missing = f"{section.name}: {name} is missing"
    if cell is not None or not section.keywords_line:
        site.wrong(cell or cell_of(section), missing)
    elif row is section.rows[0]:
        near = difflib.get_close_matches(name, row, 1, NEAR)
        instead = f"; there is a column {near[0]}, which LSF does not know" if near else ""
        site.warn(Cell("", section.keywords_line, section.file), f"{missing}{instead}; the section is left out")
    return ""


def check_sections(document: Document, known: Mapping[str, Table | Ignored], site: Site) -> None:
    """Complain about sections that LSF does not have in this file."""
    names = {name.lower(): name for name in known}
    for section in document.sections:
        name = names.get(section.name.lower())
        cell = cell_of(section)
        if name is None:
            site.note(cell, section.name, Fate.UNKNOWN)
            site.warn_of_unknown(cell, section.name, known, "section")
            continue
        meaning = known[name]
        if isinstance(meaning, Ignored):
            site.note(cell, f"section {name}", Fate.IGNORED, meaning.reason)
            if meaning.is_missed("section"):
                site.warn(cell, f"Begin {name}: the section has no effect: {meaning.reason}")
        elif section.keywords and not set(section.keywords) & set(meaning):
            _leave_out_without_keywords(section, meaning, site)


def _leave_out_without_keywords(section: Section, table: Table, site: Site) -> None:
    """Warn of a table whose first line is none of keywords, as where that is a comment; LSF leaves it out, too."""
    known = " ".join(word for word, meaning in table.items() if isinstance(meaning, Honoured))
    first = _short(" ".join(section.keywords).lower())
    cell = Cell("", section.keywords_line, section.file)
    what = f"expected a line of keywords ({_short(known)}), found {first!r}"
    site.warn(cell, f"{section.name}: {what}; the section is left out")
    section.rows.clear()
