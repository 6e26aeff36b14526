"""An incremental pass starts exactly the jobs that a full pass would start."""

import copy
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lavad.core import commands as c
from lavad.core import invariants
from lavad.core.apply import batch_dispatch
from lavad.core.cluster import Cluster
from lavad.core.decide.plans import apply_plan
from lavad.core.model import LOAD_INDICES, Launch
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.resources import Resource, ResourceInstance, ResourceKind
from lavad.core.passes import slice_pass
from lavad.core.plan import DropClaims, Plan, Preempt, ReserveSlots, Resume, Start, StartClaimed, Starts
from lavad.core.scheduling.fast.single_task import SingleTaskStarts
from lavad.core.scheduling.queueing import blocked
from lavad.core.scheduling.queueing import blocked_columns as columns
from lavad.core.scheduling.worklist import Worklist
from tests.builders import ANN, BOB, ROOT, WITH_PRIORITIES, Story, a_host, a_job
from tests.properties import rules
from tests.properties.examples import examples
from tests.properties.test_fold import state_of

SLICES_MAX = 2000
RULES = replace(
    WITH_PRIORITIES,
    resources={"lic": Resource("lic", ResourceKind.NUMERIC)},
    resource_map=(ResourceInstance("lic", "2", is_shared=True),),
)
CALLERS = (ANN, BOB, c.Caller("cel", 1002), c.Caller("dan", 1003))


def whole_pass(story: Story, worklist: Worklist, steps: int) -> list[Any]:
    """All that one pass decided, slice by slice, each applied; a fresh plan holds when it is verified, too."""
    starts: list[Any] = []
    has_work = worklist.has_work(story.cluster, story.now)
    for _ in range(SLICES_MAX):
        plan = slice_pass(story.cluster, worklist, steps, story.now)
        starts += _decided(plan)
        doubted = plan
        if isinstance(plan, Starts):
            assert all(_is_where_it_may(story, start) for start in plan.starts)
            doubted = plan._replace(version=-1)
        verified = apply_plan(story.cluster, c.ApplyPlan(doubted), story.now)
        assert verified.reply == 0
        applied = story.do(c.ApplyPlan(plan))
        assert applied.events[: len(verified.events)] == verified.events
        assert applied.reply == 0
        if plan.is_complete:
            assert has_work or not starts, "nobody would have begun this pass"
            return starts
    raise AssertionError(f"no end after {SLICES_MAX} slices")


def _decided(plan: Plan) -> list[Any]:
    """The parts of a plan of which the order counts, without the work of its slice."""
    match plan:
        case Starts(starts) | StartClaimed(starts):
            return list(starts)
        case Preempt() | ReserveSlots():
            return [replace(plan, steps=0)]
        case DropClaims(parts) | Resume(parts):
            return list(parts)
    return []


def _is_where_it_may(story: Story, start: Start) -> bool:
    """Its queue uses these hosts."""
    queue = story.cluster.policy.by_name[story.cluster.jobs[start.job].shared.queue]
    return all(share.host in queue.hosts for share in start.allocation)


SPANS: tuple[dict[str, int], ...] = ({}, {}, {}, {"ptile": 1}, {"ptile": 2}, {"stripe": -1}, {"block": 2})


def some_policy(seed: int) -> Policy:
    """The default, or with preemption of either kind."""
    policy = Policy()
    if not seed % 3:
        return policy
    changes: dict[str, dict[str, Any]] = {"priority": {"preempts": (("normal", 0),)}}
    if not seed % 2:
        changes["normal"] = {"slot_reserve_s": 50.0}
    queues = [replace(one, **changes.get(one.name, {})) for one in policy.queues]
    return Policy(tuple(queues), preempts_by_requeue=seed % 3 == 1)


