"""Reading of the XML of a job description: elements with their lines, and the walk over them.

Invariants: a document type declaration is refused before any entity could be expanded, and none is fetched; size and
depth are bounded; an element that no reader has is refused, so nothing of a description is dropped in silence.
"""

from lavactl.errors import CommandError
from lavactl.options import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Handler = Callable[["Element"], None]

JSDL = "http://schemas.ggf.org/jsdl/2005/11/jsdl"
POSIX = "http://schemas.ggf.org/jsdl/2005/11/jsdl-posix"
OWN = (JSDL, POSIX)
PREFIXES = {JSDL: "jsdl:", POSIX: "jsdl-posix:"}
SIZE_MAX = 4 << 20
DEPTH_MAX = 32
# Attributes of any element that say nothing about the job.
IDLE_ATTRIBUTES = ("http://www.w3.org/2001/XMLSchema-instance ", "http://www.w3.org/XML/1998/namespace ")


class Element:
    """An element of the document: its namespace, its name, its text without blanks around it, what it contains."""

    def __init__(self, file: str, line: int, tag: str, attributes: "Mapping[str, str]") -> None:
        self.space, _, self.name = tag.rpartition(" ")
        self.file = file
        self.line = line
        self.attributes = dict(attributes)
        self.children: list[Element] = []
        self.pieces: list[str] = []

    @property
    def shown(self) -> str:
        """The element as it is written with the usual prefix."""
        return f"<{PREFIXES.get(self.space, '')}{printable(self.name)}>"

    @property
    def text(self) -> str:
        """Text of an element without children."""
        return "".join(self.pieces).strip()

    def wrong(self, sentence: str) -> CommandError:
        """Error about this element, to be raised."""
        return CommandError(f"{self.file}, line {self.line}: {self.shown}: {sentence}")

    def value(self, *attributes: str) -> str:
        """Text of an element that has one, and no attributes but these.

        Raises:
            CommandError: it is empty, holds elements, or has another attribute.
        """
        self.check_attributes(*attributes)
        if self.children:
            raise self.children[0].wrong(f"it cannot stand in {self.shown}, which holds a text.")
        if not self.text:
            raise self.wrong("a value is expected, and it is empty.")
        return self.text

    def number(self) -> float:
        """Value as a number that is not negative.

        Raises:
            CommandError: it is none.
        """
        text = self.value()
        try:
            found = float(text) if "_" not in text else -1.0  # Python's digits may be grouped, those of XML not
        except ValueError:
            found = -1.0
        if not 0 <= found < 1 << 60:
            raise self.wrong(f"a number that is not negative is expected, found {printable(text[:80])}.")
        return found

    def check_attributes(self, *known: str) -> None:
        """Refuse attributes that are not known.

        Raises:
            CommandError: names the first of them.
        """
        for name in self.attributes:
            if name not in known and not name.startswith(IDLE_ATTRIBUTES):
                raise self.wrong(f"its attribute {printable(name.rpartition(' ')[2])} is not supported.")


class Walk:
    """The walk over a document.

    Args:
        is_strict: elements of other namespaces are refused; else they are noted.
    """

    def __init__(self, is_strict: bool) -> None:
        self.is_strict = is_strict
        self.notes: list[str] = []

    def over(
        self,
        parent: Element,
        handlers: "Mapping[str, Handler]",
        *,
        repeated: "tuple[str, ...]" = (),
        attributes: str = "",
    ) -> None:
        """Hand each child to the function for its name; a name may stand once unless it is repeated.

        Raises:
            CommandError: an element has no function, stands twice, or has text beside elements.
        """
        parent.check_attributes(*attributes.split())
        if parent.text:
            raise parent.wrong(f"elements are expected in it, found the text {printable(parent.text[:40])}.")
        seen: set[str] = set()
        for child in parent.children:
            if child.space not in OWN:
                self.foreign(child)
                continue
            space = POSIX if child.name == "POSIXApplication" else parent.space
            handler = handlers.get(child.name) if child.space == space else None
            if handler is None:
                raise child.wrong(f"JSDL 1.0 has no such element in {parent.shown}.")
            if child.name in seen and child.name not in repeated:
                raise child.wrong(f"it stands in {parent.shown} twice.")
            seen.add(child.name)
            handler(child)

    def foreign(self, element: Element) -> None:
        """Note, or refuse, an element of neither namespace."""
        if self.is_strict:
            raise element.wrong("it belongs neither to JSDL nor to its POSIX extension.")
        self.note(element, "ignored: lava has no such extension of JSDL.")

    def note(self, element: Element, sentence: str) -> None:
        """Keep a remark about an element for the user."""
        self.notes.append(f"{element.file}, line {element.line}: {element.shown}: {sentence}")


def read(path: str, data: bytes) -> Element:
    """Root element of a document.

    Raises:
        CommandError: it is no XML, has a document type, or is larger or deeper than a job description is.
    """
    from xml.parsers import expat

    file = printable(path)
    if len(data) > SIZE_MAX:
        raise CommandError(f"{file}: the file is larger than {SIZE_MAX >> 20} MiB.")
    parser = expat.ParserCreate(namespace_separator=" ")
    roots: list[Element] = []
    open_elements: list[Element] = []

    def start(tag: str, attributes: "dict[str, str]") -> None:
        element = Element(file, parser.CurrentLineNumber, tag, attributes)
        if len(open_elements) == DEPTH_MAX:
            raise element.wrong(f"it lies deeper than {DEPTH_MAX} elements.")
        (open_elements[-1].children if open_elements else roots).append(element)
        open_elements.append(element)

    def end(_tag: str) -> None:
        open_elements.pop()

    def text(data: str) -> None:
        open_elements[-1].pieces.append(data)

    def refuse(*_: "Any") -> None:
        where = f"{file}, line {parser.CurrentLineNumber}"
        raise CommandError(f"{where}: a document type declaration (<!DOCTYPE>) is not accepted in a job description.")

    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, text
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        why = expat.ErrorString(error.code)
        raise CommandError(f"{file}, line {error.lineno}: this is no well-formed XML: {why}.") from None
    except (LookupError, ValueError) as error:  # an encoding that Python lacks
        raise CommandError(f"{file}: this XML cannot be read: {printable(str(error))}.") from None
    return roots[0]
