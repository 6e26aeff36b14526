"""Fairshare: the formula by hand, decay, and the account that a user's jobs are charged to."""

from math import exp, log

import pytest

from lavad.core.apply.charge import observe
from lavad.core.model import HostFacts
from lavad.core.model.policy import Policy
from lavad.core.model.priorities.job_order import JobOrder
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.names import ALL, Names
from lavad.core.model.rules.queues import Queue
from lavad.core.model.rules.users import Fairshare, Share
from lavad.core.model.usage import HostUsage
from lavad.core.queries.fairshare_tree import share_tree
from lavad.core.state.fairshare import Account, Shares, Tree, Used, decayed_run_s
from tests.builders import ANN, BOB, Story, a_cluster, a_host, a_job

HOUR = 3600.0
ART = Names(False, frozenset({"ann", "bob"}))
BIO = Names(False, frozenset({"bob", "cel"}))


def one(name: str, shares: int) -> Share:
    """A user's account."""
    return Share(name, shares, Names(False, frozenset({name})))


def account(tree: Tree, user: str, group: str = "") -> Account:
    """Account that this user's jobs are charged to."""
    found = tree.account_of(user, group)
    assert found is not None
    return found


def test_the_formula_by_hand() -> None:
    """Every factor once, in hours: 2 slots for 3 hours of 5 committed, 1 GPU, 4 hours of past CPU time, 6 of run
    time."""
    rules = Fairshare((one("ann", 10),), 0.5, 0.25, 2.0, 0.125, 1.5, hist_hours=0, is_run_time_historic=True)
    tree = Tree("q", rules)
    ann = account(tree, "ann")
    tree.charge(ann, Used(4 * HOUR, 6 * HOUR, 8 * HOUR, 0.0))
    ann.running.move(slots=2, gpus=1, run_limit_s=int(5 * HOUR), start=1000.0)
    cpu, past, run, committed, slots, gpu = 4.0, 6.0, 2 * 3.0, 2 * 5.0, 1 + 2, 8.0 + 3.0
    by_hand = 10 / (cpu * 0.5 + (past + run) * 0.25 + (committed - run) * 0.125 + slots * 2.0 + gpu * 1.5)
    assert tree.priority(ann, 1000.0 + 3 * HOUR) == pytest.approx(by_hand)


@pytest.mark.parametrize(("is_historic", "does_decay"), [(False, False), (True, False), (True, True), (False, True)])
def test_run_time_is_shown_as_it_counts(is_historic: bool, does_decay: bool) -> None:
    """That of ended jobs counts with ENABLE_HIST_RUN_TIME, decayed with RUN_TIME_DECAY."""
    fairshare = Fairshare((one("ann", 1),), is_run_time_historic=is_historic, does_run_time_decay=does_decay)
    story = a_cluster(policy=Policy(queues=(Queue("normal", fairshare=fairshare),)))
    first = story.run(a_job(2))
    story.now += HOUR
    story.finished("n1", first)
    story.run(a_job())
    story.now += HOUR
    (row,) = share_tree(story.cluster, "normal", story.now)
    rate = log(10) / (5 * HOUR)
    past = 2 * decayed_run_s(HOUR, rate * does_decay) * exp(-rate * HOUR)
    assert row.run_time_s == pytest.approx(past * is_historic + decayed_run_s(HOUR, rate * does_decay))


def test_the_defaults_are_lsfs() -> None:
    """An idle account has shares / RUN_JOB_FACTOR; a start counts at once; past run time only if configured."""
    tree = Tree("q", Fairshare((one("ann", 9),)))
    ann = account(tree, "ann")
    tree.charge(ann, Used(0.0, 100 * HOUR, 0.0, 0.0))
    assert tree.priority(ann, 0.0) == pytest.approx(9 / 3.0)
    assert tree.priority(ann, 0.0, slots=2) == pytest.approx(9 / 9.0)


