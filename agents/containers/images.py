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
    """Directory of imported images."""

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
        found = self._usable(name)
        if found:
            return found
        place = self._own / name
        try:
            place.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            with _locked(place.with_name(f"{name}.lock"), image):
                found = self._usable(name)
                if not found:
                    self._import(image, place, make)
        except OSError as error:
            raise ImageError(f"The image {image.source} cannot be imported to {place.parent}: {_why(error)}.") from None
        return found or str(place)

    @property
    def _own(self) -> Path:
        is_shared = self._settings.image_dir and not self._settings.trusts_all and os.geteuid()
        return self.path / f"user-{os.geteuid()}" if is_shared else self.path

    def _usable(self, name: str) -> str:
        """Return the path of an image that this user may rely on; empty if there is none."""
        for path in (self.path / name, self._own / name):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                owner = os.stat(path, follow_symlinks=False).st_uid
                if self._settings.trusts_all or owner in (0, os.geteuid()):
                    return str(path)
        return ""

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


@contextlib.contextmanager
def _locked(path: Path, image: Image) -> Iterator[None]:
    """Hold the lock of an import; it ends with the process that has it."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    lock = os.open(path, flags, 0o666)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"lava: waiting for another import of the image {image.source}", file=sys.stderr, flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


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
