"""Start of one process of an attempt: its environment, user, directory and descriptors."""

import os
from collections.abc import Mapping
from types import MappingProxyType

from agents.shepherd import messages
from agents.shepherd.messages import JobSetup, Key, Program
from agents.shepherd.process import gpu_daemon, start
from agents.shepherd.process.identity import Identity
from agents.shepherd.process.start import HostFailure, StartFailure


class Spawner:
    """Starter of one attempt's processes as its user, each with the same limits."""

    def __init__(self, key: Key, setup: JobSetup, identity: Identity, null: int) -> None:
        self._key = key
        self._setup = setup
        self._identity = identity
        self._null = null  # /dev/null
        self._staged = setup  # of lava's own programs: changed limits are for the processes of the job

    def limit(self, rlimits: tuple[tuple[str, int], ...]) -> None:
        """Start the processes of the job with these limits from now on."""
        self._setup = self._setup._replace(rlimits=rlimits)

    def environment(self) -> dict[bytes, bytes]:
        """Return the environment of every process of the attempt; variables of the attempt override the job's own."""
        setup = self._setup
        daemon = gpu_daemon.variables(setup, self._key) if setup.gpu_daemon is not None else {}
        found = {**setup.environment, **daemon, **self.own_variables()}
        if setup.slurm_base >= 0:
            found.update(_of_slurm(self._key, setup.slurm_base))
        return found

    def own_variables(self) -> dict[bytes, bytes]:
        """Return LSF's and lava's variables of the attempt itself."""
        job, index, attempt = self._key
        setup = self._setup
        label = b"%d[%d]" % (job, index) if index else b"%d" % job
        environment = {
            b"LSB_JOBINDEX": b"%d" % index,
            b"LSB_BATCH_JID": label,
            b"LAVA_JOB_KEY": b"%d.%d.%d" % self._key,
            b"LS_JOBPID": b"%d" % os.getpid(),
        }
        if setup.notices:
            environment[b"LAVA_NOTICE_FILE"] = os.fsencode(messages.notice_path(setup.notices, self._key))
        if index:
            environment[b"LSB_JOBNAME"] = f"{setup.name}[{index}]".encode("utf-8", "surrogateescape")
        if attempt > 1:
            environment[b"LSB_RESTART"] = b"Y"
        if setup.checkpoint.directory:
            environment[b"LSB_CHKPNT_DIR"] = os.fsencode(messages.checkpoint_path(setup.checkpoint, self._key))
            if setup.checkpoint.period_s:
                environment[b"LSB_CHKPNT_PERIOD"] = b"%d" % setup.checkpoint.period_s
        if setup.output:
            environment[b"LSB_OUTPUTFILE"] = os.fsencode(start.place(setup, setup.output, self._key))
        if setup.error:
            environment[b"LSB_ERRORFILE"] = os.fsencode(start.place(setup, setup.error, self._key))
        if setup.output_dir:
            environment[b"LSB_OUTDIR"] = os.fsencode(start.output_directory(setup, self._key))
        if "%" in setup.cwd:
            environment[b"LS_EXECCWD"] = os.fsencode(start.expand(setup.cwd, self._key))
        return environment

    def as_user(self) -> None:
        """Open files as the job's user from now on, until the identity is restored."""
        self._identity.open_files_as(self._setup.uid, self._setup.gid, self._setup.groups)

    def spawn(
        self,
        program: Program,
        environment: dict[bytes, bytes],
        descriptors: tuple[int, ...],
        cwd: str,
        umask: int | None = None,
    ) -> int:
        """Start one process in a directory of the user's, with the job's umask or another; return its process id.

        Raises:
            StartFailure: the user's program, directory or limits do not let it start.
            HostFailure: this host does not.
            OSError: a call that should not fail did.
        """
        self.as_user()
        try:
            try:
                os.chdir(cwd)
            except OSError as error:
                raise StartFailure(2, f"The directory {cwd} cannot be entered: {error.strerror}.") from None
            os.umask(self._setup.umask if umask is None else umask)
            return start.spawn(self._identity, self._setup, program, environment, descriptors)
        finally:
            self._identity.back()
            os.chdir("/")  # never hold a user's directory: it could not be unmounted

    def task(
        self,
        serial: int,
        argv: tuple[bytes, ...],
        cwd: str,
        overlay: dict[bytes, bytes],
        descriptors: list[int],
        umask: int | None = None,
    ) -> int:
        """Start a further task beside the job, marked by its serial number; raises what `spawn` raises."""
        words = tuple(os.fsdecode(word) for word in argv)
        environment = {**self.environment(), **overlay, b"LAVA_TASK_SERIAL": b"%d" % serial}
        path = words[0] if "/" in words[0] else start.find(words[0], environment.get(b"PATH", b""))
        apart = start.set_apart(descriptors)
        try:
            where = cwd or start.expand(self._setup.cwd, self._key)
            return self.spawn(Program(path, words), environment, tuple(apart), where, umask)
        finally:
            for descriptor in apart:
                os.close(descriptor)

    def run(self, setup: JobSetup, program: Program, overlay: dict[bytes, bytes], spooled: int) -> int:
        """Start a task of a job of tasks, with files and directory of its own; raises what `spawn` raises.

        ``setup`` has its directory and files; ``spooled`` takes an output without a file.
        """
        environment = {**self.environment(), **overlay}
        self.as_user()
        try:
            start.enter(setup, self._key)
            streams = start.open_streams(setup, self._key, self._null, spooled)
            try:
                if "/" not in program.path:
                    program = program._replace(path=start.find(program.path, environment.get(b"PATH", b"")))
                return start.spawn(self._identity, setup, program, environment, streams[:3])
            finally:
                streams.close()
        finally:
            self._identity.back()
            os.chdir("/")

    def empty(self, setup: JobSetup) -> None:
        """Empty the output files that all tasks of the job share; raises what `spawn` raises."""
        self.as_user()
        try:
            start.enter(setup, self._key)
            start.open_streams(setup, self._key, self._null, self._null).close()
        finally:
            self._identity.back()
            os.chdir("/")

    def gpu_daemon(self) -> int:
        """Start the attempt's daemon for its GPUs.

        Raises:
            HostFailure: it can't be started, which is not the job's fault.
        """
        environment = {**self.environment(), **gpu_daemon.own_variables(self._setup)}
        try:
            # Outside the attempt's private files, which may not be there yet.
            outside = Spawner(self._key, self._staged._replace(private_files=""), self._identity, self._null)
            return outside.spawn(gpu_daemon.program(self._setup), environment, (self._null,) * 3, "/")
        except StartFailure as failure:
            raise HostFailure(str(failure)) from None

    def shell(self, command: str, variables: Mapping[bytes, bytes] = MappingProxyType({})) -> int:
        """Start a command line around the job, with /dev/null as its streams."""
        program = Program("/bin/sh", ("/bin/sh", "-c", command))
        cwd = start.expand(self._setup.cwd, self._key) or self._setup.home or "/"
        spawner = Spawner(self._key, self._staged, self._identity, self._null)
        return spawner.spawn(program, {**self.environment(), **variables}, (self._null,) * 3, cwd)


def _of_slurm(key: Key, base: int) -> dict[bytes, bytes]:
    """Return Slurm's variables that differ between the elements and attempts of a job."""
    _, index, attempt = key
    found = {b"SLURM_ARRAY_TASK_ID": b"%d" % (index - base)} if index else {}
    if attempt > 1:
        found[b"SLURM_RESTART_COUNT"] = b"%d" % (attempt - 1)
    return found
