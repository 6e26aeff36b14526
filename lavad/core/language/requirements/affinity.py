"""Section affinity[...]: the processors that each task is bound to."""

from dataclasses import dataclass, replace

from lavad.core.language.requirements.lexer import Reader, bad, count

UNITS = ("thread", "core", "socket", "numa")
BINDINGS = ("thread", "core", "socket", "numa")
MEMORY = ("localonly", "localprefer")
DISTRIBUTIONS = ("pack", "balance", "any")


@dataclass(frozen=True, slots=True)
class Affinity:
    """``count`` processor units for each task. ``same``: all of a task's units in one such unit; empty: anywhere.

    ``exclusive`` names units that no other job (``injob``: nor another task) may use. ``bind`` is the unit to which
    processes are bound; empty: the allocated ones.
    """

    unit: str = "thread"
    count: int = 1
    same: str = ""
    exclusive: str = ""
    exclusive_in: str = ""
    bind: str = ""
    memory: str = ""
    distribution: str = "any"
    times: int = 1


def parse(text: str, at: int = 0) -> Affinity:
    """Parse ``core(2,same=socket,exclusive=(socket,alljobs)):cpubind=core:membind=localonly:distribute=pack``,
    ``...*n``.

    Raises:
        Refused: bad syntax, with the character.
    """
    reader = Reader(text, at)
    token = reader.take()
    if token.word not in UNITS:
        raise bad(token.at, f"affinity takes thread, core, socket or numa, found {token.word!r}")
    wanted = Affinity(unit=token.word)
    if reader.skip("("):
        wanted = _inside(reader, wanted)
    if reader.skip("*"):
        token = reader.take()
        wanted = replace(wanted, times=count(token.word, token.at))
    while reader.skip(":"):
        wanted = _option(reader, wanted)
    reader.expect_end()
    return wanted


def _inside(reader: Reader, wanted: Affinity) -> Affinity:
    while True:
        token = reader.take()
        if token.kind == "number":
            wanted = replace(wanted, count=count(token.word, token.at))
        elif token.word == "same":
            reader.expect("=")
            wanted = replace(wanted, same=_one_of(reader, UNITS))
        elif token.word in ("exclusive", "excl"):
            reader.expect("=")
            wanted = _exclusive(reader, wanted)
        else:
            raise bad(token.at, f"expected a number, same= or exclusive=, found {token.word!r}")
        if not reader.skip(","):
            reader.expect(")")
            return wanted


def _exclusive(reader: Reader, wanted: Affinity) -> Affinity:
    has_scope = reader.skip("(")
    wanted = replace(wanted, exclusive=_one_of(reader, UNITS), exclusive_in="alljobs")
    if has_scope:
        if reader.skip(","):
            wanted = replace(wanted, exclusive_in=_one_of(reader, ("alljobs", "injob")))
        reader.expect(")")
    return wanted


def _option(reader: Reader, wanted: Affinity) -> Affinity:
    token = reader.take()
    reader.expect("=")
    if token.word == "cpubind":
        return replace(wanted, bind=_one_of(reader, BINDINGS))
    if token.word == "membind":
        return replace(wanted, memory=_one_of(reader, MEMORY))
    if token.word == "distribute":
        wanted = replace(wanted, distribution=_one_of(reader, DISTRIBUTIONS))
        if reader.skip("("):  # pack(socket=1), a maximum: packing uses the fewest possible anyway
            _one_of(reader, UNITS)
            reader.expect("=")
            number = reader.take()
            count(number.word, number.at)
            reader.expect(")")
        return wanted
    raise bad(token.at, f"affinity takes cpubind=, membind= and distribute=, found {token.word!r}")


def _one_of(reader: Reader, words: tuple[str, ...]) -> str:
    token = reader.take()
    if token.word not in words:
        raise bad(token.at, f"expected {', '.join(words[:-1])} or {words[-1]}, found {token.word!r}")
    return token.word


def text_of(wanted: Affinity) -> str:
    """Text that parses to the same value."""
    inside = [str(wanted.count)]
    inside += [f"same={wanted.same}"] if wanted.same else []
    inside += [f"exclusive=({wanted.exclusive},{wanted.exclusive_in})"] if wanted.exclusive else []
    text = f"{wanted.unit}({','.join(inside)})" + (f"*{wanted.times}" if wanted.times > 1 else "")
    text += f":cpubind={wanted.bind}" if wanted.bind else ""
    text += f":membind={wanted.memory}" if wanted.memory else ""
    return text + (f":distribute={wanted.distribution}" if wanted.distribution != "any" else "")
