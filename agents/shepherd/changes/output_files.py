"""Output files of a job that were changed while it ran (bmod -o, -e): what it wrote goes to the new ones at its end.

While the job runs its output goes on in the files that it has. At its end a new file gets the part of the old one from
the place at which this attempt began, and the old one is removed. Where the new file does not exist yet the old one is
given its name, which needs no copy. Invariants: nothing that the job wrote is lost, also if the new file cannot be
opened or written: then all stays in the old one; and the shepherd copies for a bounded time.

A file that others may write to as well, such as other elements of the array or jobs that append to it, can't be divided
by who wrote what: the part from the attempt's place may have theirs, too, and the old file stays as it is unless it was
empty when the attempt began, has no other name, and its name is this element's own. So does one that was copied, if the
job has other hosts, whose tasks may write to it still.
"""

import contextlib
import os
import time
from typing import NamedTuple

from agents.shepherd.messages import JobSetup, Key, OutputFiles, write_all
from agents.shepherd.process import start
from agents.shepherd.process.start import APPEND, StartFailure, Streams, is_regular

COPY_S = 10.0  # the agent kills a shepherd that has been silent for 30 s
CHUNK = 1 << 20


class _TooSlow(OSError):
    """Copy that takes longer than the shepherd may be silent."""


class _Old(NamedTuple):
    """A file of the attempt, as it was opened for it."""

    what: str
    descriptor: int
    path: str
    begin: int  # its size when this attempt opened it
    end: int  # its size now
    is_shared: bool  # other elements of the array have the same

    @property
    def is_own(self) -> bool:
        """True if all in it is this attempt's, as far as can be seen."""
        about = os.fstat(self.descriptor)
        mine = about.st_uid == os.geteuid() and about.st_nlink == 1 and not self.begin and not self.is_shared
        return mine and is_regular(self.descriptor) and not os.path.islink(self.path)

    @property
    def name(self) -> str:
        """Name that leads to it; empty if none is known."""
        found = os.readlink(f"/proc/self/fd/{self.descriptor}")
        try:
            return found if os.path.samestat(os.lstat(found), os.fstat(self.descriptor)) else ""
        except OSError:
            return ""


def move(setup: JobSetup, files: OutputFiles, key: Key, streams: Streams) -> tuple[Streams, list[str]]:
    """Move what the attempt wrote to its new files, as the user and in the job's directory.

    Returns the streams with the files that its report goes to and names, and a sentence for each file that stays.
    """
    return _Mover(setup, files, key, streams).move()


