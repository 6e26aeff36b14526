"""Paths of job groups (``bsub -g``): names below the root group, separated by slashes, as in a file system."""

import re
from collections.abc import Iterator

from lavad.core.model.reasons import Refused

ROOT = "/"  # jobs without a group are in it; it has no record and no limit
PATH_MAX = 512
DEPTH_MAX = 16  # of new groups: each job that starts counts for its group and for all above
_FORBIDDEN = ":*?[]"  # by LSF, or patterns to a shell
_MARK = re.compile("(%[up])")
_ANY = ".+"


def checked(path: str) -> str:
    """The path without a slash at its end; empty for the root group.

    Raises:
        Refused: it is not the path of a job group.
    """
    if not path.startswith(ROOT):
        raise Refused(f"{path[:80]}: Bad job group name: a full path, such as /project/test, is expected")
    _check_length(len(path))
    names = path.removesuffix(ROOT).split(ROOT)[1:]
    if any(name in ("", ".", "..") or not _is_name(name) for name in names):
        raise Refused(f"{path[:80]}: Bad job group name: its parts are names without blanks and without {_FORBIDDEN}")
    return "".join(ROOT + name for name in names)


def check_depth(path: str) -> None:
    """Refuse to make a group so deep.

    Raises:
        Refused: one sentence says so.
    """
    if path.count(ROOT) > DEPTH_MAX:
        raise Refused(f"{path[:80]}: Bad job group name: a path has at most {DEPTH_MAX} parts")


def _is_name(name: str) -> bool:
    return name.isprintable() and not any(letter.isspace() or letter in _FORBIDDEN for letter in name)


def lineage(path: str) -> Iterator[str]:
    """The group and those above it, without the root group, the lowest first."""
    while path:
        yield path
        path = path.rpartition(ROOT)[0]


def filled_in(path: str, user: str, project: str) -> str:
    """The path with the user's name for ``%u`` and the job's project for ``%p``, whose slashes become underscores.

    Raises:
        Refused: it, or what would come of it, is longer than a path may be; nothing so long is made.
    """
    if "%" not in path:
        return path
    _check_length(len(path))
    names = {"%u": user, "%p": project}
    _check_length(len(path) + sum(path.count(mark) * (len(name) - len(mark)) for mark, name in names.items()))
    return _MARK.sub(lambda mark: names[mark[0]].replace(ROOT, "_"), path)


def _check_length(length: int) -> None:
    if length > PATH_MAX:
        raise Refused(f"Bad job group name: longer than {PATH_MAX} characters")


def is_of_another(path: str, user: str, default: str) -> bool:
    """True if ``default`` (DEFAULT_JOBGROUP), by its %u, means this group, or one above it, for another user."""
    for name, pattern in zip(path.split(ROOT)[1:], default.split(ROOT)[1:], strict=False):
        if not _fits(name, pattern, _ANY):
            return False
        if "%u" in pattern:
            return not _fits(name, pattern, re.escape(user.replace(ROOT, "_")))
    return False


def _fits(name: str, pattern: str, user: str) -> bool:
    """True if the name of a group comes of this part of DEFAULT_JOBGROUP. ``user``: regular expression of %u."""
    marks = {"%u": user, "%p": _ANY}
    return bool(re.fullmatch("".join(marks.get(part, re.escape(part)) for part in _MARK.split(pattern)), name))


def is_for_all(path: str, default: str) -> bool:
    """True if ``default`` (DEFAULT_JOBGROUP) puts the jobs of all users into this group, or below it."""
    return not _MARK.search(path) and (default + ROOT).startswith(path + ROOT)
