"""Process that enters a container: the first process of a task with an image, as the job's user.

Executed as ``python -I -S enter.py ENTRY PROGRAM ARGUMENTS...``. It finds or imports the image, starts the site's
runtime with the program, and ends as the program ends; with 125 and one sentence if the image cannot be used.
"""

import os
import pwd
import subprocess
import sys

if __name__ == "__main__":  # -I and -S leave only the standard library on the path
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from agents.containers.entry import Entry
from agents.containers.images import ImageDirectory, ImageError, image_of
from agents.containers.runtimes import Command, command_of
from agents.containers.supervisor import end_as, supervise

UNUSABLE = 125  # exit code, as container runtimes have for their own failures


def main(argv: list[str]) -> int:
    """Run the program in its container; returns only if that cannot be started."""
    entry, program = Entry.of(argv[1]), argv[2:]
    try:
        command = _command(entry, program)
        status = supervise(command.argv, command.text, command.has_child)
    except (ImageError, OSError) as error:
        print(f"lava: {error}", file=sys.stderr, flush=True)
        return UNUSABLE
    if command.argv[0] == "podman":
        _remove(entry.name)
    end_as(status)
    return UNUSABLE


def _command(entry: Entry, program: list[str]) -> Command:
    home = _home()
    image = image_of(entry.image, entry.cwd, home)
    return command_of(entry, image, ImageDirectory(entry.settings, home), home, program)


def _home() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return os.environ.get("HOME", "/")


def _remove(name: str) -> None:
    """Remove a container whose client has ended before it."""
    subprocess.run(["podman", "rm", "--force", "--time", "0", "--ignore", name], capture_output=True, check=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
