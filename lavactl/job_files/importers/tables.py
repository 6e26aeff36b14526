"""Tables of the fields of other systems' kinds: each field is declared once, and read by its declaration.

A mapping of a kind is a class, and a field of it is a row of the class: name, value where the file says nothing, and
in a few words what its owner does with it. Then comes what lava does, one of

* nothing said: the same, or ``here="..."``: its way of doing it. The importer reads the field as an attribute;
* ``told="..."``: it is not honoured, and the remark "ignored: ..." names the reason;
* ``refused="..."``: a file that has it is refused with this sentence;
* ``moot=True``: it does nothing to a job there either, and nothing is said.

The last three are dealt with when the table is opened; the importer has no code for them. A value that equals the
default says nothing. A row that is declared and honoured, but that the importer did not read, and a field without a
row, are noted as ignored by the reading (``text.fields``): so nothing is silent, whatever an importer forgets::

    class Spec(Table):
        '''``spec`` of a Job.'''

        parallelism = Number("parallelism", 1, "so many pods at once", here="so many tasks at once")
        suspend = Flag("suspend", False, "no pod is made", here="the job is held")
        managed_by = Text("managedBy", "", "another controller runs it", told="lava runs the job")
        template = Part("template", Template, "the pods")

    spec = Spec(fields.child("spec"))
    if spec.parallelism > 9:                    # 1 where the file says nothing
        raise spec.wrong(Spec.parallelism, "that is too much.")
    spec.note(Spec.suspend, "a remark of its own.")

A kind's page in docs/reference/kinds is written from its tables by ``make docs``. A new kind needs its tables beside
its importer, the line of its page in ``kinds.PAGES``, and samples in tests/job_files, from which a test takes each
field in turn to see plan or remarks change.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, Generic, TypeVar

from lavactl.job_files.text.fields import NUMBER_MAX, Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Self, overload

    from lavactl.job_files.text.nodes import FileError, Node

HONOURED, TOLD, REFUSED, MOOT = "honoured", "told", "refused", "moot"
OTHERS = "*"

Value = TypeVar("Value")
Default = TypeVar("Default")
Meaning = TypeVar("Meaning")
Inner = TypeVar("Inner", bound="Table")


class Row(ABC, Generic[Value]):
    """Field of a mapping.

    Attributes:
        name: as the file has it; ``*`` stands for all that have no row of their own.
        default: its value where the file says nothing; None if it has none.
        origin: what its owner does with it.
        fate: ``HONOURED``, ``TOLD``, ``REFUSED`` or ``MOOT``.
        words: what lava does with it, the reason that is told, or the sentence of the refusal.
        absent: words for the default where the value does not say it.
    """

    def __init__(
        self,
        name: str,
        default: object,
        origin: str,
        *,
        here: str = "",
        told: str = "",
        refused: str = "",
        moot: bool = False,
        absent: str = "",
    ) -> None:
        self.name = name
        self.default = default
        self.origin = origin
        self.fate = TOLD if told else REFUSED if refused else MOOT if moot else HONOURED
        self.words = here or told or refused
        self.absent = absent

    if TYPE_CHECKING:

        @overload
        def __get__(self, table: None, owner: object) -> Self: ...
        @overload
        def __get__(self, table: "Table", owner: object) -> Value: ...

    def __get__(self, table: "Table | None", owner: object) -> "Self | Value":
        """The row itself of a class; of a table the field's value."""
        return self if table is None else self.read(table.fields)

    @abstractmethod
    def read(self, fields: Fields) -> Value:
        """Value of the field.

        Raises:
            FileError: it is of another kind.
        """

    def settle(self, fields: Fields) -> None:
        """Tell of a field that is not honoured, or refuse it; one that equals its default says nothing."""
        if self.fate == HONOURED:
            return
        value = self.read(fields)
        if self.fate == MOOT or not fields.has(self.name) or self.is_default(value):
            return
        if self.fate == REFUSED:
            raise fields.wrong(self.name, self.words)
        fields.note(self.name, f"ignored: {self.words}.")

    def is_default(self, value: object) -> bool:
        """True if a value is the one that the field has where the file says nothing."""
        return value == self.default


class Number(Row["int | Default"], Generic[Default]):
    """Whole number within bounds; where it has no default, None."""

    def __init__(
        self,
        name: str,
        default: Default,
        origin: str,
        least: int = 0,
        most: int = NUMBER_MAX,
        *,
        here: str = "",
        told: str = "",
        moot: bool = False,
        absent: str = "",
    ) -> None:
        super().__init__(name, default, origin, here=here, told=told, moot=moot, absent=absent)
        self.given, self.least, self.most = default, least, most

    def read(self, fields: Fields) -> "int | Default":
        """The number."""
        found = fields.number(self.name, self.least, self.least, self.most)
        return found if fields.has(self.name) else self.given


class Flag(Row[bool]):
    """Truth value."""

    def read(self, fields: Fields) -> bool:
        """The value."""
        return fields.flag(self.name, bool(self.default))


class Text(Row[str]):
    """Text; empty where the file says nothing and there is no default."""

    def read(self, fields: Fields) -> str:
        """The text."""
        return fields.text(self.name, str(self.default or ""))

    def is_default(self, value: object) -> bool:
        """True for the default, and for an empty text."""
        return value in ("", self.default)


class Required(Row[str]):
    """Text that must not be missing or empty."""

    def __init__(self, name: str, origin: str, *, here: str = "", told: str = "", moot: bool = False) -> None:
        super().__init__(name, None, origin, here=here, told=told, moot=moot, absent="refused")

    def read(self, fields: Fields) -> str:
        """The text."""
        return fields.required(self.name)


