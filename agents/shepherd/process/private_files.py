"""Private files of an attempt: a mount namespace in which its processes, and no others, see files at fixed paths.

The agent keeps the files in a directory that mirrors the root: TREE/etc/volcano/ps.host appears as
/etc/volcano/ps.host. Nothing is made on the host itself. A directory that the host has not is a bind mount of the
agent's; one that it has is covered by a file system in memory with its own entries and the agent's. So a file that the
agent replaces changes for running processes, too, whole. Mounts of the host appear here later as well (an automounter's
must), ours never there.

Root's shepherd makes the namespace once and is in it for the moment in which it starts a process. An ordinary user's
needs a user namespace around it, from which there is no way back: each new process enters both by itself.
"""

import contextlib
import ctypes
import errno
import os
import stat
import sys
import traceback
from collections.abc import Iterator
from typing import NamedTuple

from agents.shepherd.messages import JobSetup
from agents.shepherd.process.identity import Identity
from agents.shepherd.process.start import HostFailure, StartFailure

ORIGINAL = ".lava-original"  # in a covered directory: the host's own
MADE_S = 10.0  # longest making of a user's namespace
# More than links and empty files need: what root's jobs write to a covered directory stays in memory.
COVER = b"size=16m,mode="

CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_NOSUID, MS_NODEV, MS_BIND, MS_MOVE, MS_REC = 0x2, 0x4, 0x1000, 0x2000, 0x4000
MS_UNBINDABLE, MS_SLAVE = 0x20000, 0x80000
_libc = ctypes.CDLL(None, use_errno=True)


class Namespace(NamedTuple):
    """Descriptors of a namespace: of its mounts, and of its users (-1 for the shepherd's own)."""

    tree: str
    mounts: int
    users: int


@contextlib.contextmanager
def seen(identity: Identity, setup: JobSetup, cwd: str) -> Iterator[None]:
    """Start processes of an attempt in this directory, as its user, where its files are at their paths.

    Called with the shepherd's own identity, which it has afterwards, with "/" as its directory.

    Raises:
        HostFailure: this host does not let a namespace be made.
        StartFailure: the directory is not there.
    """
    namespace = _namespace(identity, setup.private_files)
    if namespace.users >= 0:
        with identity.entering(lambda: enter_for_good(namespace, cwd)):
            yield
        return
    with entered(namespace):
        identity.open_files_as(setup.uid, setup.gid, setup.groups)
        try:
            _change_to(cwd)
            yield
        finally:
            identity.back()


def forget(identity: Identity) -> None:
    """Let go of the namespace of an earlier attempt: it ends with its last process."""
    if identity.namespace is not None:
        for descriptor in identity.namespace[1:]:
            if descriptor >= 0:
                os.close(descriptor)
        identity.namespace = None


def _namespace(identity: Identity, tree: str) -> Namespace:
    if identity.namespace is None or identity.namespace.tree != tree:
        forget(identity)
        try:
            identity.namespace = make(tree)
        except OSError as error:
            raise HostFailure(f"the job's files can't be put at their paths: {error}") from None
    return identity.namespace


def _change_to(cwd: str) -> None:
    try:
        os.chdir(cwd)
    except OSError as error:
        raise StartFailure(2, f"The directory {cwd} cannot be entered: {error.strerror}.") from None


@contextlib.contextmanager
def entered(namespace: Namespace) -> Iterator[None]:
    """Be in a namespace of root's; leave it at the end. The working directory is "/" in between and afterwards."""
    home = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _call("setns", namespace.mounts, CLONE_NEWNS)
        yield
    finally:
        _call("setns", home, CLONE_NEWNS)
        os.close(home)


def enter_for_good(namespace: Namespace, cwd: str) -> None:
    """Enter both namespaces, in a process that is about to become the user's program."""
    _call("setns", namespace.users, CLONE_NEWUSER)
    _call("setns", namespace.mounts, CLONE_NEWNS)
    os.chdir(cwd)


def make(tree: str) -> Namespace:
    """Make a namespace with the files of a tree.

    Raises:
        OSError: this host does not let it be made.
    """
    return _make_as_root(tree) if os.geteuid() == 0 else _make_as_user(tree)


def _make_as_root(tree: str) -> Namespace:
    root = os.open("/", os.O_PATH | os.O_CLOEXEC)
    home = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _call("unshare", CLONE_NEWNS)
        try:
            _build(tree)
            mounts = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        finally:
            _call("setns", home, CLONE_NEWNS)
        if not os.path.samestat(os.fstat(root), os.stat("/")):  # an agent in a changed root directory
            os.close(mounts)
            os.fchdir(root)
            os.chroot(".")
            raise OSError(errno.EXDEV, "the agent's root directory is not that of its mount namespace")
        return Namespace(tree, mounts, -1)
    finally:
        os.close(home)
        os.close(root)


def _make_as_user(tree: str) -> Namespace:
    """Let a process make both namespaces, and take hold of them while it waits."""
    told, tell = os.pipe2(os.O_CLOEXEC)
    awaited, go = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        os.close(go)
        _make_and_wait(tree, tell, awaited)
    os.close(tell)
    os.close(awaited)
    try:
        failure = int.from_bytes(os.read(told, 4), sys.byteorder)
        if failure:
            raise OSError(failure, os.strerror(failure))
        users, mounts = (os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in ("user", "mnt"))
        return Namespace(tree, mounts, users)
    finally:
        os.close(told)
        os.close(go)
        with contextlib.suppress(ChildProcessError):  # reaped by the shepherd's loop
            os.waitpid(pid, 0)


