"""sinfo: queues and hosts as partitions and nodes."""

from lavactl.slurm.words import formats, nodes, values
from lavactl.slurm.words.nodes import Site
from lavactl.slurm.words.options import FLAG, MAYBE, STANDARD, Given, Option, Parser, answered, fail, ignored, refused
from lavactl.slurm.words.selection import hosts_of, listed
from lavactl.slurm.words.states import LONG_WORDS, host_state
from lavactl.slurm.words.variables import with_variables
from lavactl.text.render import clean
from lavactl.views.hosts import gpu_use, gpus_of
from protos.slurm_words import compressed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lavactl.io import Io
    from lavactl.slurm.words.nodes import Host, Queue

USAGE = "Usage: sinfo [options]"
OPTIONS = (
    *STANDARD[1:],
    Option("help", "", FLAG, words="this text"),
    Option("Format", "O", words="columns by names: partition:20,statelong"),
    Option("exact", "e", FLAG, words="hosts are grouped only if all their figures are equal"),
    Option("format", "o", words="columns by letters: %P %t %D", env="FORMAT"),
    Option("list-reasons", "R", FLAG, words="why hosts are closed"),
    Option("long", "l", FLAG, words="more columns"),
    Option("noheader", "h", FLAG, words="no line of titles"),
    Option("Node", "N", FLAG, words="a line for each host and queue"),
    Option("nodes", "n", words="these hosts"),
    Option("noconvert", "", FLAG, words="sizes in MB, as always here"),
    Option("partition", "p", words="these queues", env="PARTITION"),
    Option("responding", "r", FLAG, words="hosts that answer"),
    Option("dead", "d", FLAG, words="hosts that do not answer"),
    Option("states", "t", words="hosts of these states"),
    Option("summarize", "s", FLAG, words="a line for each queue"),
    Option("all", "a", FLAG, words="every queue is shown, as always here", env="ALL"),
    ignored("federation", "there is one cluster", FLAG),
    ignored("hide", "every queue is shown", FLAG),
    ignored("local", "there is one cluster", FLAG),
    ignored("verbose", "there is nothing more to tell", FLAG, "v"),
    refused("clusters", "a command speaks to the one cluster of its agent", letter="M"),
    refused("future", "lava knows hosts that have joined", FLAG, "F"),
    refused("iterate", "call it again", letter="i"),
    refused("json", "use scontrol show node, or bhosts -o ... -json", MAYBE),
    refused("reservation", "see brsvs", FLAG, "T"),
    refused("sort", "lines are in the order of the cluster's queues and hosts", letter="S"),
    refused("yaml", "use bhosts -o ... -json", MAYBE),
)
PARSER = Parser("sinfo", OPTIONS)
DEFAULT = "%9P %.5a %.10l %.6D %.6t %N"
LONG = "%9P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N"
SUMMARY = "%9P %.5a %.10l %.16F  %N"
BY_NODE = "%N %.6D %.9P %6t"
LONG_BY_NODE = "%N %.6D %.9P %.11T %.4c %.8z %.6m %.8d %.6w %.8f %20E"
REASONS = "%20E %9u %19H %N"


class Group:
    """Hosts of one line, alike in state, and their queue."""

    def __init__(self, queue: "Queue", hosts: "list[Host]") -> None:
        self.queue, self.hosts = queue, hosts

    @property
    def first(self) -> "Host":
        """Host that stands for all."""
        return self.hosts[0]

    def of_all(self, read: "Callable[[Host], int]") -> str:
        """A figure of the hosts: 64, or 32+ if some have more."""
        figures = [read(host) for host in self.hosts] or [0]
        return f"{min(figures)}{'+' if max(figures) > min(figures) else ''}"

    @property
    def state(self) -> str:
        """State of the hosts."""
        return host_state(self.first) if self.hosts else "n/a"


def _name(group: Group) -> str:
    return group.queue.name + ("*" if group.queue.is_default else "")


def _limit(group: Group) -> str:
    seconds = nodes.time_limit_s(group.queue)
    return values.time_text(seconds) if seconds else "infinite"


