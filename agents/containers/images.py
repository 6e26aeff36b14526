"""Images: kinds, and the import of one that a runtime cannot use as it is.

An import is done once for a directory of images, which all hosts may share: others of the same image wait for it under
a lock of the file system. An image appears under its name when it is complete. A user's job uses only images of root
and of the user, unless the site trusts all its users in this.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
import pwd
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from agents.containers.settings import ContainerSettings

ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.zst", ".tar.bz2")
UNPACKED = 4  # times the size of a compressed archive
MIB = 1 << 20


class ImageError(Exception):
    """An image that cannot be used; the text is one sentence for the job's user."""


class Kind(Enum):
    """Kind of an image; the value is how a message calls it."""

    DIRECTORY = "a root directory"
    SIF = "an image file of Apptainer"
    ARCHIVE = "an archive of a root directory"
    REGISTRY = "an image of a registry"


class Image(NamedTuple):
    """An image as a job names it; ``source`` is its absolute path, or its reference in a registry."""

    kind: Kind
    source: str


def image_of(text: str, cwd: str, home: str) -> Image:
    """Tell the kind of an image.

    A path begins with a slash, a dot or a tilde, or has the ending of a file; all else names an image of a registry.

    Raises:
        ImageError: there is no such file or directory.
    """
    scheme, mark, rest = text.partition("://")
    if mark and scheme != "file":
        return Image(Kind.REGISTRY, text)
    text = rest if mark else text
    is_path = mark or text.startswith(("/", "./", "../", "~/")) or text.endswith((".sif", *ARCHIVES))
    if not is_path:
        return Image(Kind.REGISTRY, text)
    path = os.path.normpath(os.path.join(cwd, home + text[1:] if text.startswith("~/") else text))
    try:
        is_directory = stat.S_ISDIR(os.stat(path).st_mode)
    except OSError as error:
        raise ImageError(f"The image {path} cannot be used: {error.strerror}.") from None
    if is_directory:
        return Image(Kind.DIRECTORY, path)
    return Image(Kind.ARCHIVE if path.endswith(ARCHIVES) else Kind.SIF, path)


class ImageDirectory:
    """Directory of imported images.

    Any user may write to one that the site shares, so nothing in it is believed by its name: its owner and mode, and
    those of the user's own directory in it, are read from what was opened, without following a link. An image is used
    only where no other user than root can put another in its place.
    """

    def __init__(self, settings: ContainerSettings, home: str) -> None:
        self.path = Path(settings.image_dir or f"{home}/.cache/lava/images")
        self._settings = settings

    def imported(self, image: Image, ending: str, make: Callable[[str], list[str]]) -> str:
        """Return the path of an image in this directory; import it if it is not there.

        Args:
            ending: of its name, such as ".sif".
            make: returns the command that makes the image at a path that does not exist yet.

        Raises:
            ImageError: it cannot be imported; nothing is left of the attempt.
        """
        name = _name(image) + ending
        found = self._found_in(self.path, name)
        if found:
            return found
        own = self._own
        try:
            own.mkdir(mode=0o755, parents=True, exist_ok=True)
            self._check(own)
            with _locked(own / f"{name}.lock", image, self._settings.trusts_all):
                found = self._found_in(own, name)
                if not found:
                    self._import(image, own / name, make)
        except OSError as error:
            raise ImageError(f"The image {image.source} cannot be imported to {own}: {_why(error)}.") from None
        return found or str(own / name)

    @property
    def _own(self) -> Path:
        is_shared = self._settings.image_dir and not self._settings.trusts_all and os.geteuid()
        return self.path / f"user-{os.geteuid()}" if is_shared else self.path

    def _check(self, own: Path) -> None:
        """Check that no other user can exchange the entries of this directory, or the directory itself.

        Raises:
            ImageError: another user can: it is not used.
        """
        for path in () if self._settings.trusts_all else dict.fromkeys((self.path, own)):
            if why := self._unsafe_directory(path):
                raise ImageError(f"The directory of images {path} is not used: {why}.")

    def _found_in(self, directory: Path, name: str) -> str:
        """Return the path of an image that this user may rely on; empty if there is none."""
        if self._settings.trusts_all:
            return str(directory / name) if os.path.lexists(directory / name) else ""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            if not self._unsafe_directory(directory) and not _unsafe(directory / name, os.O_NOFOLLOW, is_image=True):
                return str(directory / name)
        return ""

    def _unsafe_directory(self, directory: Path) -> str:
        return _unsafe(directory, 0 if directory == self.path else os.O_NOFOLLOW)  # the site's own path may be a link

    def _import(self, image: Image, place: Path, make: Callable[[str], list[str]]) -> None:
        for left in place.parent.glob(f"{place.name}.part-*"):  # of an import that was killed
            _remove(left)
        self._check_space(image, place.parent)
        print(f"lava: importing the image {image.source}", file=sys.stderr, flush=True)
        part = tempfile.mkdtemp(prefix=f"{place.name}.part-", dir=place.parent)
        made = f"{part}/image"
        try:
            environment = {**os.environ, "APPTAINER_TMPDIR": part, "APPTAINER_CACHEDIR": f"{part}/cache"}
            done = subprocess.run(
                make(made), env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
            )
            if done.returncode:
                said = (done.stderr or done.stdout).strip().splitlines()
                raise ImageError(f"The image {image.source} cannot be imported: {said[-1] if said else done.args[0]}")
            os.chmod(made, 0o755)
            os.rename(made, place)
        finally:
            _remove(Path(part))

    def _check_space(self, image: Image, directory: Path) -> None:
        wanted = self._settings.space_mib
        if image.kind == Kind.ARCHIVE:
            times = 1 if image.source.endswith(".tar") else UNPACKED
            wanted += times * os.stat(image.source).st_size // MIB
        free = shutil.disk_usage(directory).free // MIB
        if free < wanted:
            raise ImageError(
                f"The image {image.source} is not imported: that may need {wanted} MiB in {directory}, "
                f"where {free} MiB are free."
            )


