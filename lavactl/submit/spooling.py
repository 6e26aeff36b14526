"""Files that are read when a job is submitted, so that later changes of them do not matter: -is and -Zs.

They travel with the job, as a script from standard input does, and need no directory that all hosts share.
"""

from lavactl.errors import CommandError
from lavactl.files import FILE, PROGRAM
from lavactl.options import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

SPOOL_MAX = 15 << 18  # bytes: the master takes jobs of 4 MiB, and a little of it is for the environment


def input_of(name: str, io: "Io") -> bytes:
    """Content of the file that -is names.

    Raises:
        CommandError: it cannot be read now, or is too large.
    """
    if "%" in name:
        raise CommandError(f"-is {printable(name)}: the file is read now, so its name takes no pattern; -i does.")
    return _content("is", name, io, "-i reads it when the job starts")


def command_file(words: list[str], io: "Io") -> str:
    """Text of the script that the command names, for -Zs.

    Raises:
        CommandError: there is no such script, or it is a program without text.
    """
    if not words:
        raise CommandError("-Zs: a script on standard input is spooled anyway; name a command file.")
    data = _content("Zs", words[0], io, "submit it without -Zs")
    if b"\0" in data:
        raise CommandError(f"-Zs {printable(words[0])}: only scripts are spooled, and this file is a compiled program.")
    text = data.decode("utf-8", "surrogateescape")
    if not text.strip():
        raise CommandError(f"-Zs {printable(words[0])}: the file is empty.")
    return text


def _content(option: str, name: str, io: "Io", instead: str) -> bytes:
    kind, data = io.look_at(io.path(name), SPOOL_MAX + 1)
    if kind not in (FILE, PROGRAM) or data is None:
        raise CommandError(f"-{option} {printable(name)}: there is no such file that you may read.")
    if len(data) > SPOOL_MAX:
        raise CommandError(
            f"-{option} {printable(name)}: the file is larger than {SPOOL_MAX / 2**20:g} MiB; {instead}."
        )
    return data