def _counts(group: Group) -> str:
    """Hosts as allocated/idle/other/total."""
    states = [host_state(host) for host in group.hosts]
    used = sum(state in ("alloc", "mix") for state in states)
    idle = states.count("idle")
    return f"{used}/{idle}/{len(states) - used - idle}/{len(states)}"


def _reason(group: Group) -> str:
    if not group.hosts:
        return "none"
    return clean(group.first.comment) or (group.first.status if group.state in nodes.OTHER else "none")


def _gpus_used(host: "Host") -> str:
    total = gpus_of(host)
    used = sum(1 for gpu in total if gpu_use(host, gpu.index).njobs)
    return f"gpu:{used}" if total else "(null)"


FIELDS: "dict[str, tuple[str, str, Callable[[Group], str]]]" = {
    "partition": ("PARTITION", "P", _name),
    "partitionname": ("PARTITION", "R", lambda group: group.queue.name),
    "available": ("AVAIL", "a", lambda group: nodes.availability(group.queue)),
    "time": ("TIMELIMIT", "l", _limit),
    "defaulttime": ("DEFAULTTIME", "L", _limit),
    "nodes": ("NODES", "D", lambda group: str(len(group.hosts))),
    "nodeaiot": ("NODES(A/I/O/T)", "F", _counts),
    "nodeai": ("NODES(A/I)", "A", lambda group: "/".join(_counts(group).split("/")[:2])),
    "statecompact": ("STATE", "t", lambda group: group.state),
    "statelong": ("STATE", "T", lambda group: LONG_WORDS.get(group.state, group.state)),
    "nodelist": ("NODELIST", "N", lambda group: compressed(host.facts.name for host in group.hosts)),
    "nodehost": ("HOSTNAMES", "n", lambda group: group.first.facts.name if group.hosts else ""),
    "cpus": ("CPUS", "c", lambda group: group.of_all(lambda host: host.slots_max)),
    "cpusstate": ("CPUS(A/I/O/T)", "C", lambda group: nodes.cpus_text(group.hosts)),
    "cpusload": ("CPU_LOAD", "O", lambda group: f"{group.first.load.r1m:.2f}" if group.hosts else "N/A"),
    "memory": ("MEMORY", "m", lambda group: group.of_all(lambda host: host.facts.memory_mib)),
    "freemem": ("FREE_MEM", "e", lambda group: group.of_all(lambda host: host.load.mem_mib)),
    "disk": ("TMP_DISK", "d", lambda group: group.of_all(lambda host: host.facts.tmp_mib)),
    "gres": ("GRES", "G", lambda group: nodes.gres_text(group.first) if group.hosts else "(null)"),
    "gresused": ("GRES_USED", "", lambda group: _gpus_used(group.first) if group.hosts else "(null)"),
    "features": ("AVAIL_FEATURES", "f", lambda group: ",".join(group.first.facts.resources) or "(null)"),
    "featuresact": ("ACTIVE_FEATURES", "b", lambda group: ",".join(group.first.facts.resources) or "(null)"),
    "reason": ("REASON", "E", _reason),
    "user": ("USER", "u", lambda group: "Unknown"),
    "timestamp": ("TIMESTAMP", "H", lambda group: "Unknown"),
    "size": ("JOB_SIZE", "s", lambda group: "1-infinite"),
    "root": ("ROOT", "r", lambda group: "no"),
    "oversubscribe": ("OVERSUBS", "h", lambda group: "NO"),
    "groups": ("GROUPS", "g", lambda group: group.queue.parameters.get("USERS", "all")),
    "weight": ("WEIGHT", "w", lambda group: "1"),
    "prioritytier": ("PRIO_TIER", "p", lambda group: str(group.queue.priority)),
    "socketcorethread": (
        "S:C:T", "z", lambda group: f"{group.first.facts.sockets}:{group.first.facts.cores}:1" if group.hosts else "",
    ),
}  # fmt: skip
LETTERS = {letter: name for name, (_, letter, _) in FIELDS.items() if letter}
TITLES = {name: title for name, (title, _, _) in FIELDS.items()}


