"""Values of Slurm's options, and formats of its listings."""

import time

import pytest

from lavactl.errors import CommandError
from lavactl.slurm.steps.layout import Misfit, Wish, layout
from lavactl.slurm.words import formats, values
from lavactl.slurm.words.options import FLAG, MAYBE, Option, Parser, refused


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5", 300),
        ("1:30", 90),
        ("1:00:00", 3600),
        ("1-0", 86400),
        ("2-3:04", 183840),
        ("1-00:00:01", 86401),
        ("UNLIMITED", 0),
    ],
)
def test_times(text: str, seconds: int) -> None:
    """Minutes, m:s, h:m:s, d-h, d-h:m, d-h:m:s."""
    assert values.read_time_s(text) == seconds


@pytest.mark.parametrize("text", ["", "x", "1:2:3:4", "-5", "1-", "5m"])
def test_malformed_times(text: str) -> None:
    """None is taken for something else."""
    with pytest.raises(ValueError, match=r".*"):
        values.read_time_s(text)


def test_times_as_they_are_shown() -> None:
    """squeue cuts empty hours, sacct shows all fields."""
    assert [values.time_text(s) for s in (5, 754, 3723, 176461)] == ["0:05", "12:34", "1:02:03", "2-01:01:01"]
    assert [values.long_time_text(s) for s in (5, 3723, 176461)] == ["00:00:05", "01:02:03", "2-01:01:01"]


@pytest.mark.parametrize(
    ("text", "ranges", "base", "limit"),
    [
        ("1-10", [(1, 10, 1)], 0, 0),
        ("0-15:4%2", [(1, 13, 4)], 1, 2),
        ("1,3,7", [(1, 1, 1), (3, 3, 1), (7, 7, 1)], 0, 0),
        ("0", [(1, 1, 1)], 1, 0),
    ],
)
def test_arrays(text: str, ranges: list[tuple[int, int, int]], base: int, limit: int) -> None:
    """A list with a 0 is moved by one, since lava counts elements from 1."""
    assert values.read_array(text) == (ranges, base, limit)


def test_generic_resources() -> None:
    """GPUs by model and number, and resources of the site's own."""
    assert values.read_gres("gpu:a100:2,fpga:1") == ((2, "a100"), [("fpga", 1)])
    assert values.read_gres("gpu") == ((1, ""), [])
    assert values.read_gres("gres/gpu:4") == ((4, ""), [])
    assert values.read_gpus("h100:8") == (8, "h100")


@pytest.mark.parametrize(
    ("text", "clock"),
    [
        ("now+1hour", "2026-11-21T10:30:00"),
        ("16:00", "2026-11-21T16:00:00"),
        ("08:00", "2026-11-22T08:00:00"),
        ("tomorrow", "2026-11-22T00:00:00"),
        ("2026-12-24T18:30", "2026-12-24T18:30:00"),
        ("12/24/26", "2026-12-24T00:00:00"),
        ("now-2days", "2026-11-19T09:30:00"),
        ("noon", "2026-11-21T12:00:00"),
    ],
)
def test_moments(text: str, clock: str) -> None:
    """A time of day is the next one; a date is at midnight."""
    now = time.mktime((2026, 11, 21, 9, 30, 0, 0, 0, -1))
    assert values.moment_text(values.read_moment(text, now)) == clock


@pytest.mark.parametrize(
    ("text", "clock"),
    [
        ("noon", "2026-10-31T12:00:00"),
        ("midnight", "2026-11-01T00:00:00"),
        ("16:00", "2026-10-31T16:00:00"),
        ("08:00", "2026-11-01T08:00:00"),
        ("today", "2026-11-01T00:00:00"),
    ],
)
def test_moments_of_the_past(text: str, clock: str) -> None:
    """For a listing of what was, a time of day is the last one, also across the first of a month."""
    now = time.mktime((2026, 11, 1, 9, 30, 0, 0, 0, -1))
    assert values.moment_text(values.read_moment(text, now, is_past=True)) == clock


