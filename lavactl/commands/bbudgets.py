"""bbudgets: budgets of slot, CPU and GPU hours, and what is used and reserved of them."""

import time

from lavactl.errors import CommandError
from lavactl.options import FLAG, VALUE, Grammar, answered, printable
from lavactl.text.columns import table
from lavactl.text.render import MISSING, clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io
    from protos import cluster_pb2

USAGE = """\
Usage: bbudgets [-a] [-c consumer] [budget ...]
       bbudgets -h | -V
  -a  only the budgets of which so much is used or reserved that their jobs are told
  -c  only the accounts of one user or project
"""
GRAMMAR = Grammar("bbudgets", USAGE, {"a": FLAG, "c": VALUE})
COLUMNS = ("BUDGET", "CONSUMER", "FROM", "TO", "HOURS_OF", "USED", "RESERVED", "LIMIT", "PERCENT")
DAY_S = 86400


def main(argv: list[str], io: "Io") -> int:
    """Run bbudgets."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    budgets = list(io.client().limits().budgets)
    for name in options.words:
        if not any(one.name == name for one in budgets):
            raise CommandError(f"{printable(name)}: No such budget")
    consumer = options.last("c")
    shown = [
        row(one)
        for one in budgets
        if (not options.words or one.name in options.words)
        and (consumer is None or consumer in one.consumer.split("/"))
        and (one.is_warned or "a" not in options)
    ]
    io.print(table(COLUMNS, shown) if shown else "No budget found")
    return 0


def row(one: "cluster_pb2.BudgetRecord") -> list[str]:
    """Columns of a line; hours, and what is used and reserved as a part of the limit."""
    part = (one.used + one.reserved) / one.bound if one.bound else 1.0
    hours = [f"{value:.2f}" for value in (one.used, one.reserved, one.bound)]
    days = [_day(one.begin), _day(one.end - DAY_S / 2)]
    return [clean(one.name), clean(one.consumer) or MISSING, *days, one.resource, *hours, f"{100 * part:.0f}%"]


def _day(moment: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(moment))
