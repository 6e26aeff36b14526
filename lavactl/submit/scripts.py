"""Job scripts as bytes: what is taken from the ends of their lines and from their beginning, and what passes through.

Invariants: a script reaches the job byte for byte, but for what a note says; bytes that are not UTF-8 travel beside a
readable form of the command.
"""

from lavactl.errors import CommandError
from lavactl.submit.words import continuations, directive_notes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.wire import messages

SCRIPT_MAX = 7 << 20
ORDER_MARK = "\ufeff"
WITHOUT_MARK = (
    "The job script begins with a byte order mark (EF BB BF), as editors on Windows write it: it is left out."
)
WITHOUT_CR = "The lines of the job script end in CR LF, as on Windows: they are taken without the CR."


def decode_script(data: bytes) -> str:
    """Script bytes as text; those that are not UTF-8 are surrogates, which `put_command` makes bytes of again."""
    if len(data) > SCRIPT_MAX:
        raise CommandError(f"The job script is larger than {SCRIPT_MAX >> 20} MiB.")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise CommandError("The job script is UTF-16 text, which no shell reads: save it as UTF-8.")
    if b"\0" in data:
        raise CommandError("The job script holds a NUL byte: it is no text.")
    return data.decode("utf-8", "surrogateescape")


def without_order_mark(text: str) -> tuple[str, list[str]]:
    """(script without a byte order mark, a note if it had one)."""
    return (text[1:], [WITHOUT_MARK]) if text.startswith(ORDER_MARK) else (text, [])


def without_windows(text: str) -> tuple[str, list[str]]:
    """(script without what editors on Windows add, a note for each such thing)."""
    text, notes = without_order_mark(text)
    if text.partition("\n")[0].endswith("\r"):  # as then all lines do
        return text.replace("\r\n", "\n"), [*notes, WITHOUT_CR]
    return text, notes


def made_ready(text: str, is_script: bool) -> tuple[str, str, list[str]]:
    """(text to read directives in, script to run, notes).

    Lines that go on a directive are comments in the script: LSF joins them to it, and no shell would.
    """
    text, notes = without_windows(text)
    notes += directive_notes(text)
    lines = text.split("\n")
    for number in continuations(text):
        if not is_script:
            notes.append(f"Line {number} of the job script goes on the #BSUB line before it: the job runs it, too.")
        lines[number - 1] = f"#{lines[number - 1]}"
    return text, "\n".join(lines), notes


def put_command(spec: "messages.JobSpec", text: str) -> None:
    """Fill in the command; where it is not UTF-8, its bytes, and a form for display."""
    try:
        text.encode()
    except UnicodeEncodeError:
        spec.command_bytes = text.encode("utf-8", "surrogateescape")
        text = spec.command_bytes.decode("utf-8", "replace")
    spec.command = text
