"""lsmake: GNU make whose recipe lines run on all hosts of a job, one line a slot.

Outside of a job it submits itself as an interactive job. Within one, make has this program as its shell: each line
locks a slot and is run on the slot's host, as blaunch does.
"""

import os
import re
import shlex
import subprocess
import sysconfig

from lavactl.errors import CommandError
from lavactl.options import FLAG, VALUE, Grammar, Options, answered
from lavactl.tasks import make_slots
from lavactl.tasks.surrounding_job import job_around
from lavactl.text.units import is_digits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: lsmake [-j number] [-m "host ..."] [-R requirement] [-v] [make_option ...] [target ...]
       lsmake -h | -V
  Runs GNU make with its recipe lines on the hosts of the job; outside of a job as an interactive job of its own.
  -j   lines at once; within a job as many as it has slots, else at most 16
  -v   name the host of each line
  All from the first word that is none of these goes to make.
"""
GRAMMAR = Grammar("lsmake", USAGE, {"v": FLAG, **dict.fromkeys(("j", "m", "R"), VALUE)}, words_end=True)
RECIPE = "--recipe"  # in place of the options: a line of a recipe, from make
SLOTS, VERBOSE = "LAVA_LSMAKE_SLOTS", "LAVA_LSMAKE_VERBOSE"
LINES_AT_ONCE = 16
LINES_MAX = 10_000
SHELL = "/bin/sh"
MAKE_OPTIONS = frozenset("-bBCdeEfiIkLlnoOpqrsStwW")  # first letters of GNU make's own options
# A line that runs make again stays on make's host: both share the bound on lines at once.
_MAKE = re.compile(r"(^|[\s;&|(])(\S*/)?g?make(\s|$)")


def main(argv: list[str], io: "Io") -> int:
    """Run lsmake."""
    if argv[:1] == [RECIPE] and SLOTS in io.environ:
        return run_line(argv[-1], io)
    if answered(argv, USAGE, io):
        return 0
    options, words = parse(argv)
    if "LSB_JOBID" in io.environ and "LSB_MCPU_HOSTS" in io.environ:
        for letter in ("m", "R"):
            if letter in options:
                raise GRAMMAR.wrong(f"-{letter}: within a job its hosts are given")
        return make(options, words, io)
    return as_job(options, words, io)


def parse(argv: list[str]) -> tuple[Options, list[str]]:
    """Options of lsmake, and the words for make: all from the first one that is no option of lsmake.

    Raises:
        UsageError: an option lacks its value, or the value can't be.
    """
    own, place = [], 0
    while place < len(argv):
        word = argv[place]
        size = 1 if word == "-v" else 2 if word in ("-j", "-m", "-R") else 0
        if not size and re.fullmatch(r"-j\d+", word):
            size = 1
        if not size:
            break
        own += argv[place : place + size]
        place += size
    options = GRAMMAR.parse(own)
    number = options.last("j")
    if number is not None and not (is_digits(number) and 0 < int(number[:9]) <= LINES_MAX):
        raise GRAMMAR.wrong(f"-j takes a number of at least 1, not {number}")
    words = argv[place:]
    if words and words[0][:1] == "-" and words[0][1:2] not in MAKE_OPTIONS:
        raise GRAMMAR.wrong(f"illegal option -- {words[0][1:]}")
    return options, words


def as_job(options: Options, words: list[str], io: "Io") -> int:
    """Submit lsmake as an interactive job with so many slots at most, and be its terminal; the exit code is make's."""
    from lavactl.commands.lsrun import submit_and_follow

    inner = ["lsmake", *(["-v"] if "v" in options else []), *words]
    arguments, own = shlex.join(inner), shlex.quote(_program())
    command = (
        f'if [ -x "$LSF_BINDIR/lavactl" ]; then exec "$LSF_BINDIR/lavactl" {arguments}; fi; exec {own} {arguments}'
    )
    line = ["-I", "-n", f"1,{options.last('j') or LINES_AT_ONCE}"]
    for letter in ("m", "R"):
        if letter in options:
            line += [f"-{letter}", options.last(letter) or ""]
    return submit_and_follow([*line, command], [], "", io)


def _program() -> str:
    return f"{sysconfig.get_path('scripts')}/lavactl"


def make(options: Options, words: list[str], io: "Io") -> int:
    """Run make on the job's slots; its exit code."""
    job = job_around(io, "lsmake")
    number = int(options.last("j") or len(job.slots))
    io.stay()
    directory = make_slots.make_directory(job.slots)
    environment = {**os.environ, SLOTS: directory, VERBOSE: "1" if "v" in options else ""}
    argv = ["make", f"-j{number}", f"SHELL={_program()}", f".SHELLFLAGS=lsmake {RECIPE}", *words]
    try:
        with subprocess.Popen(argv, env=environment) as process:
            while True:
                try:
                    return _code(process.wait())
                except KeyboardInterrupt:
                    continue  # make has it, too, and ends its lines
    except OSError as error:
        raise CommandError(f"lsmake: make can't be started: {error.strerror}.") from None
    finally:
        make_slots.remove_directory(directory)


def _code(status: int) -> int:
    return status if status >= 0 else 128 - status


def run_line(line: str, io: "Io") -> int:
    """Run a line of a recipe on the host of a free slot; its exit code."""
    if _MAKE.search(line):
        return _code(subprocess.call([SHELL, "-c", line]))
    try:
        lock, host = make_slots.lock_slot(io.environ[SLOTS])
    except OSError:
        raise CommandError("lsmake: the list of slots is gone: lsmake has ended.") from None
    try:
        if io.environ.get(VERBOSE):
            io.error(f"<<Execute on {host}>>")
        if host == job_around(io, "lsmake").hosts[0]:
            return _code(subprocess.call([SHELL, "-c", line]))
        from lavactl.commands import blaunch

        return blaunch.main(["-n", "-no-shell", "-z", host, SHELL, "-c", line], io)
    finally:
        os.close(lock)
