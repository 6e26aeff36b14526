"""blimits: resource limits of lsb.resources: configuration and usage."""

import re

from lavactl.errors import FAILURE, CommandError
from lavactl.options import FLAG, VALUE, Grammar, Options, answered
from lavactl.text.render import MISSING, clean
from lavactl.text.unknown import unknown_name
from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from lavactl.io import Io

USAGE = """\
Usage: blimits [-a | -c] [-w] [-n limit] [-u user] [-q queue] [-m host] [-P project] [-A profile]
               [limit ...]
       blimits -h | -V
  -a    also the limits that nothing counts for at present
  -u, -q, -m, -P and -A choose the limits that hold for that user, queue, host, project or application profile
"""
GRAMMAR = Grammar(
    "blimits",
    USAGE,
    {
        **dict.fromkeys(("c", "w", "a"), FLAG),
        **dict.fromkeys(("n", "m", "P", "q", "u", "A"), VALUE),
        "Lp": "lava has no licence projects.",
    },
)
# Option, the field of a line of usage, and the words of a Limit section.
CONSUMERS = (
    ("u", "users", "USERS"), ("q", "queues", "QUEUES"), ("m", "hosts", "HOSTS"), ("P", "projects", "PROJECTS"),
    ("A", "apps", "APPS"),
)  # fmt: skip
CONSUMER_WORDS = {word for _, _, plain in CONSUMERS for word in (plain, f"PER_{plain[:-1]}")}
COLUMNS = (("NAME", 14), ("USERS", 12), ("QUEUES", 12), ("HOSTS", 12), ("PROJECTS", 12), ("SLOTS", 9), ("MEM", 14),
           ("TMP", 12), ("SWP", 12), ("JOBS", 9))  # fmt: skip
APPS = ("APPS", 12)  # behind PROJECTS, where a limit is of profiles


def main(argv: list[str], io: "Io") -> int:
    """Run blimits."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    if "a" in options and "c" in options:
        raise GRAMMAR.wrong("-a and -c cannot be used together")
    unknown = unknown_name(options, io)
    if unknown:
        raise CommandError(unknown, FAILURE)
    limits = chosen(io.client().limits(), options)
    if "c" in options:
        show_configured(limits, io)
        return 0
    columns = columns_for(limits)
    lines = [line for limit in limits for line in usage_lines(limit, options, columns)]
    if not lines:
        io.print("No resource usage found.")
        return 0
    io.print("\nINTERNAL RESOURCE LIMITS:\n")
    io.print("  ".join(f"{name:<{width}}" for name, width in columns).rstrip())
    io.print("\n".join(lines))
    return 0


def columns_for(limits: "Iterable[cluster_pb2.LimitRecord]") -> tuple[tuple[str, int], ...]:
    """Titles and widths of the table."""
    is_of_apps = any(_consumers(limit, "APPS") for limit in limits)
    return (*COLUMNS[:5], APPS, *COLUMNS[5:]) if is_of_apps else COLUMNS


def show_configured(limits: "Iterable[cluster_pb2.LimitRecord]", io: "Io") -> None:
    """-c: limits as sections of lsb.resources."""
    io.print("\n\n".join(configured_text(limit) for limit in limits) or "No resource limit is configured.")


def chosen(reply: cluster_pb2.LimitsReply, options: Options) -> list[cluster_pb2.LimitRecord]:
    """Limits with the given names, or all, restricted to those that apply to the given consumers."""
    names = [*options.words, *(options.last("n") or "").split()]
    known = {limit.name for limit in reply.limits}
    for name in names:
        if name not in known:
            raise GRAMMAR.wrong(f"{name}: no such limit")
    found = [limit for limit in reply.limits if not names or limit.name in names]
    for option, _, word in CONSUMERS:
        wanted = options.last(option)
        if wanted is not None:
            found = [limit for limit in found if holds_for(wanted, _consumers(limit, word))]
    return found


def _consumers(limit: cluster_pb2.LimitRecord, word: str) -> str:
    """Consumers of a kind that a limit names, together or each."""
    return limit.configured.get(word) or limit.configured.get(f"PER_{word[:-1]}", "")


def holds_for(name: str, consumers: str) -> bool:
    """True if the name is among these consumers, such as ``ann bob`` or ``all ~zoe``; an empty list means everyone."""
    words = consumers.split()
    return not words or name in words or ("all" in words and f"~{name}" not in words)


def usage_lines(limit: cluster_pb2.LimitRecord, options: Options, columns: tuple[tuple[str, int], ...]) -> list[str]:
    """A line for each set of consumers with usage, restricted to the given consumers; with -a one if there is none."""
    asked = [(field, name) for option, field, _ in CONSUMERS if (name := options.last(option)) is not None]
    found = [one for one in limit.usage if all(holds_for(name, getattr(one, field)) for field, name in asked)]
    if "a" in options and not found:
        found = [unused(limit)]
    return [_line(limit.name, one, columns, uncut="w" in options) for one in found]


def unused(limit: cluster_pb2.LimitRecord) -> cluster_pb2.LimitUsage:
    """Usage of a limit that nothing counts for, for all its consumers together."""
    amounts = {name: value for name, value in limit.configured.items() if name not in CONSUMER_WORDS}
    amounts |= dict(re.findall(r"\[([^,\]]+),([^,\]]+)\]", amounts.pop("RESOURCE", "")))
    record = cluster_pb2.LimitUsage()
    for _, field, word in CONSUMERS:
        setattr(record, field, _consumers(limit, word))
    record.used.update({name.upper(): f"0/{value.removesuffix(' M')}" for name, value in amounts.items()})
    return record


def _line(name: str, usage: cluster_pb2.LimitUsage, columns: tuple[tuple[str, int], ...], *, uncut: bool) -> str:
    used = usage.used
    consumers = {word: getattr(usage, field) for _, field, word in CONSUMERS}
    cells = [name, *(consumers.get(title, used.get(title, "")) for title, _ in columns[1:])]
    fitted = [_fit(clean(cell) or MISSING, width, uncut) for cell, (_, width) in zip(cells, columns, strict=True)]
    rest = [f"{title} {clean(used[title])}" for title in sorted(used) if title not in dict(COLUMNS)]
    return "  ".join([*fitted, *rest]).rstrip()


def _fit(text: str, width: int, uncut: bool) -> str:
    return f"{text if uncut else text[:width]:<{width}}"


def configured_text(limit: cluster_pb2.LimitRecord) -> str:
    """A limit as a section of lsb.resources."""
    values = [f"{name:<19} = {clean(value)}" for name, value in sorted(limit.configured.items())]
    return "\n".join(["Begin Limit", f"{'NAME':<19} = {clean(limit.name)}", *values, "End Limit"])
