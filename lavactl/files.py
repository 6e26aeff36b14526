"""Files as a command looks at them: their kind, and their content. A missing or closed one is none."""

import os

# Kinds of a path: what `kind_of` returns.
DIRECTORY, FILE, PROGRAM, NOTHING = "directory", "file", "program", ""


def kind_of(path: str) -> str:
    """Kind of the file at a path: DIRECTORY, FILE, PROGRAM (a file that may be executed) or NOTHING."""
    if os.path.isdir(path):
        return DIRECTORY
    if not os.path.isfile(path):
        return NOTHING
    return PROGRAM if os.access(path, os.X_OK) else FILE


def read_file(path: str, limit: int) -> bytes | None:
    """At most ``limit`` bytes of a file, all of it for -1; None if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(limit)
    except OSError:
        return None


def look_at(path: str, limit: int) -> tuple[str, bytes | None]:
    """Kind of the file at a path, as of `kind_of`, and its beginning, as of `read_file` (none of other kinds)."""
    kind = kind_of(path)
    return kind, read_file(path, limit) if kind in (FILE, PROGRAM) else None


def read_whole(path: str) -> bytes | None:
    """Content of a file; None if it cannot be read."""
    return read_file(path, -1)