@pytest.mark.parametrize("text", ["2026-11-31", "13/01", "2026-00-10T10:00", "25:00", "soon"])
def test_moments_that_no_calendar_has(text: str) -> None:
    """None is moved to a day that there is."""
    with pytest.raises(ValueError, match=r".*"):
        values.read_moment(text, time.mktime((2026, 11, 21, 9, 30, 0, 0, 0, -1)))


@pytest.mark.parametrize("text", ["id:99999", "id:\u00b2", "id:1e9"])
def test_widths_are_bounded(text: str) -> None:
    """A column of any width would be padded in the memory of the process that serves all."""
    with pytest.raises(ValueError, match=r"id"):
        formats.read_names(text, {"id": "ID"}, lambda name: 5)


def test_formats() -> None:
    """A dot justifies to the right; text between fields stays."""
    columns = formats.read_letters(
        "%.6i|%4P %t", {"i": "id", "P": "queue", "t": "state"}, dict(id="ID", queue="Q", state="ST")
    )
    given = {"id": "123", "queue": "normal", "state": "R"}
    assert formats.head(columns) == "    ID|Q    ST"
    assert formats.line(columns, given.__getitem__) == "   123|norm R"


PARSER = Parser(
    "x",
    (
        Option("nodes", "N"),
        Option("ntasks", "n"),
        Option("hold", "H", FLAG),
        Option("exclusive", "", MAYBE),
        refused("bb", "why"),
    ),
    words_end=True,
)


def test_options_as_getopt_reads_them() -> None:
    """Glued values, = and a beginning that is unambiguous; the first word ends the options."""
    given = PARSER.parse(["-N2", "--nta", "4", "-Hn3", "--exclusive", "run", "-x"])
    assert given.items == [("nodes", "2"), ("ntasks", "4"), ("hold", ""), ("ntasks", "3"), ("exclusive", "")]
    assert given.words == ["run", "-x"]


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--n", "1"], "ambiguous option '--n'"),
        (["--foo"], "unrecognized option '--foo'"),
        (["-Z"], "invalid option -- 'Z'"),
        (["-N"], "option '-N' requires an argument"),
        (["--hold=1"], "doesn't allow an argument"),
        (["--bb", "x"], "--bb is not supported: why."),
    ],
)
def test_options_that_are_refused(argv: list[str], sentence: str) -> None:
    """One sentence each."""
    with pytest.raises(CommandError, match=r".") as refusal:
        PARSER.parse(argv)
    assert sentence in str(refusal.value)


SLOTS = {"n1": 4, "n2": 4, "n3": 2}


@pytest.mark.parametrize(
    ("wish", "counts"),
    [
        (Wish(), [1, 1, 1]),
        (Wish(tasks=10), [4, 4, 2]),
        (Wish(tasks=5), [3, 1, 1]),
        (Wish(tasks=2), [1, 1, 0]),
        (Wish(tasks=1), [1, 0, 0]),
        (Wish(nodes=2, per_node=2), [2, 2, 0]),
        (Wish(tasks=4, cpus=2), [2, 1, 1]),
        (Wish(relative=1), [0, 1, 1]),
        (Wish(hosts=("n3",), tasks=2), [0, 0, 2]),
        (Wish(tasks=12, overcommit=True), [4, 4, 4]),
    ],
)
def test_layout_of_a_step(wish: Wish, counts: list[int]) -> None:
    """Each host has a rank, then one host after the other is filled."""
    ranks = layout(SLOTS, wish)
    assert [ranks.count(host) for host in SLOTS] == counts


@pytest.mark.parametrize(
    "wish", [Wish(tasks=11), Wish(nodes=4), Wish(hosts=("n9",)), Wish(relative=3), Wish(tasks=4, cpus=4)]
)
def test_a_step_that_does_not_fit(wish: Wish) -> None:
    """It is refused, not started elsewhere."""
    with pytest.raises(Misfit):
        layout(SLOTS, wish)
