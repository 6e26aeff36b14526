"""The ledger alone: actions that follow from orders and facts, in any order and with any repetition."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.attempts.actions import Action, Launch, Limit, Note, Place, Release, Say, Signal
from agents.attempts.journal import Journal, end_record, forget_record, order_record, spec_record, term_record
from agents.attempts.ledger import NOT_BEGUN, SUPERVISOR_LOST, Ledger
from agents.attempts.ledger_entry import State
from agents.shepherd.messages import Finish, Key
from protos.agents_pb2 import JobSpecBlob, LaunchOrder, Limits, Order, Report, SignalOrder, Stage, Started
from protos.agents_pb2 import Release as ReleaseOrder
from protos.common_pb2 import AttemptKey, HostShare

KEY = (7, 0, 1)


def order(key: Key = KEY, version: int = 1, **what: object) -> Order:
    """An order about an attempt."""
    job, index, attempt = key
    return Order(key=AttemptKey(job=job, index=index, attempt=attempt), allocation_version=version, **what)  # type: ignore[arg-type]


def stage_order(key: Key = KEY, launch_now: bool = True, version: int = 1) -> Order:
    """A stage order for one or, if not launched at once, two hosts."""
    hosts = ("h1",) if launch_now else ("h1", "h2")
    shares = [HostShare(host=host, slots=1) for host in hosts]
    return order(key, version, stage=Stage(allocation=shares, launch_now=launch_now, spec_version=1))


LAUNCH = order(launch=LaunchOrder())
RELEASE = order(release=ReleaseOrder())


def a_ledger(*jobs: int) -> Ledger:
    """A ledger that knows these jobs' specs."""
    ledger = Ledger()
    for job in jobs or (7,):
        ledger.learn(JobSpecBlob(job=job, version=1, user="u", uid=1))
    return ledger


def finish(key: Key = KEY, status: int = 0, released: bool = True) -> Finish:
    """A shepherd's record."""
    return Finish(*key, status, 20.0, 1.5, 30, 20.0, 2, "", "", 99, 10.0, released)


def what(action: Action) -> str:
    """Name of an action, with the kind of its report."""
    if isinstance(action, Say):
        return f"say {action.report.WhichOneof('what')}"
    return type(action).__name__.lower()


def words(actions: list[Action]) -> list[str]:
    """Names of actions."""
    return [what(action) for action in actions]


def held(ledger: Ledger, key: Key = KEY, launch_now: bool = True) -> None:
    """Bring an attempt to a shepherd."""
    ledger.order(stage_order(key, launch_now))
    ledger.placed(key)


def test_a_stage_order_is_journaled_and_then_placed_once() -> None:
    """The same order again changes nothing, and is answered with the newest report, if there is one."""
    ledger = a_ledger()
    first = ledger.order(stage_order())
    assert words(first) == ["note", "place"]
    assert isinstance(first[0], Note)
    assert first[0].sync
    assert ledger.order(stage_order()) == []
    ledger.placed(KEY)
    ledger.started(KEY, Started(pid=5))
    assert words(ledger.order(stage_order())) == ["say started"]


def test_an_order_too_old_starts_nothing() -> None:
    """A stale stage order is refused and not kept; a stale launch order is answered by staged again."""
    ledger = a_ledger()
    assert words(ledger.order(stage_order(), too_old=True)) == ["say refused"]
    assert not ledger.entries
    held(ledger, launch_now=False)
    ledger.staged(KEY)
    assert words(ledger.order(LAUNCH, too_old=True)) == ["say staged"]
    assert ledger.entries[KEY].state is State.HELD
    assert [report.staged.again for report in ledger.unacknowledged()] == [True]
    assert words(ledger.order(LAUNCH)) == ["note", "launch"]
    (again,) = ledger.order(LAUNCH)
    assert isinstance(again, Say)
    assert not again.report.staged.again  # or both sides would answer each other until the command runs


def test_old_orders_still_end_things() -> None:
    """Only starting is dangerous when late: signals and releases work at any age."""
    ledger = a_ledger()
    held(ledger)
    assert words(ledger.order(order(signal=SignalOrder(signal=15)), too_old=True)) == ["note", "signal"]
    assert words(ledger.order(RELEASE, too_old=True)) == ["note", "release"]


def test_an_order_without_its_spec_is_refused() -> None:
    """The master can send it again with the spec."""
    ledger = Ledger()
    assert words(ledger.order(stage_order())) == ["say refused"]
    assert not ledger.entries


def test_a_launch_before_the_place_is_found_is_remembered() -> None:
    """An attempt without a shepherd launches when it gets one."""
    ledger = a_ledger()
    ledger.order(stage_order(launch_now=False))
    assert words(ledger.order(LAUNCH)) == ["note"]
    assert ledger.entries[KEY].launched


