"""Golden output of bsla: LSF's layout of classes with the goal GUARANTEE (lsf.md 1.9)."""

import pytest

from protos import cluster_pb2 as pb
from tests.lavactl.scripted import Desk

GOLD = """\
SERVICE CLASS NAME:  gold
 -- For the night
ACCESS CONTROL:  QUEUES[normal] USERS[ann]
AUTO ATTACH:  Y

GOAL:  GUARANTEE

                                      GUAR       GUAR      TOTAL
POOL NAME            TYPE           CONFIG       USED       USED
night                slots              16         16         20

"""
TIN = """\
SERVICE CLASS NAME:  a/b
 -- No description provided.
AUTO ATTACH:  N

GOAL:  GUARANTEE

"""


def _two_classes(desk: Desk) -> None:
    reply = desk.client.pools_reply
    pool = reply.pools.add(name="night/gold", service_class="gold")
    pool.amounts.add(resource="slots", total=64, own=16, used=20)
    reply.pools.add(name="lab").amounts.add(resource="slots", total=64, own=8, used=8)
    gold = reply.service_classes.add(name="gold", description="For the night", attaches=True)
    gold.access = "QUEUES[normal] USERS[ann]"
    gold.jobs.MergeFrom(pb.StateCounts(pend=4, run=5, ssusp=1, finish=2))
    gold.slots.MergeFrom(pb.StateCounts(pend=40, run=20, ssusp=4, reserved=8, finish=16))
    reply.service_classes.add(name="a/b")


def test_classes_with_their_guarantees_and_jobs(desk: Desk) -> None:
    """All of them; one that is in no pool has no table of pools."""
    _two_classes(desk)
    result = desk.type("bsla")
    assert (result.code, result.err) == (0, "")
    jobs = "  NJOBS    PEND     RUN   SSUSP   USUSP  FINISH\n     12       4       5       1       0       2\n"
    none = "  NJOBS    PEND     RUN   SSUSP   USUSP  FINISH\n      0       0       0       0       0       0\n"
    assert result.out == f"{GOLD}{jobs}\n{'-' * 79}\n{TIN}{none}"


def test_slots_of_a_class(desk: Desk) -> None:
    """-N: slots in place of jobs, those reserved for pending jobs, too; only the class that is named."""
    _two_classes(desk)
    slots = " NSLOTS    PEND     RUN   SSUSP   USUSP     RSV\n     72      40      20       4       0       8\n"
    assert desk.type("bsla", "-N", "gold").out == GOLD + slots


@pytest.mark.parametrize(
    ("argv", "shown", "sentence"),
    [
        (["tin", "a/b", "tin"], 1, "tin: No such service class\n"),
        (["d\x1bé"], 0, "d?é: No such service class\n"),
    ],
)
def test_a_class_that_is_not_there(desk: Desk, argv: list[str], shown: int, sentence: str) -> None:
    """One sentence for each and exit code 255; the others are shown."""
    _two_classes(desk)
    result = desk.type("bsla", *argv)
    assert (result.code, result.err, result.out.count("GOAL:")) == (255, sentence, shown)


def test_no_class_at_all(desk: Desk) -> None:
    """One sentence and exit code 255."""
    result = desk.type("bsla")
    assert (result.code, result.out, result.err) == (255, "", "No service class found\n")


def test_a_pool_is_named_though_a_class_has_a_slash(desk: Desk) -> None:
    """bresources -g night shows the part of the class a/b as well, which it once did not know."""
    part = desk.client.pools_reply.pools.add(name="night/a/b", service_class="a/b")
    part.amounts.add(resource="slots", total=4, own=2)
    result = desk.type("bresources", "-g", "night")
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines()[1].split() == ["night/a/b", "slots", "ok", "4", "0", "2", "0", "0"]
    assert desk.type("bresources", "-g", "night/a").err == "night/a: No such guaranteed resource pool\n"
