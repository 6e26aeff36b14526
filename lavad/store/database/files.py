"""Checks of a SQLite file: on a local file system, readable by its owner only, opened by one master at a time."""

import errno
import fcntl
import os
import stat
import time
from pathlib import Path

from lavad.store.errors import StoreRefused

# SQLite's write-ahead log needs locks and shared memory that these do not provide.
_NETWORK = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "fuse",
        "gpfs",
        "lustre",
        "ncpfs",
        "orangefs",
    }
)
_LOCAL_FUSE = frozenset({"fuse.fuse-overlayfs"})  # the root of a rootless container
_LOCK_RETRY_S = 0.05
_MAGIC = b"SQLite format 3\0"  # the first bytes of every SQLite database


def file_system_of(path: Path, mountinfo: str) -> str:
    """Return the type of the file system that holds an absolute path, given the text of /proc/self/mountinfo."""
    best, kind = -1, ""
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        mount = left.split(" ")[4].encode().decode("unicode_escape")  # blanks are written \\040
        if len(mount) >= best and path.is_relative_to(mount):
            best, kind = len(mount), right.split(" ")[0]
    return kind


def refuse_network(path: Path, mountinfo: str | None = None) -> None:
    """Require a local file system.

    Raises:
        StoreRefused: the file is on a network file system.
    """
    text = Path("/proc/self/mountinfo").read_text() if mountinfo is None else mountinfo
    kind = file_system_of(path.resolve(), text)
    if kind in _NETWORK or (kind.startswith("fuse.") and kind not in _LOCAL_FUSE):
        raise StoreRefused(f"{path} lies on a network file system ({kind}), which can't keep a SQLite database safe.")


def make_private(path: Path) -> None:
    """Create the database file, or make it readable by its owner only; a file that is no database is left alone.

    Raises:
        StoreRefused: it can't be created or opened, or is something else.
    """
    os.close(_open_private(path, is_database=True))


def _open_private(path: Path, *, is_database: bool = False) -> int:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
        try:
            if is_database:
                _check_database(descriptor, path)
            os.fchmod(descriptor, 0o600)
        except BaseException:
            os.close(descriptor)
            raise
    except OSError as error:
        raise StoreRefused(f"{path} can't be opened: {error.strerror}.") from error
    return descriptor


def _check_database(descriptor: int, path: Path) -> None:
    """Refuse a file, such as a device, that LAVA_DATABASE names by mistake, before anything is changed."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise StoreRefused(f"{path} can't be opened: it is no regular file.")
    if os.pread(descriptor, len(_MAGIC), 0) not in (b"", _MAGIC):
        raise StoreRefused(f"{path} can't be opened: it is not a database of lava. See LAVA_DATABASE in lava.conf.")


def lock(path: Path, wait_s: float) -> int:
    """Lock the file beside the database for as long as the returned descriptor is open.

    Wait up to ``wait_s`` for a predecessor's writer, which may still be busy with its last commit.

    Raises:
        StoreRefused: another master holds it.
    """
    descriptor = _open_private(Path(f"{path}.lock"))
    give_up = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno != errno.EWOULDBLOCK:
                raise StoreRefused(f"{path}.lock can't be locked: {error.strerror}.") from error
            if time.monotonic() >= give_up:
                os.close(descriptor)
                raise StoreRefused(f"Another lavad is using {path}.") from None
            time.sleep(_LOCK_RETRY_S)
        else:
            return descriptor
