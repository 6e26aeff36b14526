"""An attempt whose CPU limit and output files can be changed while its job runs (bmod -c, -o, -e)."""

import os
import sys
from collections.abc import Callable

from agents.shepherd.around import SurroundedWork
from agents.shepherd.attempt import HELD, PRE, RUNNING, STAGING
from agents.shepherd.changes.cpu_limit import CpuLimit
from agents.shepherd.changes.output_files import move
from agents.shepherd.ending import with_error_file, write_report
from agents.shepherd.messages import ChangedLimits, Finish, JobSetup, Key, OutputFiles
from agents.shepherd.process.start import UNUSABLE, Streams
from agents.shepherd.tools import Tools

CPU = "cpu"


class ChangedWork(SurroundedWork):
    """Attempt held by this shepherd, with the changes that its running job has been given."""

    def __init__(self, key: Key, setup: JobSetup, tools: Tools) -> None:
        super().__init__(key, setup, tools)
        self._cpu = CpuLimit(tools.confinement.members)
        self._cpu_staged = dict(setup.rlimits).get(CPU, 0)
        self._files: OutputFiles | None = None  # None: those that it was staged with

    def limit(self, new: ChangedLimits) -> None:
        """Replace the limits and the files, unless newer ones are in force."""
        before = self._limits_version
        if new.version > before and not self._told:
            self._files = None if new.files is None else OutputFiles(*new.files[: len(OutputFiles._fields)])
        super().limit(new)
        if self._limits_version != before and self.phase in (STAGING, HELD, PRE, RUNNING):
            self._limit_cpu(self._cpu_staged if new.cpu_limit_s is None else new.cpu_limit_s)

    # -- CPU limit

    def _limit_cpu(self, seconds: int) -> None:
        known = dict(self.setup.rlimits)
        if known.pop(CPU, 0) == seconds:
            return
        rlimits = (*known.items(), (CPU, seconds)) if seconds else tuple(known.items())
        self.setup = self.setup._replace(rlimits=rlimits)
        self._spawner.limit(rlimits)
        if not self._logged:  # nothing of it was started
            return
        try:
            self._cpu.lay_on(seconds, self._helpers() - {0}, self._do_as_user)
        except (OSError, *UNUSABLE) as error:
            print(f"event=cpu_limit_not_set key={self.key} seconds={seconds} error={error}", file=sys.stderr)

    def _helpers(self) -> set[int]:
        """Return the first processes here that are not of the job: programs of lava, commands around it."""
        return {self._helper, self._steps.pid} | self._commands.pids

    def _do_as_user(self, action: Callable[[], None]) -> None:
        try:
            self._spawner.as_user()
        finally:
            self._tools.identity.back()
        self._tools.identity.do_as_user(action)

    def _spare_others(self) -> None:
        """Except what is here before the job, such as the daemon of its GPUs, from its limits."""
        if self._logged or self.setup.gpu_daemon:
            self._cpu.spare()

    def _staged(self) -> None:
        self._spare_others()
        super()._staged()

    def _start_processes(self) -> None:
        self._spare_others()
        super()._start_processes()

    # -- files

    def _report(self, finish: Finish) -> None:
        """Move the output to its new files, then write the report; once, where the job has several hosts."""
        files, streams, setup = self._files, self._streams, self.setup
        if files is None or streams is None or setup.interactive or setup.role_names or not setup.is_lead:
            super()._report(finish)
            return
        self._streams, told = self._moved(files, streams)
        for one in told:
            print(f"event=output_not_moved key={self.key} why={one!r}", file=sys.stderr)
        setup = with_error_file(setup, bool(self._streams.error_path))
        more = "".join(f"\n{one}\n" for one in told)
        write_report(setup, finish, self._cwd, self._streams, self._others_used.gpus, more)

    def _moved(self, files: OutputFiles, streams: Streams) -> tuple[Streams, list[str]]:
        try:
            self._spawner.as_user()
            os.chdir(self._cwd or "/")
            os.umask(self.setup.umask)
            return move(self.setup, files, self.key, streams)
        except (OSError, *UNUSABLE) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else error
            return streams, [f"The output files could not be changed to those of bmod: {why}. All is as it was."]
        finally:
            self._tools.identity.back()
            os.chdir("/")
