"""Plot of a schedule: utilisation, queue length and waits over time, as one SVG written by hand.

Invariants: the picture is self-contained (no script, font or style from elsewhere) and its size does not grow with the
number of jobs: time is cut into a fixed number of columns, each of which shows the mean (or maximum) of its interval.
"""

from collections.abc import Callable, Iterable, Sequence
from xml.sax.saxutils import escape

from lavad.simulator.replay.report import Ran

COLUMNS = 600
WIDTH, PANEL, GAP, LEFT, TOP = 860, 150, 46, 90, 40
INK, PALE, FILL, LINE = "#333333", "#d9d9d9", "#9ecae1", "#08519c"


def draw(jobs: Sequence[Ran], processors: int, title: str) -> str:
    """Draw the SVG file and return its text."""
    begin = min((job.submit_s for job in jobs), default=0)
    span = max(1, max((job.end_s for job in jobs), default=1) - begin)
    busy = _means(((job.start_s, job.end_s, job.processors) for job in jobs), begin, span)
    queued = _means(((job.submit_s, job.start_s, 1) for job in jobs), begin, span)
    panels = (
        ("utilisation, %", [100 * value / processors for value in busy], 100.0),
        ("jobs waiting", queued, 0.0),
        ("longest wait of jobs started, hours", _longest(jobs, begin, span), 0.0),
    )
    height = TOP + len(panels) * (PANEL + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}"',
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="20" font-size="15" fill="{INK}">{escape(_printable(title))}</text>',
    ]
    for number, (name, values, top) in enumerate(panels):
        parts += _panel(TOP + number * (PANEL + GAP), name, values, top or _round_up(max(values)), span)
    return "\n".join([*parts, "</svg>", ""])


def _printable(title: str) -> str:
    """Replace characters of file names that XML forbids."""
    return "".join(letter if letter.isprintable() else "?" for letter in title)


def _means(intervals: Iterable[tuple[float, float, int]], begin: float, span: float) -> list[float]:
    """Return the mean usage in each column; every interval (from, to, amount) counts for its length."""
    totals = [0.0] * (COLUMNS + 1)
    slopes = [0.0] * (COLUMNS + 1)  # amount by which every whole column from here on grows
    for start, end, amount in intervals:
        _spread(totals, slopes, (start - begin) * COLUMNS / span, (end - begin) * COLUMNS / span, amount)
    level, means = 0.0, []
    for column in range(COLUMNS):
        level += slopes[column]
        means.append(level + totals[column])
    return means


def _spread(totals: list[float], slopes: list[float], start: float, end: float, amount: int) -> None:
    first, last = int(start), int(end)
    if first == last:
        totals[first] += (end - start) * amount
        return
    totals[first] += (first + 1 - start) * amount
    totals[last] += (end - last) * amount
    slopes[first + 1] += amount
    slopes[last] -= amount


def _longest(jobs: Sequence[Ran], begin: float, span: float) -> list[float]:
    longest = [0.0] * COLUMNS
    for job in jobs:
        column = min(COLUMNS - 1, int((job.start_s - begin) * COLUMNS / span))
        longest[column] = max(longest[column], job.wait_s / 3600)
    return longest


def _round_up(value: float) -> float:
    """Return a round number that is at least this."""
    step = 1.0
    while True:
        for factor in (1, 2, 5):
            if step * factor >= value:
                return step * factor
        step *= 10


def _panel(y: int, name: str, values: Sequence[float], top: float, span: float) -> list[str]:
    wide, bottom = WIDTH - LEFT - 20, y + PANEL
    place = _scale(y, top)
    points = " ".join(f"{LEFT + at * wide / len(values):.1f},{place(value):.1f}" for at, value in enumerate(values))
    parts = [f'<text x="{LEFT}" y="{y - 6}" fill="{INK}">{escape(name)}</text>']
    for share in (0.0, 0.5, 1.0):
        level = place(top * share)
        parts.append(f'<line x1="{LEFT}" x2="{LEFT + wide}" y1="{level:.1f}" y2="{level:.1f}" stroke="{PALE}"/>')
        label = f"{top * share:g}"
        parts.append(f'<text x="{LEFT - 8}" y="{level + 4:.1f}" text-anchor="end" fill="{INK}">{label}</text>')
    parts.append(f'<polygon points="{LEFT},{bottom} {points} {LEFT + wide},{bottom}" fill="{FILL}"/>')
    parts.append(f'<polyline points="{points}" fill="none" stroke="{LINE}"/>')
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        days = f"{span * share / 86400:.3g} d"
        where = LEFT + wide * share
        parts.append(f'<text x="{where:.1f}" y="{bottom + 16}" text-anchor="middle" fill="{INK}">{days}</text>')
    return parts


def _scale(y: int, top: float) -> Callable[[float], float]:
    return lambda value: y + PANEL * (1 - min(value, top) / top)
