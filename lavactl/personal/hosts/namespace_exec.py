"""Start program of every process of a personal cluster: makes or enters namespaces, then execs the process.

Called as `python -m lavactl.personal.hosts.namespace_exec SPEC`, SPEC being the JSON of a `Passage`. The process starts
as a clean daemon: own session, default signals, umask 022, directory /, only the given environment, output appended to
a log. A failure writes one sentence to `error_fd` and exits with 127; exec closes that descriptor, so its reader needs
no timer.
Only the standard library is imported: a cluster of many hosts starts many of these.
"""

import ctypes
import json
import os
import signal
import socket
import stat
import subprocess
import sys
from dataclasses import asdict, dataclass, field

CLONE_FLAGS = {"user": 0x10000000, "mnt": 0x00020000, "uts": 0x04000000, "net": 0x40000000}
MS_BIND, MS_REC, MS_SLAVE, MS_NOSUID, MS_NODEV = 0x1000, 0x4000, 0x80000, 0x2, 0x4
PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, PR_CAP_AMBIENT_CLEAR_ALL = 47, 2, 4
CAPABILITY_VERSION_3 = 0x20080522
FAILED = 127
STEP_TIMEOUT_S = 20
LOG_MAX = 16 << 20

_libc = ctypes.CDLL(None, use_errno=True)


class DoorError(Exception):
    """Failure of one step; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Passage:
    """Specification of a process to start, with its namespaces; their kinds are user, net, uts, mnt."""

    argv: list[str]
    environment: dict[str, str]
    enter_pid: int = 0
    enter: list[str] = field(default_factory=list)
    unshare: list[str] = field(default_factory=list)
    hostname: str = ""
    binds: list[tuple[str, str]] = field(default_factory=list)
    own_shared_memory: bool = False
    steps: list[tuple[list[str], str]] = field(default_factory=list)  # run inside first: argv, standard input
    groups: list[str] = field(default_factory=list)  # control groups to join
    log: str = ""
    error_fd: int = -1

    def text(self) -> str:
        """JSON form, the argument of the program."""
        return json.dumps(asdict(self))


def _check(result: int, what: str) -> None:
    if result != 0:
        raise DoorError(f"{what}: {os.strerror(ctypes.get_errno())}")


def enter_namespaces(pid: int, kinds: list[str]) -> None:
    """Join namespaces of a running process. The user namespace comes first: it grants the right to join the others."""
    descriptors = []
    for kind in sorted(kinds, key=lambda kind: kind != "user"):
        try:
            descriptors.append((kind, os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)))
        except OSError as error:
            raise DoorError(f"cannot find the {kind} namespace of process {pid}: {error.strerror}") from error
    for kind, descriptor in descriptors:
        _check(_libc.setns(descriptor, CLONE_FLAGS[kind]), f"cannot enter the {kind} namespace of process {pid}")
        os.close(descriptor)


def make_namespaces(kinds: list[str]) -> None:
    """Unshare into new namespaces; a new user namespace maps the user's own ids."""
    uid, gid = os.geteuid(), os.getegid()
    if "user" in kinds:
        _check(_libc.unshare(CLONE_FLAGS["user"]), "cannot make a user namespace")
        for file, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            try:
                with open(f"/proc/self/{file}", "w", encoding="ascii") as stream:
                    stream.write(text)
            except OSError as error:
                raise DoorError(f"cannot set up the user namespace ({file}): {error.strerror}") from error
    rest = [kind for kind in kinds if kind != "user"]
    _check(_libc.unshare(sum(CLONE_FLAGS[kind] for kind in rest)), f"cannot make the namespaces {', '.join(rest)}")
    if "mnt" in kinds:
        # Slave: later mounts of the machine appear on the hosts too; mounts made here do not propagate back.
        _mount("none", "/", None, MS_REC | MS_SLAVE, None)


def _mount(source: str, target: str, kind: str | None, flags: int, data: str | None) -> None:
    arguments = [text.encode() if text is not None else None for text in (source, target, kind, data)]
    done = _libc.mount(arguments[0], arguments[1], arguments[2], ctypes.c_ulong(flags), arguments[3])
    _check(done, f"cannot mount {source} on {target}")


