"""Output files of the simulator: written whole at the end, or not at all; checked for writability before."""

import os
from pathlib import Path
from types import TracebackType
from typing import Self


class WholeFile:
    """File that replaces its predecessor once all of it is written; devices and pipes are written directly."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._target = Path(os.path.realpath(path))
        self._temporary = self._target.with_name(f".{self._target.name[:100]}.{os.getpid()}")
        self._is_plain = self._target.is_file() or not self._target.exists()

    def __enter__(self) -> Self:
        """Open it.

        Raises:
            OSError: it can't be written; the error names the file.
        """
        if self._target.is_file() and not os.access(self._target, os.W_OK):
            raise PermissionError(13, os.strerror(13), str(self._path))
        if self._target.is_dir():
            raise IsADirectoryError(21, os.strerror(21), str(self._path))
        if self._is_plain:
            self._put(self._temporary, "")
        return self

    def write(self, text: str) -> None:
        """Write the whole text.

        Raises:
            OSError: for instance no space is left; the previous file is still there.
        """
        if not self._is_plain:
            return self._put(self._path, text)
        self._put(self._temporary, text)
        if self._target.exists():
            self._temporary.chmod(self._target.stat().st_mode & 0o777)
        self._temporary.replace(self._target)
        return None

    def _put(self, path: Path, text: str) -> None:
        try:
            path.write_text(text, "utf-8")
        except OSError as error:  # the error of a full disk lacks the file's name
            raise OSError(error.errno, error.strerror, str(self._path)) from error

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_plain:
            self._temporary.unlink(missing_ok=True)
