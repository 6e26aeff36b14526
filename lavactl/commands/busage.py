"""busage: what ended jobs have used, by user, group, project, queue and month; the database makes the sums."""

import time

from lavactl.errors import CommandError
from lavactl.options import FLAG, VALUE, Grammar, Options, answered, printable
from lavactl.text.intervals import read_interval
from lavactl.text.render import MISSING, clean, json_text
from lavactl.text.units import is_digits
from protos import jobs_pb2 as pb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lavactl.io import Io

USAGE = """\
Usage: busage [-by "key ..."] [-u "user ..."] [-G "group ..."] [-P "project ..."] [-q "queue ..."]
              [-months from[,to] | -C time0,time1] [-t seconds | minutes | hours] [-csv | -json]
       busage -h | -V
  -by      one line for each user, group, project, queue or month, or for each combination of these; all for one line
  -months  months of the ends of jobs, as 2026-10; to is included. The last twelve if neither this nor -C is given
  -C       exact times of these, as of bacct
"""
GRAMMAR = Grammar(
    "busage",
    USAGE,
    {**dict.fromkeys(("csv", "json"), FLAG), **dict.fromkeys(("by", "u", "G", "P", "q", "months", "C", "t"), VALUE)},
)
KEYS = {
    "user": pb.USAGE_USER,
    "group": pb.USAGE_GROUP,
    "project": pb.USAGE_PROJECT,
    "queue": pb.USAGE_QUEUE,
    "month": pb.USAGE_PERIOD,
}
UNITS = {"seconds": ("S", 1), "minutes": ("MIN", 60), "hours": ("H", 3600)}
MONTHS_BEFORE = 11
LATER = 1e11  # after any end


