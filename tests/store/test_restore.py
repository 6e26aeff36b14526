"""A restart loses nothing: state saved step by step restores to the same cluster."""

from dataclasses import replace
from pathlib import Path

import pytest

from lavad.core import commands as c
from lavad.core import invariants
from lavad.core.model import EXIT_VALUE, FINAL, JobState, Request, Retry, RoleRequest, Shared, SpecialOptions
from lavad.core.model.ranges import Ranges
from lavad.core.model.rules.budgets import Budget
from lavad.core.model.rules.names import ALL, MemberChange, Names
from lavad.core.model.rules.queues import QueueHosts
from lavad.core.model.rules.users import GroupRow
from lavad.core.state.budgets import BudgetAccount
from lavad.core.state.records import StartConditions
from lavad.store.reading.restore import read_group_changes
from lavad.store.rows import values, waits
from tests.fakes.world import new_job
from tests.store.fingerprint import fingerprint
from tests.store.saved import saving
from tests.store.test_history import ALICE, Told


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_what_was_saved_restores_to_the_same_cluster(tmp_path: Path, seed: int) -> None:
    """restore(save(cluster)) == cluster after any lawful history, and the restored cluster keeps every invariant."""
    with saving(f"{tmp_path}/lava.db", seed, commits_at_random=True) as saved:
        saved.world.has_commands = True
        for _ in range(6):
            saved.world.live(60)
            saved.world.tick()
            restored = saved.restored()
            assert fingerprint(restored) == fingerprint(saved.world.cluster)
            assert list(restored.jobs) == sorted(restored.jobs)  # as bjobs lists them
            invariants.check(restored)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
def test_life_goes_on_after_each_restart(tmp_path: Path, seed: int) -> None:
    """A master that restarts repeatedly still saves what the next one needs."""
    with saving(f"{tmp_path}/lava.db", seed, commits_at_random=True) as saved:
        saved.world.has_commands = True
        for _ in range(8):
            saved.world.live(40)
            saved.world.tick()
            expected, restored = fingerprint(saved.world.cluster), saved.restored()
            assert fingerprint(restored) == expected
            saved.world.cluster = restored
            saved.rows.adopt(restored)
            for number in range(saved.world.hosts):
                saved.world.join(number)


def test_lock_ids_of_hosts_restore(tmp_path: Path) -> None:
    """With who, when and why; a host that is removed takes its own with it."""
    with saving(f"{tmp_path}/lava.db") as saved:
        world, root = saved.world, c.Caller("root", 0, is_administrator=True)
        for lock_id in ("disk", "fan", "net"):
            world.do(c.CloseHost("n000", root, f"new {lock_id}", lock_id))
        world.do(c.OpenHost("n000", root, "", ("fan",)))
        kept = saved.restored().hosts["n000"].lock_ids
        assert [(name, one.by, one.comment) for name, one in kept.items()] == [
            ("disk", "root", "new disk"), ("net", "root", "new net"),
        ]  # fmt: skip
        assert kept == world.cluster.hosts["n000"].lock_ids
        world.do(c.OpenHost("n000", root, "", ("all",)))
        assert not saved.restored().hosts["n000"].is_closed


def test_changes_of_host_groups_restore(tmp_path: Path) -> None:
    """The store knows them before the configuration is read; what is undone leaves no row."""
    with saving(f"{tmp_path}/lava.db") as saved:
        world, root = saved.world, c.Caller("root", 0, is_administrator=True)
        row = GroupRow("rack", ("n000",))

        def change(host: str, is_added: bool, *members: str) -> None:
            groups = {"rack": Names(False, frozenset(members))}
            policy = replace(world.cluster.configured, host_groups=groups, host_group_rows=(row,))
            world.do(c.ChangeHostGroup("rack", (host,), is_added, root, "", policy))

        groups = {"rack": Names(False, frozenset({"n000"}))}
        world.do(c.Reconfigure(replace(world.cluster.configured, host_groups=groups, host_group_rows=(row,))))
        change("n001", True, "n000", "n001")
        change("n000", False, "n001")
        kept = {"rack": MemberChange(frozenset({"n001"}), frozenset({"n000"}))}
        assert saved.restored().group_changes == world.cluster.group_changes == kept
        assert saved.read(read_group_changes) == kept
        change("n001", False)
        change("n000", True, "n000")
        assert saved.restored().group_changes == {}


