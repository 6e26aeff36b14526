"""The program behind ``lavactl simulate``: reads the arguments, replays, prints the figures.

Exit codes: 0, 1 when the trace, the history or the configuration can't be used, 2 for wrong arguments. Figures go to
standard output, everything else to standard error.
"""

import argparse
import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from lavad.config.load import has_made_default
from lavad.core.model import HostFacts
from lavad.core.model.policy import Policy
from lavad.core.model.priorities.job_order import JobOrder
from lavad.simulator.replay import textbook
from lavad.simulator.replay.comparison import Table, as_text, as_values, compared
from lavad.simulator.replay.fast_replay import BriefReplay
from lavad.simulator.replay.feasible import NothingLeftError, Possible
from lavad.simulator.replay.output import WholeFile
from lavad.simulator.replay.plot import draw
from lavad.simulator.replay.policy_choice import POLICIES, rules, settings_of
from lavad.simulator.replay.replay import Replay, StuckError
from lavad.simulator.replay.report import Ran, as_lines, figures, recorded
from lavad.simulator.replay.swf import DIGITS_MAX, STDIN, TraceError, read_trace, shown
from lavad.simulator.replay.workload import HOSTS_MAX, Elastic, Machine, Overrun, Submission, of_trace
from lavad.store.errors import StoreRefused
from protos.conffile import ConfError

if TYPE_CHECKING:
    from lavad.simulator.replay.history_input import Past

