"""Bounds as bqueues -l shows them: load thresholds, also of bhosts -l and bjobs -l, and limits, also of bapp -l."""

from lavactl.text.render import MISSING, clean
from lavactl.text.units import number_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from protos import cluster_pb2

    # Index, loadSched, loadStop; None without a bound.
    Bound = tuple[str, float | None, float | None]

LIMITS = ("CPULIMIT", "RUNLIMIT", "PROCLIMIT", "MEMLIMIT", "FILELIMIT", "DATALIMIT", "STACKLIMIT", "CORELIMIT",
          "SWAPLIMIT", "PROCESSLIMIT", "THREADLIMIT")  # fmt: skip
HEADER = "           r15s   r1m  r15m   ut      pg    io   ls    it    tmp    swp    mem"
EMPTY = "   -     -     -     -       -     -    -     -     -      -      -"
INDICES = ("r15s", "r1m", "r15m", "ut", "pg", "io", "ls", "it", "tmp", "swp", "mem")
SIZES = ("tmp", "swp", "mem")
_PLACES = [place for place, letter in enumerate(EMPTY) if letter == "-"]


def bounds_of(records: "Iterable[cluster_pb2.ThresholdRecord]") -> "list[Bound]":
    """Thresholds of a queue or a host."""
    return [
        (one.index, one.sched if one.HasField("sched") else None, one.stop if one.HasField("stop") else None)
        for one in records
    ]


def threshold_lines(bounds: "Iterable[Bound]") -> list[str]:
    """Header, loadSched and loadStop; site-defined indices in a table of their own below."""
    known = {index: (sched, stop) for index, sched, stop in bounds}
    own = [name for name in known if name not in INDICES]
    lines = [HEADER, _line(" loadSched", known, 0), _line(" loadStop ", known, 1)]
    if own:
        lines += ["", " " * 10 + "".join(f" {clean(name):>12}" for name in own)]
        lines += [_own_line(" loadSched", own, known, 0), _own_line(" loadStop ", own, known, 1)]
    return lines


def _line(label: str, known: "dict[str, tuple[float | None, float | None]]", side: int) -> str:
    text = ""
    for place, index in zip(_PLACES, INDICES, strict=True):
        bound = known.get(index, (None, None))[side]
        shown = MISSING if bound is None else number_text(bound) + "M" * (index in SIZES)
        # A wide value moves those behind it: none is cut or written over.
        start = max(place - len(shown) // 2, len(text) + bool(text))
        text = text.ljust(start) + shown
    return label + text


def _own_line(label: str, own: list[str], known: "dict[str, tuple[float | None, float | None]]", side: int) -> str:
    values = [MISSING if (bound := known[name][side]) is None else number_text(bound) for name in own]
    return label + "".join(f" {value:>12}" for value in values)


def limit_lines(title: str, known: dict[str, str]) -> list[str]:
    """The limits that are set."""
    named = [name for name in LIMITS if known.get(name)]
    if not named:
        return []
    lines = ["", title]
    for name in named:
        lines += [f" {name}", f" {clean(known[name])}"]
    return lines
