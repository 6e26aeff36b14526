"""scontrol: show jobs, nodes and partitions; hold, release, requeue, suspend, resume and change jobs."""

from lavactl.errors import CommandError
from lavactl.slurm.words import show
from lavactl.slurm.words.changes import change
from lavactl.slurm.words.ids import bases, job_id, read_id
from lavactl.slurm.words.jobs import JobView
from lavactl.slurm.words.nodes import Site
from lavactl.slurm.words.options import FAILURE, FLAG, STANDARD, Option, Parser, answered, fail, ignored, refused
from lavactl.slurm.words.selection import split_ids
from lavactl.slurm.words.variables import with_variables
from lavactl.text.render import clean
from lavactl.views.job_details import Completion
from lavactl.wire import messages
from protos.slurm_words import compressed, expanded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lavactl.io import Io
    from lavactl.slurm.words.options import Given

USAGE = """\
Usage: scontrol [options] command
  show job [ID]  show node [NAMES]  show partition [NAMES]  show hostnames [LIST]  show hostlist HOSTS  show config
  hold ID ...  release ID ...  requeue ID ...  requeuehold ID ...  suspend ID ...  resume ID ...
  update JobId=ID | NodeName=NAMES | PartitionName=NAME  KEY=VALUE ...
  write batch_script ID [FILE | -]  wait_job ID  ping  version"""
OPTIONS = (
    *STANDARD,
    Option("oneliner", "o", FLAG, words="a record in one line"),
    Option("quiet", "Q", FLAG, words="no messages of success"),
    ignored("all", "everything is shown", FLAG, "a"),
    ignored("details", "there are no further details", FLAG, "d"),
    ignored("federation", "there is one cluster", FLAG),
    ignored("hide", "everything is shown", FLAG),
    ignored("local", "there is one cluster", FLAG),
    ignored("sibling", "there is one cluster", FLAG),
    ignored("verbose", "there is nothing more to tell", FLAG, "v"),
    refused("clusters", "a command speaks to the one cluster of its agent", letter="M"),
    refused("future", "lava knows hosts that have joined", FLAG, "F"),
    refused("uid", "call it as that user", letter="u"),
)
PARSER = Parser("scontrol", OPTIONS)
RUNNING = (messages.STAGING, messages.RUN, messages.UNKWN, messages.USUSP, messages.SSUSP)
# Command: action, states of the jobs that it is for.
ACTIONS: "dict[str, tuple[int, tuple[int, ...]]]" = {
    "hold": (messages.STOP, (messages.PEND,)),
    "uhold": (messages.STOP, (messages.PEND,)),
    "release": (messages.RESUME, (messages.PSUSP,)),
    "suspend": (messages.STOP, (messages.RUN, messages.UNKWN)),
    "resume": (messages.RESUME, (messages.USUSP, messages.SSUSP)),
    "requeue": (messages.REQUEUE, (*RUNNING, messages.DONE, messages.EXIT)),
    "requeuehold": (messages.REQUEUE, (*RUNNING, messages.DONE, messages.EXIT)),
}
SCRIPT_END = ".sh"


def main(argv: list[str], io: "Io") -> int:
    """Run scontrol."""
    given = PARSER.parse(argv)
    if answered(given, PARSER, USAGE, io):
        return 0
    given = with_variables(PARSER, given, io)
    PARSER.say_ignored(given, io)
    if not given.words:
        raise fail("scontrol", "no command is given; scontrol takes none from a prompt.")
    name, *words = given.words
    if name.lower() in ACTIONS:
        return control(name.lower(), words, io)
    command = COMMANDS.get(name.lower())
    if command is None:
        raise fail("scontrol", f"invalid keyword: {name}: not supported; badmin and bmod are lava's own commands.")
    return command(words, given, io)


