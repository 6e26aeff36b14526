"""Layout of a container: a root directory of an image with directories and files of the host laid over it.

Nothing is written to the image, which may be shared and read-only. Where something is to appear at a path that the
image has not, the directory above is put together anew in memory: the image's own entries, each bound, and the new one.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

LINKS_MAX = 40  # followed on the way to one path


class Bind(NamedTuple):
    """Directory or file of the host, and its place in the container."""

    source: str
    place: str
    is_read_only: bool = False
    is_link: bool = False  # appears as a symbolic link to ``source``, which is bound as well


@dataclass(slots=True)
class _Node:
    bind: Bind | None = None
    below: "dict[str, _Node]" = field(default_factory=dict)


def binds_of(tree: str) -> Iterator[Bind]:
    """Return the files of a tree at their fixed paths, as links, so that one that is replaced is seen at once."""
    for directory, _, files in os.walk(tree):
        for name in files:
            path = f"{directory}/{name}"
            yield Bind(path, path.removeprefix(tree), is_link=True)


def arguments(root: str, binds: Iterable[Bind]) -> list[str]:
    """Return the options of bubblewrap that make this layout. A later bind goes before an earlier one at its place."""
    top = _Node()
    for bind in binds:
        node = top
        for part in _inside(root, bind.place):
            node = node.below.setdefault(part, _Node())
        node.bind = bind
    return list(_cover(root, "", top))


def _inside(root: str, place: str) -> list[str]:
    """Return the parts of a path after the symbolic links that the image has on the way to it."""
    done: list[str] = []
    todo = [part for part in place.split("/") if part][::-1]
    links = 0
    while todo:
        part = todo.pop()
        if part in (".", ""):
            continue
        if part == "..":
            del done[-1:]
            continue
        here = "/".join((root, *done, part))
        if todo and os.path.islink(here) and links < LINKS_MAX:
            links += 1
            target = os.readlink(here)
            if target.startswith("/"):
                done = []
            todo += [one for one in target.split("/") if one][::-1]
            continue
        done.append(part)
    return done


def _cover(root: str, path: str, node: _Node) -> Iterator[str]:
    """Put a directory together from the image's entries and those below ``node``."""
    for name in _entries(root + path):
        if name not in node.below:
            yield from _repeated(root, f"{path}/{name}")
    for name, below in node.below.items():
        yield from _lay(root, f"{path}/{name}", below)


def _lay(root: str, path: str, node: _Node) -> Iterator[str]:
    if node.bind is not None:
        yield from _bound(node.bind, path)
        yield from _within(node.bind.source, path, node)
    elif _has_all(root, path, node):
        yield from ("--ro-bind", root + path, path)
        for name, below in node.below.items():
            yield from _lay(root, f"{path}/{name}", below)
    else:
        yield from ("--dir", path)
        yield from _cover(root, path, node)


def _within(source: str, path: str, node: _Node) -> Iterator[str]:
    """Lay binds over a directory of the host, at places that it has: none is made there.

    Files of a job's tree are at their paths in the host's directories already, as its processes see them.
    """
    for name, below in node.below.items():
        here = f"{source}/{name}"
        if below.bind is None:
            yield from _within(here, f"{path}/{name}", below)
        elif not below.bind.is_link and os.path.exists(here):
            yield from _bound(below.bind, f"{path}/{name}")
            yield from _within(below.bind.source, f"{path}/{name}", below)


def _bound(bind: Bind, path: str) -> Iterator[str]:
    if bind.is_link:
        yield from ("--symlink", bind.source, path)
    else:
        yield from ("--ro-bind" if bind.is_read_only else "--bind", bind.source, path)


def _has_all(root: str, path: str, node: _Node) -> bool:
    """Return True if the image has a place for everything below: a directory for a directory, a file for a file."""
    if os.path.islink(root + path) or not os.path.isdir(root + path):
        return False
    for name, below in node.below.items():
        place = f"{root}{path}/{name}"
        if below.bind is not None:
            is_directory = os.path.isdir(below.bind.source)
            if below.bind.is_link or os.path.islink(place) or is_directory != os.path.isdir(place):
                return False
            if not os.path.exists(place):
                return False
        elif not _has_all(root, f"{path}/{name}", below):
            return False
    return True


def _entries(path: str) -> list[str]:
    try:
        return sorted(os.listdir(path))
    except OSError:  # the image has no such directory
        return []


def _repeated(root: str, path: str) -> Iterator[str]:
    if os.path.islink(root + path):
        yield from ("--symlink", os.readlink(root + path), path)
    else:
        yield from ("--ro-bind-try", root + path, path)
