"""Parser of whole requirements: sections, compound terms (``2*{...} + 4*{...}``), alternatives (``{...} || {...}@s``).

Each section is parsed in its own file. Errors name the character they were found at. Texts of several -R options are
joined by blanks: conditions are and-ed, reservations united, the last span holds.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from lavad.core.language.requirements import affinity, cu, order, rusage, same, select, span
from lavad.core.language.requirements.affinity import Affinity
from lavad.core.language.requirements.cu import ComputeUnits
from lavad.core.language.requirements.lexer import bad, count
from lavad.core.language.requirements.rusage import Usage
from lavad.core.language.requirements.span import Span
from lavad.core.language.requirements.vocabulary import ANY, Vocabulary
from lavad.core.model.reasons import Refused

_SECTION = re.compile(r"(select|order|rusage|span|same|cu|affinity)\s*\[", re.IGNORECASE)
_TIMES = re.compile(r"\s*(?:(\d+)\s*\*\s*)?\{")
_DELAY = re.compile(r"\s*@\s*(\d+)")
TEXT_MAX = 4094
TERMS_MAX = 64
CHOICES_MAX = 16


@dataclass(frozen=True, slots=True)
class CompoundTerm:
    """One simple requirement. ``usages`` are alternatives, the preferred one first."""

    select: str = ""
    order: str = ""
    usages: tuple[Usage, ...] = ()
    span: Span = span.NONE
    same: tuple[str, ...] = ()
    cu: ComputeUnits | None = None
    affinity: Affinity | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """Terms that hold together, each with its number of tasks (0: all that no other term has).

    ``same`` and ``cu`` apply to all terms. ``delay_s``: time after the submission from which the choice may be used.
    """

    terms: tuple[tuple[int, CompoundTerm], ...]
    same: tuple[str, ...] = ()
    cu: ComputeUnits | None = None
    delay_s: int = 0


@dataclass(frozen=True, slots=True)
class Requirement:
    """Resource requirement: alternatives, the preferred one first."""

    choices: tuple[Choice, ...] = (Choice(((0, CompoundTerm()),)),)

    @property
    def term(self) -> CompoundTerm:
        """The first term, which may be the only one."""
        return self.choices[0].terms[0][1]

    @property
    def is_simple(self) -> bool:
        """True if there is one choice of one term."""
        return len(self.choices) == 1 and len(self.choices[0].terms) == 1 and not self.choices[0].terms[0][0]


def parse(text: str, vocabulary: Vocabulary = ANY) -> Requirement:
    """Parse a requirement.

    Raises:
        Refused: bad syntax, or an unknown name, with the place.
    """
    if len(text) > TEXT_MAX:
        raise Refused(f"Bad resource requirement syntax: longer than {TEXT_MAX} characters")
    if "{" not in text:
        return Requirement((Choice(((0, _term(text, 0, vocabulary)),)),))
    choices = []
    for part, at in _alternatives(text):
        choices.append(_choice(part, at, vocabulary))
    if len(choices) > CHOICES_MAX:
        raise Refused(f"Bad resource requirement syntax: more than {CHOICES_MAX} alternatives")
    return Requirement(tuple(choices))


def _alternatives(text: str) -> Iterator[tuple[str, int]]:
    """Split at ``||`` outside braces."""
    depth = begin = 0
    for at, letter in enumerate(text):
        depth += (letter == "{") - (letter == "}")
        if depth < 0:
            raise bad(at, "this } closes nothing")
        if depth == 0 and text.startswith("||", at) and not text.startswith("||", at - 1):
            yield text[begin:at], begin
            begin = at + 2
    if depth:
        raise bad(text.rindex("{"), "this { has no }")
    yield text[begin:], begin


def _choice(text: str, at: int, vocabulary: Vocabulary) -> Choice:
    """Parse ``{term}``, ``{2*{term} + 3*{term}}``, ``2*{term} + 3*{term} same[...]``, each optionally with
    ``@delay``."""
    terms: list[tuple[int, CompoundTerm]] = []
    place = 0
    while found := _TIMES.match(text, place):
        end = _closing_brace(text, found.end() - 1, at)
        times = count(found.group(1), at + found.start(1)) if found.group(1) else 0
        body, start = text[found.end() : end], at + found.end()
        if "{" in body:
            inner = _choice(body, start, vocabulary)
            if times or terms:
                raise bad(at + found.start(), "a term can't hold other terms")
            return replace(inner, delay_s=_delay(text, end + 1, at))
        terms.append((times, _term(body, start, vocabulary)))
        place = end + 1
        plus = re.compile(r"\s*\+").match(text, place)
        if plus is None:
            break
        place = plus.end()
    if not terms:
        raise bad(at + place, "expected {")
    if len(terms) > TERMS_MAX:
        raise bad(at, f"more than {TERMS_MAX} terms")
    if sum(not times for times, _ in terms) > 1:
        raise bad(at, "only one term may be without a number of tasks")
    return _with_tail(Choice(tuple(terms)), text, place, at, vocabulary)


def _with_tail(choice: Choice, text: str, place: int, at: int, vocabulary: Vocabulary) -> Choice:
    """Parse the text after the last term: same[...], cu[...], and a delay."""
    delayed = _DELAY.match(text, place)
    tail = text[delayed.end() :] if delayed else text[place:]
    start = delayed.end() if delayed else place
    common = _term(tail, at + start, vocabulary) if tail.strip() else CompoundTerm()
    if replace(common, same=(), cu=None) != CompoundTerm():
        raise bad(at + start, "only same[...] and cu[...] may follow the last term")
    delay_s = count(delayed.group(1), at + delayed.start(1), 0) if delayed else 0
    return replace(choice, same=common.same, cu=common.cu, delay_s=delay_s)


def _delay(text: str, place: int, at: int) -> int:
    found = _DELAY.match(text, place)
    rest = text[found.end() if found else place :]
    if rest.strip():
        raise bad(at + place, f"did not expect {rest.strip()[:20]!r} here")
    return count(found.group(1), at + found.start(1), 0) if found else 0


def _closing_brace(text: str, start: int, at: int) -> int:
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] == "{") - (text[place] == "}")
        if depth == 0:
            return place
    raise bad(at + start, "this { has no }")


# -- sections ----------------------------------------------------------------------------------------------------------


def _term(text: str, at: int, vocabulary: Vocabulary) -> CompoundTerm:
    term = CompoundTerm()
    for name, body, start in _sections(text, at):
        term = _PARSERS[name](term, body, start, vocabulary)
    return term


def _sections(text: str, at: int) -> Iterator[tuple[str, str, int]]:
    """Split into (name, body, place of the body); text before the first section is a select, as in LSF."""
    first = _SECTION.search(text)
    place = first.start() if first else len(text)
    if text[:place].strip():
        yield "select", text[:place], at
    while text[place:].strip():
        place += len(text[place:]) - len(text[place:].lstrip())
        found = _SECTION.match(text, place)
        if not found:
            raise bad(at + place, f"expected a section such as span[...], found {text[place:].strip()[:20]!r}")
        end = text.find("]", found.end())
        if end < 0:
            raise bad(at + found.end(), "this [ has no ]")
        yield found.group(1).lower(), text[found.end() : end], at + found.end()
        place = end + 1


def _select(term: CompoundTerm, body: str, at: int, vocabulary: Vocabulary) -> CompoundTerm:
    return replace(
        term, select=and_ed(term.select, select.text_of(select.parse(body, at, vocabulary)) if body.strip() else "")
    )


def _order(term: CompoundTerm, body: str, at: int, vocabulary: Vocabulary) -> CompoundTerm:
    keys = order.text_of(order.parse(body, at, vocabulary)) if body.strip() else ""
    return replace(term, order=":".join(filter(None, (term.order, keys))))


def _rusage(term: CompoundTerm, body: str, at: int, vocabulary: Vocabulary) -> CompoundTerm:
    found = rusage.parse(body, at, vocabulary)
    if not term.usages:
        return replace(term, usages=found)
    if len(term.usages) > 1 or len(found) > 1:
        raise bad(at, "rusage with alternatives can't be joined with another rusage")
    return replace(term, usages=(united(term.usages[0], found[0]),))


def _span(term: CompoundTerm, body: str, at: int, vocabulary: Vocabulary) -> CompoundTerm:
    return replace(term, span=span.parse(body, at))


def _same(term: CompoundTerm, body: str, at: int, vocabulary: Vocabulary) -> CompoundTerm:
    return replace(term, same=tuple(dict.fromkeys((*term.same, *same.parse(body, at, vocabulary)))))


def _cu(term: CompoundTerm, body: str, at: int, vocabulary: Vocabulary) -> CompoundTerm:
    return replace(term, cu=cu.parse(body, at))


def _affinity(term: CompoundTerm, body: str, at: int, vocabulary: Vocabulary) -> CompoundTerm:
    return replace(term, affinity=affinity.parse(body, at))


_PARSERS: dict[str, Callable[[CompoundTerm, str, int, Vocabulary], CompoundTerm]] = {
    "select": _select,
    "order": _order,
    "rusage": _rusage,
    "span": _span,
    "same": _same,
    "cu": _cu,
    "affinity": _affinity,
}


def and_ed(first: str, second: str) -> str:
    """Conjunction of two parsed select texts."""
    return f"({first}) && ({second})" if first and second else first or second


def united(first: Usage, second: Usage) -> Usage:
    """Union of two reservations; if both name a resource the second applies."""
    names = {one.name for one in second.reserves}
    reserves = (*(one for one in first.reserves if one.name not in names), *second.reserves)
    if second.gpus:
        return replace(second, reserves=reserves)
    return replace(first, reserves=reserves)


# -- back to text ------------------------------------------------------------------------------------------------------


def text_of(wanted: Requirement) -> str:
    """Text that parses to the same requirement, as bjobs -l shows it; empty without any."""
    if wanted.is_simple:
        choice = wanted.choices[0]
        return term_text(choice.terms[0][1])
    return " || ".join([_choice_text(choice) for choice in wanted.choices])


def _choice_text(choice: Choice) -> str:
    terms = " + ".join(
        f"{times}*{{{term_text(term)}}}" if times else f"{{{term_text(term)}}}" for times, term in choice.terms
    )
    tail = term_text(CompoundTerm(same=choice.same, cu=choice.cu))
    inner = f"{terms} {tail}".strip()
    if len(choice.terms) > 1 or choice.terms[0][0]:
        inner = f"{{{inner}}}"
    return f"{inner}@{choice.delay_s}" if choice.delay_s else inner


def term_text(term: CompoundTerm) -> str:
    """Text of one simple requirement."""
    usage = " || ".join([_usage_text(usage) for usage in term.usages])
    parts = [("select", term.select), ("order", term.order), ("rusage", usage), ("span", span.text_of(term.span))]
    parts += [("same", ":".join(term.same)), ("cu", cu.text_of(term.cu) if term.cu else "")]
    parts += [("affinity", affinity.text_of(term.affinity) if term.affinity else "")]
    return " ".join([f"{name}[{body}]" for name, body in parts if body])


def _usage_text(usage: Usage) -> str:
    gpus = f"ngpus_physical={usage.gpus}{'/task' if usage.gpus_per_task else ''}" if usage.gpus else ""
    options = f":{usage.gpu_options}" if usage.gpu_options else ""
    return ",".join(filter(None, (rusage.text_of(usage.reserves), f"{gpus}{options}")))
