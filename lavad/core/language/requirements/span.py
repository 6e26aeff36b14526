"""Section span[...]: distribution of a job's tasks over hosts."""

from dataclasses import dataclass

from lavad.core.language.requirements.lexer import bad, count

HOST_MAX = -1  # ptile='!': the number of slots of each host


@dataclass(frozen=True, slots=True)
class Span:
    """At most one kind of distribution. ``by_value`` are numbers of tasks on hosts of a type or model."""

    one_host: bool = False
    ptile: int = 0
    by_value: tuple[tuple[str, int], ...] = ()
    block: int = 0
    stripe: int = 0  # maximum of tasks on a host, filled in turns; 0: none
    is_striped: bool = False
    is_cancelled: bool = False  # hosts=-1: the queue's span does not apply either


NONE = Span()


def parse(text: str, at: int = 0) -> Span:
    """Parse ``hosts=1``, ``hosts=-1``, ``ptile=n``, ``ptile='!,name:n,...'``, ``block=n``, ``stripe``, ``stripe=n``.

    Raises:
        Refused: anything else, with the character.
    """
    name, equals, value = (part.strip() for part in text.partition("="))
    start = at + len(text) - len(text.lstrip())
    if name == "hosts" and value in ("1", "-1"):
        return Span(one_host=value == "1", is_cancelled=value == "-1")
    if name == "ptile" and equals:
        return _ptile(value, start)
    if name == "block" and equals:
        return Span(block=count(value, start))
    if name == "stripe":
        return Span(stripe=count(value, start) if equals else 0, is_striped=True)
    raise bad(start, f"span takes hosts=1, ptile=n, block=n or stripe, found {text.strip()!r}")


def _ptile(value: str, at: int) -> Span:
    bare = value.strip("'\"")
    if bare == value or not bare:
        return Span(ptile=count(value, at))
    first, *rest = (part.strip() for part in bare.split(","))
    ptile = HOST_MAX if first == "!" else count(first, at)
    pairs = []
    for part in rest:
        name, colon, tasks = (piece.strip() for piece in part.partition(":"))
        if not name or not colon:
            raise bad(at, f"ptile takes name:n after the first number, found {part!r}")
        pairs.append((name, count(tasks, at)))
    return Span(ptile=ptile, by_value=tuple(pairs))


def text_of(span: Span) -> str:
    """Text that parses to the same span; empty for none."""
    if span.is_cancelled:
        return "hosts=-1"
    if span.one_host:
        return "hosts=1"
    if span.ptile:
        first = "!" if span.ptile == HOST_MAX else str(span.ptile)
        if not span.by_value and span.ptile != HOST_MAX:
            return f"ptile={first}"
        return "ptile='" + ",".join([first, *(f"{name}:{tasks}" for name, tasks in span.by_value)]) + "'"
    if span.block:
        return f"block={span.block}"
    if span.is_striped:
        return f"stripe={span.stripe}" if span.stripe else "stripe"
    return ""
