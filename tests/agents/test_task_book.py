"""Tasks of an attempt in the ledger: which run is started or ended by which order, and what is told of it."""

import socket

import pytest

from agents.attempts.actions import Action, Note, Say, Tasks
from agents.attempts.journal import Journal, order_record, ports_record, spec_record
from agents.attempts.kept_outputs import Use, remove_old
from agents.attempts.ledger import Ledger
from agents.attempts.task_book import ENDED_BEFORE_START
from agents.attempts.task_ports import NoPort, is_free, reserve
from agents.shepherd.messages import RunState
from protos.agents_pb2 import JobSpecBlob, Order, Stage, Staged, TasksOrder
from protos.common_pb2 import (
    LAUNCH_EACH,
    LAUNCH_HOST,
    TASK_DONE,
    TASK_EXITED,
    TASK_RUNNING,
    AttemptKey,
    HostShare,
    PortRequest,
    Role,
    RoleTasks,
    TaskHost,
    TaskState,
)
from protos.jobs_pb2 import JobSpec, TaskRules
from tests.agents.hosts import Place
from tests.agents.task_jobs import message

KEY = (7, 0, 1)
TABLE = [TaskHost(host="h1", roles=[RoleTasks(role=0, indices=[0, 1])])]
Run = tuple[int, int, int]
FIRST, SECOND = (0, 0, 1), (0, 0, 2)


def blob() -> JobSpecBlob:
    """The spec of a job of tasks."""
    return JobSpecBlob(job=7, version=1, user="u", uid=1, spec=JobSpec(tasks=TaskRules(format=1)))


def stage_order() -> Order:
    """Its stage order for this host."""
    key = AttemptKey(job=7, attempt=1)
    return Order(key=key, allocation_version=1, stage=Stage(allocation=[HostShare(host="h1")], spec_version=1))


def order(start: tuple[Run, ...] = (), stop: tuple[Run, ...] = (), version: int = 1, **fields: object) -> Order:
    """An order on tasks, with the table."""
    given: dict[str, object] = {"table": TABLE, **fields}
    tasks = TasksOrder(version=version, start=map(message, start), stop=map(message, stop), **given)  # type: ignore[arg-type]
    return Order(key=AttemptKey(job=7, attempt=1), allocation_version=1, tasks=tasks)


def a_ledger() -> Ledger:
    """A ledger with a staged attempt of a job of tasks."""
    ledger = Ledger()
    ledger.learn(blob())
    ledger.order(stage_order())
    ledger.placed(KEY)
    ledger.staged(KEY)
    return ledger


def started(actions: list[Action]) -> tuple[Run, ...]:
    """Runs to be started."""
    return tuple(run for action in actions if isinstance(action, Tasks) for run in action.start)


def stopped(actions: list[Action]) -> tuple[Run, ...]:
    """Runs to be ended."""
    return tuple(run for action in actions if isinstance(action, Tasks) for run in action.stop)


def said(actions: list[Action]) -> list[TaskState]:
    """States told."""
    return [state for action in actions if isinstance(action, Say) for state in action.report.tasks.tasks]


def runs(run: Run, ended: float = 0.0, status: int = 0) -> RunState:
    """A shepherd's word."""
    return RunState(*run, pid=9, started=5.0, ended=ended, status=status)


def test_a_run_is_journaled_and_started_once() -> None:
    """The same order again, or one of an older run, starts nothing; a known state is told again."""
    ledger = a_ledger()
    first = ledger.order(order(start=(FIRST,)))
    assert isinstance(first[0], Note)
    assert first[0].sync
    assert started(first) == (FIRST,)
    assert ledger.order(order(start=(FIRST,))) == []
    ledger.ran(KEY, [runs(FIRST)])
    again = ledger.order(order(start=(FIRST,)))
    assert not started(again)
    assert [state.phase for state in said(again)] == [TASK_RUNNING]
    assert started(ledger.order(order(start=(SECOND,)))) == (SECOND,)
    assert ledger.order(order(start=(FIRST,))) == []


def test_a_state_is_told_once_and_an_end_stays() -> None:
    """A shepherd may repeat itself; a run that has ended never runs again."""
    ledger = a_ledger()
    ledger.order(order(start=(FIRST,)))
    assert len(ledger.ran(KEY, [runs(FIRST)])) == 1
    assert ledger.ran(KEY, [runs(FIRST)]) == []
    (report,) = ledger.ran(KEY, [runs(FIRST, 6.0, 256)])
    assert [(state.phase, state.status) for state in report.tasks.tasks] == [(TASK_EXITED, 256)]
    assert ledger.ran(KEY, [runs(FIRST)]) == []
    (held,) = ledger.held()
    assert [state.phase for state in held.tasks] == [TASK_EXITED]