def _name(image: Image) -> str:
    """Return a name for an image: of a file also by its time and size, so that a changed one is another."""
    key = image.source
    if image.kind != Kind.REGISTRY:
        status = os.stat(image.source)
        key += f" {status.st_mtime_ns} {status.st_size} {status.st_ino}"
    readable = re.sub(r"[^A-Za-z0-9.]+", "-", image.source.rpartition("/")[2])[:40].strip("-.")
    return f"{readable}-{hashlib.sha256(os.fsencode(key)).hexdigest()[:16]}"


def _unsafe(path: Path, flags: int, is_image: bool = False) -> str:
    """Return why another user could change what this path leads to, as far as its last part; empty if none could.

    Others may write to a directory only where they can neither rename nor remove what is not theirs, as in /tmp; to an
    image never.

    Raises:
        OSError: there is nothing at the path.
    """
    there = os.open(path, os.O_PATH | os.O_CLOEXEC | flags)
    try:
        found = os.fstat(there)
    finally:
        os.close(there)
    if stat.S_ISLNK(found.st_mode):
        return "it is a symbolic link"
    if found.st_uid not in (0, os.geteuid()):
        return f"it belongs to {_user(found.st_uid)}; an administrator may remove it"
    if found.st_mode & 0o022 and (is_image or not found.st_mode & stat.S_ISVTX):
        return f"others may change it (mode {stat.S_IMODE(found.st_mode):o})"
    return ""


def _user(uid: int) -> str:
    try:
        return f"the user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"the user with the number {uid}"


@contextlib.contextmanager
def _locked(path: Path, image: Image, is_shared: bool) -> Iterator[None]:
    """Hold the lock of an import, of this user or of all that share it; it ends with the process that has it."""
    lock = _lock_at(path)
    try:
        if not is_shared and os.fstat(lock).st_uid != os.geteuid():
            raise ImageError(f"The image {image.source} cannot be imported: {path} is another user's lock.")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"lava: waiting for another import of the image {image.source}", file=sys.stderr, flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _lock_at(path: Path) -> int:
    """Open a lock; one of another user cannot be opened for making it where all may write."""
    while True:
        with contextlib.suppress(FileNotFoundError):
            return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with contextlib.suppress(FileExistsError):
            return os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)


def _remove(path: Path) -> None:
    """Remove a part of an image, whose directories may be read-only.

    What is no directory, or of another user, stays: users may write to a directory of images that they share, and a
    link there may lead anywhere.
    """
    try:
        part = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if os.fstat(part).st_uid != os.geteuid():
            return
        here = f"/proc/{os.getpid()}/fd/{part}"
        subprocess.run(["chmod", "-R", "u+rwX", "--", "."], cwd=here, capture_output=True, check=False)
    finally:
        os.close(part)
    shutil.rmtree(path, ignore_errors=True)


def _why(error: OSError) -> str:
    if error.errno == errno.ENOENT and error.filename:
        return f"there is no {error.filename}"
    return error.strerror or str(error)
