"""Staging of a job's code: a directory or file is copied beside the task that needs it, whole or not at all.

Sources are paths, ``file://``, archives and files of ``http(s)://``, repositories of git, and ``hdfs://`` of hosts
that have its program. The copy is named after the last component of the source: of a repository without ``.git``, of
an archive that is unpacked without its suffix. What is too large is refused: paths and archives before they are copied
or unpacked, a download when it passes the bound, repositories and ``hdfs://`` when all of it is there.
"""

import os
import re
import shutil
import stat
import subprocess

from lavactl.errors import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import tarfile
    from collections.abc import Iterator, Mapping
    from typing import BinaryIO

MIB = 1 << 20
CHUNK = 1 << 20
WAIT_S = 30.0  # longest silence of a server
ARCHIVE = re.compile(r"\.(tar|tar\.gz|tgz|tar\.bz2|tbz2|tar\.xz|txz|zip)$", re.IGNORECASE)
GIT = re.compile(r"git\+|git://|ssh://|[\w.-]+@[\w.-]+:(?!//)|[^#@?]*\.git(?=$|[#@/])")
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
COMMIT = re.compile(r"[0-9a-f]{7,40}")
KINDS = "a path, file://, http(s)://, git+URL, a URL that ends in .git, or hdfs://"


def stage(source: str, directory: str, bytes_max: int, replaces: bool = False) -> str:
    """Copy a source into a directory; returns the path of the copy.

    Args:
        bytes_max: size above which it is refused; 0 for no bound.
        replaces: an entry of that name in the directory gives way; without it that is an error.

    Raises:
        CommandError: it cannot be copied; nothing of it is left, and what it was to replace is still there.
    """
    name = name_of(source)
    target, part = os.path.join(directory, name), os.path.join(directory, f".{name}.part")
    former = os.path.join(directory, f".{name}.former")
    if os.path.lexists(target) and not replaces:
        raise CommandError(f"{source}: there is a {name} in {directory} already.")
    if _is_within(target, source):
        raise CommandError(f"{source}: it cannot be copied to {directory}, where it lies.")
    try:
        try:
            _remove(part)
            _remove(former)
            _take_place(_fetch(source, part, bytes_max), target, former)
        finally:
            _remove(part)
        _remove(former)
    except OSError as error:
        raise CommandError(f"{source}: {_said(error, directory)}.") from None
    return target


def _take_place(made: str, target: str, former: str) -> None:
    """Rename what was made to the target; what is there is set aside for it, and put back if that fails."""
    there = os.path.lexists(target)
    if there:
        os.rename(target, former)
    try:
        os.rename(made, target)
    except OSError:
        if there:
            os.rename(former, target)
        raise


def _said(error: OSError, directory: str) -> str:
    """File and cause of an error; of several in a tree the first."""
    if isinstance(error, shutil.Error) and isinstance(error.args[0], list) and error.args[0]:
        path, _, cause = error.args[0][0]
        return f"{path}: {re.sub(r'^.Errno [0-9]+. |: .*$', '', str(cause))}"
    return f"{error.filename or directory}: {error.strerror or error}"


def expanded(source: str, environment: "Mapping[str, str]") -> str:
    """Source with the values of the variables that it names.

    Raises:
        CommandError: one of them is not set.
    """

    def value(found: "re.Match[str]") -> str:
        name = found[1] or found[2]
        if name not in environment:
            raise CommandError(f"{source}: the variable {name} is not set.")
        return environment[name]

    return VARIABLE.sub(value, source)


def name_of(source: str) -> str:
    """Name of the copy.

    Raises:
        CommandError: the source has no last component.
    """
    path = re.split(r"[#?]", source, maxsplit=1)[0] if SCHEME.match(source) or GIT.match(source) else source
    name = re.split(r"[/:]", path.rstrip("/"))[-1]
    if GIT.match(source):
        name = name.partition("@")[0].removesuffix(".git")
    elif source.startswith(("http://", "https://")):
        name = ARCHIVE.sub("", name)
    if name in ("", ".", "..") or (SCHEME.match(source) and path.rstrip("/").endswith(":")):
        raise CommandError(f"{source}: it names no directory or file; {KINDS} is expected.")
    return name


