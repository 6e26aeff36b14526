"""Properties of bsub's parsers: any text is taken as meant or refused in a sentence, never half-read."""

import contextlib
import time

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from lavactl.errors import CommandError
from lavactl.jobrefs import read_ref, ref_text
from lavactl.options import is_plainly_value
from lavactl.submit import job_options
from lavactl.submit.hang_rule import hang_rule, hang_text
from lavactl.submit.submission import GRAMMAR, script_options
from lavactl.submit.words import split_words
from lavactl.text import units
from lavactl.wire import messages

RANGES = st.lists(
    st.tuples(st.integers(1, 400), st.integers(0, 60), st.integers(1, 9)).map(lambda r: (r[0], r[0] + r[1], r[2])),
    min_size=1,
    max_size=6,
)
VALUE = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=20)


def expand(ranges: list[tuple[int, int, int]]) -> list[int]:
    """Indices in ranges, in order, repetitions included."""
    return [index for first, last, step in ranges for index in range(first, last + 1, step)]


@given(RANGES)
def test_index_lists_mean_the_same_set_once(ranges: list[tuple[int, int, int]]) -> None:
    """Reading a written index list gives exactly its indices, each once."""
    text = ",".join(f"{first}-{last}:{step}" for first, last, step in ranges)
    read = expand(units.read_index_list(text))
    assert len(read) == len(set(read))
    assert set(read) == set(expand(ranges))


@given(RANGES)
def test_job_references_survive_being_shown(ranges: list[tuple[int, int, int]]) -> None:
    """A reference shown to the user can be typed again."""
    text = ",".join(f"{first}-{last}:{step}" for first, last, step in ranges)
    ref = read_ref(f"123[{text}]")
    assert read_ref(ref_text(ref)) == ref


@given(st.text(max_size=30))
def test_any_text_is_an_index_list_or_a_value_error(text: str) -> None:
    """No other exception, and no empty list."""
    with contextlib.suppress(ValueError):
        assert units.read_index_list(text)


@given(st.integers(0, 999), st.integers(0, 59))
def test_run_limits(hours: int, minutes: int) -> None:
    """[h:]m is minutes; a limit of zero is refused."""
    assume(hours or minutes)
    assert units.read_minutes(f"{hours}:{minutes:02d}") == (hours * 60 + minutes) * 60
    assert units.read_minutes(str(hours * 60 + minutes)) == (hours * 60 + minutes) * 60


@given(st.text(max_size=12))
@example("1:2:3")
@example("-5")
@example("¹")
def test_any_text_is_a_run_limit_or_a_value_error(text: str) -> None:
    """Digits of other scripts, signs and more colons are refused."""
    try:
        seconds = units.read_minutes(text)
    except ValueError:
        return
    assert seconds > 0
    assert set(text) <= set("0123456789:")


@given(st.integers(1, 10**9), st.sampled_from("KMGT"), st.sampled_from(["", "B", "b"]))
def test_memory_rounds_up(number: int, unit: str, tail: str) -> None:
    """A limit is never less than was asked, and less than a MiB more."""
    kib = number << {"K": 0, "M": 10, "G": 20, "T": 30}[unit]
    mib = units.read_memory_mib(f"{number}{unit}{tail}", "Z")
    assert kib <= mib << 10 < kib + 1024
    assert units.read_memory_mib(str(number), unit) == mib


@given(st.text(max_size=12), st.sampled_from(["KB", "MB", "GB", "", "x"]))
def test_any_text_is_a_memory_limit_or_a_value_error(text: str, unit: str) -> None:
    """No other exception."""
    with contextlib.suppress(ValueError):
        assert units.read_memory_mib(text, unit) > 0


@given(st.text(max_size=10))
def test_any_text_is_a_slot_range_or_a_value_error(text: str) -> None:
    """Accepted ranges have 1 <= least <= most."""
    with contextlib.suppress(ValueError):
        least, most = units.read_count_range(text)
        assert 1 <= least <= most


@given(st.text(max_size=14), st.floats(0, 4e9))
@example("2:30:10:00", 1.0)
def test_any_text_is_a_date_or_a_command_error(text: str, now: float) -> None:
    """Accepted dates without a year are in the future."""
    try:
        moment = job_options.date("b", text, now)
    except CommandError:
        return
    assert moment > now or text.count(":") == 4


@pytest.mark.parametrize("text", ["2:29:12:00", "2028:2:29:12:00", "31:12:00"])
def test_dates_that_not_every_month_or_year_has(text: str) -> None:
    """The next month or year that has the day is meant."""
    moment = time.localtime(units.read_date(text, 1795253400.0))
    assert (moment.tm_hour, moment.tm_min) == (12, 0)


@given(st.lists(VALUE, max_size=5))
def test_words_survive_quoting(words: list[str]) -> None:
    """Words in double quotes are read unchanged."""
    line = " ".join('"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"' for word in words)
    assert split_words(f" {line}  # comment") == words


@given(st.text(max_size=200))
def test_any_script_is_read_or_refused(script: str) -> None:
    """Any text after #BSUB gives options or a sentence."""
    for text in (script, "#BSUB " + script, f"#!/bin/sh\n#BSUB -J {script}\nx"):
        with contextlib.suppress(CommandError):
            assert not script_options(text).words


@given(st.lists(st.text(max_size=8) | st.sampled_from(["-n", "-J", "-R", "-o", "-K", "-W", "--", "-"]), max_size=6))
def test_any_command_line_is_read_or_refused(argv: list[str]) -> None:
    """Options and words together are the command line; no word is lost."""
    with contextlib.suppress(CommandError):
        options = GRAMMAR.parse(argv)
        assert argv[len(argv) - len(options.words) :] == options.words


@given(st.text(st.sampled_from("abcdefghij_-"), min_size=1))
def test_a_misspelt_option_is_never_a_value(tail: str) -> None:
    """-outdirr is not `-o utdirr`."""
    assert not is_plainly_value(tail) or not any(letter.isalpha() for letter in tail)


@given(st.text(max_size=40))
def test_any_job_name_is_a_name_an_array_or_refused(text: str) -> None:
    """An accepted name is printable."""
    with contextlib.suppress(CommandError):
        name, ranges, limit = job_options.job_name(text)
        assert name.isprintable()
        assert limit == 0 or ranges


@given(st.floats(0.001, 1e8), st.floats(1e-6, 1e12), st.booleans())
@example(300.0, 12345678.0, False)
@example(1234567.5, 0.1, True)
def test_rules_for_hangs_keep_their_digits(seconds: float, amount: float, no_stacks: bool) -> None:
    """The option's text gives the same rule again."""
    rule = messages.HangRule(after_s=seconds, network_bytes_s=amount, cpus=amount / 3, no_stacks=no_stacks)
    assert hang_rule(hang_text(rule)).SerializeToString() == rule.SerializeToString()


def test_rules_for_hangs_are_written_as_people_write_them() -> None:
    """Whole numbers without a point; a part that is said twice is refused."""
    assert hang_text(hang_rule("5m:network=12345678:cpus=0.1")) == "after=300:cpus=0.1:network=12345678"
    with pytest.raises(CommandError, match="each once"):
        hang_rule("after=5m:after=6m")
