"""Container runtimes: which images each takes, and the command line that runs a program in one.

All share the host's network, processes and devices, as jobs without a container have them: what a job may use is
bounded by its control group and its user's rights, not by the runtime. The user in the container is the job's.
"""

import os
import shutil
from collections.abc import Callable, Sequence
from typing import NamedTuple

from agents.containers.entry import Entry
from agents.containers.images import Image, ImageDirectory, ImageError, Kind
from agents.containers.layout import Bind, arguments, binds_of

# Of the host, at their paths in every container; the kernel's, and what users and names are looked up in.
KERNEL = ("/dev", "/proc", "/sys")
LOOKED_UP = ("/etc/hosts", "/etc/resolv.conf", "/etc/passwd", "/etc/group")
TEMPORARY = ("/tmp", "/var/tmp")
UNPACK = ("tar", "--extract", "--no-same-owner", "--delay-directory-restore", "--exclude=./dev/*")


class Command(NamedTuple):
    """Command line of a runtime; ``text`` goes to it as NUL-separated options on a descriptor, if there is any."""

    argv: Sequence[str]
    text: bytes = b""
    has_child: bool = False  # it tells the process id of the program on another descriptor


class Runtime(NamedTuple):
    """One runtime: its program, the kinds of images that it takes, and its command line for one."""

    program: str
    kinds: tuple[Kind, ...]
    command: Callable[[Entry, Image, ImageDirectory, list[Bind], Sequence[str]], Command]


def command_of(entry: Entry, image: Image, images: ImageDirectory, home: str, program: Sequence[str]) -> Command:
    """Return the command line that runs a program in an image, by the site's first runtime that takes it.

    Raises:
        ImageError: none does, or the image cannot be imported.
    """
    fitting = [name for name in entry.settings.runtimes if image.kind in RUNTIMES[name].kinds]
    here = [name for name in fitting if shutil.which(RUNTIMES[name].program)]
    if not fitting:
        listed = ", ".join(entry.settings.runtimes)
        raise ImageError(f"{image.source} is {image.kind.value}, which this site's runtimes ({listed}) do not take.")
    if not here:
        raise ImageError(f"The image {image.source} needs {fitting[0]}, which this host has not.")
    return RUNTIMES[here[0]].command(entry, image, images, _binds(entry, home), program)


def _binds(entry: Entry, home: str) -> list[Bind]:
    """Return the directories of the host that appear in the container, none inside another at its own path."""
    found = {path: Bind(path, path) for path in (*TEMPORARY, home, *entry.shared, entry.cwd) if path not in ("", "/")}
    whole = [path for path in found if not any(path.startswith(f"{other}/") for other in found)]
    listed = [found[path] for path in whole if os.path.exists(path)]
    return listed + [_site_bind(text) for text in entry.settings.binds]


def _site_bind(text: str) -> Bind:
    source, _, rest = text.partition(":")
    place, _, mode = rest.partition(":")
    return Bind(source, place or source, mode == "ro")


def _bubblewrap(
    entry: Entry, image: Image, images: ImageDirectory, binds: list[Bind], program: Sequence[str]
) -> Command:
    root = image.source
    if image.kind == Kind.ARCHIVE:
        root = images.imported(image, ".root", lambda made: _unpack(image.source, made))
    host = [Bind(path, path, is_read_only=True) for path in LOOKED_UP if os.path.exists(path)]
    own = list(binds_of(entry.tree)) if entry.tree else []
    options = arguments(root, [*host, *binds, *own, *(Bind(path, path) for path in KERNEL[1:])])
    # Devices are bound last, with the right to use them: a bind of the other kind has none.
    options += ["--dev-bind", KERNEL[0], KERNEL[0], "--chdir", entry.cwd]
    text = b"".join(os.fsencode(option) + b"\0" for option in options)
    return Command(("bwrap", "--args", "{options}", "--info-fd", "{child}", "--", *program), text, has_child=True)


def _unpack(archive: str, made: str) -> list[str]:
    # Others may read an image, and neither write in it nor become its owner by it, whatever its archive says.
    script = 'd=$1; mkdir "$d" && shift && "$@" && chmod -R u+rX,go-w,ug-s -- "$d"'
    return ["sh", "-c", script, "sh", made, *UNPACK, f"--directory={made}", f"--file={archive}"]


def _apptainer(
    entry: Entry, image: Image, images: ImageDirectory, binds: list[Bind], program: Sequence[str]
) -> Command:
    source = image.source
    if image.kind == Kind.REGISTRY:
        reference = source if "://" in source else f"docker://{source}"
        pull = ("apptainer", "pull", "--disable-cache", "--")
        source = images.imported(image, ".sif", lambda made: [*pull, made, reference])
    elif image.kind == Kind.ARCHIVE:
        source = images.imported(
            image, ".sif", lambda made: ["apptainer", "build", "--", made, f"docker-archive:{image.source}"]
        )
    options = [option for runtime, option in entry.gpu_options if runtime == "apptainer"]
    for bind in (*binds, *_volumes(entry.tree)):
        options += ["--bind", f"{bind.source}:{bind.place}" + (":ro" if bind.is_read_only else "")]
    return Command(("apptainer", "--silent", "exec", *options, "--pwd", entry.cwd, "--", source, *program))


def _podman(entry: Entry, image: Image, images: ImageDirectory, binds: list[Bind], program: Sequence[str]) -> Command:
    del images  # it keeps its own
    options = list(entry.settings.podman_options) or ["--cgroups=disabled"]
    if os.geteuid():
        options.append("--userns=keep-id")
    for bind in (*binds, *_volumes(entry.tree)):
        options += ["--volume", f"{bind.source}:{bind.place}" + (":ro" if bind.is_read_only else "")]
    shared = ("--rm", "--network=host", "--pid=host", "--ipc=host", "--env-host", "--entrypoint=", "--log-driver=none")
    source = image.source.partition("://")[2] or image.source
    named = ("--name", entry.name, "--workdir", entry.cwd)
    return Command(("podman", "run", *shared, *named, *options, "--", source, *program))


def _volumes(tree: str) -> list[Bind]:
    """Return the files of a tree for a runtime that binds directories and files.

    A directory that only lava makes is bound whole, so that a file that is replaced in it is seen; a file in one that
    the image has as well is bound by itself, as it is at the start.
    """
    found: list[Bind] = []
    for directory, _, files in os.walk(tree) if tree else ():
        place = directory.removeprefix(tree)
        if files and place not in SHARED_DIRECTORIES:
            found.append(Bind(directory, place))
        else:
            found += [Bind(f"{directory}/{name}", f"{place}/{name}") for name in files]
    return found


SHARED_DIRECTORIES = ("", "/etc", "/root", "/home", "/usr/bin", "/usr/local/bin", "/bin", "/opt", "/tmp", "/var")
RUNTIMES = {
    "apptainer": Runtime("apptainer", (Kind.SIF, Kind.REGISTRY, Kind.DIRECTORY, Kind.ARCHIVE), _apptainer),
    "podman": Runtime("podman", (Kind.REGISTRY,), _podman),
    "bubblewrap": Runtime("bwrap", (Kind.DIRECTORY, Kind.ARCHIVE), _bubblewrap),
}