def _fetch(source: str, part: str, bytes_max: int) -> str:
    """Copy to ``part``; returns the path of what is to be renamed, which is it or an entry in it."""
    scheme = SCHEME.match(source)
    if GIT.match(source):
        return _clone(source, part, bytes_max)
    if scheme is None:
        return _copy(source, source, part, bytes_max)
    if scheme[1] == "file":
        return _copy(source, _path_of(source), part, bytes_max)
    if scheme[1] in ("http", "https"):
        return _download(source, part, bytes_max)
    if scheme[1] == "hdfs":
        return _from_hdfs(source, part, bytes_max)
    raise CommandError(f"{source}: {scheme[1]}:// is not known; {KINDS} is expected.")


def _path_of(source: str) -> str:
    from urllib.parse import unquote, urlsplit

    parts = urlsplit(source)
    if parts.netloc not in ("", "localhost"):
        raise CommandError(f"{source}: file:// takes no host; three slashes begin a path.")
    return unquote(parts.path)


# -- from this host ----------------------------------------------------------------------------------------------------


def _copy(source: str, path: str, part: str, bytes_max: int) -> str:
    _measure(source, path, bytes_max)
    if os.path.isdir(path):
        shutil.copytree(path, part, symlinks=True, copy_function=shutil.copy2)
    else:
        shutil.copy2(path, part)
    return part


def _measure(source: str, path: str, bytes_max: int) -> None:
    """Refuse what is too large, or holds more than files, directories and links."""
    total = 0
    for one in _entries(os.path.realpath(path)):
        status = os.lstat(one)
        if stat.S_ISREG(status.st_mode):
            total += status.st_size
        elif not (stat.S_ISDIR(status.st_mode) or stat.S_ISLNK(status.st_mode)):
            raise CommandError(f"{source}: {one} is neither a file nor a directory.")
        _refuse_size(source, total, bytes_max)


def _entries(path: str) -> "Iterator[str]":
    os.stat(path)
    yield path
    for folder, folders, files in os.walk(path, onerror=_raise):
        for name in (*folders, *files):
            yield os.path.join(folder, name)


def _raise(error: OSError) -> None:
    raise error


def _refuse_size(source: str, total: int, bytes_max: int) -> None:
    if bytes_max and total > bytes_max:
        raise CommandError(f"{source}: it is larger than {bytes_max // MIB} MiB, the limit.")


# -- from elsewhere ----------------------------------------------------------------------------------------------------


def _download(source: str, part: str, bytes_max: int) -> str:
    """Fetch a file of a web server; an archive is unpacked."""
    import http.client
    import urllib.error
    import urllib.request

    os.mkdir(part)
    name = re.split(r"[#?]", source, maxsplit=1)[0].rstrip("/").rpartition("/")[2]
    file = os.path.join(part, "file")
    try:
        with urllib.request.urlopen(source, timeout=WAIT_S) as reply, open(file, "wb") as out:
            _refuse_size(source, int(reply.headers.get("Content-Length") or 0), bytes_max)
            _pour(source, reply, out, bytes_max)
    except urllib.error.HTTPError as error:
        raise CommandError(f"{source}: {error.code} {error.reason}.") from None
    except urllib.error.URLError as error:
        raise CommandError(f"{source}: {getattr(error.reason, 'strerror', None) or error.reason}.") from None
    except (http.client.HTTPException, ValueError, TimeoutError) as error:
        raise CommandError(f"{source}: it cannot be fetched: {str(error) or type(error).__name__}.") from None
    return _unpack(source, file, part, bytes_max) if ARCHIVE.search(name) else file


def _pour(source: str, reply: "BinaryIO", out: "BinaryIO", bytes_max: int) -> None:
    total = 0
    while chunk := reply.read(CHUNK):
        total += len(chunk)
        _refuse_size(source, total, bytes_max)
        out.write(chunk)


