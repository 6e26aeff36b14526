"""Documents of a job file: YAML or JSON, told apart by how the text begins."""

from lavactl.errors import CommandError
from lavactl.job_files.text.json_text import looks_like_json, read_json
from lavactl.job_files.text.nodes import FileError, Mapping, Place
from lavactl.job_files.text.yaml_text import read_yaml
from lavactl.options import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

BYTES_MAX = 4 << 20
STDIN = "-"


def load(path: str, io: "Io") -> tuple[str, str]:
    """(name for messages, text) of a job file; ``-`` is standard input.

    Raises:
        CommandError: it cannot be read, or is no text.
    """
    name = "standard input" if path == STDIN else printable(path)
    try:
        if path == STDIN:
            data = io.stdin.read(BYTES_MAX + 1)
        else:
            with open(io.path(path), "rb") as file:
                data = file.read(BYTES_MAX + 1)
    except OSError as error:
        raise CommandError(f"{name}: the job file cannot be read: {error.strerror}.") from None
    if len(data) > BYTES_MAX:
        raise CommandError(f"{name}: the job file is larger than {BYTES_MAX >> 20} MiB.")
    try:
        return name, data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FileError(name, Place(line, 1), "", "this is no UTF-8 text.") from None


def read_documents(text: str, file: str) -> list[Mapping]:
    """Documents of a job file, each a mapping.

    Raises:
        FileError: the text is malformed, or holds anything but mappings.
    """
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise FileError(file, Place(line, 1), "", "there is a NUL character: this is no text.")
    read = read_json if looks_like_json(text) else read_yaml
    documents = []
    for node in read(text, file):
        if not isinstance(node, Mapping):
            raise FileError(file, node.place, "", f"expected a job, that is keys and values, found {node.kind}.")
        documents.append(node)
    if not documents:
        raise FileError(file, Place(1, 1), "", "there is no job in this file.")
    return documents
