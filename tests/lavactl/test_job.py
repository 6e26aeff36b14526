"""lavactl job: words that are not understood, and callers outside a job. Its answers are in the acceptance tests."""

import pytest

from tests.lavactl.scripted import Desk


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        ((), "whoami | peers | left | notice | progress is expected, not nothing"),
        (("who",), "whoami | peers | left | notice | progress is expected, not who"),
        (("left", "7"), "7: nothing is expected here"),
        (("progress", "40", "50"), "50: one percentage is expected"),
        (("progress", "half"), "percent: half is not a number"),
        (("progress", "40%", "--left", "soon"), "--left: soon is not a number"),
        (("left", "--wait"), "--wait"),
    ],
)
def test_wrong_words_are_named(desk: Desk, words: tuple[str, ...], wrong: str) -> None:
    """In a sentence, with an exit code."""
    said = desk.type("lavactl", "job", *words)
    assert wrong in said.err
    assert (said.code != 0, said.out) == (True, "")


@pytest.mark.parametrize("words", [("whoami",), ("peers",), ("left",), ("notice",), ("progress", "40")])
def test_outside_a_job_there_is_nothing_to_ask(desk: Desk, words: tuple[str, ...]) -> None:
    """The variable that is missing is named."""
    desk.environ.pop("LAVA_JOB_SOCKET", None)
    said = desk.type("lavactl", "job", *words)
    assert "works only inside a job: LAVA_JOB_SOCKET is not set" in said.err
    assert said.code == 255


@pytest.mark.parametrize(
    ("option", "text", "wrong"),
    [
        ("-wt", "soon", "[hours:]minutes, such as 2 or 1:30, or seconds, such as 30s"),
        ("-wt", "0s", "seconds, such as 30s"),
        ("-wa", "SIGKILL", "it can't be handled"),
    ],
)
def test_warnings_that_cannot_be_given_are_refused(desk: Desk, option: str, text: str, wrong: str) -> None:
    """Before the job is submitted."""
    said = desk.type("bsub", option, text, "true")
    assert wrong in said.err
    assert said.code != 0
