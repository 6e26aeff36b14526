"""Values of this package: facts about the host, and what a task is told."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

TREE = "tree"  # in the directory of an attempt's files: those at fixed paths, each under its whole path
PROGRAMS = "bin"  # there: programs that come first in the tasks' PATH


class CannotTell(Exception):
    """The task cannot be told: one sentence says why."""


class File(NamedTuple):
    """Content and permissions of a file."""

    content: bytes
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class HostFacts:
    """Facts about the host and the attempt that the order of a task does not hold."""

    host: str
    directory: str  # of the attempt's files on this host, readable by the job's user
    key: tuple[int, int, int]  # job, index, attempt
    cwd: str
    bin_dir: str  # directory of blaunch
    gpus: tuple[int, ...] = ()  # devices of the task
    is_private: bool = True  # files appear at fixed paths, and /etc/hosts has the tasks' names


@dataclass(frozen=True, slots=True)
class Told:
    """Environment, files and names of one task; files and names are the same for all tasks of the attempt on a host.

    Attributes:
        files: by the absolute path at which the task sees them.
        own: by their path in the directory of the attempt's files.
        names: address and host names of each task.
        path_prefix: directory that comes first in PATH; empty for none.
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, File] = field(default_factory=dict)
    own: Mapping[str, File] = field(default_factory=dict)
    names: tuple[tuple[str, tuple[str, ...]], ...] = ()
    path_prefix: str = ""

    def joined(self, later: "Told") -> "Told":
        """Lay what a later convention tells over this."""
        return Told(
            {**self.environment, **later.environment},
            {**self.files, **later.files},
            {**self.own, **later.own},
            _merged(self.names, later.names),
            later.path_prefix or self.path_prefix,
        )

    def laid_over(self, environment: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        """Return an environment with the variables of the task, and PATH with the programs of the task first."""
        told = {name.encode(): value.encode("utf-8", "surrogateescape") for name, value in self.environment.items()}
        result = {**environment, **told}
        if self.path_prefix:
            rest = result.get(b"PATH", b"/usr/local/bin:/usr/bin:/bin")
            result[b"PATH"] = self.path_prefix.encode() + b":" + rest
        return result


Names = tuple[tuple[str, tuple[str, ...]], ...]


def _merged(first: Names, later: Names) -> Names:
    """Join lists of names for the same tasks; a task is known by its address and first name."""
    if not first or not later or first is later:
        return first or later
    found: dict[tuple[str, str], dict[str, None]] = {}
    for address, names in (*first, *later):
        found.setdefault((address, names[0]), {}).update(dict.fromkeys(names))
    return tuple((address, tuple(names)) for (address, _), names in found.items())