def control(name: str, words: list[str], io: "Io") -> int:
    """Hold, release, requeue, suspend or resume jobs."""
    refs = _refs(words, io)
    action, states = ACTIONS[name]
    wanted = messages.JobFilter(refs=refs, user="all")
    request = messages.SignalRequest(filter=wanted, hold=name == "requeuehold")
    request.action = action  # type: ignore[assignment]
    if action == messages.REQUEUE:
        request.states.extend(states)  # type: ignore[arg-type]
        wanted.states.extend(states)  # type: ignore[arg-type]
    else:
        wanted.states.extend(states)  # type: ignore[arg-type]
    request.filter.CopyFrom(wanted)
    reply = io.client().signal(request)
    if reply.error:
        raise fail("scontrol", f"{clean(reply.error).rstrip('.')} for job {words[-1]}")
    return told(reply.results, words, io)


def told(results: "Sequence[messages.SignalResult]", words: list[str], io: "Io") -> int:
    """Report failures; the exit code."""
    failed = [result for result in results if result.error]
    known = bases({result.job for result in failed if result.index}, io)
    for result in failed:
        name = job_id(result.job, result.index, known.get(result.job, 0))
        io.error(f"scontrol: error: {clean(result.error).rstrip('.')} for job {name}")
    if not results:
        io.error(f"scontrol: error: Invalid job id specified for job {words[0]}, or it is in no state for this")
    return FAILURE if failed or not results else 0


def _refs(words: list[str], io: "Io") -> list[messages.JobRef]:
    ids = [word.removeprefix("jobid=").removeprefix("JobId=") for text in words for word in split_ids(text)]
    if not ids:
        raise fail("scontrol", "a job id is needed.")
    return [read_id(word, "scontrol", io) for word in ids]


# show


def _show(words: list[str], given: "Given", io: "Io") -> int:
    if not words:
        raise fail("scontrol", "show what? job, node, partition, hostnames, hostlist, config.")
    entity, *names = words
    key, equals, value = entity.partition("=")
    names = [value, *names] if equals else names
    shown = SHOWN.get(key.lower())
    if shown is None:
        raise fail("scontrol", f"invalid entity: {key}: shown are job, node, partition, hostnames, hostlist, config.")
    return shown(names, given, io)


def _jobs(names: list[str], given: "Given", io: "Io") -> int:
    refs = [read_id(word, "scontrol", io) for text in names for word in split_ids(text)]
    found = 0
    for view in views(refs, io):
        io.print(show.text_of(show.job_lines(view), one_line="oneliner" in given))
        found += 1
    if found:
        return 0
    if refs:
        io.error("slurm_load_jobs error: Invalid job id specified")
        return FAILURE
    io.print("No jobs in the system")
    return 0


def views(refs: list[messages.JobRef], io: "Io") -> "list[JobView]":
    """Jobs by their ids; without ids all that memory has."""
    wanted = messages.JobFilter(refs=refs, user="all", finished_too=True)
    request = messages.ListJobsRequest(filter=wanted, details=True, reasons=True, shares_details=True, basic_too=True)
    completion, now = Completion(), io.now()
    jobs = [job for page in io.client().list_jobs(request) for job in completion.complete(list(page.jobs))]
    return [JobView(job, job.spec.slurm.array_base, now) for job in jobs]


def _nodes(names: list[str], given: "Given", io: "Io") -> int:
    return _records(
        names, given, io, lambda site: {host.facts.name: host for host in site.hosts}, show.node_lines, "Node"
    )


def _partitions(names: list[str], given: "Given", io: "Io") -> int:
    read = show.partition_lines
    return _records(names, given, io, lambda site: {queue.name: queue for queue in site.queues}, read, "Partition")


def _records(
    names: list[str],
    given: "Given",
    io: "Io",
    known_of: "Callable[[Site], Mapping[str, object]]",
    lines_of: "Callable[..., list[str]]",
    noun: str,
) -> int:
    site = Site(io)
    known = known_of(site)
    wanted = [name for text in names for name in _expanded(text)] or list(known)
    code = 0
    for name in wanted:
        if name not in known:
            io.error(f"{noun} {name} not found")
            code = FAILURE
            continue
        io.print(show.text_of(lines_of(known[name], site), one_line="oneliner" in given))
    return code


