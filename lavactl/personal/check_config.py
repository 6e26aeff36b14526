"""Check of a site's files by a master before a cluster is made of them: an error leaves nothing behind."""

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from lavactl.errors import CommandError
from lavactl.personal import site_files
from lavactl.personal.directory import write_public
from lavactl.personal.site_files import SiteFiles
from lavactl.personal.starting import clean_environment, program
from protos import conffile

_NOWHERE = "127.0.0.1:1"  # unused address: the files are only read
_WARNING = " (warning)"
_PATIENCE_S = 120.0  # groups of users may come from a slow directory service


def check(site: SiteFiles) -> list[str]:
    """Check the files by having the master read copies of them; return its warnings, with the site's own paths.

    Raises:
        CommandError: every error, a line each, with the place in the site's own files.
    """
    with TemporaryDirectory(prefix="lava-trial-") as name:
        place = Path(name)
        settings = {"LAVA_LISTEN": _NOWHERE, "LAVA_ENROL_LISTEN": _NOWHERE, "LAVA_STATE_DIR": name}
        write_public(place / conffile.FILE_NAME, conffile.render(settings, {}))
        originals = site_files.copy(site, place)
        found, has_errors = _complaints(place, originals)
    warnings = [line for line in found if line.endswith(_WARNING)]
    if has_errors:
        errors = [line for line in found if line not in warnings]
        raise CommandError("\n".join([*errors, f"The files of {site.source} have errors; no cluster was made."]))
    return warnings


def _complaints(place: Path, originals: dict[Path, Path]) -> tuple[list[str], bool]:
    """Complaints of the master about the copies, line by line; True if it can't use them."""
    try:
        done = subprocess.run(
            program("lavad", "--conf", str(place), "--check-config"),
            env=clean_environment(), cwd="/", capture_output=True, text=True, timeout=_PATIENCE_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise CommandError(f"The files could not be read within {_PATIENCE_S:g} seconds.") from None
    lines = done.stderr.splitlines()
    told = [_of_original(line, originals) for line in lines[:-1]]
    return told or [lines[-1]] if done.returncode else told, bool(done.returncode)


def _of_original(line: str, originals: dict[Path, Path]) -> str:
    copy, colon, rest = line.partition(":")
    return f"{originals.get(Path(copy), copy)}{colon}{rest}"
