"""lsplace: names of the hosts that are best for a task now."""

import re

from lavactl.errors import FAILURE, CommandError
from lavactl.options import VALUE, Grammar, Options, answered
from lavactl.text.units import is_digits
from lavactl.views.hosts import fetch_hosts, is_down

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: lsplace [-R requirement] [-n least] [-w most] [host ...]
       lsplace -h | -V
"""
GRAMMAR = Grammar(
    "lsplace",
    USAGE,
    {
        **dict.fromkeys(("R", "n", "w"), VALUE),
        "L": "lava has no other clusters whose hosts could be left out.",
    },
)
DEFAULT_ORDER = "order[r15s:pg]"


def main(argv: list[str], io: "Io") -> int:
    """Run lsplace."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    least, most = (number_of(options, letter) for letter in ("n", "w"))
    hosts, complete = fetch_hosts(
        options.words,
        io,
        clients_too=False,
        unknown="Unknown host name",
        requirement=with_order(options.last("R") or ""),
    )
    if not complete:
        return FAILURE
    found = [host.facts.name for host in hosts if host.facts.server and not is_down(host)]
    needed = 1 if least is None else least  # 0: all
    if len(found) < max(1, needed):
        raise CommandError("lsplace: ls_placereq failed: Not enough host(s) currently eligible", FAILURE)
    number = max(needed, most or 0)
    io.print(" ".join(found[:number] if number else found))
    return 0


def number_of(options: Options, letter: str) -> int | None:
    """Value of -n or -w; None if it was not given."""
    text = options.last(letter)
    if text is not None and not is_digits(text):
        raise GRAMMAR.wrong(f"-{letter} takes a number of hosts, not {text}")
    return None if text is None else int(text)


def with_order(requirement: str) -> str:
    """Requirement with LSF's order of hosts if it has none."""
    if re.search(r"\border\s*\[", requirement, re.IGNORECASE):
        return requirement
    sections = requirement if "[" in requirement or not requirement.strip() else f"select[{requirement}]"
    return f"{sections} {DEFAULT_ORDER}".strip()