class Player:
    """Random actions on a cluster, drawn from a seed."""

    def __init__(self, seed: int, with_rules: bool = False, with_backfill: bool = False) -> None:
        self.rng = rng = Random(seed)
        hosts = [
            a_host(f"n{n}", rng.choice((1, 2, 4)), 4000, rng.choice((0, 2))) for n in range(1, rng.choice((6, 6, 20)))
        ]
        self.story = Story(*hosts, policy=rules.policy(rng, with_backfill) if with_rules else RULES)
        self.actions = [self.submit] * 5 + [self.begin, self.end] * 4
        self.actions += [self.kill, self.stop, self.move, self.wait, self.silence, self.close]

    def play(self) -> None:
        """One thing."""
        try:
            self.rng.choice(self.actions)()
        except Refused:
            return

    def submit(self) -> None:
        """A job of some kind."""
        rng = self.rng
        tasks = rng.choice((1, 1, 2, 3, 6))
        self.story.submit(
            a_job(
                caller=rng.choice(CALLERS),
                project=rng.choice(("default", "other")),
                run_limit_s=rng.choice((0, 60, 600)),
                queue=rng.choice(("normal", "short", "priority")),
                array=rng.choice(("", "", "", "1-6")),
                limit=rng.choice((0, 2)),
                hosts=rng.choice(((), (), (), ("n3", "n1"))),
                exclusive=rng.random() < 0.1,
                priority=rng.choice((0, 0, 9)),
                tasks_min=tasks,
                tasks_max=tasks + rng.choice((0, 0, 2)),
                memory_mib=rng.choice((0, 0, 1500)),
                gpus=rng.choice((0, 0, 0, 1)),
                select=rng.choice(("", "", "maxslots > 1", "r1m < 1")),
                order=rng.choice(("", "", "", "slots", "-slots:maxmem")),
                same=rng.choice(("", "", "", "maxslots")),
                rusage=rng.choice(("", "", "", "lic=1", "lic=1/task")),
                **rng.choice(SPANS),
                launch=Launch.EACH,
            )
        )

    def submit_many(self) -> None:
        """Some jobs, most of them of one task or of equal parts."""
        rng = self.rng
        for _ in range(rng.randrange(1, 12)):
            tasks = rng.choice((1, 1, 1, 1, 2, 4))
            self.story.submit(
                a_job(
                    caller=rng.choice(CALLERS),
                    queue=rng.choice(("normal", "normal", "short")),
                    tasks_min=tasks,
                    tasks_max=tasks,
                    memory_mib=rng.choice((0, 500, 1500)),
                    gpus=rng.choice((0, 0, 0, 1)),
                    ptile=rng.choice((1, 2)) if tasks > 1 else 0,
                )
            )

    def begin(self) -> None:
        """Start a dispatched job; only a running one may be preempted."""
        staging = list(self.story.cluster.staging.values())
        if staging:
            attempt = self.rng.choice(staging)
            for share in attempt.allocation:
                self.story.staged(share.host, attempt.key)
            self.story.started(attempt.lead, attempt.key)

    def end(self) -> None:
        """One that runs ends, everywhere."""
        attempts = list(self.story.cluster.attempts.values())
        if attempts:
            attempt = self.rng.choice(attempts)
            for share in attempt.allocation:
                if share.host in attempt.unreleased:
                    self.story.staged(share.host, attempt.key)
            for share in attempt.allocation:
                if share.host in attempt.unreleased:
                    self.story.finished(share.host, attempt.key)

    def _some_job(self) -> int:
        return self.rng.randrange(1, self.story.cluster.next_job + 1)

    def kill(self) -> None:
        """bkill."""
        self.story.do(c.KillJob(c.Target(self._some_job()), ROOT))

    def stop(self) -> None:
        """bstop or bresume."""
        kind = self.rng.choice((c.StopJob, c.ResumeJob))
        self.story.do(kind(c.Target(self._some_job()), ROOT))

    def move(self) -> None:
        """btop or bbot."""
        self.story.move(self._some_job(), self.rng.choice((1, 2, -1, -2)), self.rng.choice((ANN, ROOT)))

    def silence(self) -> None:
        """Let some hosts be silent until they count as silent; one reconnects."""
        names = sorted(self.story.cluster.hosts)
        self.story.now += 20
        self.story.hear(*self.rng.sample(names, 4))
        self.story.do(c.Tick())
        name = self.rng.choice(names)
        attempts = self.story.cluster.hosts[name].attempts
        self.story.back(name, *(c.HeldAttempt(key, None, True) for key in attempts))

    def close(self) -> None:
        """badmin hclose or hopen."""
        name = self.rng.choice(sorted(self.story.cluster.hosts))
        self.story.do(self.rng.choice((c.CloseHost, c.OpenHost))(name, ROOT))

    def load(self) -> None:
        """An agent reports."""
        table = self.story.cluster.table
        table.set_load(self.rng.randrange(len(table)), [self.rng.choice((0.5, 2.0))] * len(LOAD_INDICES))

    def wait(self) -> None:
        """Avoided hosts are trusted again."""
        self.story.now += 61
        self.story.hear(*self.story.cluster.hosts)
        self.story.do(c.Tick())


