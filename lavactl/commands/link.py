"""lavactl link: link lava's commands into a directory of the search path, without hiding other programs."""

import os
import shutil
import sys
from pathlib import Path

from lavactl.errors import FAILURE, CommandError, UsageError
from lavactl.io import Io
from lavactl.options import FLAG, answer_standard, printable
from lavactl.personal.options import directory, parse
from lavactl.personal.path_dir import link_slurm
from lavactl.served.stubs import NAME as STUB
from lavactl.served.stubs import served, write_stub
from lavactl.settings import DEFAULT_SOCKET

USAGE = """\
Usage: lavactl link [--slurm] DIR
Links lava's commands and daemons in DIR, as /usr/local/bin. A name that another program has, there or elsewhere in
PATH, is left alone and named; that command of lava is then typed as: lavactl NAME. Links into another installation of
lava are replaced, and those of commands that this one does not have are taken away. For DIR/bin manual pages and the
completion of bash are written to DIR/share.
  --slurm   link sbatch, srun, salloc, squeue, scancel, sinfo, sacct and scontrol instead, by the same rule
"""
KINDS = {"slurm": FLAG}
DAEMONS = ("lavad", "lava-agent", "lavactl")


def main(argv: list[str], io: Io) -> int:
    """Make the missing links; idempotent."""
    answer = answer_standard(argv, USAGE)
    if answer is not None:
        io.print(answer)
        return 0
    options = parse(argv, USAGE, "link", KINDS)
    if len(options.words) != 1:
        raise UsageError("lavactl link: expected one directory", USAGE)
    target, own = directory(options.words[0], io), Path(sys.executable).parent
    if not target.is_dir():
        raise CommandError(f"{printable(str(target))} is not a directory.")
    programs = _slurm_programs(own) if "-slurm" in options else _programs(own)
    linked, taken = 0, []
    for name, program in programs.items():
        other = _other_program(name, target, own, io.environ.get("PATH", ""))
        if other:
            taken.append(f"{name}: not linked, {other} is another program" + _instead(name))
        else:
            linked += _link(target / name, program)
    for line in taken:
        io.error(line)
    for name in _left_over(target):
        (target / name).unlink(missing_ok=True)
        io.print(f"{name}: the link is taken away, this lava has no such command.")
    io.print(f"{linked} commands are linked in {target}.")
    if "-slurm" not in options and target.name == "bin":
        _write_manuals(target.parent / "share", [line.partition(":")[0] for line in taken], io)
    return FAILURE if any(line.startswith(DAEMONS) for line in taken) else 0


def _write_manuals(share: Path, left_out: list[str], io: Io) -> None:
    """Write manual pages and the completion of bash where man and bash look for what is in that bin."""
    from lavactl import manuals

    try:
        manuals.write(share, left_out)
    except OSError as error:
        io.error(f"Manual pages and completion are not written: {error.filename}: {error.strerror}.")
    else:
        io.print(f"Their manual pages and the completion of bash are in {share}.")


def names() -> tuple[str, ...]:
    """Programs that users or services call by name."""
    from lavactl.main import COMMANDS

    return (*DAEMONS, *COMMANDS)


def _programs(own: Path) -> dict[str, Path]:
    """Program behind each name."""
    stub = _stub(own)
    stubs = frozenset(served(names())) if stub is not None else frozenset()
    return {name: stub if stub is not None and name in stubs else own / name for name in names()}


def _slurm_programs(own: Path) -> dict[str, Path]:
    """Program behind each of Slurm's names: links beside the programs, served where they can be made."""
    from lavactl.main import SLURM

    try:
        link_slurm(own / "slurm", DEFAULT_SOCKET)
    except OSError:
        return dict.fromkeys(SLURM, own / "lavactl")
    return {name: own / "slurm" / name for name in SLURM}


def _instead(name: str) -> str:
    return "" if name in DAEMONS else f"; lava's is lavactl {name}"


def _other_program(name: str, target: Path, own: Path, search: str) -> str:
    """Path of a program of this name that is not lava's; empty for none."""
    here = target / name
    if os.path.lexists(here) and not _is_ours(here, own):
        return str(here)
    elsewhere = os.pathsep.join(
        place for place in search.split(os.pathsep) if Path(place) not in (target, own, own / "slurm")
    )
    found = shutil.which(name, path=elsewhere)
    return found if found and not _is_ours(Path(found), own) else ""


def _is_ours(path: Path, own: Path) -> bool:
    """True for a link into this installation or another one of lava, or a dangling one."""
    ours = [os.path.realpath(own / name) for name in (path.name, STUB, "lavactl", f"slurm-full/{STUB}")]
    return path.is_symlink() and (os.path.realpath(path) in ours or not path.exists() or _is_of_lava(path))


def _is_of_lava(link: Path) -> bool:
    """True for a link to a program of an installation of lava, which may lack that program by now."""
    places = (Path(os.path.realpath(link)).parent, (link.parent / os.readlink(link)).parent)
    return any(
        (one / "lavactl").exists() and (one / "lavad").exists() for place in places for one in (place, place.parent)
    )


def _left_over(target: Path) -> list[str]:
    """Links to commands of lava that this version does not have."""
    from lavactl.main import SLURM

    known = {*names(), *SLURM}
    return sorted(
        path.name for path in target.iterdir() if path.is_symlink() and path.name not in known and _is_of_lava(path)
    )


def _stub(own: Path) -> Path | None:
    """The stub beside the programs, written anew; None where nothing can be written there."""
    try:
        return write_stub(own, own, DEFAULT_SOCKET)
    except OSError:
        return None


def _link(place: Path, program: Path) -> int:
    temporary = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        temporary.symlink_to(program)
        temporary.replace(place)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise CommandError(f"{place} cannot be made: {error.strerror}.") from error
    return 1