def test_what_budgets_have_been_used_restores(tmp_path: Path) -> None:
    """By ended attempts and by running ones; so does that one has warned."""
    with saving(f"{tmp_path}/lava.db") as saved:
        world = saved.world
        budgets = (Budget("b", slot_s=1000.0, per_user=ALL),)
        world.do(c.Reconfigure(replace(world.cluster.configured, budgets=budgets)))
        told = Told(saved)
        for job in (1, 2):
            told.do(c.SubmitJob(new_job(slots=2), ALICE))
            told.start(job, slots=2)
        told.end(told.world.cluster.jobs[1].key, after_s=450.0)
        told.do(c.Tick())
        (before,) = world.cluster.budgets.accounts.values()
        assert (before.ended.slot_s, before.has_warned, len(before.running)) == (900.0, True, 1)
        (after,) = saved.restored().budgets.accounts.values()
        assert (after.name, after.span, after.ended, after.has_warned) == ("b alice", *_of(before))
        assert after.used(world.now) == before.used(world.now)


def _of(account: BudgetAccount) -> tuple[object, ...]:
    return account.span, account.ended, account.has_warned


def test_an_element_killed_between_two_attempts_can_be_requeued_after_a_restart(tmp_path: Path) -> None:
    """It is pending for the next master, too, and its next attempt has a new number."""
    with saving(f"{tmp_path}/lava.db") as saved:
        world, ann, root = saved.world, c.Caller("ann", 1000), c.Caller("root", 0, is_administrator=True)
        world.do(c.SubmitJob(new_job(user="ann", indices=(range(1, 2),)), ann))
        world.start()
        key = next(iter(world.cluster.attempts))
        world.do(c.RequeueJob(c.Target(key.job), root, frozenset({JobState.STAGING, JobState.RUN})))
        for host in {share.host for share in world.cluster.attempts[key].allocation}:
            world.do(c.ReportReleased(host, key))
        world.do(c.KillJob(c.Target(key.job), ann))
        for _ in range(2):
            world.cluster = saved.restored()
            saved.rows.adopt(world.cluster)
            world.do(c.RequeueJob(c.Target(key.job), root, FINAL))
            assert world.cluster.jobs[key.job].state_of(1) is JobState.PEND
        world.begin()
        world.start()
        assert [(one.index, one.attempt) for one in world.cluster.attempts] == [(1, 2)]


@pytest.mark.slow
@pytest.mark.postgres
def test_postgresql_restores_the_same(postgres_url: str) -> None:
    """The other database keeps the same values."""
    with saving(postgres_url, 4711) as saved:
        saved.world.has_commands = True
        for _ in range(3):
            saved.world.live(150)
            saved.world.tick()
            assert fingerprint(saved.restored()) == fingerprint(saved.world.cluster)


def test_what_rules_make_of_a_request_is_in_no_row() -> None:
    """It is derived from the rules again; a row that contains it is read without it."""
    request = Request(
        (RoleRequest(),), queue_hosts=QueueHosts(Names(False, frozenset({"n1"}))), avoids=frozenset({"big"})
    )
    shared = Shared("ann", 1000, 1000, "normal", "default", request)
    text = values.shared_text(shared)
    assert "n1" not in text
    assert values.decode_shared(text) == replace(shared, request=Request((RoleRequest(),)))
    assert values.decode_shared(text.replace('"hosts"', '"avoids":["big"],"hosts"')).request == Request(
        (RoleRequest(),)
    )


def test_special_options_are_in_the_row_beside_all_others() -> None:
    """So rows of versions that kept them in one record are read as before, and theirs by these; most jobs have none."""
    special = SpecialOptions("5", 30.0, "shell", has_commands=True, has_copies=True, checkpointable=True)
    shared = Shared("ann", 1000, 1000, "normal", "default", Request((RoleRequest(),)), special=special)
    text = values.shared_text(shared)
    assert (
        '"requeue_exit_values":"5","warning_time_s":30.0,"interactive":"shell",'
        '"has_commands":true,"has_copies":true,"checkpointable":true'
    ) in text
    assert values.decode_shared(text) == shared
    plain = [
        values.decode_shared(values.shared_text(replace(shared, uid=uid, special=SpecialOptions()))) for uid in (1, 2)
    ]
    assert plain[0].special is plain[1].special


def test_a_pause_without_a_failure_is_kept() -> None:
    """A job requeued by its exit value waits in the next master, too; no command of it has failed."""
    terms = StartConditions(is_early=True, retry=Retry(0, EXIT_VALUE, 1000.0))
    assert waits.decode_start_conditions(waits.start_conditions_text(terms))[0] == terms


def test_what_an_administrator_holds_is_kept() -> None:
    """Its owner can't resume it in the next master either."""
    terms = StartConditions(admin_held=Ranges([range(1, 4), range(7, 8)]))
    assert waits.decode_start_conditions(waits.start_conditions_text(terms))[0] == terms
