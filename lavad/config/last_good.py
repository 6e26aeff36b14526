"""The last configuration without errors, kept in the state directory for a master that starts with errors in its files.

It is what a running master would have kept in force: the texts of lava.conf and of all LSF files that were read, in one
file of the master's own, which is written whole.
"""

import json
import logging
import time
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from lavad.config.lines import whole_text
from protos import conffile
from protos.trust.private import PrivateFileError, read_private, write_private

log = logging.getLogger(__name__)

FILE_NAME = "configuration"


class LastGood(NamedTuple):
    """Texts of files by name, lava.conf among them, and the time since which they were in force."""

    at: float
    texts: dict[str, str]

    @property
    def values(self) -> dict[str, str]:
        """Settings of lava.conf."""
        return conffile.scan(self.texts.get(conffile.FILE_NAME, ""), conffile.FILE_NAME)[0]

    def written(self) -> "TemporaryDirectory[str]":
        """Write the files into a directory, all beside one another."""
        place = TemporaryDirectory(prefix="lavad-configuration-")
        for name, text in self.texts.items():
            Path(place.name, Path(name).name).write_text(text, encoding="utf-8")
        return place


def keep(state_dir: Path, paths: Iterable[Path]) -> None:
    """Keep the files of a configuration that is in force.

    Where that can't be done the file is left as it is, and the log says so.
    """
    try:
        texts = {path.name: whole_text(path) for path in paths}
        write_private(state_dir / FILE_NAME, json.dumps({"at": time.time(), "texts": texts}).encode())
    except OSError as error:
        log.warning("configuration=not_kept file=%s reason=%r", error.filename, error.strerror)


def recall(state_dir: Path) -> LastGood | None:
    """Return what was kept; None for nothing, or if it is damaged."""
    try:
        return LastGood(**json.loads(read_private(state_dir / FILE_NAME)))
    except PrivateFileError:
        return None
    except (ValueError, TypeError) as error:
        log.warning("configuration=not_recalled reason=%r", str(error))
        return None
