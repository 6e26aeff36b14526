"""Start of a job as its user: its files and its processes.

A failure that is the job's own fault is a `StartFailure`, with the wait status and the sentence for its report; one
that is this host's is a `HostFailure`. Nothing here may block for ever on something a user made: files are opened
without waiting, and only regular files are written by the shepherd itself.
"""

import contextlib
import errno
import fcntl
import os
import resource
import stat
import sys
from typing import NamedTuple

from agents.shepherd.confinement import memory_policy
from agents.shepherd.messages import JobSetup, Key, Program
from agents.shepherd.process import descriptors as descriptors_allowed
from agents.shepherd.process.identity import Identity
from protos.slurm_words import expanded_name, names_of_job

FLAGS = os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | FLAGS
HOST_ERRORS = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EPERM)
# Descriptors that go to a task as 3, 4, ... are moved out of the way first.
DESCRIPTOR_FLOOR = 32

# Limits that the shepherd can have itself for a moment, so that they hold before the first instruction of the job (it
# ignores SIGXCPU: its own time may be over the job's limit). Under the others it could not start anything: they are
# set on the new process from outside, a moment after its start.
BEARABLE = ("stack", "core", "nofile", "fsize", "memlock", "cpu", "rss")
# Read before any binding: in a group with a cpuset the kernel returns only its CPUs.
OWN_CPUS = frozenset(os.sched_getaffinity(0))


# Python's errors for values that no system call would take: a NUL character, a number out of range.
UNUSABLE = (ValueError, OverflowError)


def exit_status(code: int) -> int:
    """Return the wait status of a process that exits with this code."""
    return code << 8


class StartFailure(Exception):
    """Failure of the job, which would fail on other hosts, too, unless they have what is ``lacking`` here."""

    def __init__(self, code: int, sentence: str, reason: str = "", lacking: str = "") -> None:
        super().__init__(sentence)
        self.status = exit_status(code)
        self.reason = reason
        self.lacking = lacking


class HostFailure(Exception):
    """Failure of this host to start a job now; another might."""


class Streams(NamedTuple):
    """Standard streams; error may be output's descriptor. ``closing`` are the shepherd's to close."""

    input: int
    output: int
    error: int
    closing: tuple[int, ...]
    output_path: str  # empty for a file of the spool
    error_path: str  # empty to join output; the same file is opened once
    begins: tuple[int, int] = (0, 0)  # sizes of the files of output and error when they were opened

    @property
    def written(self) -> tuple[int, int]:
        """Descriptors of output and error; -1 for an error that joins the output."""
        return (self.output, -1 if self.error == self.output else self.error)

    def close(self) -> None:
        """Close the files opened for these streams."""
        for descriptor in self.closing:
            os.close(descriptor)


def expand(template: str, key: Key) -> str:
    """Expand %J and %I in a path."""
    if "%" not in template:
        return template
    job, index, _ = key
    return template.replace("%J", str(job)).replace("%I", str(index))


def enter(setup: JobSetup, key: Key) -> str:
    """Change to the job's directory, as the user; return it. One with patterns is the job's own and is made for it."""
    cwd = expand(setup.cwd, key) or setup.home or "/"
    try:
        if cwd != setup.cwd and "%" in setup.cwd:
            _make_directory(cwd)
        os.chdir(cwd)
    except OSError as error:
        sentence = f"The working directory {cwd} cannot be entered: {error.strerror}."
        raise StartFailure(2, sentence, "TERM_CWD_NOTEXIST", f"working directory {cwd}") from None
    os.umask(setup.umask)
    return cwd


def _make_directory(path: str) -> None:
    """Make a directory and its missing parents, for the user alone."""
    before = os.umask(0o077)
    try:
        os.makedirs(path, exist_ok=True)
    finally:
        os.umask(before)


def output_directory(setup: JobSetup, key: Key) -> str:
    """Return the base of relative output paths: -outdir, else the job's directory."""
    return expand(setup.output_dir or setup.cwd, key)


def make_output_directory(setup: JobSetup, key: Key) -> None:
    """Make the directory of -outdir, as the user."""
    if not setup.output_dir:
        return
    directory = output_directory(setup, key)
    try:
        _make_directory(directory)
    except OSError as error:
        sentence = f"The output directory {directory} cannot be made: {error.strerror}."
        raise StartFailure(1, sentence, lacking=f"output directory {directory}") from None


