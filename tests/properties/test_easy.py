"""The fast path of EASY backfilling decides as the general path; its shadow time equals that of the full simulation."""

import copy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lavad.core import commands as c
from lavad.core.model import Key
from lavad.core.model.policy import Policy
from lavad.core.model.rules.queues import Queue
from lavad.core.scheduling.backfill.profile import PoolProfile
from lavad.core.scheduling.fast import easy
from lavad.core.scheduling.fast.easy import ShadowTime
from lavad.core.state.expected_ends import ExpectedEnd
from lavad.core.state.records import Job
from tests.builders import ROOT, Story, a_host, a_job
from tests.properties.examples import examples
from tests.properties.test_cycle import CALLERS, Player, all_of, whole_pass

NOW = 1000.0


class EasyPlayer(Player):
    """Slots-only jobs, sometimes with others; they end at, before or after their run limits."""

    def __init__(self, seed: int, with_others: bool) -> None:
        super().__init__(seed)
        rng, self.with_others = self.rng, with_others
        depth = rng.choice((0, 1, 1, 1))
        queues = Queue("normal", 30, backfill_depth=depth), Queue("short", rng.choice((20, 30, 40)))
        hosts = [a_host(f"n{n}", rng.choice((1, 1, 2, 8)), 4000) for n in range(1, rng.choice((2, 4, 12)))]
        self.limits = rng.choice(((60,), (60, 120), (0, 60, 60, 300, 600), (60, 61, 62, 120, 121)))
        self.actions = [self.submit] * 5 + [self.begin] * 4 + [self.begin_all, self.end, self.kill] * 2
        self.actions += [self.run_out] * 5 + [self.modify] * 3 + [self.stop, self.move, self.wait, self.close]
        self.story = Story(*hosts, policy=Policy(queues, user_priority_max=10))
        self.story.now -= self.story.now % 60  # ends are equal then

    def submit(self) -> None:
        """Some jobs of few kinds, or at times one of any kind."""
        rng = self.rng
        for _ in range(rng.choice((1, 2, 10))):
            tasks = rng.choice((1, 1, 2, 3, 6))
            is_other = self.with_others and rng.random() < 0.15
            self.submit_one(
                tasks,
                array=rng.choice(("", "1-4")) if is_other else "",
                memory_mib=rng.choice((0, 1500)) if is_other else 0,
                exclusive=is_other and rng.random() < 0.2,
            )

    def submit_one(self, tasks: int, **words: Any) -> None:
        """A job with any limit, in any queue."""
        rng = self.rng
        self.story.submit(
            a_job(
                caller=rng.choice(CALLERS[:2]),
                run_limit_s=rng.choice(self.limits),
                queue=rng.choice(("normal", "normal", "short")),
                priority=rng.choice((0, 0, 0, 9)),
                tasks_min=tasks,
                tasks_max=tasks + rng.choice((0, 0, 0, 2)),
                **words,
            )
        )

    def begin_all(self) -> None:
        """Start all dispatched jobs."""
        for attempt in list(self.story.cluster.staging.values()):
            for share in attempt.allocation:
                self.story.staged(share.host, attempt.key)
            self.story.started(attempt.lead, attempt.key)

    def run_out(self) -> None:
        """Let time pass to about the next expected end; most jobs due then end."""
        story, rng = self.story, self.rng
        ends = [(self.limit_of(key) + attempt.dispatched_at, key) for key, attempt in story.cluster.attempts.items()]
        at = min((end for end, key in ends if self.limit_of(key)), default=story.now)
        story.now = max(story.now, at + rng.choice((0, 0, 0, -1, 1)))
        story.hear(*story.cluster.hosts)
        story.do(c.Tick())
        for end, key in ends:
            if self.limit_of(key) and end <= story.now and rng.random() < 0.85:
                self.finish(key)

    def limit_of(self, key: Key) -> int:
        """Run limit in seconds."""
        record = self.story.cluster.jobs.get(key.job)
        return record.shared.run_limit_s if record is not None else 0

    def finish(self, key: Key) -> None:
        """It ends everywhere."""
        attempt = self.story.cluster.attempts.get(key)
        for report in (self.story.staged, self.story.finished) if attempt is not None else ():
            for share in attempt.allocation if attempt is not None else ():
                if attempt is not None and share.host in attempt.unreleased:
                    report(share.host, key)

    def modify(self) -> None:
        """bmod -W, and at times -n."""
        rng, number = self.rng, self._some_job()
        record = self.story.cluster.jobs.get(number)
        if isinstance(record, Job):
            request, tasks = record.shared.request, rng.choice((1, 2, 3))
            if rng.random() < 0.5:
                request = replace(request, roles=(replace(request.roles[0], tasks_min=tasks, tasks_max=tasks),))
            limit = rng.choice((*self.limits, 30))
            job = a_job(run_limit_s=limit, queue=record.shared.queue, request=request)
            self.story.do(c.ModifyJob(c.Target(number), job, ROOT, "", frozenset({"run_limit_s"})))


