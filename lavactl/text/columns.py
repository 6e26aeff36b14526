"""Plain tables that list the contents of a cluster directory: left-aligned columns, dates with their year."""

import time
from collections.abc import Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A header and rows, each column as wide as its widest entry."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    return "\n".join(
        "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip()
        for row in (header, *rows)
    )


def minute(moment: float) -> str:
    """``2026-11-21 09:02``."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))
