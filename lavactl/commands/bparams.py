"""bparams: the parameters of the batch system."""

from lavactl.options import FLAG, Grammar, answered
from lavactl.text.render import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: bparams [-a | -l]
       bparams -h | -V
"""
GRAMMAR = Grammar("bparams", USAGE, {"a": FLAG, "l": FLAG})
NOTHING = "not set"


def main(argv: list[str], io: "Io") -> int:
    """Run bparams."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    if options.words:
        raise GRAMMAR.wrong("takes no names")
    found = io.client().parameters()
    known = {one.name: clean(one.value) for one in found.parameters}
    if "l" in options:
        io.print()
        for one in found.parameters:
            about = clean(one.about)
            io.print(f"{about[0].upper() + about[1:]}:\n    {one.name} = {known[one.name] or NOTHING}\n")
    elif "a" in options:
        for name, value in known.items():
            if value:
                io.print(f"{name} = {value}")
    else:
        turn_s = int(known["MBD_SLEEP_TIME"]) if known.get("MBD_SLEEP_TIME", "").isdigit() else 0
        accept = int(known["JOB_ACCEPT_INTERVAL"]) if known.get("JOB_ACCEPT_INTERVAL", "").isdigit() else 0
        io.print(f"Default Queues:  {known.get('DEFAULT_QUEUE', '')}")
        io.print("Default Host Specification:")  # limits are never scaled by the CPU factors of a host
        io.print(f"Job Dispatch Interval:  {turn_s} seconds")
        io.print(f"Job Checking Interval:  {known.get('SBD_SLEEP_TIME') or 0} seconds")
        io.print(f"Job Accepting Interval:  {accept * turn_s} seconds")
    return 0