def test_the_denominator_has_a_bound() -> None:
    """All factors 0 cause no division by zero."""
    tree = Tree("q", Fairshare((one("ann", 1),), 0.0, 0.0, 0.0))
    assert tree.priority(account(tree, "ann"), 5.0) == pytest.approx(100.0)


def test_what_was_used_fades() -> None:
    """A tenth is left after HIST_HOURS; charges at different times decay separately; 0 hours: no decay."""
    tree = Tree("q", Fairshare((one("ann", 1),), hist_hours=5))
    ann = account(tree, "ann")
    tree.charge(ann, Used(100.0, 0.0, 0.0, 0.0))
    assert ann.used.faded(5 * HOUR, tree.fading).cpu_s == pytest.approx(10.0)
    tree.charge(ann, Used(100.0, 0.0, 0.0, 5 * HOUR))
    assert ann.used.faded(10 * HOUR, tree.fading).cpu_s == pytest.approx(11.0)
    tree.charge(ann, Used(100.0, 0.0, 0.0, 0.0))  # charged late: it has decayed, too
    assert ann.used.cpu_s == pytest.approx(120.0)
    assert Tree("q", Fairshare((one("ann", 1),), hist_hours=0)).fading == 0.0


def test_run_time_fades_while_it_grows() -> None:
    """RUN_TIME_DECAY: sums of many jobs are those of each job alone, at any time."""
    tree = Tree("q", Fairshare((one("ann", 1),), does_run_time_decay=True))
    running = account(tree, "ann").running
    starts = [(3, 100.0), (1, 5000.0), (2, 9000.0)]
    for slots, start in starts:
        running.move_decayed(slots, start, start, tree.fading)
        running.move(slots, 0, 0, start)
    now = 20_000.0
    alone = sum(slots * decayed_run_s(now - start, tree.fading) for slots, start in starts)
    assert running.decayed_s(now, tree.fading) == pytest.approx(alone)
    running.move_decayed(-1, 5000.0, now, tree.fading)
    running.move(-1, 0, 0, 5000.0)
    assert running.decayed_s(now, tree.fading) == pytest.approx(alone - decayed_run_s(15_000.0, tree.fading))


def test_whose_account_it_is() -> None:
    """A user's own account, then a group's (the one requested, else the first), then group@, default and others."""
    below = (one("ann", 2), Share("default", 1, ALL, True))
    shares = (Share("art", 5, ART, below=below), Share("bio", 5, BIO), one("eva", 7))
    tree = Tree("q", Fairshare((*shares, Share("default", 1, Names(True, ART.names | BIO.names), True))))
    paths = [account(tree, user).path for user in ("ann", "bob", "cel", "eva", "fay")]
    assert paths == ["q/art/ann", "q/art/bob", "q/bio", "q/eva", "q/fay"]
    assert account(tree, "bob", "bio").path == "q/bio"
    each = Tree("q", Fairshare((Share("art", 5, ART, each=True), Share("others", 3, Names(True, ART.names)))))
    assert [account(each, user).path for user in ("ann", "bob", "zoe")] == ["q/ann", "q/bob", "q/others"]
    assert account(each, "ann").shares == 5
    alone = Tree("q", Fairshare((Share("art", 5, ART),)))
    assert alone.account_of("zoe") is None


def test_groups_have_what_their_members_have() -> None:
    """A start and an end count at every level of the tree."""
    shares = (Share("art", 1, ART, below=(one("ann", 1), one("bob", 1))),)
    story = a_cluster(policy=Policy((Queue("normal", 30, fairshare=Fairshare(shares)),)))
    tree = story.cluster.shares.trees["normal"]
    key = story.run(a_job(slots=3))
    assert [(one.path, one.running.slots) for one in tree.accounts()] == [
        ("normal/art", 3), ("normal/art/ann", 3), ("normal/art/bob", 0)
    ]  # fmt: skip
    observe(story.cluster, "n1", ((key, HostUsage(cpu_s=50.0)),))
    observe(story.cluster, "n1", ((key, HostUsage(cpu_s=80.0)),))
    assert account(tree, "ann").running.cpu_s == 80.0
    story.now += 100
    story.finished("n1", key)
    assert [(one.running.slots, one.running.cpu_s, one.used.run_s) for one in tree.accounts()][:2] == [(0, 0, 300)] * 2


