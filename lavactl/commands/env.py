"""lavactl env: print `export` lines that direct every command of this shell to a personal cluster."""

from lavactl.errors import CommandError, UsageError
from lavactl.io import Io
from lavactl.options import FLAG, VALUE, answer_standard
from lavactl.personal import state_file
from lavactl.personal.options import parse, shell_directory
from lavactl.personal.path_dir import shell_word

USAGE = """\
Usage: eval "$(lavactl env [--slurm] [--dir D])"
Prints what a shell needs to use the cluster in D.
  --slurm   also sbatch, srun, salloc, squeue, scancel, sinfo, sacct and scontrol, before any others of these names
  --dir D   where the cluster lives (the one of this shell already, else $XDG_DATA_HOME/lava/personal)
"""
KINDS = {"dir": VALUE, "slurm": FLAG}


def main(argv: list[str], io: Io) -> int:
    """Print the lines."""
    answer = answer_standard(argv, USAGE)
    if answer is not None:
        io.print(answer)
        return 0
    options = parse(argv, USAGE, "env", KINDS)
    if options.words:
        raise UsageError(f"lavactl env: {options.words[0]!r} is not an option", USAGE)
    directory = shell_directory(options, io)
    cluster = state_file.load(directory)
    if cluster is None:
        raise CommandError(f"There is no personal cluster in {directory}; make one with lavactl up --dir {directory}")
    if not cluster.commands.is_dir():
        raise CommandError(f"The cluster in {directory} is down; start it with lavactl up --dir {directory}")
    commands = str(cluster.commands)
    values = {
        "LAVA_ENVDIR": str(directory),
        "LAVA_SOCKET": str(cluster.socket(cluster.login)),
        "LSF_ENVDIR": str(directory),
        "LSF_BINDIR": commands,
        "LSF_SERVERDIR": commands,
        "LSF_LIBDIR": commands,
    }
    for name, text in values.items():
        io.print(f"export {name}={shell_word(text)}")
    last = shell_word(str(state_file.own_commands(directory)))
    first = f"{cluster.slurm_commands}:{commands}" if "-slurm" in options else commands
    io.print(f'export PATH={shell_word(first)}"${{PATH:+:$PATH}}":{last}')
    return 0