def _make_and_wait(tree: str, tell: int, awaited: int) -> None:
    code = errno.EINVAL
    try:
        uid, gid = os.geteuid(), os.getegid()
        _call("unshare", CLONE_NEWUSER | CLONE_NEWNS)
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
        _build(tree)
        code = 0
    except OSError as error:
        code = error.errno or errno.EIO
    except BaseException:
        traceback.print_exc()
    finally:
        os.write(tell, code.to_bytes(4, sys.byteorder))
        os.read(awaited, 1)  # until the shepherd holds the namespaces, or is gone
        os._exit(0)


def _build(tree: str) -> None:
    """Lay the tree over the root of this process's new namespace."""
    _mount("none", "/", MS_REC | MS_SLAVE)
    source = os.open(tree, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)  # reachable even while it is covered itself
    try:
        _reveal(f"/proc/self/fd/{source}", tree, "")
    finally:
        os.close(source)


def _reveal(source: str, tree: str, path: str) -> None:
    """Make the entries of ``source`` appear in a directory of the host (``path``; empty for the root)."""
    with os.scandir(source) as found:
        entries = {entry.name: entry.is_dir(follow_symlinks=False) for entry in found}
    own = {name for name, is_folder in entries.items() if not is_folder or not os.path.isdir(f"{path}/{name}")}
    if own:
        if path:
            _cover(source, tree + path, path, own)
        else:
            _cover_root(source, tree, own)
    for name in entries.keys() - own:
        _reveal(f"{source}/{name}", tree, f"{path}/{name}")


def _cover(source: str, kept: str, path: str, own: set[str]) -> None:
    """Cover a directory by one in memory, with its own entries and some of ``source``."""
    below = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        status = os.fstat(below)
        _mount("tmpfs", path, MS_NOSUID | MS_NODEV, "tmpfs", COVER + b"%o" % stat.S_IMODE(status.st_mode))
        _mount("none", path, MS_UNBINDABLE)  # else it would cover its original, too
        _give(path, status)
        under = f"/proc/self/fd/{below}"
        _bind(under, f"{path}/{ORIGINAL}")
        for name in set(os.listdir(under)) - own - {ORIGINAL}:  # which it has in a job's own cluster
            _repeat(f"{under}/{name}", f"{path}/{name}", f"{ORIGINAL}/{name}")
        for name in own:
            _add(f"{source}/{name}", f"{path}/{name}", f"{kept}/{name}")
        _mount("none", path, MS_SLAVE)
    finally:
        os.close(below)


def _repeat(original: str, place: str, link: str) -> None:
    """Repeat an entry: a directory at its own place, so that links out of it hold; a file as a link.

    The file may be replaced on the host.
    """
    status = os.lstat(original)
    if stat.S_ISLNK(status.st_mode):
        os.symlink(os.readlink(original), place)
    elif stat.S_ISDIR(status.st_mode):
        _bind(original, place)
    else:
        os.symlink(link, place)


def _add(source: str, place: str, kept: str) -> None:
    """Add an entry of the tree: a directory itself, a file as a link, so that both follow what the agent writes."""
    if os.path.isdir(source):
        _bind(source, place)
    else:
        os.symlink(kept, place)


def _cover_root(source: str, tree: str, own: set[str]) -> None:
    """Put a new root together, on top of the tree itself for want of another place, and move it to the root."""
    _mount("tmpfs", tree, MS_NOSUID | MS_NODEV, "tmpfs", COVER + b"755")
    _mount("none", tree, MS_UNBINDABLE)  # else it would be part of what is bound into it
    for name in set(os.listdir("/")) - own:
        if os.path.islink(f"/{name}"):
            os.symlink(os.readlink(f"/{name}"), f"{tree}/{name}")
        else:
            _bind(f"/{name}", f"{tree}/{name}")
    for name in own:
        _bind(f"{source}/{name}", f"{tree}/{name}")
    _mount(tree, "/", MS_MOVE)
    _mount("none", "/", MS_SLAVE)
    again = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    _call("setns", again, CLONE_NEWNS)  # so that "/" means the new one
    os.close(again)


def _bind(source: str, place: str) -> None:
    """Show a directory or a file at a second place, which is made."""
    if os.path.isdir(source):
        os.mkdir(place, 0o755)
    else:
        os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
    _mount(source, place, MS_BIND | MS_REC)


def _give(path: str, status: os.stat_result) -> None:
    """Give a directory the owner of another, as far as this user namespace has that id."""
    with contextlib.suppress(OSError):
        os.chown(path, status.st_uid, status.st_gid)


def _mount(source: str, place: str, flags: int, kind: str = "none", data: bytes = b"") -> None:
    _call("mount", os.fsencode(source), os.fsencode(place), kind.encode(), ctypes.c_ulong(flags), data)


def _call(name: str, *arguments: object) -> None:
    """Call a function of the C library that returns 0."""
    if getattr(_libc, name)(*arguments):
        code = ctypes.get_errno()
        words = [str(word) for word in arguments if isinstance(word, bytes)]
        raise OSError(code, os.strerror(code), f"{name} {' '.join(words)}".rstrip())