class _Mover:
    """Move of the files of one attempt."""

    def __init__(self, setup: JobSetup, files: OutputFiles, key: Key, streams: Streams) -> None:
        self._wanted = setup._replace(**files._asdict())
        self._key = key
        self._streams = streams
        self._output = _old("output", setup, key, streams.output, streams.output_path, streams.begins[0])
        self._error: _Old | None = None
        if streams.error_path and streams.error != streams.output:
            self._error = _old("error", setup, key, streams.error, streams.error_path, streams.begins[1])
        self._opened: list[int] = []
        self._emptied: list[_Old] = []  # that were copied
        self._told: list[str] = []
        self._until = time.monotonic() + COPY_S

    def move(self) -> tuple[Streams, list[str]]:
        wanted, key = self._wanted, self._key
        output_path, error_path = start.place(wanted, wanted.output, key), start.place(wanted, wanted.error, key)
        try:
            start.make_output_directory(wanted, key)
        except StartFailure as failure:
            return self._streams, [f"{failure} Output and errors stay in their files."]
        if wanted.slurm_base >= 0:
            start.make_parents(output_path, error_path)
        if self._output.path and output_path:
            self._move_output(output_path)
        if error_path and error_path != self._streams.output_path:
            self._move_error(error_path)
        elif self._error is not None:
            self._join(self._error)
        else:
            self._streams = self._streams._replace(error=self._streams.output, error_path=error_path)
        self._remove_emptied()
        return self._streams._replace(closing=(*self._streams.closing, *self._opened)), self._told

    def _move_output(self, path: str) -> None:
        try:
            descriptor = self._moved(self._output, path, self._wanted.output_overwrite)
        except (StartFailure, OSError) as error:
            self._stays(self._output, path, error)
            return
        if self._error is None:
            self._streams = self._streams._replace(error=descriptor)
        self._streams = self._streams._replace(output=descriptor, output_path=path)

    def _move_error(self, path: str) -> None:
        """Move the errors to a file of their own; what has joined the output can't be divided, and stays there."""
        overwrite = self._wanted.error_overwrite
        try:
            if self._error is None:
                descriptor = self._new(path, "error")
                self._empty(descriptor, overwrite)
            else:
                descriptor = self._moved(self._error, path, overwrite)
        except (StartFailure, OSError) as error:
            self._stays(self._error or self._output._replace(what="error"), path, error)
            return
        self._streams = self._streams._replace(error=descriptor, error_path=path)

    def _join(self, old: _Old) -> None:
        """Append the errors to the output, which they join."""
        output = self._streams.output
        try:
            self._copy(old, output)
        except OSError as error:
            self._stays(old, self._streams.output_path, error)
            return
        self._streams = self._streams._replace(error=output, error_path="")

    def _stays(self, old: _Old, path: str, error: Exception) -> None:
        why = error.strerror if isinstance(error, OSError) else ""
        said = f"The {old.what} file {path} cannot be written: {why}." if why else str(error)
        self._told.append(f"{said} What the job wrote stays in {old.path or 'its output'}.")

    # -- one file

    def _moved(self, old: _Old, path: str, overwrite: bool) -> int:
        """Return the descriptor of the new file, which has what the attempt wrote to the old one.

        Raises:
            StartFailure, OSError: it cannot be opened or written; all is in the old one.
        """
        if path == old.path or (old.is_own and _is_renamed(old.name, path)):
            return old.descriptor
        is_new = not os.path.lexists(path)
        new = self._new(path, old.what)
        if not self._is_old(new):
            self._empty(new, overwrite)
        try:
            self._copy(old, new)
        except OSError:
            if is_new:
                with contextlib.suppress(OSError):
                    os.unlink(path)
            raise
        return new

    def _new(self, path: str, what: str) -> int:
        return start.open_file(path, APPEND, what, self._opened, self._key)

    def _empty(self, new: int, overwrite: bool) -> None:
        """Empty a new file that is to be overwritten, unless the job has written to it."""
        if overwrite and is_regular(new) and not self._is_old(new):
            os.ftruncate(new, 0)

    def _is_old(self, new: int) -> bool:
        olds = [one.descriptor for one in (self._output, self._error) if one is not None]
        return any(os.path.samestat(os.fstat(new), os.fstat(one)) for one in (*olds, self._streams.output))

    def _copy(self, old: _Old, new: int) -> None:
        """Append what the attempt wrote; of what is no regular file there is nothing to copy."""
        if os.path.samestat(os.fstat(new), os.fstat(old.descriptor)):
            return
        if not (is_regular(new) and is_regular(old.descriptor)):
            return
        before, written = os.fstat(new).st_size, 0
        source = os.open(f"/proc/self/fd/{old.descriptor}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            while data := os.pread(source, min(CHUNK, old.end - old.begin - written), old.begin + written):
                if time.monotonic() > self._until:
                    raise _TooSlow(0, f"copying took longer than {COPY_S:g} seconds")
                write_all(new, data)
                written += len(data)
        except OSError:
            if os.fstat(new).st_size <= before + written + CHUNK:  # else others have written to it as well
                os.ftruncate(new, before)
            raise
        finally:
            os.close(source)
        self._emptied.append(old)

    def _remove_emptied(self) -> None:
        """Remove the old files; an open descriptor, such as that of bpeek, still has what was in them."""
        if self._wanted.is_wide:
            return
        kept = [os.fstat(one) for one in (self._streams.output, self._streams.error)]
        for old in self._emptied:
            is_kept = any(os.path.samestat(one, os.fstat(old.descriptor)) for one in kept)
            if not is_kept and old.is_own and (name := old.name):
                with contextlib.suppress(OSError):  # a directory in which the user may not remove: a copy more
                    os.unlink(name)


def _old(what: str, setup: JobSetup, key: Key, descriptor: int, path: str, begin: int) -> _Old:
    job, index, attempt = key
    template = setup.output if what == "output" else setup.error
    is_shared = bool(index) and path == start.place(setup, template, (job, index + 1, attempt))
    end = os.fstat(descriptor).st_size if path else 0
    return _Old(what, descriptor, path, begin if end >= begin else 0, end, is_shared)


def _is_renamed(name: str, path: str) -> bool:
    """Give a file its new name; return False if that exists or can't be a name of the same file."""
    if not name:
        return False
    try:
        os.link(name, path)
    except OSError:
        return False
    try:
        os.unlink(name)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(path)
        return False
    return True
