"""The -R language: meaning, errors, and bounded cost of any text."""

import time
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lavad.core.language.requirements.parser import parse
from lavad.core.language.requirements.rusage import PARTS
from lavad.core.language.requirements.span import Span
from lavad.core.model.reasons import Refused
from lavad.core.state.hosts.load_thresholds import select_mask
from lavad.core.state.hosts.table import HostTable
from tests.builders import a_host

HOSTS = (
    a_host("big", slots=16, memory_mib=64000, gpus=4, type="X86_64", cpus=16, resources=frozenset({"ib", "fast"})),
    a_host("small", slots=2, memory_mib=2000, type="ARM", cpus=2),
)


def table() -> HostTable:
    """Two hosts that differ in everything."""
    made = HostTable()
    for facts in HOSTS:
        made.add(facts)
    return made


def selected(text: str) -> list[str]:
    """Names of the hosts that satisfy a select expression."""
    return [facts.name for facts, chosen in zip(HOSTS, select_mask(text, table()), strict=True) if chosen]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ["big", "small"]),
        ("maxmem > 4000", ["big"]),
        ("maxmem > 4G", ["big"]),
        ("type==ARM", ["small"]),
        ("type!='ARM'", ["big"]),
        ("type==any", ["big", "small"]),
        ("ib", ["big"]),
        ("!ib && ncpus==2", ["small"]),
        ("ib || type==ARM", ["big", "small"]),
        ("defined(fast)", ["big"]),
        ("ncpus*2 >= 30+2", ["big"]),
        ("ncpus-1-1 == 0", ["small"]),
        ("-ncpus < -10", ["big"]),
        ("(ib || fast) && (ncpus > 1)", ["big"]),
        ("maxmem/0 > 1", ["big", "small"]),
    ],
)
def test_select(text: str, names: list[str]) -> None:
    """Each expression leaves just these hosts."""
    assert selected(text) == names


def test_sections_together() -> None:
    """Several sections, several texts joined by blanks: all hold."""
    wanted = parse(" select[ib] rusage[mem=2GB:ngpus_physical=2]  span[ptile=4] select[ncpus>1]")
    (usage,) = wanted.term.usages
    assert (usage.reserves[0].first, usage.gpus, wanted.term.span) == (2048 * PARTS, 2, Span(ptile=4))
    assert selected(wanted.term.select) == ["big"]


def test_text_before_the_first_section_is_a_select() -> None:
    """As LSF has it."""
    assert parse("ib rusage[mem=10]").term.select == "ib"


@pytest.mark.parametrize(
    ("text", "character"),
    [
        ("span[hosts=2]", 6),
        ("select[ncpus >]", 15),
        ("select[ncpus ? 2]", 14),
        ("rusage[mem=lots]", 8),
        ("select[ib", 8),
        ("select[(ib]", 8),
        ("select[ib] nonsense", 12),
        ("  span[ptile=0]", 8),
        ("select[ib ib]", 11),
    ],
)
def test_an_error_names_the_character(text: str, character: int) -> None:
    """The character counts from 1, in the whole text."""
    with pytest.raises(Refused, match=f"at character {character}:"):
        parse(text)


@pytest.mark.parametrize("text", ["type + 1", "-type", "!type", "type && ib", "type", "'word'", "hname * hname"])
def test_words_are_only_compared(text: str) -> None:
    """An expression that can't be evaluated is refused by the parser."""
    with pytest.raises(Refused, match="words can only be compared"):
        parse(f"select[{text}]")


@given(st.text(st.sampled_from("abn0159 .,:=!<>&|+-*/()[]'\"_\tselectrusagespan"), max_size=80))
@example("((((" * 20)
@example("!" * 500)
def test_any_text_is_understood_or_refused(text: str) -> None:
    """No text raises another error, when it is parsed or evaluated."""
    with suppress(Refused):
        mask = select_mask(parse(text).term.select, table())
        assert (mask.dtype, mask.shape) == (np.bool_, (2,))


names = st.sampled_from(["ncpus", "maxmem", "ib", "fast", "slots", "3", "2G"])
expressions = st.recursive(
    names,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["&&", "||", "+", "-", "*", "==", "!=", "<", ">="]), inner).map(
            lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
        ),
        inner.map(lambda text: f"!({text})"),
    ),
    max_leaves=12,
)


@given(expressions)
def test_blanks_change_nothing(text: str) -> None:
    """An expression has the same meaning without its blanks, and in two pairs of parentheses."""
    assert selected(text) == selected(text.replace(" ", "")) == selected(f"(({text}))")


HOSTILE = {
    "terms": "ib||" * 1000 + "ib",
    "sum": "1" + "+1" * 2000,
    "negations": "!" * 4000 + "ib",
    "parentheses": "(" * 4000,
    "blanks": "ib" + " " * 4000 + "x",
    "quotes": "'" * 4001,
    "sections": "span[hosts=1] " * 290,
    "words": "select " * 580,
}


@pytest.mark.parametrize("kind", sorted(HOSTILE))
def test_hostile_text_costs_little(kind: str) -> None:
    """The longest text takes a fraction of a second, without a thousand nested calls."""
    text = HOSTILE[kind]
    began = time.process_time()
    with suppress(Refused):
        select_mask(parse(text).term.select, table())
    assert time.process_time() - began < 0.5


def test_a_text_beyond_the_bound_is_refused() -> None:
    """The refusal names the bound."""
    with pytest.raises(Refused, match="4094"):
        parse("x" * 4095)