def test_usage_survives_other_rules() -> None:
    """By path; usage without an account is kept until the configuration has it again."""
    before = Shares(Policy((Queue("q", fairshare=Fairshare((Share("art", 1, ART, below=(one("ann", 1),)),))),)))
    tree = before.trees["q"]
    tree.charge(account(tree, "ann"), Used(5.0, 0.0, 0.0, 10.0))
    assert before.used() == {"q/art/ann": Used(5.0, 0.0, 0.0, 10.0)}
    without = Shares(Policy((Queue("q", fairshare=Fairshare((one("eva", 1),))),)))
    without.adopt(before.used())
    after = Shares(Policy((Queue("q", fairshare=Fairshare((Share("art", 3, ART, below=(one("ann", 2),)),))),)))
    after.adopt(without.used())
    assert [account.used.cpu_s for account in after.trees["q"].accounts()] == [5.0, 5.0]


def test_without_a_share_nobody_may_submit() -> None:
    """The user is refused, and other queues stay open to him."""
    queues = (Queue("fair", 40, fairshare=Fairshare((one("ann", 1),))), Queue("normal", 30))
    story = a_cluster(policy=Policy(queues))
    story.submit(a_job(queue="fair"))
    with pytest.raises(Refused, match="User cannot use the queue"):
        story.submit(a_job(queue="fair", caller=BOB))
    story.submit(a_job(caller=BOB))


def turns(story: Story, slots: int = 1) -> list[str]:
    """Users of the running jobs, in order of start."""
    story.plan()
    attempts = story.cluster.attempts.values()
    return [story.cluster.jobs[attempt.key.job].shared.user for attempt in attempts]


def one_host(slots: int, queue: Queue) -> Story:
    """Cluster of one queue and one host."""
    return a_cluster(a_host("n1", slots=slots), policy=Policy((queue,)))


def test_a_start_counts_for_the_next_choice() -> None:
    """Three shares to one: of eight slots six and two, alternating, though one user submitted all jobs first."""
    shares = (one("ann", 3), one("bob", 1))
    story = one_host(8, Queue("normal", fairshare=Fairshare(shares)))
    for caller in (ANN, BOB):
        for _ in range(10):
            story.submit(a_job(caller=caller))
    users = turns(story)
    assert users.count("ann") == 6
    assert users[:4] == ["ann", "ann", "ann", "bob"] or users[:4] == ["ann", "ann", "bob", "ann"]


def test_round_robin() -> None:
    """The user with the fewest slots in use goes first; between equals the order of submission decides."""
    story = one_host(6, Queue("normal", order=JobOrder.ROUND_ROBIN))
    story.submit(a_job(slots=2, caller=BOB))
    for caller in (BOB, ANN):
        for _ in range(5):
            story.submit(a_job(caller=caller))
    assert turns(story) == ["bob", "ann", "ann", "bob", "ann"] or turns(story) == ["bob", "ann", "ann", "ann", "bob"]


def test_a_tree_of_several_queues() -> None:
    """A user's jobs in one queue count in the other; the queue's priority still goes first."""
    fairshare = Fairshare((one("ann", 1), one("bob", 1)), queues=("high", "low"))
    queues = (Queue("high", 40, fairshare=fairshare), Queue("low", 30, fairshare=fairshare))
    story = a_cluster(HostFacts("n1", 4), policy=Policy(queues))
    story.submit(a_job(slots=2, queue="high"))
    for caller in (ANN, BOB):
        story.submit(a_job(queue="low", caller=caller))
        story.submit(a_job(queue="low", caller=caller))
    assert turns(story) == ["ann", "bob", "bob"]
