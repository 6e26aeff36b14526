"""Files that hold secrets: read only if other users cannot read them, written so that they never could.

The mode is read from the open file, not from its path, so the file that was checked is the file that is read. A write
replaces the file in one durable step: a reader, or a crash, sees the old content or the new, never a part. Files
written by root are given to the owner of their directory, and root reads that owner's files: the master's directory
belongs to its service user, and root administers it.
"""

import os
import stat
from pathlib import Path


class PrivateFileError(Exception):
    """Unusable secret file; the message is one sentence."""


def read_private(path: Path) -> bytes:
    """Content of a file only its owner (this user or root) may read; PrivateFileError for any other file."""
    try:
        # Without O_NONBLOCK a pipe in place of the file would block for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError as error:
        raise PrivateFileError(f"{path}: {os.strerror(error.errno or 0)}.") from error
    try:
        _check_private(path, os.fstat(descriptor))
        return b"".join(iter(lambda: os.read(descriptor, 1 << 16), b""))
    finally:
        os.close(descriptor)


def _check_private(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise PrivateFileError(f"{path}: is not a file.")
    if found.st_mode & 0o077:
        mode = stat.S_IMODE(found.st_mode)
        raise PrivateFileError(f"{path} holds a secret but its mode is {mode:04o}; run: chmod 600 {path}")
    if found.st_uid not in (os.geteuid(), 0) and not (os.geteuid() == 0 and found.st_uid == _owner(path.parent)[0]):
        raise PrivateFileError(
            f"{path} holds a secret but belongs to user id {found.st_uid}; give it to the user who runs this."
        )


def _owner(directory: Path) -> tuple[int, int]:
    found = directory.stat()
    return found.st_uid, found.st_gid


def follow_owner(path: Path) -> None:
    """Give a file made by root to the owner of its directory; no effect for other users."""
    if os.geteuid() == 0:
        os.chown(path, *_owner(path.parent), follow_symlinks=False)


def give_to_owner(descriptor: int, directory: Path) -> None:
    """Give an open file made by root to the owner of the directory; no effect for other users."""
    if os.geteuid() == 0:
        os.fchown(descriptor, *_owner(directory))


def write_private(path: Path, content: bytes) -> None:
    """Write a file of mode 0600 atomically."""
    write_file(path, content, 0o600)


def write_file(path: Path, content: bytes, mode: int) -> None:
    """Write a file of this mode atomically, following no link: the directory may belong to another user than root."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            os.fchmod(stream.fileno(), mode)
            give_to_owner(stream.fileno(), path.parent)
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
