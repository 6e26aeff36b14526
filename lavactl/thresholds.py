"""The table of load thresholds that bqueues -l and bhosts -l have in common."""

from lavactl.render import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from protos import cluster_pb2

HEADER = "           r15s   r1m  r15m   ut      pg    io   ls    it    tmp    swp    mem"
EMPTY = "   -     -     -     -       -     -    -     -     -      -      -"
INDICES = ("r15s", "r1m", "r15m", "ut", "pg", "io", "ls", "it", "tmp", "swp", "mem")
SIZES = ("tmp", "swp", "mem")
_PLACES = [place for place, letter in enumerate(EMPTY) if letter == "-"]


def threshold_lines(records: "Iterable[cluster_pb2.ThresholdRecord]") -> list[str]:
    """Header, loadSched and loadStop; the site's own indices in a table of their own below."""
    known = {record.index: record for record in records}
    own = [record for name, record in known.items() if name not in INDICES]
    lines = [HEADER, _line(" loadSched", known, "sched"), _line(" loadStop ", known, "stop")]
    if own:
        lines += ["", " " * 10 + "".join(f" {clean(record.index):>12}" for record in own)]
        lines += [_own_line(" loadSched", own, "sched"), _own_line(" loadStop ", own, "stop")]
    return lines


def _line(label: str, known: "dict[str, cluster_pb2.ThresholdRecord]", side: str) -> str:
    text = list(EMPTY)
    for place, index in zip(_PLACES, INDICES, strict=True):
        record = known.get(index)
        if record is not None and record.HasField(side):
            shown = f"{getattr(record, side):g}" + "M" * (index in SIZES)
            start = place - len(shown) // 2
            text[start : start + len(shown)] = shown
    return label + "".join(text).rstrip()


def _own_line(label: str, records: "list[cluster_pb2.ThresholdRecord]", side: str) -> str:
    values = [f"{getattr(record, side):g}" if record.HasField(side) else "-" for record in records]
    return label + "".join(f" {value:>12}" for value in values)
