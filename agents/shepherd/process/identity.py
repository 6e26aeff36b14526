"""User identity of a shepherd: opens files and starts processes as a user, without ever being a process of that user.

Linux lets a user signal every process whose real or saved id is his. Both stay 0 here: files are opened under the
effective id alone, and a new process takes the real id itself, after it has left the shepherd. The shepherd never waits
for a process that its user can stop: the result of a start is read from a pipe, for a bounded time. Without root, or
for root's own jobs, no id changes.

A process does not outlive the shepherd that started it, since no other process would learn its exit code: the kernel
kills it then (PR_SET_PDEATHSIG), and the next agent kills its descendants.
"""

import contextlib
import errno
import fcntl
import os
import select
import signal
import sys
import termios
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from agents.shepherd.process import exec_helper

if TYPE_CHECKING:
    import ctypes

    from agents.shepherd.process.private_files import Namespace

# Python ignores SIGPIPE and SIGXFSZ, and ignored signals survive exec: a job gets every default back.
DEFAULT_SIGNALS = tuple(map(int, signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}))
# A program that takes longer to load (a dead file server, or its user has stopped it) counts as started.
START_S = 2.0
# Errors of a site or a file system that forbids the helper.
FORBIDDEN = (errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOEXEC, errno.ENOSYS)
CANNOT_EXEC = 127
_PR_SET_PDEATHSIG = 1
_DESCRIPTOR_MAX = 255  # the helper gets its number in one character


class Identity:
    """Identity under which this process opens files and starts processes."""

    def __init__(self, entrances: Sequence[int] = ()) -> None:
        """``entrances``: files of control groups that each new process enters by itself before its program."""
        self._root = os.geteuid() == 0
        self._entrances = entrances
        self.can_return_from_nice = self._root and _is_first_namespace()
        self._groups: tuple[int, tuple[int, ...]] | None = None
        self._uid = 0
        self._is_user = False
        self._helper = exec_helper.make() if self._root or _has_an_id() else -1
        self._libc: ctypes.CDLL | None = None  # needed without a helper
        self._unanswered: dict[int, int] = {}  # process id -> descriptor
        self._enter: Callable[[], None] | None = None  # called by a new process before its program
        self._on_terminal = False  # the first of a new process's descriptors that is a terminal controls it
        self.namespace: Namespace | None = None  # of the attempt whose files are private; made with its first process

    def open_files_as(self, uid: int, gid: int, groups: tuple[int, ...]) -> None:
        """Become the user for file access. OSError (EPERM) if this process may not."""
        if not self._root:
            return
        self._is_user = True  # even if only a part of it succeeds
        if self._groups != (gid, groups):
            os.setgroups(groups)
            os.setresgid(gid, gid, gid)
            self._groups = (gid, groups)
        self._uid = uid
        os.setresuid(0, uid, 0)

    def back(self) -> None:
        """Return to the shepherd's own identity. Safe to call again."""
        if self._is_user:
            os.setresuid(0, 0, 0)
            self._is_user = False

    def start(
        self, path: str, argv: tuple[str, ...], environment: dict[bytes, bytes], descriptors: tuple[int, ...]
    ) -> int:
        """Start a program as the user of ``open_files_as``, with these descriptors as 0, 1, ...; return its process id.

        Raises:
            OSError: it cannot be started.
        """
        ours, theirs = os.pipe2(os.O_CLOEXEC)
        try:
            try:
                pid = self._start(path, argv, environment, descriptors, theirs)
            finally:
                os.close(theirs)
            return self._answered(pid, ours)
        except OSError:
            os.close(ours)
            raise

    @contextlib.contextmanager
    def entering(self, enter: Callable[[], None]) -> Iterator[None]:
        """Let each process that is started within call this before it becomes its program."""
        self._enter = enter
        try:
            yield
        finally:
            self._enter = None

    @contextlib.contextmanager
    def on_terminal(self) -> Iterator[None]:
        """Make a terminal among the descriptors of each process that is started within its controlling terminal."""
        self._on_terminal = True
        try:
            yield
        finally:
            self._on_terminal = False

    def late_failure(self, pid: int) -> int:
        """Return the errno for which an ended process never became its program; 0 if it did."""
        answer = self._unanswered.pop(pid, -1)
        if answer < 0:
            return 0
        try:
            return _errno_in(os.read(answer, 4)) if _is_readable(answer, 0) else 0
        finally:
            os.close(answer)

    def do_as_user(self, action: Callable[[], None]) -> None:
        """Run a brief action in a process of the last user of ``open_files_as``; wait for it for a bounded time."""
        ours, theirs = os.pipe2(os.O_CLOEXEC)
        if os.fork() == 0:
            try:
                _become(self._uid, ())
                action()
            except OSError as error:
                print(f"event=not_done_as_user uid={self._uid} error={error}", file=sys.stderr)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(0)
        os.close(theirs)
        _is_readable(ours, START_S)
        os.close(ours)

    def _start(
        self,
        path: str,
        argv: tuple[str, ...],
        environment: dict[bytes, bytes],
        descriptors: tuple[int, ...],
        theirs: int,
    ) -> int:
        terminal = next(filter(os.isatty, descriptors), -1) if self._on_terminal else -1
        given = (theirs, *self._entrances)
        if self._helper >= 0 and max(given) <= _DESCRIPTOR_MAX and self._enter is None:
            words: tuple[str | bytes, ...] = (bytes(given), path, *argv)
            try:
                with _inherited(given):
                    return _posix_spawn(f"/proc/self/fd/{self._helper}", words, environment, descriptors, terminal)
            except OSError as error:
                if error.errno not in FORBIDDEN:
                    raise
                print(f"event=helper_not_executable error={error.strerror!r}", file=sys.stderr)
                self._helper = -1
        if self._libc is None:
            self._libc = _c_library()
        return _fork(path, argv, environment, descriptors, given, self._libc, self._enter, terminal)

    def _answered(self, pid: int, ours: int) -> int:
        if not _is_readable(ours, START_S):
            self._unanswered[pid] = ours
            return pid
        failure = _errno_in(os.read(ours, 4))
        if failure:
            raise OSError(failure, os.strerror(failure))
        os.close(ours)
        return pid


