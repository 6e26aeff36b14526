"""Lists of hosts and queues by -o: a format of named fields, as lines or as JSON."""

from lavactl.text.formats import read_format
from lavactl.text.render import json_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from lavactl.io import Io
    from lavactl.options import Options

    # Field: recommended width and reader.
    Fields = Mapping[str, tuple[int, Callable[[Any], str]]]


def show_fields(
    records: "Iterable[Any]",
    text: str,
    fields: "Fields",
    aliases: "Mapping[str, str]",
    options: "Options",
    io: "Io",
    document: tuple[str, str],
) -> None:
    """Print records by the format ``text``.

    Args:
        options: -json and -noheader count.
        document: command and the name of the number of records, for -json.
    """
    form = read_format(text, {name: width for name, (width, _) in fields.items()}, aliases)
    form.check(io)
    pairs = [(column, fields[column.name][1]) for column in form.columns]
    if "json" in options:
        found = [{column.title: read(record) for column, read in pairs} for record in records]
        return io.print(json_text(*document, found))
    if "noheader" not in options:
        io.print(form.header())
    lines = [form.delimiter.join([column.fit(read(record)) for column, read in pairs]) + "\n" for record in records]
    return io.print("".join(lines), end="")
