"""LSF installation as third-party tools read it: the effective lsf.conf, and lsb.params in the place of LSF.

Some tools read ``$LSF_CONFDIR/lsbatch/CLUSTER/configdir/lsb.params`` themselves. Where a site's files are not laid out
like that, a copy of the few parameters they need is written as ``lsf`` below lava.conf's directory.
"""

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from lavad.config.grammar import Complaint
from lavad.config.load import Loaded
from lavad.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

log = logging.getLogger(__name__)

COPY, PARAMS_NAME = "lsf", "lsb.params"
PARAMS = """\
# Written by lavad for programs that look for it here; lavad does not read it.
# badmin ckconfig -v names the files that count.
Begin Parameters
DEFAULT_QUEUE = {}
End Parameters
"""


class Installation:
    """Settings of one cluster's installation, as of the newest configuration in force."""

    def __init__(self, settings: Settings) -> None:
        self.settings: Mapping[str, str] = {}
        self.shared: Mapping[str, str] = {}  # lsf.conf as written, for all hosts
        self.default_queues = ""
        self._own = settings

    def take(self, loaded: Loaded) -> None:
        """Take over the files now in force. Blocks."""
        confdir = loaded.confdir
        self.shared = loaded.settings
        self.default_queues = " ".join(loaded.policy.default_queues) or loaded.policy.default_queue
        if not _params_path(confdir, self._own.cluster).is_file():
            confdir = self._written() or confdir
        self.settings = {
            "LSF_CONFDIR": str(confdir),
            "LSB_CONFDIR": str(confdir / "lsbatch"),
            "LSB_SHAREDIR": str(self._own.state_dir),
            **loaded.settings,
        }

    def _written(self) -> Path | None:
        """Write the copy, readable by all users, and return its directory; None if it cannot be written.

        A file of the site in its place is left as it is.
        """
        confdir = self._own.directory / COPY
        path = _params_path(confdir, self._own.cluster)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not _is_foreign(path):
                path.write_text(PARAMS.format(self.default_queues), encoding="utf-8")
            path.chmod(0o644)
            for parent in path.relative_to(self._own.directory).parents:
                if parent.name:
                    (self._own.directory / parent).chmod(0o755)
        except OSError as error:
            log.info("installation=not_written file=%s reason=%r", path, str(error))
            return None
        return confdir


def foreign_files(settings: Settings, loaded: Loaded, place: Path) -> tuple[Complaint, ...]:
    """Warn of files beside the copy that lavad did not write, and that are not read: ``place`` has those that count."""
    directory = _params_path(settings.directory / COPY, settings.cluster).parent
    read = {os.path.realpath(file) for file in loaded.files}
    why = f"not read: lavad writes this directory; LSF's files count in {place}"
    return tuple(
        Complaint(str(path), 0, why, is_fatal=False)
        for path in sorted(directory.glob("lsb.*"))
        if os.path.realpath(path) not in read and _is_foreign(path)
    )


def _is_foreign(path: Path) -> bool:
    """Return True if there is such a file and lavad has not written it."""
    try:
        return path.name != PARAMS_NAME or not path.read_text("utf-8", "replace").startswith(PARAMS.partition("\n")[0])
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _params_path(confdir: Path, cluster: str) -> Path:
    return confdir / "lsbatch" / cluster / "configdir" / PARAMS_NAME
