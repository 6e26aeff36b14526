"""A site's own LSF files, copied for a personal cluster: found as LSF finds them, read once, never changed.

``lsf.conf`` may name other directories, and files may include others: every file that is read is copied, and paths in
the copies are replaced, so that the trial neither reads nor writes the site's files afterwards. Files of the given
directory take precedence over those that its ``lsf.conf`` names: it may be a copy made elsewhere.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from lavactl.errors import CommandError
from lavactl.personal.directory import LSF_CONF, make_directory, write_public
from lavactl.settings import read_conf

INCLUDED = "included"  # the folder of a cluster directory for included files
_PLACES = ("LSF_CONFDIR", "LSB_CONFDIR")
_PLACE = re.compile(rf"\s*({'|'.join(_PLACES)})\s*=")
_INCLUDE = re.compile(r"(\s*#\s*include\s+)\"?([^\"\n]+?)\"?\s*$", re.IGNORECASE)
_CLUSTER_SECTION = re.compile(r"^\s*begin\s+cluster\s*$(.*?)^\s*end\s", re.IGNORECASE | re.MULTILINE | re.DOTALL)
_INCLUDED_MAX = 1000


@dataclass(frozen=True, slots=True)
class SiteFiles:
    """Files to copy, by the name of the copy; ``notes`` are for the caller."""

    source: Path
    files: dict[str, Path]
    notes: list[str] = field(default_factory=list)
    cluster: str = ""  # the cluster name in the site's files; empty: none


def find(source: Path) -> SiteFiles:
    """LSF's files of a directory, of ``lsbatch/NAME/configdir`` below it and of the directories that its ``lsf.conf``
    names.

    Raises:
        CommandError: no such files.
    """
    files: dict[str, Path] = {}
    notes: list[str] = []
    _take(files, [source], LSF_CONF)
    settings = read_conf(str(source / LSF_CONF))
    confdir, lsb_confdir = (_named(source, name, settings.get(name, ""), notes) for name in _PLACES)
    folders = [source] if confdir is None else [source, confdir]
    _take(files, folders, "lsf.shared", "lsf.cluster.*")
    name = _cluster_name(files)
    batch = [folder / "lsbatch" / name / "configdir" for folder in folders] if name else []
    batch += [lsb_confdir / name / "configdir", lsb_confdir] if lsb_confdir is not None else []
    _take(files, [source, *batch, *folders], "lsb.*")
    if not files:
        raise CommandError(f"{source} holds none of LSF's files (lsb.queues, lsb.params, lsf.conf, ...).")
    others = sorted({str(path.parent) for path in files.values()} - {str(source)})
    notes.append(f"{len(files)} of LSF's files are copied from {' and '.join([str(source), *others])}.")
    return SiteFiles(source, files, notes, name)


def _take(files: dict[str, Path], folders: list[Path], *patterns: str) -> None:
    """Add files of these names; of the same name in several folders, the first folder's."""
    for folder in folders:
        for pattern in patterns:
            for path in sorted(folder.glob(pattern)):
                if path.is_file():
                    files.setdefault(path.name, path)


def _named(source: Path, name: str, value: str, notes: list[str]) -> Path | None:
    """Directory that ``lsf.conf`` names for files, if it exists."""
    if not value:
        return None
    folder = source / value
    if not folder.is_dir():
        notes.append(f"{name} in {source / LSF_CONF} is {value}, which is not there: the files of {source} count.")
        return None
    return folder


def _cluster_name(files: dict[str, Path]) -> str:
    """Cluster whose lsb files apply: the first in lsf.shared that has an lsf.cluster.NAME."""
    present = sorted(name.removeprefix("lsf.cluster.") for name in files if name.startswith("lsf.cluster."))
    listed = []
    if "lsf.shared" in files:
        section = _CLUSTER_SECTION.search(_text(files["lsf.shared"]))
        rows = [line.split("#")[0].split() for line in (section[1] if section else "").splitlines()]
        listed = [row[0] for row in rows if row][1:]
    return next((name for name in listed if name in present), present[0] if present else "")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise CommandError(f"{path} cannot be copied: {error.strerror}.") from error


def copy(site: SiteFiles, directory: Path) -> dict[Path, Path]:
    """Write the copies into a cluster's directory; copy -> original."""
    copies = _Copies(directory)
    try:
        for name, path in site.files.items():
            text = _without_places(_text(path)) if name == LSF_CONF else copies.with_own_includes(path)
            write_public(directory / name, text)
    except OSError as error:
        raise CommandError(f"The files of {site.source} cannot be copied: {error.strerror}.") from error
    included = {copied: path for path, copied in copies.made.items()}
    return {directory / name: path for name, path in site.files.items()} | included


def _without_places(text: str) -> str:
    """lsf.conf without settings that name the site's own directories."""
    return "".join(
        f"# In this copy the files are beside this one: {line}" if _PLACE.match(line) else line
        for line in text.splitlines(keepends=True)
    )


class _Copies:
    """Included files, each copied once; line numbers are kept, so that complaints name the same lines."""

    def __init__(self, directory: Path) -> None:
        self._folder = directory / INCLUDED
        self.made: dict[Path, Path] = {}  # original -> copy

    def with_own_includes(self, path: Path) -> str:
        """Text of a file in which every include names a copy."""
        return "".join(self._lines(path))

    def _lines(self, path: Path) -> Iterator[str]:
        for line in _text(path).splitlines(keepends=True):
            found = _INCLUDE.match(line)
            wanted = path.parent / found[2] if found else path
            # A missing file keeps its name: the master's complaint shows it.
            yield f'{found[1]}"{self._copy(wanted)}"\n' if found and wanted.is_file() else line

    def _copy(self, path: Path) -> Path:
        real = path.resolve()
        if real not in self.made:
            if len(self.made) >= _INCLUDED_MAX:
                raise CommandError(f"{path}: more than {_INCLUDED_MAX} files are included.")
            self.made[real] = self._folder / f"{len(self.made) + 1}-{path.name}"
            make_directory(self._folder, 0o755)
            write_public(self.made[real], self.with_own_includes(path))
        return self.made[real]