def open_streams(setup: JobSetup, key: Key, null: int, spooled: int, apart: int = -1) -> Streams:
    """Open input, output and error as the user, in the job's directory.

    ``null`` is the input without a file name, ``spooled`` takes such an output, ``apart`` such an error; without that
    errors join the output.
    """
    opened: list[int] = []
    try:
        make_output_directory(setup, key)
        source = null
        if setup.input:
            source = open_file(file_name(setup, setup.input, key), os.O_RDONLY | FLAGS, "input", opened)
        output = spooled
        output_path, error_path = place(setup, setup.output, key), place(setup, setup.error, key)
        if setup.slurm_base >= 0:
            make_parents(output_path, error_path)
        if output_path:
            output = open_file(output_path, _flags(setup.output_overwrite), "output", opened, key)
        if error_path and error_path != output_path:
            error = open_file(error_path, _flags(setup.error_overwrite), "error", opened, key)
        else:
            error = apart if apart >= 0 and not error_path else output
    except StartFailure:
        for descriptor in opened:
            os.close(descriptor)
        raise
    begins = (_size(output) if output_path else 0, _size(error) if error_path else 0)
    return Streams(source, output, error, tuple(opened), output_path, error_path, begins)


def make_parents(*paths: str) -> None:
    """Make the missing directories of these files, as the user; where that fails, opening the file says why.

    Programs such as submitit make them just after sbatch has answered, when a job here has started already.
    """
    for path in filter(None, paths):
        with contextlib.suppress(OSError):
            os.makedirs(os.path.dirname(path), exist_ok=True)


def _flags(overwrite: bool) -> int:
    return APPEND | os.O_TRUNC if overwrite else APPEND


def place(setup: JobSetup, template: str, key: Key) -> str:
    """Return the absolute path of an output file; empty for none."""
    return os.path.join(output_directory(setup, key), file_name(setup, template, key)) if template else ""


def file_name(setup: JobSetup, template: str, key: Key) -> str:
    """Expand the name of a file of the job, in Slurm's patterns if it is a job in Slurm's words."""
    if setup.slurm_base < 0:
        return expand(template, key)
    job, index, _ = key
    number = index - setup.slurm_base if index else None
    host = os.fsdecode(setup.environment.get(b"SLURMD_NODENAME", b""))
    return expanded_name(template, names_of_job(job, number, setup.name, setup.user, host))


def open_file(path: str, flags: int, what: str, opened: list[int], key: Key | None = None) -> int:
    """Open a file of the job and note its descriptor; with a key, for one that is a directory, a file in it."""
    try:
        try:
            descriptor = os.open(path, flags, 0o666)
        except IsADirectoryError:
            if key is None:
                raise
            suffix = f".{key[1]}" if key[1] else ""
            descriptor = os.open(f"{path}/{key[0]}{suffix}.{what[:3]}", flags, 0o666)
    except OSError as error:
        why = "is a FIFO that nobody reads" if error.errno == errno.ENXIO else (error.strerror or "unknown error")
        directory = os.path.dirname(path)
        lacking = f"directory {directory}" if directory and not os.path.isdir(directory) else ""
        raise StartFailure(1, f"The {what} file {path} cannot be opened: {why}.", lacking=lacking) from None
    opened.append(descriptor)
    os.set_blocking(descriptor, True)
    return descriptor


def _size(descriptor: int) -> int:
    return os.fstat(descriptor).st_size


def is_regular(descriptor: int) -> bool:
    """Return True for a regular file, to which writing cannot block."""
    return stat.S_ISREG(os.fstat(descriptor).st_mode)


def set_apart(descriptors: list[int]) -> list[int]:
    """Move descriptors to high numbers, so that none is in the way of 0, 1, 2, ...; the old ones are closed."""
    apart = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, DESCRIPTOR_FLOOR) for descriptor in descriptors]
    for descriptor in descriptors:
        os.close(descriptor)
    return apart


def spawn(
    identity: Identity, setup: JobSetup, program: Program, environment: dict[bytes, bytes], descriptors: tuple[int, ...]
) -> int:
    """Start a program in a new session with these descriptors as 0, 1, 2, ... and no others; return its process id.

    Called under the user's effective id and in the job's directory; on return the shepherd has its own identity. Once
    the process exists nothing is an error any more: a running job must not be reported as never started.
    """
    if not setup.private_files:
        return _spawn_limited(identity, setup, program, environment, descriptors)
    cwd = os.getcwd()
    identity.back()
    from agents.shepherd.process import private_files  # takes 8 ms, and files that the user may not be able to read

    with private_files.seen(identity, setup, cwd):
        return _spawn_limited(identity, setup, program, environment, descriptors)


def _spawn_limited(
    identity: Identity, setup: JobSetup, program: Program, environment: dict[bytes, bytes], descriptors: tuple[int, ...]
) -> int:
    own = _bind(setup.cpus)
    is_nice = setup.nice > 0 and identity.can_return_from_nice
    before = os.getpriority(os.PRIO_PROCESS, 0) if is_nice else 0
    is_near = bool(setup.memory_policy) and _take_memory_near(setup)
    lowered = descriptors_allowed.as_given()
    restore = _bear(setup.rlimits) + lowered
    try:
        if is_nice:  # so that the job has it from its first instruction, with all its children
            os.setpriority(os.PRIO_PROCESS, 0, setup.nice)
        pid = _spawn(identity, program, environment, descriptors)
    finally:
        identity.back()
        for number, limits in restore:
            resource.setrlimit(number, limits)
        if own:
            os.sched_setaffinity(0, own)
        if is_nice:
            os.setpriority(os.PRIO_PROCESS, 0, before)
        if is_near:
            memory_policy.forget()
    for name, soft in setup.rlimits:
        if name not in BEARABLE:
            _lay_on(identity, pid, name, soft)
    if setup.nice and not is_nice:
        _be_nice(pid, setup.nice)
    if setup.memory_limit_mib:
        _prefer_for_oom(pid)
    return pid