_OVERRUN = "a run past its estimate is killed, known beforehand (extend), or runs on (default: kill)"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    complaint = _complaint(arguments)
    if complaint:
        parser.error(complaint)
    try:
        if arguments.from_history is not None:
            _replay_past(arguments)
        else:
            _replay_trace(arguments)
        return 0
    except (TraceError, ConfError, StoreRefused, StuckError, NothingLeftError) as error:
        sys.stderr.write(f"lavactl simulate: {error}\n")
    except OSError as error:
        sys.stderr.write(f"lavactl simulate: {error.filename}: {error.strerror}\n")
    return 1


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Exit with one sentence instead of the whole usage."""
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser("lavactl simulate", description="Replay a trace, or a cluster's own history, in virtual time.")
    parser.add_argument(
        "trace",
        type=Path,
        nargs="?",
        help="a trace in the Standard Workload Format, plain or gzipped; - is standard input",
    )
    parser.add_argument("--from-history", type=Path, nargs="?", const=Path(), metavar="DIR", help=_FROM_HISTORY)
    parser.add_argument("--policy", choices=POLICIES, default="lava", help="lava is the cluster's own (default)")
    orders = [order.value for order in JobOrder if order is not JobOrder.ROUND_ROBIN]
    parser.add_argument("--order", choices=orders, help="order of every queue's jobs")
    parser.add_argument("--conf", type=Path, metavar="DIR", help="configuration whose rules apply with --policy lava")
    parser.add_argument("--procs", type=_count, metavar="P", help="one host of P slots (default: what the trace says)")
    parser.add_argument("--hosts", type=_hosts, metavar="N", help="N equal hosts; of a history: N in all, or +N more")
    parser.add_argument("--slots", type=_count, metavar="M", help="slots of each of these hosts (1)")
    parser.add_argument("--limit", type=_count, metavar="N", help="replay only the first N job lines, or jobs")
    parser.add_argument("--overrun", choices=[way.value for way in Overrun], help=_OVERRUN)
    parser.add_argument(
        "--elastic",
        type=_percent,
        metavar="PERCENT",
        help="share of jobs that may run on half to twice their processors",
    )
    parser.add_argument("--starts", type=Path, metavar="FILE", help="write a line `job start` for each job")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw utilisation, queue and waits over time")
    return parser


_FROM_HISTORY = "replay what ended in the cluster of that configuration directory (default: $LAVA_ENVDIR)"


def _count(word: str) -> int:
    if not re.fullmatch(rf"[0-9]{{1,{DIGITS_MAX}}}", word) or not int(word):
        raise argparse.ArgumentTypeError(f"{word[:20]!r} is not a positive whole number of at most {DIGITS_MAX} digits")
    return int(word)


def _percent(word: str) -> int:
    if not re.fullmatch(r"[0-9]{1,3}", word) or int(word) > 100:
        raise argparse.ArgumentTypeError(f"{word[:20]!r} is not a percentage from 0 to 100")
    return int(word)


def _hosts(word: str) -> str:
    if not re.fullmatch(rf"\+?[0-9]{{1,{DIGITS_MAX}}}", word) or not 0 < int(word) <= HOSTS_MAX:
        raise argparse.ArgumentTypeError(f"{word[:20]!r} is not a number of hosts from 1 to {HOSTS_MAX}")
    return word


def _complaint(arguments: argparse.Namespace) -> str:
    """Return a sentence on arguments that contradict each other; empty if none do."""
    has_past = arguments.from_history is not None
    checks = (
        (has_past == (arguments.trace is not None), "one trace, or --from-history without one, is needed"),
        (has_past and bool(arguments.procs), "--procs goes with a trace; a history has the hosts of its cluster"),
        (has_past and bool(arguments.overrun), "--overrun goes with a trace; how long a job ran, its history says"),
        (bool(arguments.hosts and arguments.procs), "--hosts and --procs are two ways to say the same"),
        (bool(arguments.slots and not arguments.hosts), "--slots goes with --hosts"),
        (not has_past and (arguments.hosts or "").startswith("+"), "--hosts +N goes with --from-history"),
        (bool(arguments.conf) and arguments.policy != "lava", "--conf goes with --policy lava"),
        (has_past and arguments.elastic is not None, "--elastic goes with a trace; a history has its own elastic jobs"),
        (
            bool(arguments.elastic) and arguments.policy in textbook.QUEUES,
            "--elastic goes with --policy lava: the textbook policies know no elastic jobs",
        ),
        (_one_file_twice(arguments), "the trace, --starts and --plot are different files"),
    )
    return next((sentence for is_wrong, sentence in checks if is_wrong), "")


def _one_file_twice(arguments: argparse.Namespace) -> bool:
    """Return True if one file would overwrite another; devices and pipes may be named twice."""
    named = [path for path in (arguments.trace, arguments.starts, arguments.plot) if path not in (None, STDIN)]
    paths = [os.path.realpath(path) for path in named]
    files = [path for path in paths if os.path.isfile(path) or not os.path.exists(path)]
    return len(set(files)) < len(files)


def _replay_trace(arguments: argparse.Namespace) -> None:
    slots = arguments.slots or 1
    asked = int(arguments.hosts) * slots if arguments.hosts else arguments.procs
    policy = rules(arguments.policy, arguments.order, arguments.conf, os.environ)
    trace = read_trace(arguments.trace, asked, arguments.limit)
    machine = Machine(int(arguments.hosts), slots) if arguments.hosts else Machine(1, trace.processors)
    elastic = Elastic(arguments.elastic or 0)
    submissions = of_trace(trace.jobs, policy, Overrun(arguments.overrun or "kill"), elastic, machine.processors)
    kind = BriefReplay if arguments.policy in textbook.QUEUES else Replay
    replay = kind(submissions, machine.facts(), policy)
    _tell_of_default(submissions, policy)
    with ExitStack() as stack:
        files = _Files(arguments, stack)
        ran, wall_s = _run(files, replay, trace.dropped, trace.lines)
        _draw(arguments, files, ran, machine.processors, shown(arguments.trace).name)
    _tell(arguments, figures(ran, machine.processors, wall_s), {})


def _replay_past(arguments: argparse.Namespace) -> None:
    from lavad.simulator.replay.history_input import read_past  # importing the databases takes as long as a trace

    settings = settings_of(arguments.from_history if arguments.from_history.parts else None, os.environ)
    own = settings.directory
    policy = rules(arguments.policy, arguments.order, arguments.conf or own, os.environ, own)
    queue = policy.default_queue if arguments.policy in textbook.QUEUES else None
    past = read_past(settings.database, arguments.limit, queue)
    with ExitStack() as stack:
        files = _Files(arguments, stack)
        replay, hosts = _past_under(policy, past, arguments)
        ran, wall_s = _run(files, replay, Counter(), len(past.ran))
        if past.ran and not ran:
            raise NothingLeftError("no job of this history could be replayed")
        _draw(arguments, files, ran, _processors(hosts), f"{settings.cluster}, from its history")
    values = figures(ran, _processors(hosts), wall_s) | recorded(past.ran, past.processors)
    before, present = past.ran, policy
    if _is_change(arguments):
        present = rules("lava", None, own, os.environ, own)
        before = _before(present, past)
    _tell(arguments, values, compared(before, ran, past.submissions, present))


def _is_change(arguments: argparse.Namespace) -> bool:
    """Return True if other rules or hosts are asked for than the cluster has."""
    return bool(arguments.conf or arguments.order or arguments.hosts or arguments.policy != "lava")


def _past_under(policy: Policy, past: "Past", arguments: argparse.Namespace) -> "tuple[Possible, list[HostFacts]]":
    """Return the replay of a history under a policy, on the hosts that are asked for; standard error has the notes."""
    from lavad.simulator.replay.fit_requests import fitted
    from lavad.simulator.replay.history_input import with_hosts

    hosts = with_hosts(past.hosts, arguments.hosts, arguments.slots) if arguments.hosts else past.hosts
    submissions, notes = fitted(past.submissions, policy, hosts)
    sys.stderr.write("".join(f"{note}\n" for note in notes))
    _tell_of_default(submissions, policy)
    return Possible(submissions, hosts, policy, arguments.policy in textbook.QUEUES), hosts


def _before(policy: Policy, past: "Past") -> list[Ran]:
    """Replay a history under the cluster's own rules, on its own hosts: what a change is compared with."""
    from lavad.simulator.replay.fit_requests import fitted

    submissions, _ = fitted(past.submissions, policy, past.hosts)
    return Possible(submissions, past.hosts, policy, is_brief=False).run()