def test_what_is_not_here_is_answered() -> None:
    """For an unknown attempt a launch is refused, a release confirmed, a signal ignored: its answer was the last
    report.
    """
    ledger = a_ledger()
    assert words(ledger.order(LAUNCH)) == ["say refused"]
    assert words(ledger.order(RELEASE)) == ["say released"]
    assert ledger.order(order(signal=SignalOrder())) == []


def test_a_job_ended_before_it_had_a_place_is_finished() -> None:
    """Ended, not lost and not started; a later place is not taken."""
    ledger = a_ledger()
    ledger.order(stage_order())
    actions = ledger.order(order(signal=SignalOrder(reason="TERM_OWNER")))
    assert words(actions) == ["note", "say finished"]
    assert isinstance(actions[1], Say)
    end = actions[1].report.finished
    assert (end.status, end.reason, end.started) == (130 << 8, "TERM_OWNER", 0)
    assert actions[1].report.also_released


def test_orders_of_a_lower_term_are_refused_for_ever() -> None:
    """The highest term wins and stays."""
    ledger = Ledger()
    assert ledger.accept_term(5)
    assert not ledger.accept_term(4)
    assert ledger.accept_term(5)
    assert ledger.term == 5


def test_the_end_and_the_release_may_come_apart() -> None:
    """Processes that cannot be killed at once: finished first, then one report of both when they are gone."""
    ledger = a_ledger()
    held(ledger)
    (first,) = ledger.finished(finish(released=False), "/home/u", "/w")
    assert not first.also_released
    assert not ledger.forget(KEY)
    (second,) = ledger.released(KEY)
    assert second.WhichOneof("what") == "finished"
    assert second.also_released
    assert ledger.forget(KEY)
    assert not ledger.holds(7)


def test_a_release_is_answered_with_released() -> None:
    """A job killed by a release order reports only that."""
    ledger = a_ledger()
    held(ledger)
    assert words(ledger.order(RELEASE)) == ["note", "release"]
    assert ledger.order(RELEASE) == []
    (report,) = ledger.finished(finish(status=9), "", "")
    assert report.WhichOneof("what") == "released"
    assert words(ledger.order(RELEASE)) == ["say released"]


def test_a_lost_shepherd_is_never_a_success() -> None:
    """Without a recorded end the job was killed; with one, that end counts."""
    ledger = a_ledger()
    held(ledger)
    ledger.started(KEY, Started(pid=5, time=3.0))
    (report,) = ledger.lost(KEY, None, 50.0)
    end = report.finished
    assert (end.status, end.reason, end.pid, end.started) == (9, SUPERVISOR_LOST, 5, 3.0)
    assert report.also_released
    ledger = a_ledger()
    held(ledger)
    (report,) = ledger.lost(KEY, finish(status=256), 50.0)
    assert (report.finished.status, report.also_released) == (256, True)


def test_a_shepherd_lost_before_it_started_anything_has_lost_nothing() -> None:
    """Its log has no start of the attempt: the job waits again, and is not told as killed."""
    ledger = a_ledger()
    held(ledger)
    (report,) = ledger.lost(KEY, None, 50.0, begun=False)
    assert (report.WhichOneof("what"), report.refused.reason) == ("refused", NOT_BEGUN)
    assert not report.refused.host_fault


@pytest.mark.parametrize(
    ("alive", "started", "ended", "rebooted", "expected"),
    [
        (True, True, False, False, "held"),
        (False, False, False, False, "refused"),
        (False, True, False, False, "finished 9"),
        (False, True, True, False, "finished 256"),
        (True, True, True, False, "finished 256"),
        (False, False, False, True, "finished 9"),
    ],
)
def test_after_a_restart_every_attempt_is_settled(
    alive: bool, started: bool, ended: bool, rebooted: bool, expected: str
) -> None:
    """By living shepherds and logs; attempts that cannot have started are refused, unless a power cut may have lost
    records.
    """
    ledger = a_ledger()
    ledger.restore(stage_order())
    ledger.reconcile(
        {KEY: True} if alive else {},
        {KEY} if started else set(),
        {KEY: finish(status=256, released=not alive)} if ended else {},
        {},
        {},
        rebooted,
        50.0,
    )
    entry = ledger.entries[KEY]
    if entry.last is None:
        found = entry.state.value
    else:
        found = entry.last.WhichOneof("what") or ""
        if found == "finished":
            found = f"finished {entry.last.finished.status}"
    assert found == expected


# -- any orders, in any order

