"""`python -m agents.sensors`: as JSON, what the agent of this machine would report of it."""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable
from typing import TextIO

from google.protobuf.message import Message

from agents.sensors import Sampler, facts

# Rates need two readings of the counters.
BETWEEN_SAMPLES_S = 0.2


def _plain(message: Message) -> dict[str, object]:
    """Return the message as a dict with all its fields, also those at zero, and numbers as numbers."""
    return {field.name: _plain_value(getattr(message, field.name)) for field in message.DESCRIPTOR.fields}


def _plain_value(value: object) -> object:
    if isinstance(value, Message):
        return _plain(value)
    if isinstance(value, str | int | float):
        return value
    assert isinstance(value, Iterable), value
    return [_plain_value(part) for part in value]


def main(argv: list[str], out: TextIO) -> int:
    """Write facts and load to `out`; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m agents.sensors", description=__doc__)
    parser.add_argument("--name", default=os.uname().nodename, help="the host's name in the cluster")
    parser.add_argument("--slots", type=int, help="slots of the host, in place of one for each core")
    parser.add_argument("--simulate-gpus", type=int, default=0, metavar="N", help="invent N devices")
    options = parser.parse_args(argv)
    sampler = Sampler(options.simulate_gpus)
    time.sleep(BETWEEN_SAMPLES_S)
    report = {
        "facts": _plain(facts(options.name, options.slots, options.simulate_gpus)),
        "load": _plain(sampler.sample()),
    }
    json.dump(report, out, indent=2)
    out.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], sys.stdout))
