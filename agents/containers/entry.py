"""Entry of one task into its container: values for the process that enters it, and its program.

Pure. The process is ``python -I -S enter.py ENTRY PROGRAM ARGUMENTS...``; ENTRY is JSON without anything secret.
"""

import json
import sys
from pathlib import Path
from typing import NamedTuple

from agents.containers.settings import ContainerSettings
from agents.shepherd.messages import Program
from protos.gpu_vendors import VENDORS, Pairs

ENTER = Path(__file__).with_name("enter.py")


class Entry(NamedTuple):
    """Values for the entering process.

    Attributes:
        name: of the container, unique on the host.
        cwd: working directory of the task.
        shared: directories of the host that the task needs at their paths, such as lava's own.
        tree: directory whose files appear at fixed paths, each under its whole path; empty for none.
        gpu_options: of a task with GPUs, container runtimes that need an option for them, and that option.
    """

    image: str
    name: str
    cwd: str
    shared: tuple[str, ...]
    tree: str
    gpu_options: Pairs
    settings: ContainerSettings

    def packed(self) -> str:
        """Return it as JSON."""
        return json.dumps(self)

    @staticmethod
    def of(text: str) -> "Entry":
        """Read the result of `packed`."""
        *plain, settings = json.loads(text)
        image, name, cwd, shared, tree, gpus = plain
        words: list[tuple[str, ...] | str | bool | int] = [tuple(x) if isinstance(x, list) else x for x in settings]
        if isinstance(gpus, bool):  # of an agent of an earlier version, which knows the first vendor only
            gpus = VENDORS[0].in_containers if gpus else ()
        options = tuple((runtime, option) for runtime, option in gpus)
        return Entry(image, name, cwd, tuple(shared), tree, options, ContainerSettings._make(words))


def entered_by(entry: Entry, program: Program) -> Program:
    """Return the program that enters the container and runs there what ``program`` is."""
    inside = (program.path, *program.argv[1:])
    return Program(sys.executable, (sys.executable, "-I", "-S", str(ENTER), entry.packed(), *inside))