def _has_an_id() -> bool:
    """Return True if this user has an id here: without a map a user namespace has none, not even the present one."""
    try:
        os.setresuid(*os.getresuid())
    except OSError:
        return False
    return True


def _is_first_namespace() -> bool:
    """Return True if root here is root of the machine: only that one may raise its own priority again."""
    with open("/proc/self/uid_map", encoding="ascii") as file:
        return file.read().split() == ["0", "0", "4294967295"]


def _is_readable(descriptor: int, limit_s: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(limit_s * 1000))


def _errno_in(answer: bytes) -> int:
    return int.from_bytes(answer, sys.byteorder)


@contextlib.contextmanager
def _inherited(descriptors: Sequence[int]) -> Iterator[None]:
    """Let programs that are started within have these descriptors."""
    for descriptor in descriptors:
        os.set_inheritable(descriptor, True)
    try:
        yield
    finally:
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)


def _posix_spawn(
    path: str,
    argv: tuple[str | bytes, ...],
    environment: dict[bytes, bytes],
    descriptors: tuple[int, ...],
    terminal: int,
) -> int:
    actions: list[tuple[Any, ...]] = []
    if terminal >= 0:  # the leader of a new session gets the first terminal that it opens
        actions.append((os.POSIX_SPAWN_OPEN, 0, f"/proc/self/fd/{terminal}", os.O_RDWR, 0))
    actions += [(os.POSIX_SPAWN_DUP2, source, target) for target, source in enumerate(descriptors)]
    return os.posix_spawn(
        path, argv, environment, file_actions=actions, setsid=True, setsigmask=(), setsigdef=DEFAULT_SIGNALS
    )


def _c_library() -> "ctypes.CDLL":
    import ctypes  # takes 8 ms, and is only needed without a helper

    return ctypes.CDLL(None)


def _fork(
    path: str,
    argv: tuple[str, ...],
    environment: dict[bytes, bytes],
    descriptors: tuple[int, ...],
    given: tuple[int, ...],
    libc: "ctypes.CDLL",
    enter: Callable[[], None] | None,
    terminal: int,
) -> int:
    """Fork, and act as the helper in the child, at ten times the cost."""
    pid = os.fork()
    if pid:
        return pid
    theirs, *entrances = given
    try:
        for group in entrances:
            os.write(group, b"0")
        _become(os.geteuid(), descriptors, terminal)
        if enter is not None:
            enter()
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # after the ids, since their change would clear it
        os.execve(path, argv, environment)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.write(theirs, (error.errno or errno.EIO).to_bytes(4, sys.byteorder))
    except BaseException:
        traceback.print_exc()
        with contextlib.suppress(OSError):
            os.write(theirs, errno.EINVAL.to_bytes(4, sys.byteorder))
    finally:
        os._exit(CANNOT_EXEC)


def _become(user: int, descriptors: tuple[int, ...], terminal: int = -1) -> None:
    signal.set_wakeup_fd(-1)
    if os.getresuid() != (user, user, user):
        os.setresuid(user, user, user)
    os.setsid()
    if terminal >= 0:
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    for target, source in enumerate(descriptors):
        os.dup2(source, target)
    for number in DEFAULT_SIGNALS:
        with contextlib.suppress(OSError):  # the C library keeps some for itself
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
