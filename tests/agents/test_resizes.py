"""Resized allocations on a host: in the ledger, after a restart, and in the job's host lists."""

import os
import subprocess
from pathlib import Path

from agents.attempts.journal import Journal, order_record, resized_record, spec_record
from agents.attempts.ledger import Ledger
from agents.attempts.ledger_entry import State
from agents.attempts.resizes import difference
from agents.attempts.usage_exchange import hosts_of
from agents.job_setup.environment import OwnFiles, put_lists
from protos.agents_pb2 import JobSpecBlob, Order, Resize
from protos.agents_pb2 import Release as ReleaseOrder
from protos.common_pb2 import HostShare
from tests.agents.test_ledger import KEY, a_ledger, finish, order, stage_order, words

SMALL = [HostShare(host="h1", slots=1), HostShare(host="h2", slots=1)]
LARGE = [*SMALL, HostShare(host="h3", slots=2)]


def resize(version: int, allocation: list[HostShare]) -> Order:
    """A resize order."""
    return order(version=version, resize=Resize(allocation=allocation))


def a_running(ledger: Ledger) -> Ledger:
    """With the attempt on two hosts, held by a shepherd."""
    ledger.order(stage_order(launch_now=False))
    ledger.placed(KEY)
    return ledger


def test_an_allocation_counts_once_and_only_if_it_is_newer() -> None:
    """Repeated and older orders change nothing; a repeated one is answered once the job has been notified."""
    ledger = a_running(a_ledger())
    assert words(ledger.order(resize(3, LARGE))) == ["note", "adapt"]
    assert words(ledger.order(resize(3, LARGE))) == []
    assert words(ledger.order(resize(2, SMALL))) == []
    assert [share.host for share in ledger.entries[KEY].stage.allocation] == ["h1", "h2", "h3"]
    (report,) = ledger.resized(KEY, 3, False, "")
    assert report.allocation_version == 3
    assert words(ledger.order(resize(3, LARGE))) == ["say resized"]
    (held,) = ledger.held()
    assert (held.allocation_version, held.resized.allocation_version) == (3, 3)


def test_a_word_about_an_older_allocation_is_not_said() -> None:
    """A newer allocation arrived while the job was being notified: the older one is not reported."""
    ledger = a_running(a_ledger())
    ledger.order(resize(2, LARGE))
    ledger.order(resize(3, SMALL))
    assert ledger.resized(KEY, 2, False, "") == []
    assert [share.host for share in ledger.entries[KEY].before] == ["h1", "h2"], "the job was told of no other"


def test_a_host_that_left_may_come_back() -> None:
    """With a newer version, after the end of its earlier processes; not before."""
    ledger = a_running(a_ledger())
    ledger.order(order(release=ReleaseOrder()))
    assert words(ledger.order(stage_order(launch_now=False, version=5))) == ["say refused"]
    ledger.released(KEY)
    assert words(ledger.order(stage_order(launch_now=False, version=1))) == ["say released"]
    assert words(ledger.order(stage_order(launch_now=False, version=5))) == ["note", "renew", "place"]
    assert not ledger.forget(KEY), "what the master forgot was the earlier stay"
    ledger.placed(KEY)
    ledger.reconcile({KEY: False}, {KEY}, {KEY: finish()}, {}, {}, False, 1.0)
    assert ledger.entries[KEY].state is State.HELD, "the logs tell of its earlier stay"


def test_a_restart_knows_what_the_job_was_told(tmp_path: Path) -> None:
    """An allocation without notification is notified after the restart, as the difference to the last notified one."""
    journal = Journal(tmp_path / "journal")
    journal.rewrite(Ledger(), "boot")
    journal.append([spec_record(JobSpecBlob(job=7, version=1, user="u", uid=1))])
    journal.append([order_record(stage_order(launch_now=False)), order_record(resize(2, LARGE))])
    for told in (False, True):
        for _ in range(2):  # from the appended records, then from the compacted journal
            ledger, _ = journal.load()
            entry = ledger.entries[KEY]
            assert (entry.version, entry.joined, entry.is_told) == (2, 1, told)
            assert [share.host for share in entry.stage.allocation] == ["h1", "h2", "h3"]
            if not told:
                assert [share.host for share in entry.before] == ["h1", "h2"]
            journal.rewrite(ledger, "boot")
        ledger.placed(KEY)
        (report,) = ledger.resized(KEY, 2, False, "")
        journal.append([resized_record(report)])


def test_hosts_that_were_given_up_are_remembered(tmp_path: Path) -> None:
    """Released hosts appear in the report, also by the next agent, unless they came back."""
    journal = Journal(tmp_path / "journal")
    journal.rewrite(Ledger(), "boot")
    journal.append([spec_record(JobSpecBlob(job=7, version=1, user="u", uid=1))])
    journal.append([order_record(stage_order(launch_now=False)), order_record(resize(2, LARGE))])
    ledger, _ = journal.load()
    ledger.placed(KEY)
    journal.append([resized_record(report) for report in ledger.resized(KEY, 2, False, "")])
    journal.append([order_record(resize(3, LARGE[:1]))])
    for _ in range(2):  # from the appended records, then from the compacted journal
        ledger, _ = journal.load()
        assert hosts_of(ledger.entries[KEY]) == (("h1", "h2", "2*h3"), ("h2", "h3"))
        journal.rewrite(ledger, "boot")
    ledger.order(resize(4, SMALL))
    assert hosts_of(ledger.entries[KEY]) == (("h1", "h2", "2*h3"), ("h3",))


def test_a_host_that_the_job_would_not_have_was_never_its() -> None:
    """Neither a host of a failed growth nor one without a notification counts as released."""
    ledger = a_running(a_ledger())
    ledger.order(resize(2, LARGE))
    ledger.resized(KEY, 2, True, "no")
    ledger.order(resize(3, SMALL))
    ledger.resized(KEY, 3, False, "")
    ledger.order(resize(4, LARGE))
    ledger.order(resize(5, SMALL))
    assert hosts_of(ledger.entries[KEY]) == (("h1", "h2"), ())


def test_lists_are_replaced_as_a_whole(tmp_path: Path) -> None:
    """The paths stay, an open file keeps its old content, and the program prints hosts with their slots."""
    files = OwnFiles(tmp_path, "7-0-1")
    before = put_lists(SMALL, files)
    with open(before["LSB_DJOB_HOSTFILE"]) as opened:
        after = put_lists(LARGE, files)
        assert opened.read() == "h1\nh2\n"
    assert after == before
    assert Path(after["LSB_DJOB_HOSTFILE"]).read_text() == "h1\nh2\nh3\nh3\n"
    told = subprocess.run([after["LAVA_DISCOVER_HOSTS"]], capture_output=True, text=True, check=True)
    assert told.stdout == "h1:1\nh2:1\nh3:2\n"
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".new")]


def test_what_changed_is_told_in_lsfs_words() -> None:
    """Host and slots, only of the difference."""
    assert difference(LARGE, SMALL) == "h3 2"
    assert difference([HostShare(host="h1", slots=3)], LARGE) == "h1 2"
    assert difference(SMALL, LARGE) == ""