@pytest.mark.slow
@examples(15)
@given(st.integers(0, 10**6), st.sampled_from([1, 30, 100_000]), st.booleans())
def test_both_ways_start_the_same_jobs_for_the_same_reasons(seed: int, steps: int, with_others: bool) -> None:
    """After each change, each with the state of its own passes, and a third one without state."""
    player, twin = EasyPlayer(seed, with_others), EasyPlayer(seed, with_others)
    for _ in range(25):
        player.play()
        twin.play()
        fresh = afresh(player.story)
        short = whole_pass(player.story, player.story.worklist, steps)
        assert short == whole_pass(fresh, fresh.worklist, 100_000)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(easy, "entries_of", lambda cluster, worklist: None)
            assert short == whole_pass(twin.story, twin.story.worklist, 100_000)
        assert all_of(player.story.cluster) == all_of(twin.story.cluster)
        if holders(player.story):  # its next reservation is made on demand only
            assert holders(player.story) == holders(twin.story)


class PlaceOfItsOwn(EasyPlayer):
    """Jobs that need certain hosts, memory, GPUs or whole hosts, several of them with reservations."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, False)
        rng = self.rng
        normal = Queue("normal", 30, backfill_depth=rng.choice((1, 1, 2, 3)))
        short = Queue("short", rng.choice((20, 30, 40)), backfill_depth=rng.choice((0, 0, 1)))
        hosts = [
            a_host(f"n{n}", rng.choice((1, 2, 4, 8)), 4000, rng.choice((0, 2))) for n in range(1, rng.choice((3, 4, 7)))
        ]
        self.story = Story(*hosts, policy=Policy((normal, short), user_priority_max=10))
        self.story.now -= self.story.now % 60

    def submit(self) -> None:
        """Some jobs of any kind."""
        rng = self.rng
        for _ in range(rng.choice((1, 2, 4, 8))):
            self.submit_one(rng.choice((1, 2, 3, 6)), array=rng.choice(("", "", "", "1-3")), **rng.choice(KINDS))


KINDS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"hosts": ("n1",)},
    {"hosts": ("n2", "n3")},
    {"one_host": True},
    {"memory_mib": 1500},
    {"memory_mib": 3000},
    {"exclusive": True},
    {"gpus": 1},
    {"ptile": 1},
)


@pytest.mark.slow
@examples(20)
@given(st.integers(0, 10**6), st.sampled_from([1, 30, 100_000]))
def test_nobody_is_held_back_longer_than_a_pass_over_everything_would(seed: int, steps: int) -> None:
    """With reservations on named hosts: a job deferred by them is tried again whenever its chance may have changed."""
    player = PlaceOfItsOwn(seed)
    for _ in range(25):
        player.play()
        fresh = afresh(player.story)
        assert whole_pass(player.story, player.story.worklist, steps) == whole_pass(fresh, fresh.worklist, 100_000)


def afresh(story: Story) -> Story:
    """The same, without state of earlier passes."""
    twin = copy.deepcopy(story)
    twin.worklist.look_at_everything(twin.cluster)
    return twin


def holders(story: Story) -> list[int]:
    """Jobs that hold a reservation."""
    return [one.job for one in story.worklist.reservation_table.reservations]


@given(
    st.integers(0, 8),
    st.integers(1, 12),
    st.lists(st.tuples(st.sampled_from([990.0, 1001.0, 1002.0, 1010.0, 1030.0, float("inf")]), st.integers(1, 4))),
    st.lists(st.tuples(st.sampled_from([1001.0, 1005.0, 1010.0, 1031.0, float("inf")]), st.integers(1, 3))),
)
def test_a_shadow_tells_what_a_profile_of_the_future_tells(
    free: int, wanted: int, ends: list[tuple[float, int]], asked: list[tuple[float, int]]
) -> None:
    """Of each job that asks to go first, and takes its slots if it may."""
    running = sorted([ExpectedEnd(end, slots, Key(0, 0, 0)) for end, slots in ends])
    shadow = ShadowTime(NOW, free, wanted, running)
    known = iter([(max(end, NOW + 1), slots) for end, slots, _ in running if end < float("inf")])
    profile = PoolProfile(NOW, free, known)
    begin = profile.earliest(wanted, float("inf"))
    assert begin == shadow.at
    if begin < float("inf"):
        profile.take(begin, float("inf"), wanted)
    for end, slots in asked:
        if slots <= free:
            most = shadow.most(end, free)
            assert most == profile.free_until(end)
            if slots <= most:
                shadow.take(end, slots)
                profile.take(NOW, end - NOW, slots)
                free -= slots
