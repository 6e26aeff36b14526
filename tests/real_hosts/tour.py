"""The tour of all commands, in tour.txt: its lines, what they exercise, and how they are typed on booted hosts."""

import configparser
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from lavactl.commands import badmin, lsadmin
from lavactl.main import SLURM, SUBCOMMANDS
from tests.real_hosts.containers import FOREIGN, REPOSITORY, Host

TOUR = Path(__file__).with_name("tour.txt")
# Words of one program that are commands of their own.
PARTS = {"lavactl": (*SUBCOMMANDS, "btop"), "badmin": tuple(badmin.SUBCOMMANDS), "lsadmin": tuple(lsadmin.GRAMMARS)}
_WHERE = re.compile(r"On (\w+) as (\w+):$")
_WORD = re.compile(r"(?<![\w/.-])(?:(lavactl|badmin|lsadmin) +)?([a-z][a-z-]+)(?![\w-])")
_SAID = re.compile(r"\n@@(\d+)\n(.*?)\n@=(\d+)\n", re.DOTALL)
_ID = "id() { bjobs -a -noheader -o jobid -J $1 2>/dev/null | head -n 1 | tr -d ' '; }\ncd\n"


class Use(NamedTuple):
    """A command line, where it is typed, and what comes of it."""

    host: str
    user: str
    line: str
    says: str = ""
    code: int = 0

    def complaint(self, said: str, code: int) -> str:
        """Return why an answer is wrong; empty if it is not."""
        if code == self.code and self.says in said and "Traceback" not in said:
            return ""
        return (
            f"{self.host}, {self.user}: {self.line}\n    exit code {code}, not {self.code} with {self.says!r}:\n{said}"
        )


def uses(path: Path = TOUR) -> Iterator[Use]:
    """The lines of the tour, in order."""
    host = user = ""
    found: list[Use] = []
    for text in path.read_text(encoding="utf-8").splitlines():
        line = text.strip()
        if where := _WHERE.match(text):
            host, user = where.groups()
        elif text.startswith("        ") and line.startswith("~ "):
            found[-1] = found[-1]._replace(says=line[2:])
        elif text.startswith("        ") and line.startswith("= "):
            found[-1] = found[-1]._replace(code=int(line[2:]))
        elif text.startswith("    "):
            found.append(Use(host, user, line))
    yield from found


def commands() -> frozenset[str]:
    """All commands of the product: programs that are installed, subcommands, and Slurm's names.

    Not the one whose name another program has on the booted hosts, which is run as a subcommand.
    """
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(REPOSITORY / "setup.cfg")
    scripts = settings["options.entry_points"]["console_scripts"].split("\n")
    programs = [line.partition("=")[0].strip() for line in scripts if line]
    parts = [f"{program} {word}" for program, words in PARTS.items() for word in words]
    return frozenset([*programs, *SLURM, *parts]) - {Path(FOREIGN).name}


def exercised(tour: Iterator[Use]) -> frozenset[str]:
    """Commands that the tour runs; asking for help is no use."""
    found = set()
    for use in tour:
        if re.search(r"(^| )(-h|--help|-V)( |$)", use.line):
            continue
        for program, word in _WORD.findall(use.line):
            found |= {program, f"{program} {word}"} if program else {word}
    return frozenset(found)


def follow(hosts: dict[str, Host], tour: Iterator[Use]) -> list[str]:
    """Type the tour; return what went otherwise than it says."""
    wrong: list[str] = []
    for (host, user), several in groupby(tour, lambda use: use[:2]):
        wrong += _typed(hosts[host], user, list(several))
    return wrong


def _typed(host: Host, user: str, lines: list[Use]) -> list[str]:
    script = "set +e\n" + _ID
    for number, use in enumerate(lines):
        script += f"printf '\\n@@{number}\\n'; {{ {use.line}\n}} </dev/null 2>&1; printf '\\n@=%d\\n' $?\n"
    said = host.run(script, user, check=False)
    answers = {int(number): (text, int(code)) for number, text, code in _SAID.findall(said.stdout)}
    nothing = (said.stdout[-2000:] + said.stderr, -1)
    return [wrong for number, use in enumerate(lines) if (wrong := use.complaint(*answers.get(number, nothing)))]