def main(argv: list[str], io: "Io") -> int:
    """Run busage."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    if options.words:
        raise GRAMMAR.wrong(f"{printable(options.words[0])}: only options are expected")
    if "csv" in options and "json" in options:
        raise GRAMMAR.wrong("-csv and -json cannot be used together")
    keys, unit = keys_of(options), unit_of(options)
    bounds, labels = periods_of(options, "month" in keys, io.now())
    request = pb.UsageRequest(keys=[KEYS[key] for key in keys], bounds=bounds)
    for letter, field in (("u", request.users), ("G", request.groups), ("P", request.projects), ("q", request.queues)):
        field.extend((options.last(letter) or "").split())
    header = [*(key.upper() for key in keys), *figure_names(unit)]
    rows = [[*names(row, keys, labels), *figures(row, unit)] for row in io.client().usage(request)]
    io.print(shown(header, rows, len(keys), options))
    return 0


def keys_of(options: Options) -> list[str]:
    """Words that lines are told apart by, in the order asked for.

    Raises:
        CommandError: a word is none of the keys.
    """
    text = options.last("by")
    keys = list(dict.fromkeys(("user" if text is None else text).replace(",", " ").split()))
    if keys == ["all"]:
        return []
    for key in keys:
        if key not in KEYS:
            raise CommandError(f"busage -by {printable(key)}: expected {', '.join(KEYS)}, or all.")
    return keys


def unit_of(options: Options) -> tuple[str, int]:
    """Mark and seconds of the unit of times.

    Raises:
        CommandError: the word is no unit.
    """
    word = options.last("t") or "seconds"
    if word not in UNITS:
        raise CommandError(f"busage -t {printable(word)}: expected {', '.join(UNITS)}.")
    return UNITS[word]


def periods_of(options: Options, by_month: bool, now: float) -> tuple[list[float], list[str]]:
    """Bounds of the periods that are asked for, and the name of each.

    Raises:
        CommandError: the months or times cannot be read.
    """
    if "C" in options and "months" in options:
        raise GRAMMAR.wrong("-C and -months cannot be used together")
    if "C" in options:
        first, last = interval(options, now)
    else:
        first, last = months(options.last("months"), now)
    if not by_month:
        return [first, last or LATER], [""]
    if not first or not last:
        raise CommandError("busage -by month: -C needs both its times.")
    bounds, labels, month = [first], [_label(first)], _month_of(first)
    while (month := month + 1) and _start(month) < last:
        bounds.append(_start(month))
        labels.append(_label(bounds[-1]))
    return [*bounds, last], labels


def interval(options: Options, now: float) -> tuple[float, float]:
    """Times of -C, the end excluded; 0 for an open one."""
    text = options.last("C") or ""
    try:
        first, last = read_interval(text, now)
    except (ValueError, OverflowError):
        raise CommandError(f"busage -C {printable(text)}: expected a time interval, as bacct -C has it.") from None
    return first, last and last + 1e-6


def months(text: str | None, now: float) -> tuple[float, float]:
    """First moment of the first month, and of the one after the last.

    Raises:
        CommandError: a month cannot be read.
    """
    if text is None:
        last = _month_of(now)
        return _start(last - MONTHS_BEFORE), _start(last + 1)
    first, comma, to = text.partition(",")
    begin = _read_month(first, text)
    end = _read_month(to, text) if comma else begin
    if end < begin:
        raise CommandError(f"busage -months {printable(text)}: the second month is before the first.")
    return _start(begin), _start(end + 1)


def _read_month(word: str, text: str) -> int:
    year, _, month = word.strip().replace("/", "-").partition("-")
    if not (is_digits(year) and is_digits(month) and len(year) == 4 and len(month) < 3 and 0 < int(month) <= 12):
        raise CommandError(f"busage -months {printable(text)}: expected a month or two, as 2026-01,2026-10.")
    if int(year) < 1971:
        raise CommandError(f"busage -months {printable(text)}: there were no jobs before 1971.")
    return int(year) * 12 + int(month) - 1


def _month_of(moment: float) -> int:
    at = time.localtime(moment)
    return at.tm_year * 12 + at.tm_mon - 1


def _start(month: int) -> float:
    return time.mktime((month // 12, month % 12 + 1, 1, 0, 0, 0, 0, 0, -1))


def _label(moment: float) -> str:
    return time.strftime("%Y-%m", time.localtime(moment))


def names(row: pb.UsageRow, keys: "Iterable[str]", labels: "Sequence[str]") -> list[str]:
    """Names that a line is for."""
    return [labels[row.period] if key == "month" else clean(getattr(row, key)) or MISSING for key in keys]


def figure_names(unit: tuple[str, int]) -> list[str]:
    """Names of the columns with figures."""
    mark = unit[0]
    return ["JOBS", "DONE", "EXIT", f"CPU_{mark}", f"SLOT_{mark}", f"GPU_{mark}", f"WAIT_{mark}", "MAX_MEM"]


def figures(row: pb.UsageRow, unit: tuple[str, int]) -> list[str]:
    """Figures of a line; the wait is the mean, memory MiB."""
    jobs = row.done + row.exited
    times = (row.cpu_s, row.slot_s, row.gpu_s, row.wait_s / jobs if jobs else 0.0)
    in_unit = [f"{seconds / unit[1]:.0f}" if unit[1] == 1 else f"{seconds / unit[1]:.2f}" for seconds in times]
    return [str(jobs), str(row.done), str(row.exited), *in_unit, str(row.memory_mib_max)]


def shown(header: list[str], rows: list[list[str]], names: int, options: Options) -> str:
    """Text of the answer: a table, CSV or JSON. A table has the names on the left."""
    if "json" in options:
        return json_text("busage", "LINES", [dict(zip(header, row, strict=True)) for row in rows])
    if "csv" in options:
        return csv_text([header, *rows])
    if not rows:
        return "No matching job found"
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    return "\n".join(
        "  ".join(
            word.ljust(width) if at < names else word.rjust(width)
            for at, (word, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (header, *rows)
    )


def csv_text(rows: list[list[str]]) -> str:
    """Rows as RFC 4180 has them, but with lines ended as on Unix."""
    return "\n".join(",".join(map(_field, row)) for row in rows)


def _field(word: str) -> str:
    quoted = word.replace('"', '""')
    return f'"{quoted}"' if any(letter in word for letter in ',"') else word
