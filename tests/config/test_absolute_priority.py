"""APS_PRIORITY of lsb.queues: what is read, and what is told with its line."""

from pathlib import Path

import pytest

from lavad.core.model.priorities.absolute import Factor
from tests.config.files import loaded, policy_of, said

QUEUE = "Begin Queue\nQUEUE_NAME = q\n{}\nEnd Queue\n"


def test_factors_are_read(tmp_path: Path) -> None:
    """A factor of which subfactors have weights has weight 1 itself; a grace period without a unit is in hours."""
    text = (
        "FAIRSHARE = USER_SHARES[[default,1]]\n"
        "APS_PRIORITY = WEIGHT[[FS, 100] [MEM, 0.5] [WORK, 2] [JPRIORITY, -3] [APP, 1]] LIMIT[[MEM, 40.5]] "
        "GRACE_PERIOD[[RSRC, 10] [MEM, 10s] [JPRIORITY, 10m]]"
    )
    queue = policy_of(tmp_path, {"lsb.queues": QUEUE.format(text)}).by_name["q"]
    assert queue.absolute is not None
    assert dict(queue.absolute.factors) == {
        "FS": Factor(100.0),
        "RSRC": Factor(1.0, 0.0, 36000.0),
        "MEM": Factor(0.5, 40.5, 10.0),
        "WORK": Factor(2.0),
        "JPRIORITY": Factor(-3.0, 0.0, 600.0),
        "APP": Factor(1.0),
    }


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("WEIGHT[[JPRI, 1]]", "JPRI: expected one of FS RSRC PROC MEM SWAP WORK JPRIORITY QPRIORITY APP"),
        ("WEIGHT[[MEM, 0]]", "MEM: 0 is no value of a factor"),
        ("WEIGHT[[MEM, much]]", "MEM: expected a number, found 'much'"),
        ("WEIGHT[[MEM, 1000001]]", "MEM: the largest value is 1000000"),
        ("WEIGHT[[MEM, 1] [MEM, 2]]", "MEM: there twice"),
        ("WEIGHT[[ADMIN, 1]]", "ADMIN: it has no weight, limit or grace period; bmod -aps sets it for each job"),
        (
            "WEIGHT[[WORK, 1]]",
            "WORK: it counts by its subfactors; expected the weight of one of JPRIORITY QPRIORITY APP",
        ),
        ("WEIGHT[[MEM, 1]] LIMIT[[MEM, -1]]", "MEM: a limit is above 0; it holds for negative values as well"),
        ("WEIGHT[[MEM, 1]] LIMIT[[SWAP, 1]]", "SWAP: it has no WEIGHT, so it does not count"),
        ("WEIGHT[[MEM, 1]] GRACE_PERIOD[[MEM, 1d]]", "MEM: expected a number, found '1d'"),
        (
            "WEIGHT[[FS, 1]] GRACE_PERIOD[[FS, 1h]]",
            "GRACE_PERIOD of FS: the share of a user counts from the submission",
        ),
        ("LIMIT[[MEM, 1]]", "expected WEIGHT with at least one [factor, value]"),
        ("WEIGHT[MEM, 1]", "expected WEIGHT[[factor, value] ...] LIMIT[[factor, value] ...]"),
        ("WEIGHT[[MEM, 1]] WEIGHT[[SWAP, 1]]", "expected WEIGHT[[factor, value] ...] LIMIT[[factor, value] ...]"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, value: str, sentence: str) -> None:
    """The line, and what was expected."""
    text = QUEUE.format(f"APS_PRIORITY = {value}")
    told = "\n".join(said(loaded(tmp_path, {"lsb.queues": text})))
    assert f"lsb.queues:3: APS_PRIORITY = {value}: {sentence}" in told


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("LAVA_JOB_ORDER = slowdown", "APS_PRIORITY: the queue has another order of jobs"),
        ("ROUND_ROBIN_POLICY = Y", "APS_PRIORITY: the queue has another order of jobs"),
        ("FAIRSHARE = USER_SHARES[[default,1]]\nFAIRSHARE_QUEUES = other",
         "APS_PRIORITY: a queue that shares a tree with others, FAIRSHARE_QUEUES, has no such order"),
        ("NICE = 5", "APS_PRIORITY: FS does not count, because the queue has no FAIRSHARE"),
    ],
)  # fmt: skip
def test_what_it_excludes(tmp_path: Path, line: str, sentence: str) -> None:
    """lsf.md 5.2: neither with cross-queue fairshare nor with another order; FS needs shares."""
    text = QUEUE.format(f"APS_PRIORITY = WEIGHT[[FS, 1]]\n{line}")
    files = {"lsb.queues": f"{text}\nBegin Queue\nQUEUE_NAME = other\nEnd Queue\n"}
    assert f"lsb.queues:3: {sentence}" in "\n".join(said(loaded(tmp_path, files)))


def test_queues_are_ordered_together(tmp_path: Path) -> None:
    """QUEUE_GROUP: members have the factors of the queue that names them, and its place; their own do not count."""
    queue = "Begin Queue\nQUEUE_NAME = {}\nPRIORITY = {}\n{}\nEnd Queue\n"
    weights = "APS_PRIORITY = WEIGHT[[MEM, {}]]\n"
    first = queue.format("first", 40, weights.format(1) + "QUEUE_GROUP = own, low first")
    others = queue.format("low", 20, "") + queue.format("own", 30, weights.format(2)) + queue.format("alone", 10, "")
    files = {"lsb.queues": first + others}
    found = policy_of(tmp_path, files).by_name
    assert [found[name].served_at for name in ("first", "low", "own", "alone")] == [40, 40, 40, 10]
    assert found["first"].absolute == found["low"].absolute == found["own"].absolute != found["alone"].absolute
    assert "APS_PRIORITY of queue own does not count, but that of first" in "\n".join(said(loaded(tmp_path, files)))
    wrong = queue.format("alone", 10, "QUEUE_GROUP = low") + queue.format("low", 20, "")
    told = "\n".join(said(loaded(tmp_path, {"lsb.queues": wrong})))
    assert "lsb.queues:4: QUEUE_GROUP: it has no effect without APS_PRIORITY" in told
    twice = first + queue.format("more", 5, weights.format(1) + "QUEUE_GROUP = low nowhere") + others
    told = "\n".join(said(loaded(tmp_path, {"lsb.queues": twice})))
    assert "nowhere" in told
    told = "\n".join(said(loaded(tmp_path, {"lsb.queues": twice.replace(" nowhere", "")})))
    assert "lsb.queues:11: QUEUE_GROUP: queue low is in another group, or names one of its own" in told