keys = st.tuples(st.integers(1, 2), st.integers(0, 1), st.integers(1, 2))
orders = st.one_of(
    st.builds(stage_order, keys, st.booleans(), st.integers(0, 2)),
    st.builds(lambda key, version: order(key, version, launch=LaunchOrder()), keys, st.integers(0, 2)),
    st.builds(
        lambda key, number, serial: order(key, 0, signal=SignalOrder(signal=number, serial=serial)),
        keys,
        st.sampled_from([0, 9, 15]),
        st.integers(0, 3),
    ),
    st.builds(lambda key: order(key, 0, release=ReleaseOrder()), keys),
)
facts = st.one_of(
    st.tuples(st.just("placed"), keys),
    st.tuples(st.just("staged"), keys),
    st.tuples(st.just("started"), keys),
    st.tuples(st.just("finished"), keys),
    st.tuples(st.just("ended"), keys),
    st.tuples(st.just("released"), keys),
    st.tuples(st.just("refused"), keys),
    st.tuples(st.just("lost"), keys),
    st.tuples(st.just("forget"), keys),
)
steps = st.lists(st.one_of(st.tuples(orders, st.booleans()), facts), max_size=40)


class World:
    """A host as the ledger sees it: attempts placed and launched, and the last report of each."""

    def __init__(self) -> None:
        self.ledger = a_ledger(1, 2)
        self.placed: Counter[Key] = Counter()
        self.launched: Counter[Key] = Counter()
        self.waiting: set[Key] = set()
        self.alive: set[Key] = set()
        self.over: dict[Key, Report] = {}
        self.forgotten: set[Key] = set()

    def order(self, one: Order, too_old: bool) -> None:
        """Take an order and carry out the actions that follow."""
        for job in (1, 2):  # the master sends a spec with every order that may need it
            self.ledger.learn(JobSpecBlob(job=job, version=1))
        for action in self.ledger.order(one, too_old):
            match action:
                case Place(key):
                    self.placed[key] += 1
                    self.waiting.add(key)
                    self.forgotten.discard(key)
                    self.over.pop(key, None)
                case Launch(key):
                    assert key in self.alive
                    self.launched[key] += 1
                case Release(key) | Signal(key, _, _):
                    assert key in self.alive
                case Say(report):
                    self.say(report)

    def say(self, report: Report) -> None:
        """Record a report; a reported end is final."""
        key = (report.key.job, report.key.index, report.key.attempt)
        entry = self.ledger.entries.get(key)
        if entry is not None and entry.state is State.OVER:
            self.over[key] = report

    def fact(self, kind: str, key: Key) -> None:
        """Something happens on the host, if it can."""
        ledger = self.ledger
        if kind == "placed":
            entry = ledger.entries.get(key)
            if key in self.waiting and entry is not None and entry.state is State.ACCEPTED:
                ledger.placed(key)
                self.waiting.discard(key)
                self.alive.add(key)
        elif kind == "forget":
            if ledger.forget(key):
                self.forgotten.add(key)
                self.waiting.discard(key)
        elif key in self.alive:
            self._of_a_shepherd(kind, key)

    def _of_a_shepherd(self, kind: str, key: Key) -> None:
        ledger = self.ledger
        reports = {
            "staged": lambda: ledger.staged(key),
            "started": lambda: ledger.started(key, Started(pid=1)),
            "finished": lambda: ledger.finished(finish(key), "", ""),
            "ended": lambda: ledger.finished(finish(key, released=False), "", ""),
            "released": lambda: ledger.released(key),
            "refused": lambda: ledger.refuse(key, "no", True),
            "lost": lambda: ledger.lost(key, None, 1.0),
        }[kind]()
        if kind in ("finished", "released", "refused", "lost"):
            self.alive.discard(key)
        for report in reports:
            self.say(report)


@settings(max_examples=300, deadline=None)
@given(steps)
def test_nothing_is_ever_placed_twice(story: list[tuple[Order, bool] | tuple[str, Key]]) -> None:
    """With any repetition, delay or reordering: until it is forgotten an attempt is placed once, and ends once."""
    world = World()
    forgets: Counter[Key] = Counter()
    for step in story:
        if isinstance(step[0], Order):
            world.order(step[0], bool(step[1]))
        else:
            key = step[1]
            assert isinstance(key, tuple)
            before = key in world.ledger.entries
            world.fact(step[0], key)
            forgets[key] += before and key not in world.ledger.entries
        for key, times in world.placed.items():
            assert times <= forgets[key] + 1
        for key, entry in world.ledger.entries.items():
            assert (entry.state is State.OVER) <= (entry.last is not None)
            if entry.state in (State.HELD, State.ENDED):
                assert key in world.alive
            if key in world.over:
                assert entry.state is State.OVER
        for job in (1, 2):
            assert world.ledger.holds(job) == any(key[0] == job for key in world.ledger.entries)