def _bind(cpus: tuple[int, ...]) -> frozenset[int]:
    """Bind to these CPUs, so that the new process is bound from its start; return the CPUs to restore.

    CPUs that have gone offline since are left out; if none is left the host has failed.
    """
    if not cpus:
        return frozenset()
    try:
        os.sched_setaffinity(0, cpus)
    except OSError as error:
        raise HostFailure(f"processors {','.join(map(str, cpus))} can't be used: {error.strerror}") from None
    return OWN_CPUS


def _take_memory_near(setup: JobSetup) -> bool:
    """Set the new process's memory policy; return False if the kernel refuses."""
    try:
        memory_policy.prefer(setup.memory_policy, setup.nodes)
    except OSError as error:
        print(f"event=memory_not_bound policy={setup.memory_policy} error={error.strerror!r}", file=sys.stderr)
        return False
    return True


def _spawn(identity: Identity, program: Program, environment: dict[bytes, bytes], descriptors: tuple[int, ...]) -> int:
    try:
        try:
            return identity.start(program.path, program.argv, environment, descriptors)
        except OSError as error:
            if not program.text or error.errno in HOST_ERRORS or error.errno == errno.E2BIG:
                raise
            # No #! line, or no such file: the shell handles both, or reports the error.
            return identity.start("/bin/sh", ("/bin/sh", "-c", program.text), environment, descriptors)
    except OSError as error:
        if error.errno in HOST_ERRORS:
            raise HostFailure(f"no process could be started: {error.strerror}") from None
        raise not_executable(program.path, error.errno or errno.EIO) from None


def not_executable(path: str, code: int) -> StartFailure:
    """Build the failure of a program that cannot be executed, for this errno."""
    status = 127 if code == errno.ENOENT else 126
    return StartFailure(status, f"{path} cannot be executed: {os.strerror(code)}.")


def _bear(rlimits: tuple[tuple[str, int], ...]) -> list[tuple[int, tuple[int, int]]]:
    restore = []
    for name, soft in rlimits:
        if name in BEARABLE:
            number = getattr(resource, f"RLIMIT_{name.upper()}")
            before = resource.getrlimit(number)
            resource.setrlimit(number, (within(soft, before[1]), before[1]))
            restore.append((number, before))
    return restore


def _lay_on(identity: Identity, pid: int, name: str, soft: int) -> None:
    try:
        _limit(pid, name, soft)
    except ProcessLookupError:
        return  # it has ended
    except PermissionError:  # root without CAP_SYS_RESOURCE, as in many containers: the user himself may
        identity.do_as_user(lambda: _limit(pid, name, soft))


def _limit(pid: int, name: str, soft: int) -> None:
    number = getattr(resource, f"RLIMIT_{name.upper()}")
    hard = resource.prlimit(pid, number)[1]
    resource.prlimit(pid, number, (within(soft, hard), hard))


def within(soft: int, hard: int) -> int:
    """Lower a soft limit to the hard one, beyond which it needs a privilege that even root may lack."""
    return soft if hard == resource.RLIM_INFINITY else min(soft, hard)


def _be_nice(pid: int, nice: int) -> None:
    try:
        os.setpriority(os.PRIO_PGRP, pid, nice)
    except ProcessLookupError:
        return  # it has ended
    except PermissionError:  # a better priority than this user may set
        print(f"event=priority_not_set pid={pid} nice={nice}", file=sys.stderr)


def _prefer_for_oom(pid: int) -> None:
    """Raise the OOM score of the job: under a memory bound the kernel must kill it, never the shepherd."""
    try:
        with open(f"/proc/{pid}/oom_score_adj", "w", encoding="ascii") as file:
            file.write("500")
    except (FileNotFoundError, ProcessLookupError):
        return
    except PermissionError:
        # An ended process, or a set-user-id program, belongs to root there: a user's own agent can't write.
        print(f"event=oom_preference_not_set pid={pid}", file=sys.stderr)


def find(name: str, path: bytes) -> str:
    """Search PATH for a program without a slash; return the name itself if not found, whose start then fails."""
    for directory in os.fsdecode(path).split(":"):
        candidate = f"{directory}/{name}"
        if directory and os.access(candidate, os.X_OK):
            return candidate
    return name