def main(argv: list[str], io: "Io") -> int:
    """Run sinfo."""
    given = PARSER.parse(argv)
    if answered(given, PARSER, USAGE, io):
        return 0
    if given.words:
        raise fail("sinfo", f"unrecognized argument {given.words[0]}.")
    given = with_variables(PARSER, given, io, {"format": ("Format", "list-reasons", "summarize", "Node", "long")})
    PARSER.say_ignored(given, io)
    columns = columns_of(given, io)
    formats.check(columns, io)
    if "noheader" not in given:
        io.print(formats.head(columns))
    for group in groups(given, columns, Site(io)):
        io.print(formats.line(columns, lambda name, group=group: FIELDS[name][2](group)))  # type: ignore[misc]
    return 0


def columns_of(given: Given, io: "Io") -> list[formats.Column]:
    """Columns that the options ask for."""
    forms = (
        ("list-reasons", REASONS), ("summarize", SUMMARY),
        ("Node", LONG_BY_NODE if "long" in given else BY_NODE), ("long", LONG),
    )  # fmt: skip
    chosen = next((form for name, form in forms if name in given), "")
    try:
        if (names := given.last("Format")) is not None:
            return formats.read_names(names, TITLES, lambda name: 20)
        text = given.last("format") or chosen or DEFAULT
        return formats.read_letters(text.replace("%#", "%"), LETTERS, TITLES)
    except ValueError as error:
        raise fail("sinfo", f"Invalid node format specification: {error}") from None


# Fields of queues: without any of them a host has one line, however many queues use it.
OF_QUEUES = {"partition", "partitionname", "available", "time", "defaulttime", "groups", "prioritytier"}


def groups(given: Given, columns: list[formats.Column], site: Site) -> "Iterator[Group]":
    """Lines: hosts of each queue, grouped by what is shown of them."""
    wanted, names = set(listed(given, "partition")), hosts_of(given, "nodes", "sinfo")
    states = {_state(word) for text in given.all("states") for word in text.split(",") if word}
    shown = formats.names_of(columns)
    is_narrowed = bool(names or states or "list-reasons" in given or "Node" in given)
    queues = [queue for queue in site.queues if not wanted or queue.name in wanted]
    seen: set[str] = set()
    for queue in queues:
        hosts = [
            host
            for host in site.hosts_of(queue)
            if (not names or host.facts.name in names) and _is_chosen(host, given, states)
        ]
        if not shown & OF_QUEUES:
            hosts = [host for host in hosts if host.facts.name not in seen]
            seen.update(host.facts.name for host in hosts)
            if not hosts:
                continue
        keyed: dict[object, list[Host]] = {}
        for host in hosts:
            keyed.setdefault(_key(host, given, shown), []).append(host)
        yield from (Group(queue, alike) for alike in keyed.values())
        if not keyed and not is_narrowed:
            yield Group(queue, [])


def _key(host: "Host", given: Given, shown: set[str]) -> object:
    """Value that hosts of one line have in common."""
    if "Node" in given or shown & {"nodehost", "cpusload"}:
        return host.facts.name
    is_by_state = bool(shown & {"statecompact", "statelong", "reason"}) and "summarize" not in given
    parts: list[object] = [host_state(host)] if is_by_state else []
    if "exact" in given:
        parts += [host.slots_max, host.facts.memory_mib]
    if shown & {"gres", "gresused"}:
        parts.append(nodes.gres_text(host))
    if shown & {"features", "featuresact"}:
        parts.append(tuple(host.facts.resources))
    if "reason" in shown:
        parts.append(host.comment)
    return tuple(parts)


def _is_chosen(host: "Host", given: Given, states: set[str]) -> bool:
    state = host_state(host)
    if "dead" in given and state != "down":
        return False
    if "responding" in given and state == "down":
        return False
    if "list-reasons" in given and state not in nodes.OTHER:
        return False
    return not states or state in states


def _state(word: str) -> str:
    names = {long: short for short, long in LONG_WORDS.items()} | {"allocated": "alloc", "mixed": "mix"}
    text = word.strip().lower()
    found = names.get(text, text)
    if found not in LONG_WORDS:
        raise fail("sinfo", f'Bad state string: "{word}"')
    return found
