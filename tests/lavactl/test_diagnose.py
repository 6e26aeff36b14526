"""badmin diagnose: pending reasons of jobs, and the log of queries."""

import pytest

from tests.lavactl.scripted import Desk, a_job


def test_the_log_of_queries(desk: Desk) -> None:
    """It is switched on for a while, and off; the answer names its file."""
    result = desk.type("badmin", "diagnose", "-c", "query", "-f", "slow", "-d", "5")
    said = "Query diagnosis is started; log file </var/lib/lava/query.log> on host <m1>\n"
    assert (result.code, result.out, result.err) == (0, said, "")
    asked = desk.client.asked[-1]
    assert (asked.off, asked.file, asked.seconds) == (False, "slow", 300)
    assert "stopped" in desk.type("badmin", "diagnose", "-c", "query", "-o").out
    assert desk.client.asked[-1].off


def test_reasons_of_jobs(desk: Desk) -> None:
    """As bjobs -p3 shows them."""
    desk.client.jobs = [a_job()]
    result = desk.type("badmin", "diagnose", "1201")
    assert (result.code, result.out) == (0, desk.type("bjobs", "-p3", "1201").out)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "badmin diagnose: name the jobs, or -c query"),
        (["-f", "x"], "badmin diagnose: -f needs -c query"),
        (["-c", "jobreq"], "badmin diagnose -c jobreq: bjobs -p3 and -l show the reasons of each job."),
        (["-c", "all"], "badmin diagnose: -c all: expected query"),
        (["-c", "query", "5"], "badmin diagnose: -c query takes no names"),
        (["-c", "query", "-o", "-d", "5"], "badmin diagnose: -o takes neither -f nor -d"),
        (["-c", "query", "-d", "0"], "badmin diagnose: -d 0: expected 1 to 10080 minutes"),
    ],
)
def test_words_that_are_refused(desk: Desk, words: list[str], sentence: str) -> None:
    """One sentence first."""
    result = desk.type("badmin", "diagnose", *words)
    assert (result.code, result.err.splitlines()[0]) == (255, sentence)