def test_the_end_of_an_older_run_is_told_while_the_next_waits_for_it() -> None:
    """The next run is the newest from its order on; the hello has it alone."""
    ledger = a_ledger()
    ledger.order(order(start=(FIRST,)))
    ledger.order(order(start=(SECOND,)))
    (report,) = ledger.ran(KEY, [runs(FIRST, 6.0)])
    assert [state.phase for state in report.tasks.tasks] == [TASK_DONE]
    ledger.ran(KEY, [runs(SECOND)])
    (held,) = ledger.held()
    assert [state.task.run for state in held.tasks] == [2]


def test_a_stop_is_passed_on_to_what_runs() -> None:
    """Of this run or of an older one; of an ended one the end is told."""
    ledger = a_ledger()
    ledger.order(order(start=(FIRST,)))
    assert stopped(ledger.order(order(stop=(FIRST,)))) == (FIRST,)
    ledger.ran(KEY, [runs(FIRST, 6.0)])
    ended = ledger.order(order(stop=(FIRST,)))
    assert not stopped(ended)
    assert [state.phase for state in said(ended)] == [TASK_DONE]


def test_a_stop_of_a_run_that_was_not_started_ends_it_for_good() -> None:
    """An older run that is alive is stopped; the late start order is answered with the end."""
    ledger = a_ledger()
    ledger.order(order(start=(FIRST,)))
    actions = ledger.order(order(stop=(SECOND,), reason="TERM_OWNER"))
    assert isinstance(actions[0], Note)
    assert stopped(actions) == (FIRST,)
    (end,) = said(actions)
    assert (end.task.run, end.phase, end.status, end.reason) == (2, TASK_EXITED, ENDED_BEFORE_START, "TERM_OWNER")
    late = ledger.order(order(start=(SECOND,)))
    assert not started(late)
    assert said(late) == [end]


def test_an_order_too_old_starts_nothing_but_ends_things() -> None:
    """The master is asked for the same run again, and gets it by a fresh order."""
    ledger = a_ledger()
    ledger.order(order(start=(FIRST,)))
    late = ledger.order(order(start=((0, 1, 1),), stop=(FIRST,)), too_old=True)
    assert stopped(late) == (FIRST,)
    assert [(state.task.index, state.order_again) for state in said(late)] == [(1, True)]
    assert started(ledger.order(order(start=((0, 1, 1),)))) == ((0, 1, 1),)


def test_a_known_table_may_be_left_out() -> None:
    """A newer one that is not there is asked for by asking for the order again."""
    ledger = a_ledger()
    ledger.order(order(start=(FIRST,)))
    assert started(ledger.order(order(start=((0, 1, 1),), table=()))) == ((0, 1, 1),)
    newer = ledger.order(order(start=(SECOND,), version=2, table=()))
    assert [state.order_again for state in said(newer)] == [True]
    tasks = ledger.entries[KEY].tasks
    assert tasks is not None
    assert (tasks.version, len(tasks.table)) == (1, 1)


def test_only_what_runs_is_signalled() -> None:
    """A signal to an ended run, or an older one, is dropped."""
    ledger = a_ledger()
    ledger.order(order(start=(FIRST, (0, 1, 1))))
    ledger.ran(KEY, [RunState(0, 1, 1, ended=3.0)])
    (action,) = ledger.order(order(signal=10, signalled=[message(FIRST), message((0, 1, 1))]))
    assert action == Tasks(KEY, (), "", (FIRST,), 10, ())


def test_tasks_of_an_attempt_that_is_not_here_are_refused() -> None:
    """As a launch; of one that is over the last report is repeated."""
    assert [action.report.refused.reason for action in Ledger().order(order(start=(FIRST,))) if isinstance(action, Say)]
    ledger = a_ledger()
    ledger.refuse(KEY, "no", host_fault=False)
    (action,) = ledger.order(order(start=(FIRST,)))
    assert isinstance(action, Say)
    assert action.report.refused.reason == "no"


