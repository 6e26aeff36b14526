"""Hints: the name that was meant, and the way to say what was meant."""

import pytest

from lavad.core.language.dependency import parse
from lavad.core.language.near import hint
from lavad.core.model.reasons import Refused
from tests.lavactl.scripted import Desk


def test_signals_and_all_jobs_have_their_own_words(desk: Desk) -> None:
    """`bkill -9` and `bkill all` are what kill and other schedulers take."""
    assert desk.type("bkill", "-9", "12").err.startswith("bkill: illegal option -- 9 (a signal is -s 9)\n")
    assert desk.type("bkill", "all").err.startswith("all: Illegal job ID. Job ID 0 means all jobs.\n")


def test_a_long_usage_does_not_hide_the_reason(desk: Desk) -> None:
    """After a mistyped option there is the reason, and a line that says where the options are."""
    assert (
        desk.type("bsub", "-zz", "true").err
        == "bsub: illegal option -- zz. Job not submitted.\nUsage: bsub -h shows it\n"
    )


def test_conditions_of_slurm_are_named() -> None:
    """-w "afterok:1" is done(1)."""
    with pytest.raises(Refused, match=r"done\(12\), which is Slurm's afterok:12"):
        parse("afterok:1")


def test_only_a_near_name_is_suggested() -> None:
    """Another number of the same name is another host, and was not mistyped."""
    assert hint("nigth", ["normal", "night"]) == "; did you mean night?"
    assert hint("n003", ["n001", "n002"]) == hint("x", ["normal"]) == ""
