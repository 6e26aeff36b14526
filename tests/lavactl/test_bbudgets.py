"""bbudgets: budgets with what is used and reserved of them."""

from protos import cluster_pb2
from tests.lavactl.scripted import NOW, Desk

DAY_S = 86400.0


def budgets(desk: Desk) -> None:
    """One budget for all, and one of each user, most of which is used."""
    plain = {"begin": NOW - 10 * DAY_S, "end": NOW + 20 * DAY_S, "resource": "slot"}
    desk.client.limits_reply.budgets.extend([
        cluster_pb2.BudgetRecord(name="all", used=10.0, reserved=2.5, bound=100.0, **plain),
        cluster_pb2.BudgetRecord(name="each", consumer="ann/p1", used=9.0, bound=10.0, is_warned=True, **plain),
    ])  # fmt: skip


def test_a_line_for_each_amount_of_each_consumer(desk: Desk) -> None:
    """Hours, and the part of the limit that is used or reserved."""
    budgets(desk)
    lines = [line.split() for line in desk.type("bbudgets").out.splitlines()]
    assert lines[0] == ["BUDGET", "CONSUMER", "FROM", "TO", "HOURS_OF", "USED", "RESERVED", "LIMIT", "PERCENT"]
    assert [line[:2] + line[4:] for line in lines[1:]] == [
        ["all", "-", "slot", "10.00", "2.50", "100.00", "12%"],
        ["each", "ann/p1", "slot", "9.00", "0.00", "10.00", "90%"],
    ]


def test_some_of_them(desk: Desk) -> None:
    """By name, by consumer, and those whose jobs are told."""
    budgets(desk)
    for words in (("each",), ("-c", "p1"), ("-a",)):
        assert desk.type("bbudgets", *words).out.splitlines()[1].split()[0] == "each"
    assert desk.type("bbudgets", "-c", "bob").out == "No budget found\n"
    unknown = desk.type("bbudgets", "none")
    assert (unknown.code, unknown.err) == (255, "none: No such budget\n")