@pytest.mark.parametrize("is_compacted", [False, True])
def test_the_journal_keeps_runs_tables_and_ports(place: Place, is_compacted: bool) -> None:
    """The next agent's ledger starts no run twice, whatever has become of the shepherd's word."""
    ledger = a_ledger()
    path = place.root / "journal"
    journal = Journal(path)
    journal.rewrite(Ledger(), "boot")
    ports = Staged(tasks=[RoleTasks(role=0, indices=[0, 1], ports=[20000, 20001])], address="10.0.0.1")
    orders = [order(start=(FIRST,)), order(stop=((0, 1, 3),), reason="TERM_OWNER")]
    journal.append([spec_record(blob()), order_record(stage_order()), ports_record(ledger.reserve(KEY, ports))])
    journal.append(map(order_record, orders))
    for one in orders:
        ledger.order(one)
    if is_compacted:
        journal.rewrite(ledger, "boot")
    restored, _ = Journal(path).load()
    journal.close()
    entry = restored.entries[KEY]
    assert entry.launched
    assert restored.ports() == {20000, 20001}
    assert entry.tasks is not None
    assert (entry.tasks.address, entry.tasks.table) == ("10.0.0.1", TABLE)
    restored.placed(KEY)
    assert not started(restored.order(order(start=(FIRST, (0, 1, 2), (0, 1, 3)))))
    assert [state.reason for state in entry.tasks.states()] == ["TERM_OWNER"]


def test_starts_that_never_reached_the_shepherd_may_come_again() -> None:
    """The last agent died between its journal and its shepherd: the hello lacks the run, and it is ordered again."""
    ledger = a_ledger()
    ledger.order(order(start=(FIRST, (0, 1, 1))))
    ledger.ran(KEY, [runs(FIRST, 6.0)])
    ledger.order(order(start=(SECOND,)))
    ledger.adopt_tasks(KEY, [runs(FIRST, 6.0)])
    (held,) = ledger.held()
    assert [state.task for state in held.tasks] == [message(FIRST)]
    again = ledger.order(order(start=(FIRST, SECOND, (0, 1, 1))))
    assert started(again) == (SECOND, (0, 1, 1))


def test_ports_are_wanted_or_free_ones() -> None:
    """Each task has its own; a preferred number goes to the first; a range that is used up is told."""
    pool = range(23000, 23050)
    free = [port for port in pool if is_free(port)]
    roles = [Role(name="w", ports=[PortRequest(number=free[5], is_preferred=True), PortRequest(count=2)])]
    tasks = [RoleTasks(role=0, indices=[3, 4])]
    (found,) = reserve(roles, tasks, set(free[:2]), pool, 0)
    assert found.indices == [3, 4]
    assert list(found.ports) == [free[5], free[2], free[3], free[4], free[6], free[7]]
    preferred = [Role(name="w", ports=[PortRequest(number=free[5], is_preferred=True)])]
    assert list(reserve(preferred, tasks, {free[5], free[0]}, pool, 0)[0].ports) == [free[1], free[2]]
    with pytest.raises(NoPort, match="no port is free for task w/3"):
        reserve([Role(name="w", ports=[PortRequest()])], tasks, set(pool), pool, 0)


def test_a_fixed_port_is_what_it_is() -> None:
    """It is given once, and never another in its place; a process that stands for several tasks has it for all."""
    pool = range(23000, 23050)
    port = next(port for port in pool if is_free(port))
    fixed = [PortRequest(name="x", number=port), PortRequest(name="same", number=port)]
    one, two = RoleTasks(role=0, indices=[3]), RoleTasks(role=0, indices=[3, 4])
    each = [Role(name="w", ports=fixed, launch=LAUNCH_EACH)]
    assert list(reserve(each, [one], (), pool, 0)[0].ports) == [port, port]
    for tasks, used, loser in ((one, {port}, "w/3"), (two, (), "w/4")):
        with pytest.raises(NoPort, match=f"port {port}, which task {loser} wants, is taken"):
            reserve(each, [tasks], used, pool, 0)
    stands_for_all = [Role(name="w", ports=fixed[:1], launch=LAUNCH_HOST)]
    assert list(reserve(stands_for_all, [two], (), pool, 0)[0].ports) == [port, port]


def test_a_fixed_port_is_free_while_old_connections_linger() -> None:
    """A server that has ended leaves its connections behind for a minute; another may bind the port at once."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            accepted, _ = server.accept()
            assert not is_free(port, as_servers=True)
            accepted.close()
            assert client.recv(1) == b""
    assert not is_free(port)
    assert is_free(port, as_servers=True)


def test_output_of_runs_outlasts_long_jobs(place: Place) -> None:
    """Of an attempt that goes on nothing is too old, and what a run writes now is never removed."""
    names = {"1.0.1.0.0.1": Use.HELD, "1.0.1.0.0.2": Use.RUNS, "2.0.1.0.0.1": Use.OVER}
    for name in names:
        (place.work / name).write_bytes(b"x" * 8192)
    remove_old(place.work, -1.0, 1 << 20, 1e12, names.__getitem__)
    assert {path.name for path in place.work.iterdir()} == {"1.0.1.0.0.1", "1.0.1.0.0.2"}
    remove_old(place.work, 1e13, 0, 1e12, names.__getitem__)
    assert {path.name for path in place.work.iterdir()} == {"1.0.1.0.0.2"}
