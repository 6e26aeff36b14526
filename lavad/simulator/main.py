"""The program behind ``lavactl simulate``: reads the arguments, replays, prints the figures.

Exit codes: 0, 1 when the trace or the configuration can't be used, 2 for wrong arguments. Figures go to standard
output, everything else to standard error.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from lavad.core.policy import JobOrder, Policy
from lavad.settings import read_settings
from lavad.simulator import plain
from lavad.simulator.plot import draw
from lavad.simulator.replay import Machine, Overrun, Replay, StuckError
from lavad.simulator.report import Ran, as_lines, figures
from lavad.simulator.swf import Trace, TraceError, read_trace
from protos.conffile import ConfError

POLICIES = (*plain.QUEUES, "lava")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    arguments = _parser().parse_args(argv)
    try:
        return _simulate(arguments)
    except (TraceError, ConfError, StuckError) as error:
        sys.stderr.write(f"lavactl simulate: {error}\n")
    except OSError as error:
        sys.stderr.write(f"lavactl simulate: {error.filename}: {error.strerror}\n")
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("lavactl simulate", description="Replay a trace in virtual time.")
    parser.add_argument("trace", type=Path, help="a trace in the Standard Workload Format, plain or gzipped")
    parser.add_argument("--policy", choices=POLICIES, default="lava", help="lava is the cluster's own (default)")
    parser.add_argument("--order", choices=[order.value for order in JobOrder], help="order of every queue's jobs")
    parser.add_argument("--conf", type=Path, metavar="DIR", help="configuration whose rules apply with --policy lava")
    machine = parser.add_mutually_exclusive_group()
    machine.add_argument("--procs", type=_count, metavar="P", help="one host of P slots (default: what the trace says)")
    machine.add_argument("--hosts", type=_count, metavar="N", help="N equal hosts")
    parser.add_argument("--slots", type=_count, metavar="M", help="slots of each of the hosts (1)")
    parser.add_argument("--limit", type=_count, metavar="N", help="replay only the first N job lines")
    parser.add_argument("--overrun", choices=[way.value for way in Overrun], default="kill", help=_OVERRUN)
    parser.add_argument("--starts", type=Path, metavar="FILE", help="write a line `job start` for each job")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw utilisation, queue and waits over time")
    return parser


_OVERRUN = "a run past its estimate is killed, known beforehand (extend), or runs on (default: kill)"


def _count(word: str) -> int:
    number = int(word)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{word} is not a positive number")
    return number


def _simulate(arguments: argparse.Namespace) -> int:
    asked = arguments.hosts * arguments.slots if arguments.hosts else arguments.procs
    trace = read_trace(arguments.trace, asked, arguments.limit)
    machine = Machine(arguments.hosts, arguments.slots) if arguments.hosts else Machine(1, trace.processors)
    replay = Replay(trace.jobs, machine, _policy(arguments), Overrun(arguments.overrun))
    began = time.perf_counter()
    ran = replay.run()
    values = figures(ran, machine.processors, time.perf_counter() - began)
    _say_what_was_dropped(trace, replay)
    _write(arguments, ran, machine)
    sys.stdout.write(json.dumps(values) + "\n" if arguments.json else as_lines(values))
    return 0


def _policy(arguments: argparse.Namespace) -> Policy:
    if arguments.policy != "lava":
        rules = plain.policy(arguments.policy)
    else:
        rules = plain.without_deadlines(read_settings(arguments.conf).policy() if arguments.conf else Policy())
    return plain.in_order(rules, JobOrder(arguments.order)) if arguments.order else rules


def _say_what_was_dropped(trace: Trace, replay: Replay) -> None:
    for reason, count in (trace.dropped + replay.refused).items():
        sys.stderr.write(f"dropped {count} of {trace.lines} jobs: {reason}\n")


def _write(arguments: argparse.Namespace, ran: list[Ran], machine: Machine) -> None:
    if arguments.starts:
        arguments.starts.write_text("".join(f"{job.number} {job.start_s}\n" for job in ran))
    if arguments.plot:
        title = f"{arguments.trace.name}, {arguments.policy}, {machine.processors} processors"
        arguments.plot.write_text(draw(ran, machine.processors, title))