def _hostnames(names: list[str], given: "Given", io: "Io") -> int:
    text = ",".join(names) or io.environ.get("SLURM_JOB_NODELIST", "")
    if not text:
        raise fail("scontrol", "host list is empty: give one, or call this within a job.")
    for name in _expanded(text):
        io.print(name)
    return 0


def _hostlist(names: list[str], given: "Given", io: "Io") -> int:
    io.print(compressed([name for text in names for name in _expanded(text)]))
    return 0


def _sorted_hostlist(names: list[str], given: "Given", io: "Io") -> int:
    io.print(compressed(sorted({name for text in names for name in _expanded(text)})))
    return 0


def _expanded(text: str) -> list[str]:
    try:
        return expanded(text)
    except ValueError:
        raise fail("scontrol", f"Invalid hostlist: {text}") from None


def _config(names: list[str], given: "Given", io: "Io") -> int:
    for line in show.config_lines(io):
        io.print(line)
    return 0


SHOWN: "dict[str, Callable[[list[str], Given, Io], int]]" = {
    **dict.fromkeys(("job", "jobs", "jobid"), _jobs),
    **dict.fromkeys(("node", "nodes", "nodename"), _nodes),
    **dict.fromkeys(("partition", "partitions", "part", "partitionname"), _partitions),
    **dict.fromkeys(("hostname", "hostnames"), _hostnames),
    "hostlist": _hostlist,
    "hostlistsorted": _sorted_hostlist,
    "config": _config,
}


# the others


def _update(words: list[str], given: "Given", io: "Io") -> int:
    pairs = [(key.lower(), value) for key, equals, value in (word.partition("=") for word in words) if equals]
    if len(pairs) != len(words) or not pairs:
        raise fail("scontrol", "update takes KEY=VALUE ..., such as JobId=12 TimeLimit=30.")
    results = change(dict(pairs), io)
    return 0 if results is None else told(results, words, io)


def _write(words: list[str], given: "Given", io: "Io") -> int:
    if len(words) < 2 or words[0].lower() != "batch_script":
        raise fail("scontrol", "write takes batch_script ID [FILE].")
    view = next(iter(views([read_id(words[1], "scontrol", io)], io)), None)
    if view is None:
        raise fail("scontrol", f"Invalid job id specified for job {words[1]}")
    spec = view.job.spec
    script = spec.command_bytes or spec.command.encode()
    place = words[2] if len(words) > 2 else f"slurm-{words[1]}{SCRIPT_END}"
    if place == "-":
        io.write(script)
        return 0
    io.stay()
    try:
        with open(io.path(place), "wb") as file:
            file.write(script)
    except OSError as error:
        raise CommandError(f"scontrol: error: {place} cannot be written: {error.strerror}.", FAILURE) from None
    io.print(f"batch script for job {words[1]} written to {place}")
    return 0


def _wait_job(words: list[str], given: "Given", io: "Io") -> int:
    io.stay()
    for change_of in io.client().watch(_refs(words, io)):
        if change_of.state in (*RUNNING, messages.DONE, messages.EXIT) and change_of.state != messages.STAGING:
            return 0
    raise fail("scontrol", f"Invalid job id specified for job {words[0]}")


def _ping(words: list[str], given: "Given", io: "Io") -> int:
    io.print(f"Slurmctld(primary) at {io.client().info().master_host} is UP")
    return 0


def _version(words: list[str], given: "Given", io: "Io") -> int:
    from protos import __version__

    io.print(f"lava {__version__} (in Slurm's words)")
    return 0


COMMANDS: "dict[str, Callable[[list[str], Given, Io], int]]" = {
    "show": _show, "update": _update, "write": _write, "wait_job": _wait_job, "ping": _ping, "version": _version,
}  # fmt: skip