@pytest.mark.slow
@examples(16)
@given(st.integers(0, 10**6), st.sampled_from([1, 3, 100_000]), st.booleans())
def test_so_it_is_with_shares_and_limits(seed: int, steps: int, as_columns: bool) -> None:
    """The same under any rules: buckets that wait for a limit or a share are unblocked in time."""
    assert first_difference(Player(seed, with_rules=True), steps, as_columns) is None


@pytest.mark.slow
@examples(10)
@given(st.integers(0, 10**6))
@example(4754)  # an array that was moved once counted as a plain job
def test_so_it_is_with_reservations(seed: int) -> None:
    """Reservation holders are the same, too, with fairshare and limits."""
    assert first_difference(Player(seed, with_rules=True, with_backfill=True), 100_000) is None


@pytest.mark.slow
@examples(12)
@given(st.integers(0, 10**6), st.sampled_from([1, 3, 100_000]), st.booleans())
@example(1, 1, False)  # a slice of one step once began with the same blocked bucket for ever
def test_a_pass_over_changes_is_a_pass_over_everything(seed: int, steps: int, as_columns: bool) -> None:
    """After each change both start the same jobs on the same hosts, however the pass is sliced."""
    assert first_difference(Player(seed), steps, as_columns) is None


@pytest.mark.slow
@examples(12)
@given(st.integers(0, 10**6), st.sampled_from([1, 30, 100_000]), st.booleans())
def test_the_short_ways_lead_where_the_long_ones_do(seed: int, steps: int, with_rules: bool) -> None:
    """Jobs that go straight to a host, starts applied together: all is as one by one."""
    player = Player(seed, with_rules)
    player.actions += [player.submit_many] * 5
    for _ in range(12):
        player.play()
        twin = copy.deepcopy(player.story)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(batch_dispatch, "MANY", 2)
            short = whole_pass(player.story, player.story.worklist, steps)
            patched.setattr(SingleTaskStarts, "may_run", False)
            patched.setattr(batch_dispatch, "MANY", 10**9)
            assert short == whole_pass(twin, twin.worklist, 100_000)
        assert all_of(player.story.cluster) == all_of(twin.cluster)


def all_of(cluster: Cluster) -> dict[str, Any]:
    """Its state, free resources of its hosts and usage of its limits."""
    table = cluster.table
    columns = (table.slots_free, table.memory_free_mib, table.gpus_free, table.attempts)
    counters = [counter for counter in cluster.limits.counters if counter.used or counter.used_on.any()]
    return state_of(cluster) | {
        "free": [[table.slots_open], *(column[: len(table)].tolist() for column in columns)],
        "limits": sorted([(one.rule.what, one.members, one.used, float(one.used_on.sum())) for one in counters]),
    }


def first_difference(player: Player, steps: int, as_columns: bool = False) -> tuple[int, Any, Any] | None:
    """Play until an incremental pass differs from a full one: number of actions, and the difference.

    None if they always agree. ``as_columns``: as if very many buckets were blocked.
    """
    with pytest.MonkeyPatch.context() as patched:
        if as_columns:
            patched.setattr(blocked, "_FEW", 0)
            patched.setattr(columns, "_BITS", 1)
            patched.setattr(columns, "_WIDTH", 2)
        for number in range(25):
            player.play()
            twin = copy.deepcopy(player.story)
            twin.worklist.look_at_everything(twin.cluster)
            story = player.story
            short, whole = whole_pass(story, story.worklist, steps), whole_pass(twin, twin.worklist, 100_000)
            if short != whole:
                return number, short, whole
            invariants.check_within_limits(story.cluster, story.now)
    return None
