"""badmin perfmon: performance monitoring of the master, in the layout of LSF's command."""

from lavactl.errors import CommandError, UsageError
from lavactl.options import printable
from lavactl.text.render import clean, long_time
from lavactl.text.units import is_digits
from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from lavactl.io import Io

    Metric = cluster_pb2.PerformanceMetric

ACTIONS = {
    "start": cluster_pb2.START_PERFORMANCE,
    "stop": cluster_pb2.STOP_PERFORMANCE,
    "view": cluster_pb2.VIEW_PERFORMANCE,
    "setperiod": cluster_pb2.SET_PERFORMANCE_PERIOD,
}
RULE = "-" * 76
# Names that differ in LSF's JSON from those in its table.
NAMES_IN_JSON = {
    "Total queries": "Processed requests: mbatchd",
    "  Jobs information queries": "Job information queries",
    "  Hosts information queries": "Host information queries",
    "  Queue information queries": "Queue information queries",
}
OFF = "Performance monitoring is off; badmin perfmon start begins it."


def perfmon(words: list[str], usage: str, io: "Io", *, as_json: bool = False) -> int:
    """Carry out ``start [period]``, ``stop``, ``view`` or ``setperiod period``; ``as_json`` is for the view.

    Raises:
        UsageError: the words are none of these.
    """
    if not words or words[0] not in ACTIONS:
        raise UsageError("badmin perfmon: expected start, stop, view or setperiod", usage)
    name, rest = words[0], words[1:]
    if as_json and name != "view":
        raise UsageError(f"badmin perfmon {name}: -json is for view", usage)
    least, most = {"start": (0, 1), "setperiod": (1, 1)}.get(name, (0, 0))
    if not least <= len(rest) <= most:
        expected = "a sample period in seconds" if most else "no more words"
        raise UsageError(f"badmin perfmon {name}: expected {expected}", usage)
    period = 0
    if rest:
        if not is_digits(rest[0]) or not 0 < int(rest[0][:9]) <= 86_400:
            text = f"badmin perfmon {name} {printable(rest[0])}: expected a sample period of 1 to 86400 seconds"
            raise UsageError(text, usage)
        period = int(rest[0])
    reply = io.client().performance(cluster_pb2.PerformanceRequest(action=ACTIONS[name], period_s=period))
    if name == "view":
        if not reply.is_on:
            raise CommandError(OFF)
        io.print(document(reply) if as_json else "\n".join(lines(reply)))
    elif name == "stop":
        io.print("Performance monitoring is stopped")
    else:
        io.print(f"Performance monitoring is on, with a sample period of {reply.period_s} seconds")
    return 0


def lines(reply: "cluster_pb2.PerformanceReply") -> list[str]:
    """Lines of the view: counts, file descriptors, scheduler."""
    sampled = long_time(reply.sampled) if reply.sampled else "-"
    used, most = reply.files_used, reply.files_max
    return [
        f"Performance monitor start time:  {long_time(reply.started)}",
        f"End time of last sample period:  {sampled}",
        f"Sample period :                  {reply.period_s} Seconds",
        RULE,
        _line("Metrics", ("Last", "Max", "Min", "Avg", "Total")),
        RULE,
        *_rows(reply.counts, with_total=True),
        RULE,
        _line("File Descriptor Metrics", ("Free", "Used", "Total")),
        RULE,
        _line("MBD file descriptor usage", map(str, (most - used, used, most))),
        RULE,
        _line("Scheduler Metrics", ("Last", "Max", "Min", "Avg")),
        RULE,
        *_rows(reply.scheduler, with_total=False),
    ]


def document(reply: "cluster_pb2.PerformanceReply") -> str:
    """JSON document of the view, with the names and keys of LSF's; the scheduler's metrics have no total."""
    import json

    counts = [_record(one) | {"total": round(one.total, 1)} for one in reply.counts]
    records = counts + [_record(one) | {"total": 0} for one in reply.scheduler]
    used, most = reply.files_used, reply.files_max
    files = {"name": "mbatchd file descriptor usage", "free": most - used, "used": used, "total": most}
    whole = {
        "num": len(records), "record": records, "period": reply.period_s, "start": int(reply.started),
        "end": int(reply.sampled), "fd": files,
    }  # fmt: skip
    return json.dumps(whole, indent=2)


def _record(one: "Metric") -> "dict[str, str | float]":
    figures = {"current": one.last, "max": one.max, "min": one.min, "avg": one.mean}
    name = NAMES_IN_JSON.get(one.name, one.name)
    return {"name": clean(name), **{key: round(value, 1) for key, value in figures.items()}}


def _rows(metrics: "Iterable[Metric]", *, with_total: bool) -> list[str]:
    rows = []
    for one in metrics:
        values = [one.last, one.max, one.min, one.mean, *([one.total] if with_total else [])]
        rows.append(_line(clean(one.name), map(_number, values)))
    return rows


def _number(value: float) -> str:
    """A whole number from 10 on; one decimal below it, if there is any."""
    return f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def _line(title: str, values: "Iterable[str]") -> str:
    return f"{title:<35}" + "".join(f" {value:>7}" for value in values)