@settings(max_examples=100, deadline=None)
@given(steps)
def test_the_journal_tells_the_same_story(
    tmp_path_factory: pytest.TempPathFactory, story: list[tuple[Order, bool] | tuple[str, Key]]
) -> None:
    """A ledger read back has the same attempts, orders and specs as the one written, also after compaction."""
    world = World()
    path = tmp_path_factory.mktemp("journal") / "journal"
    journal = Journal(path)
    journal.rewrite(world.ledger, "boot")
    world.ledger.accept_term(3)
    journal.append([term_record(3)])
    for step in story:
        if isinstance(step[0], Order):
            new = [
                JobSpecBlob(job=job, version=1) for job in (1, 2) if world.ledger.learn(JobSpecBlob(job=job, version=1))
            ]
            journal.append(map(spec_record, new))
            for action in world.ledger.order(step[0], bool(step[1])):
                if isinstance(action, Note):
                    journal.append([order_record(action.order)])
                if isinstance(action, Say):
                    _journal_end(journal, world.ledger, action.report)
                if isinstance(action, Place):
                    world.ledger.placed(action.key)
                    world.alive.add(action.key)
        elif step[0] == "forget":
            key = step[1]
            assert isinstance(key, tuple)
            if world.ledger.forget(key):
                journal.append([forget_record(key)])
    journal.sync()
    _same(world.ledger, Journal(path).load()[0])
    journal.rewrite(world.ledger, "boot")
    again, boot = Journal(path).load()
    _same(world.ledger, again)
    assert boot == "boot"
    journal.close()


def _journal_end(journal: Journal, ledger: Ledger, report: Report) -> None:
    entry = ledger.entries.get((report.key.job, report.key.index, report.key.attempt))
    if entry is not None and entry.state is State.OVER:
        journal.append([end_record(report)])


def _same(one: Ledger, other: Ledger) -> None:
    assert one.term == other.term
    assert dict(one.specs) == dict(other.specs)
    assert one.entries.keys() == other.entries.keys()
    for key, entry in one.entries.items():
        twin = other.entries[key]
        assert (entry.version, entry.stage, entry.blob) == (twin.version, twin.stage, twin.blob)
        assert entry.launched == twin.launched
        assert (entry.state is State.OVER) == (twin.state is State.OVER)
        if entry.state is State.OVER:
            assert entry.last == twin.last
        else:
            assert entry.releasing == twin.releasing


def test_a_changed_spec_is_for_later_attempts_only(tmp_path_factory: pytest.TempPathFactory) -> None:
    """An attempt keeps the spec it was staged with, also through a compacted journal."""
    ledger = a_ledger(7)
    ledger.order(stage_order())
    assert ledger.learn(JobSpecBlob(job=7, version=1, user="other"))
    assert not ledger.learn(JobSpecBlob(job=7, version=1, user="other"))
    ledger.order(stage_order((7, 0, 2)))
    journal = Journal(tmp_path_factory.mktemp("journal") / "journal")
    journal.rewrite(ledger, "boot")
    journal.close()
    again, _ = journal.load()
    for one in (ledger, again):
        assert {key[2]: entry.blob.user for key, entry in one.entries.items()} == {1: "u", 2: "other"}
        assert [blob.user for blob in one.specs.values()] == ["other"]


def test_a_torn_journal_is_read_up_to_the_tear(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A record truncated by a power cut is dropped with all after it, and writing continues before it."""
    path = tmp_path_factory.mktemp("journal") / "journal"
    journal = Journal(path)
    journal.rewrite(a_ledger(7), "boot")
    journal.append([order_record(stage_order()), order_record(stage_order((7, 0, 2)))])
    journal.close()
    path.write_bytes(path.read_bytes()[:-3])
    ledger, _ = Journal(path).load()
    assert list(ledger.entries) == [KEY]
    assert Journal(path).load()[0].entries.keys() == {KEY}


def test_only_newer_limits_are_kept_and_a_restart_forgets_none_of_them(tmp_path: Path) -> None:
    """Journal first; equal or older limits change nothing, nor do limits of an ended attempt."""
    ledger = a_ledger()
    ledger.order(stage_order())
    ledger.placed(KEY)
    newer, older = (order(limits=Limits(version=version, run_limit_s=60 * version)) for version in (2, 1))
    assert ledger.order(newer) == [Note(newer, sync=True), Limit(KEY)]
    assert ledger.order(newer) == ledger.order(older) == []
    assert [held.limits_version for held in ledger.held()] == [2]
    journal = Journal(tmp_path / "journal")
    journal.rewrite(ledger, "boot")
    again, _ = journal.load()
    assert again.entries[KEY].limits == newer.limits
    assert again.order(older) == []
    ledger.finished(finish(), "", "")
    assert ledger.order(order(limits=Limits(version=3))) == []
