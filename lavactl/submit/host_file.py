"""Host files of bsub -hostfile: the hosts of a job and its slots on each, as the user names them.

A line is ``host [slots]``, one slot without a number; ``#`` begins a comment. The job takes exactly these slots, and
its tasks are numbered in the order of the file. The slots of a host that is named again are added to its first line.
"""

from lavactl.errors import CommandError
from lavactl.options import printable
from lavactl.submit import job_options
from lavactl.text import units
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from lavactl.io import Io

SIZE_MAX = 1 << 20
SLOTS_MAX = 1 << 20
HOSTS_MAX = 10_000
# Hosts with different slots become terms of one requirement, which has at most so many.
UNEQUAL_MAX = 64


def fill_in(spec: messages.JobSpec, path: str, given: "Sequence[str]", io: "Io") -> tuple[int, list[str]]:
    """Fill in the file and its hosts, which become those of -m; its slots, and the requirement with ``given`` ones."""
    lines = read(path, io)
    hosts: dict[str, int] = {}
    for host, slots in lines:
        hosts[host] = hosts.get(host, 0) + slots
    if len(hosts) > HOSTS_MAX:
        raise CommandError(f"-hostfile {printable(path)}: the file names more than {HOSTS_MAX} hosts.")
    found = requirement(hosts, given)
    spec.hosts.extend(preferences(list(hosts)))
    spec.host_file.path = io.path(path)
    spec.host_file.hosts.extend(host for host, _ in lines)
    spec.host_file.slots.extend(slots for _, slots in lines)
    spec.host_file.requirement = job_options.requirement(given) if given else ""
    return sum(hosts.values()), [found]


def read(path: str, io: "Io") -> list[tuple[str, int]]:
    """Host and slots of each line of a file.

    Raises:
        CommandError: it can't be read, names no host, or has a malformed line.
    """
    data = io.read_file(io.path(path), SIZE_MAX + 1)
    if data is None:
        raise CommandError(f"-hostfile {printable(path)}: the file cannot be read.")
    if len(data) > SIZE_MAX:
        raise CommandError(f"-hostfile {printable(path)}: the file is larger than {SIZE_MAX >> 20} MiB.")
    found: list[tuple[str, int]] = []
    for number, line in enumerate(data.decode(errors="replace").splitlines(), 1):
        words = line.partition("#")[0].split()
        if words:
            found.append(_entry(words, f"-hostfile {printable(path)}: line {number}"))
    if not found:
        raise CommandError(f"-hostfile {printable(path)}: the file names no host.")
    return found


def _entry(words: list[str], where: str) -> tuple[str, int]:
    host, count = words[0], words[1] if len(words) > 1 else "1"
    try:
        slots = units.read_count(count, 1, SLOTS_MAX)
    except ValueError:  # thousands of digits too
        slots = 0
    if len(words) > 2 or not slots or not host.replace("-", "").replace(".", "").replace("_", "").isalnum():
        raise CommandError(
            f"{where}: expected a host and perhaps a number of slots, found {printable(' '.join(words)[:80])}."
        )
    return host, slots


def preferences(hosts: "Sequence[str]") -> list[str]:
    """Words of -m that name these hosts, those before others preferred."""
    return [f"{host}+{len(hosts) - place}" for place, host in enumerate(hosts)]


def requirement(hosts: dict[str, int], given: "Sequence[str]") -> str:
    """Requirement by which a job takes exactly these slots, and what ``given`` ones ask of each host.

    Raises:
        CommandError: a given one distributes the slots itself, or the slots differ on more hosts than can be told.
    """
    if any("{" in text or "span[" in text for text in given):
        raise CommandError(
            "-hostfile says how many slots each host gives: -R cannot have span[...] or terms in braces."
        )
    if len(set(hosts.values())) == 1:
        return job_options.requirement([*given, f"span[ptile={next(iter(hosts.values()))}]"])
    if len(hosts) > UNEQUAL_MAX:
        raise CommandError(
            f"-hostfile: {len(hosts)} hosts with different numbers of slots; at most {UNEQUAL_MAX}, or any number of "
            "hosts with as many slots each."
        )
    terms = [[*given, f'select[hname=="{host}"]', "span[hosts=1]"] for host in hosts]
    return " + ".join(
        f"{slots}*{{{job_options.requirement(term)}}}" for slots, term in zip(hosts.values(), terms, strict=True)
    )
