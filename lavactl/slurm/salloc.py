"""salloc: run a command with an allocation, on its first host.

Slurm does the same where a site has LaunchParameters=use_interactive_step. A shell for a person needs a terminal on the
first host, which bsub -Is gives.
"""

from lavactl.slurm.submit.choices import Choices, environment_options, refuse_components
from lavactl.slurm.submit.following import run_as_job
from lavactl.slurm.submit.options import PARSERS
from lavactl.slurm.words.options import answered, fail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = "Usage: salloc [options] command [argument ...]"
PARSER = PARSERS["salloc"]
SCRIPT = '#!/bin/sh\nexec "$@"\n'
NO_COMMAND = (
    "without a command salloc would start a shell, which needs a terminal on the first host: use bsub -Is bash."
)


def main(argv: list[str], io: "Io") -> int:
    """Run salloc."""
    line = PARSER.parse(argv)
    if answered(line, PARSER, USAGE, io):
        return 0
    choices = Choices("salloc", line, environment_options("salloc", io))
    choices.say_ignored(io)
    refuse_components("salloc", line.words[:1])
    if not line.words:
        raise fail("salloc", NO_COMMAND)
    return run_as_job(choices, SCRIPT, line.words, "interactive", io)
