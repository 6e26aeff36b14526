"""The copies of a job's files (bsub -f) as parts of its pre- and post-execution commands on its first host."""

import shlex
from collections.abc import Sequence

from protos import file_copies

# The commands' directory may hold links to some of them only: lavactl is beside the file that blaunch is a link to.
_PROGRAM = """\
lavactl={bin_dir}/lavactl
[ -x "$lavactl" ] || lavactl=$(dirname "$(readlink -f {bin_dir}/blaunch)")/lavactl
"$lavactl" copies {words}"""


def before(bin_dir: str, copies: Sequence[str], command: str) -> str:
    """Return the pre-execution command of a job with the copies to this host before its own.

    A file that is not there ends the job, as a command that exits with 99 does; a host that cannot be reached lets it
    wait.
    """
    line = _line(bin_dir, copies, file_copies.INTO)
    return f"{line} || exit\n{command}".rstrip() if line else command


def after(bin_dir: str, copies: Sequence[str], command: str) -> str:
    """Return the post-execution command with the copies from this host before its own; the first failure stays."""
    line = _line(bin_dir, copies, file_copies.BACK, "--back")
    if not line:
        return command
    return f"{line}\nstatus=$?\n(\n{command}\n) || exit\nexit $status" if command else line


def come_back(copies: Sequence[str]) -> bool:
    """Return True if files are copied back after the job, which is not done before they are there."""
    return any(file_copies.read(text).operator in file_copies.BACK for text in copies)


def _line(bin_dir: str, copies: Sequence[str], operators: Sequence[str], *options: str) -> str:
    words = [f"{number} {text}" for number, text in enumerate(copies) if file_copies.read(text).operator in operators]
    given = shlex.join((*options, *words))
    return _PROGRAM.format(bin_dir=shlex.quote(bin_dir), words=given) if words else ""
