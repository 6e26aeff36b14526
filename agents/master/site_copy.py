"""Copy of the master's lsf.conf settings, readable by every user of this host.

Commands read from it the settings that must be equal on all hosts, such as the unit of ``-M``; programs that look for
LSF's files find them laid out as in LSF. Written beside the local socket, whose path jobs and commands know.
"""

import logging
import os
from collections.abc import Mapping
from pathlib import Path

from protos.sitecopy import CONF, PARAMS, directory_of

LOG = logging.getLogger("lava.agent")

HEADER = "# Written by lava-agent from the master's configuration; changes here have no effect.\n"
PARAMS_TEXT = HEADER + "Begin Parameters\nDEFAULT_QUEUE = {}\nEnd Parameters\n"


class SiteCopy:
    """Copy beside one socket."""

    def __init__(self, socket: str) -> None:
        self._directory = Path(directory_of(socket))
        self._written: dict[str, str] = {}

    def take(self, settings: Mapping[str, str], cluster: str, default_queues: str) -> None:
        """Replace the copy if the master's settings have changed."""
        lines = [f"{name}={_one_line(value)}\n" for name, value in sorted(settings.items())]
        wanted = {
            CONF: HEADER + "".join(lines),
            PARAMS.format(cluster): PARAMS_TEXT.format(_one_line(default_queues)),
        }
        if wanted == self._written:
            return
        try:
            for name, text in wanted.items():
                _write(self._directory, name, text)
        except OSError as error:
            LOG.warning("event=settings_not_kept directory=%s reason=%r", self._directory, str(error))
            return
        self._written = wanted


def _one_line(value: str) -> str:
    return " ".join(value.split())


def _write(directory: Path, name: str, text: str) -> None:
    """Put a world-readable file in place, in directories that all users may enter, whatever the umask."""
    path = directory / name
    for parent in reversed([path.parent, *(one for one in path.parent.parents if directory in (one, *one.parents))]):
        parent.mkdir(exist_ok=True)
        parent.chmod(0o755)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
