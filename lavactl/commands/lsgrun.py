"""lsgrun: run a command on each of several hosts, one lsrun a host.

Exit code: that of the first host, in their order, on which the command did not end with 0.
"""

import subprocess
import sysconfig

from lavactl.commands.lsrun import check_allowed
from lavactl.errors import FAILURE, CommandError
from lavactl.files import read_whole
from lavactl.options import FLAG, VALUE, Grammar, Options, answered, printable
from lavactl.text.units import is_digits
from lavactl.views.hosts import fetch_hosts, is_down

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: lsgrun [-i] [-p] [-P | -S] [-v] -f file | -m "host ..." | -n number | -R requirement  command [argument ...]
       lsgrun -h | -V
  The command is a short interactive job on each host, one host after the other; it reads no input without -P or -S.
  -f   a file with host names, one a line
  -i   ask whether it is to run on all of the hosts, and if not, of each
  -n   so many hosts, the least loaded first; with -R of those that it holds for
  -p   on all hosts at once
  -v   name the hosts
"""
GRAMMAR = Grammar(
    "lsgrun",
    USAGE,
    {
        **dict.fromkeys(("i", "p", "P", "S", "v"), FLAG),
        **dict.fromkeys(("f", "m", "n", "R"), VALUE),
    },
    words_end=True,
)
BY_LOAD = "order[r15s:pg]"


def main(argv: list[str], io: "Io") -> int:
    """Run lsgrun."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    check(options)
    check_allowed("lsgrun", io)
    hosts = hosts_of(options, io)
    io.stay()
    hosts = confirmed(hosts, io) if "i" in options else hosts
    return run(hosts, options, io)


def check(options: Options) -> None:
    """Refuse options that exclude one another, and a command line without hosts or a command."""
    if not options.words:
        raise GRAMMAR.wrong("a command is missing")
    named = [letter for letter in ("f", "m", "n") if letter in options]
    if len(named) > 1:
        raise GRAMMAR.wrong(f"-{named[0]} and -{named[1]} cannot be used together")
    if not named and "R" not in options:
        raise GRAMMAR.wrong("name the hosts with -f, -m, -n or -R")
    if "R" in options and named in (["f"], ["m"]):
        raise GRAMMAR.wrong(f"-{named[0]} and -R cannot be used together")
    if "P" in options and "S" in options:
        raise GRAMMAR.wrong("-P and -S cannot be used together")
    if "p" in options and ("P" in options or "S" in options):
        raise GRAMMAR.wrong("-p gives no terminal: -P and -S cannot be used with it")


def hosts_of(options: Options, io: "Io") -> list[str]:
    """Names of the hosts.

    Raises:
        CommandError: the file can't be read, or there are none or not enough.
    """
    if "f" in options:
        path = io.path(options.last("f") or "")
        content = read_whole(path)
        if content is None:
            raise CommandError(f"lsgrun: {printable(path)}: the file can't be read.")
        names = content.decode(errors="replace").split()
    else:
        names = (options.last("m") or "").split()
    if names:
        return list(dict.fromkeys(names))
    if "f" in options or "m" in options:
        raise GRAMMAR.wrong("no host is named")
    return _chosen(options, io)


def confirmed(hosts: list[str], io: "Io") -> list[str]:
    """Those hosts that the user wants: all at a word, or one by one; the questions are on standard error.

    Raises:
        CommandError: none is wanted.
    """
    if _is_wanted(f"Run the command on {' '.join(map(printable, hosts))}", io):
        return hosts
    wanted = [host for host in hosts if _is_wanted(f"Run it on {printable(host)}", io)]
    if not wanted:
        raise CommandError("lsgrun: the command runs on no host.", FAILURE)
    return wanted


def _is_wanted(question: str, io: "Io") -> bool:
    io.error(f"{question}? [y/n]")
    return io.stdin.readline().strip().lower() in (b"y", b"yes")


def _chosen(options: Options, io: "Io") -> list[str]:
    number = options.last("n")
    if number is not None and (not is_digits(number) or not int(number)):
        raise GRAMMAR.wrong(f"-n takes a number of hosts, not {number}")
    requirement = options.last("R") or BY_LOAD
    hosts, _ = fetch_hosts([], io, clients_too=False, unknown="Unknown host name", requirement=requirement)
    names = [host.facts.name for host in hosts if not is_down(host)]
    wanted = int(number) if number is not None else len(names)
    if not names or len(names) < wanted:
        raise CommandError("lsgrun: Not enough host(s) currently eligible", FAILURE)
    return names[:wanted]


def run(hosts: list[str], options: Options, io: "Io") -> int:
    """Run the command on all hosts, whatever becomes of it on one; the first exit code that is not 0."""
    has_terminal = "P" in options or "S" in options
    flags = [f"-{letter}" for letter in ("P", "S", "v") if letter in options]
    program = f"{sysconfig.get_path('scripts')}/lavactl"
    started: list[subprocess.Popen[bytes]] = []
    try:
        for host in hosts:
            argv = [program, "lsrun", *flags, "-m", host, "--", *options.words]
            started.append(subprocess.Popen(argv, stdin=None if has_terminal else subprocess.DEVNULL))
            if "p" not in options:
                started[-1].wait()
        codes = [process.wait() for process in started]
    except OSError as error:
        raise CommandError(f"lsgrun: {program}: {error.strerror}.") from None
    finally:
        for process in started:
            process.wait()  # Ctrl-C reached them, too: each ends its job
    return next((code if code > 0 else 128 - code for code in codes if code), 0)