def dress(passage: Passage) -> None:
    """Set host name, bind mounts and shared memory of the new namespaces."""
    if passage.hostname:
        try:
            socket.sethostname(passage.hostname)
        except OSError as error:
            raise DoorError(f"cannot set the host name {passage.hostname}: {error.strerror}") from error
    for source, target in passage.binds:
        _mount(source, target, None, MS_BIND, None)
    if passage.own_shared_memory:
        _mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")


def raise_capabilities() -> None:
    """Keep the namespace's capabilities across exec, which drops them for all users but root."""
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    data = (ctypes.c_uint32 * 6)()
    _check(_libc.capget(header, data), "cannot read the capabilities")
    data[2], data[5] = data[1], data[4]  # inheritable becomes permitted, for both halves of the set
    _check(_libc.capset(header, data), "cannot set the capabilities")
    for number in range(64):
        if (data[1] | data[4] << 32) >> number & 1:
            raised = _libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, number, 0, 0)
            _check(raised, f"cannot keep capability {number}")


def drop_capabilities() -> None:
    """Undo `raise_capabilities`: jobs must be as unprivileged inside as outside."""
    _check(_libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0), "cannot drop the capabilities")
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    data = (ctypes.c_uint32 * 6)()
    _check(_libc.capget(header, data), "cannot read the capabilities")
    data[2] = data[5] = 0
    _check(_libc.capset(header, data), "cannot drop the capabilities")


def _run_step(argv: list[str], text: str, environment: dict[str, str]) -> None:
    try:
        done = subprocess.run(
            argv, input=text, capture_output=True, text=True, env=environment, timeout=STEP_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DoorError(f"{argv[0]} cannot be run: {error}") from error
    if done.returncode != 0:
        raise DoorError(f"{' '.join(argv)} failed: {' '.join(done.stderr.split())}")


def _join_group(group: str) -> None:
    try:
        with open(f"{group}/cgroup.procs", "w", encoding="ascii") as stream:
            stream.write("0")
    except OSError as error:
        raise DoorError(f"cannot enter the control group {group}: {error.strerror}") from error


def _open_log(path: str) -> int:
    """Open the log for appending: a regular file of the caller's own, which only the caller may read.

    A large one is kept as NAME.old, and begun anew.
    """
    log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    found = os.fstat(log)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        raise DoorError(f"the log {path} is not a file of this user")
    os.fchmod(log, 0o600)
    if found.st_size <= LOG_MAX:
        return log
    os.close(log)
    os.replace(path, f"{path}.old")
    return _open_log(path)


def _become_a_daemon(log: str) -> None:
    os.setsid()
    os.umask(0o022)
    for number in signal.valid_signals():
        # Not all can be set (KILL, and those the C library reserves); those have the default disposition anyway.
        if number not in (signal.SIGKILL, signal.SIGSTOP) and signal.getsignal(number) is not None:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    nothing = os.open(os.devnull, os.O_RDWR)
    output = _open_log(log) if log else nothing
    for descriptor, source in ((0, nothing), (1, output), (2, output)):
        os.dup2(source, descriptor)


def pass_through(passage: Passage) -> None:
    """Carry out the specification and exec. Returns only by an exception."""
    _become_a_daemon(passage.log)
    for group in passage.groups:
        _join_group(group)
    if passage.enter:
        enter_namespaces(passage.enter_pid, passage.enter)
    if passage.unshare:
        make_namespaces(passage.unshare)
    confined = "user" in passage.enter or "user" in passage.unshare
    if confined:
        raise_capabilities()
    dress(passage)
    os.chdir("/")
    for argv, text in passage.steps:
        _run_step(argv, text, passage.environment)
    if confined:
        drop_capabilities()
    os.execvpe(passage.argv[0], passage.argv, passage.environment)


def main() -> None:
    """Entry point: one argument, the JSON of a `Passage`."""
    passage = Passage(**json.loads(sys.argv[1]))
    if passage.error_fd >= 0:
        os.set_inheritable(passage.error_fd, False)
    try:
        pass_through(passage)
    except (DoorError, OSError) as error:
        if passage.error_fd >= 0:
            os.write(passage.error_fd, str(error).encode("utf-8", "replace"))
    os._exit(FAILED)


if __name__ == "__main__":
    main()