def _unpack(source: str, file: str, part: str, bytes_max: int) -> str:
    """Unpack an archive; the only directory at its top, if that is all it has, is the copy itself."""
    import lzma
    import tarfile
    import zipfile
    import zlib

    broken = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError, ValueError)
    tree = os.path.join(part, "tree")
    os.mkdir(tree)
    try:
        if zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as packed:
                _refuse_size(source, sum(one.file_size for one in packed.infolist()), bytes_max)
                packed.extractall(tree)
        else:
            with tarfile.open(file) as archive:
                _extract(source, archive, tree, bytes_max)
    except broken as error:
        said = str(error) or type(error).__name__
        raise CommandError(f"{source}: this archive cannot be unpacked: {said.rstrip('.')}.") from None
    found = os.listdir(tree)
    only = os.path.join(tree, found[0]) if len(found) == 1 else ""
    return only if only and os.path.isdir(only) and not os.path.islink(only) else tree


def _extract(source: str, archive: "tarfile.TarFile", tree: str, bytes_max: int) -> None:
    """Unpack files, directories and links that stay within the tree; Python itself checks that from 3.11.4 on."""
    import tarfile

    members = archive.getmembers()
    _refuse_size(source, sum(one.size for one in members), bytes_max)
    for one in members:
        goal = os.path.join(os.path.dirname(one.name) if one.issym() else "", one.linkname)
        paths = [one.name, goal] if one.issym() or one.islnk() else [one.name]
        if one.isdev() or any(os.path.normpath(path).startswith(("/", "..")) for path in paths):
            raise CommandError(f"{source}: {one.name} is outside of the archive, or a device.")
    if hasattr(tarfile, "data_filter"):
        archive.extractall(tree, members, filter="data")
    else:
        archive.extractall(tree, members)


def _clone(source: str, part: str, bytes_max: int) -> str:
    """Clone a repository; ``#NAME``, or ``@NAME`` behind ``.git``, is a branch, a tag or a commit."""
    url, _, name = source.removeprefix("git+").partition("#")
    if not name and (behind := re.search(r"\.git@([\w./-]+)$", url)):
        url, name = url[: behind.start() + len(".git")], behind[1]
    if COMMIT.fullmatch(name):
        _call(source, ["git", "clone", "--quiet", "--", url, part])
        _call(source, ["git", "-C", part, "checkout", "--quiet", "--detach", name])
    else:
        branch = ["--branch", name] if name else []
        _call(source, ["git", "clone", "--quiet", "--depth", "1", *branch, "--", url, part])
    _measure(source, part, bytes_max)
    return part


def _from_hdfs(source: str, part: str, bytes_max: int) -> str:
    _call(source, ["hdfs", "dfs", "-copyToLocal", source, part])
    _measure(source, part, bytes_max)
    return part


def _call(source: str, words: list[str]) -> None:
    """Run a program that copies; what it says last is the reason if it fails."""
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, env=environment, check=False)
    except FileNotFoundError:
        raise CommandError(f"{source}: this host has no program {words[0]}.") from None
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        said = next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1] if lines else "")
        raise CommandError(f"{source}: {words[0]} failed: {said.rstrip('.') or f'exit code {done.returncode}'}.")


def _is_within(target: str, source: str) -> bool:
    """True if the target is a local source, or lies in it."""
    if SCHEME.match(source) and not source.startswith("file://"):
        return False
    path = os.path.realpath(source.removeprefix("file://"))
    return f"{os.path.realpath(target)}/".startswith(f"{path}/")


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        try:
            shutil.rmtree(path)
        except PermissionError:
            _unlock(path)
            shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def _unlock(path: str) -> None:
    """Let what is in directories without write permission, which a copy has from its source, be removed."""
    os.chmod(path, 0o700)
    for folder, folders, _ in os.walk(path):
        for name in folders:
            if not os.path.islink(one := os.path.join(folder, name)):
                os.chmod(one, 0o700)