def _tell_of_default(submissions: Sequence[Submission], policy: Policy) -> None:
    """Warn about jobs in the default queue that the files do not configure: their queues decide nothing."""
    queues = [one.command.job.shared.queue for one in submissions]
    count = queues.count(policy.default_queue)
    if not count or not has_made_default(policy):
        return
    who = "All jobs" if count == len(queues) else f"{count} of {len(queues)} submissions"
    others = ", ".join(f"<{queue.name}>" for queue in policy.queues if queue.name != policy.default_queue)
    sys.stderr.write(
        f"{who} were submitted to queue <{policy.default_queue}>, which the files do not configure: they configure "
        f"{others}; DEFAULT_QUEUE in lsb.params says which one jobs are for.\n"
    )


def _processors(hosts: Sequence[HostFacts]) -> int:
    return sum(facts.slots for facts in hosts)


class _Files:
    """Output files; opened before a long replay, so that an unwritable one is reported at once."""

    def __init__(self, arguments: argparse.Namespace, stack: ExitStack) -> None:
        self.starts, self.plot = (
            None if path is None else stack.enter_context(WholeFile(path))
            for path in (arguments.starts, arguments.plot)
        )


def _run(files: _Files, replay: Replay | Possible, dropped: Counter[str], lines: int) -> tuple[list[Ran], float]:
    """Run the replay; return what ran and the wall time in seconds, and write the starts if requested."""
    began = time.perf_counter()
    ran = replay.run()
    wall_s = time.perf_counter() - began
    for reason, count in (dropped + replay.refused).items():
        sys.stderr.write(f"dropped {count} of {lines} jobs: {reason}\n")
    for note in replay.notes if isinstance(replay, Possible) else ():
        sys.stderr.write(f"{note}\n")
    if not ran:
        sys.stderr.write("no job was left to replay: all figures are zero\n")
    if files.starts is not None:
        files.starts.write("".join(f"{job.name} {_time(job.start_s)}\n" for job in ran))
    return ran, wall_s


def _time(seconds: float) -> str:
    return str(seconds) if isinstance(seconds, int) else f"{seconds:.3f}"


def _tell(arguments: argparse.Namespace, values: dict[str, float], tables: Mapping[str, Table]) -> None:
    if arguments.json:
        sys.stdout.write(json.dumps(values | as_values(tables)) + "\n")
    else:
        sys.stdout.write(as_lines(values) + as_text(tables))


def _draw(arguments: argparse.Namespace, files: _Files, ran: list[Ran], processors: int, name: str) -> None:
    if files.plot is not None:
        title = f"{name}, {arguments.policy}, {processors} processors"
        files.plot.write(draw(ran, processors, title))
