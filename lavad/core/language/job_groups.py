"""Paths of job groups (``bsub -g``): names below the root group, separated by slashes, as in a file system."""

from collections.abc import Iterator

from lavad.core.model.reasons import Refused

ROOT = "/"  # jobs without a group are in it; it has no record and no limit
PATH_MAX = 512
_FORBIDDEN = ":*?[]"  # by LSF, or patterns to a shell


def checked(path: str) -> str:
    """The path without a slash at its end; empty for the root group.

    Raises:
        Refused: it is not the path of a job group.
    """
    if not path.startswith(ROOT):
        raise Refused(f"{path[:80]}: Bad job group name: a full path, such as /project/test, is expected")
    if len(path) > PATH_MAX:
        raise Refused(f"Bad job group name: longer than {PATH_MAX} characters")
    names = path.removesuffix(ROOT).split(ROOT)[1:]
    if any(name in ("", ".", "..") or not _is_name(name) for name in names):
        raise Refused(f"{path[:80]}: Bad job group name: its parts are names without blanks and without {_FORBIDDEN}")
    return "".join(ROOT + name for name in names)


def _is_name(name: str) -> bool:
    return name.isprintable() and not any(letter.isspace() or letter in _FORBIDDEN for letter in name)


def lineage(path: str) -> Iterator[str]:
    """The group and those above it, without the root group, the lowest first."""
    while path:
        yield path
        path = path.rpartition(ROOT)[0]


def filled_in(path: str, user: str, project: str) -> str:
    """The path with the user's name for ``%u`` and the job's project for ``%p``, whose slashes become underscores."""
    if "%" not in path:
        return path
    return path.replace("%u", user.replace(ROOT, "_")).replace("%p", project.replace(ROOT, "_"))