class Word(Row["Meaning | None"], Generic[Meaning]):
    """One of some words, as that what it means; None where the file says nothing and there is no default."""

    def __init__(
        self,
        name: str,
        words: "Mapping[str, Meaning]",
        default: str | None,
        origin: str,
        *,
        here: str = "",
        told: str = "",
        moot: bool = False,
        absent: str = "",
    ) -> None:
        super().__init__(name, default, origin, here=here, told=told, moot=moot, absent=absent)
        self.meanings = words

    def read(self, fields: Fields) -> "Meaning | None":
        """Meaning of the word."""
        default = self.meanings[str(self.default)] if self.default is not None else None
        return fields.word(self.name, self.meanings, default)

    def settle(self, fields: Fields) -> None:
        """Tell of a word that is not honoured."""
        if self.fate != HONOURED:
            self.read(fields)
        if self.fate == TOLD and fields.has(self.name) and fields.text(self.name) != self.default:
            fields.note(self.name, f"ignored: {self.words}.")


class Texts(Row[list[str]]):
    """List of texts."""

    def read(self, fields: Fields) -> list[str]:
        """The texts."""
        return fields.texts(self.name)


class Pairs(Row[dict[str, str]]):
    """Mapping of single values."""

    def read(self, fields: Fields) -> dict[str, str]:
        """Keys and texts."""
        return fields.pairs(self.name)


class Keys(Row[Fields]):
    """Mapping whose keys the user chooses."""

    def read(self, fields: Fields) -> Fields:
        """Its fields."""
        return fields.child(self.name)


class Anything(Row["Node | None"]):
    """Value of any kind."""

    def read(self, fields: Fields) -> "Node | None":
        """The value as it stands in the file; None where there is none."""
        return fields.get(self.name)


class Part(Row[Inner], Generic[Inner]):
    """Mapping with a table of its own; empty where the file says nothing."""

    def __init__(self, name: str, table: type[Inner], origin: str, *, here: str = "", absent: str = "") -> None:
        super().__init__(name, None, origin, here=here, absent=absent)
        self.table = table

    def read(self, fields: Fields) -> Inner:
        """Its table."""
        return self.table(fields.child(self.name))


class Parts(Row[list[Inner]], Generic[Inner]):
    """List of mappings with a table each."""

    def __init__(self, name: str, table: type[Inner], origin: str, *, here: str = "", absent: str = "") -> None:
        super().__init__(name, None, origin, here=here, absent=absent)
        self.table = table

    def read(self, fields: Fields) -> list[Inner]:
        """Their tables."""
        return [self.table(one) for one in fields.children(self.name)]


class Named(Row[list[tuple[str, Inner]]], Generic[Inner]):
    """Mapping whose keys the user chooses, of mappings with a table each."""

    def __init__(self, name: str, table: type[Inner], origin: str, *, here: str = "", absent: str = "") -> None:
        super().__init__(name, None, origin, here=here, absent=absent)
        self.table = table

    def read(self, fields: Fields) -> list[tuple[str, Inner]]:
        """Names and tables, in their order."""
        return [(name, self.table(one)) for name, one in fields.named(self.name)]


class Others(Row[None]):
    """All fields that have no row."""

    def __init__(self, origin: str, *, here: str = "", told: str = "", moot: bool = False) -> None:
        super().__init__(OTHERS, None, origin, here=here, told=told, moot=moot)

    def read(self, fields: Fields) -> None:
        """Nothing: they are told, not read."""

    def settle(self, fields: Fields) -> None:
        """Tell of each."""
        if self.fate == HONOURED:
            return
        names = [name for name, _ in fields.node if name not in (fields.rows or {})]
        if self.fate == TOLD:
            fields.ignore(names, self.words)
        fields.asked.update(names)


class Table:
    """Fields of one mapping, by the rows of its class.

    Attributes:
        page: name of the page that has the rows, for a table that several kinds share.
    """

    page: ClassVar[str] = ""

    def __init__(self, fields: Fields) -> None:
        self.fields = fields
        if fields.rows is None:
            fields.rows = self.rows()
            for row in fields.rows.values():
                row.settle(fields)

    @classmethod
    def rows(cls) -> "dict[str, Row[Any]]":
        """The rows by their names, those of the classes above first."""
        found: dict[str, Row[Any]] = {}
        for one in reversed(cls.__mro__):
            found |= {row.name: row for row in vars(one).values() if isinstance(row, Row)}
        return found

    def has(self, row: "Row[Any]") -> bool:
        """True if the file has the field, with a value."""
        return self.fields.has(row.name)

    def text(self, row: "Row[Any]") -> str:
        """Field as the file has it, where it is a single value; else its default."""
        return self.fields.text(row.name, str(row.default or ""))

    def wrong(self, row: "Row[Any] | None", sentence: str) -> "FileError":
        """Error in a field, or in the mapping, to be raised."""
        return self.fields.wrong(row.name if row else "", sentence)

    def note(self, row: "Row[Any] | None", text: str) -> None:
        """Note a remark on a field, or on the mapping."""
        self.fields.note(row.name if row else "", text)

    def note_if(self, row: "Row[Any]", text: str) -> None:
        """Note a remark on a field that the file has."""
        if self.has(row):
            self.note(row, text)

    def refuse_others(self) -> None:
        """Refuse fields that have no row."""
        for key, _ in self.fields.node:
            if key not in self.rows():
                place = self.fields.node.keys[key]
                raise self.fields.reading.wrong(place, self.fields.path_of(key), "the protocol has no such key.")

    def same(self, row: "Row[Any]") -> None:
        """Remember that a field says what would hold without it, here if not always: it may go without a word."""
        self.fields.same.add(row.name)

    def need(self, row: "Row[Any]") -> None:
        """Refuse a mapping that has not this field."""
        if not self.has(row):
            raise self.wrong(row, "it is missing.")
