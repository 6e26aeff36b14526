"""Golden output of bjdepinfo."""

import pytest

from tests.lavactl.scripted import Desk


def test_parents(desk: Desk) -> None:
    """lsf.md 1.9: JOBID PARENT PARENT_STATUS PARENT_NAME LEVEL; a job that is forgotten has neither state nor name."""
    reply = desk.client.dependencies_reply
    reply.links.add(job=1203, relative=1201, status="RUN", name="md_npt", level=1)
    reply.links.add(job=1203, relative=1190, index=4, level=1)
    result = desk.type("bjdepinfo", "1203")
    assert (result.code, result.err) == (0, "")
    assert result.out == (
        "JOBID          PARENT         PARENT_STATUS  PARENT_NAME  LEVEL\n"
        "1203           1201           RUN            md_npt       1\n"
        "1203           1190[4]        -              -            1\n"
    )
    asked = desk.client.asked[-1]
    assert (asked.ref.job, asked.children, asked.depth) == (1203, False, 1)


def test_children_at_a_depth_with_the_condition(desk: Desk) -> None:
    """-c, -r and -l."""
    desk.client.dependencies_reply.condition = "done(1190) && ended(1191)"
    desk.client.dependencies_reply.links.add(job=1201, relative=1203, status="PEND", name="sweep", level=1)
    assert desk.type("bjdepinfo", "-l", "-c", "-r", "3", "1201").out == (
        "The dependency condition of job <1201> is not satisfied: done(1190) && ended(1191)\n"
        "JOBID          CHILD          CHILD_STATUS   CHILD_NAME   LEVEL\n"
        "1201           1203           PEND           sweep        1\n"
    )
    asked = desk.client.asked[-1]
    assert (asked.children, asked.depth) == (True, 3)


def test_a_job_that_waits_for_none(desk: Desk) -> None:
    """One sentence, and with -l that its condition, if it had any, holds."""
    result = desk.type("bjdepinfo", "-l", "7")
    assert (result.code, result.err) == (255, "Job <7>: It waits for no job\n")
    assert result.out == "Job <7> has no dependency condition that is not satisfied.\n"
    assert desk.type("bjdepinfo", "-c", "7").err == "Job <7>: No job waits for it\n"


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["7", "8"], "bjdepinfo: one job id is expected"),
        (["-p", "-c", "7"], "bjdepinfo: -p and -c cannot be used together"),
        (["-r", "0", "7"], "-r 0: expected a whole number from 1 to 100."),
        (["0"], "0: Illegal job ID."),
    ],
)
def test_wrong_use(desk: Desk, argv: list[str], sentence: str) -> None:
    """One sentence says what was expected."""
    result = desk.type("bjdepinfo", *argv)
    assert result.code == 255
    assert result.err.splitlines()[0] == sentence


def test_an_unknown_job(desk: Desk) -> None:
    """lsf.md 1.4."""
    desk.client.dependencies_reply.error = "No matching job found"
    assert desk.type("bjdepinfo", "9").err == "Job <9>: No matching job found\n"
