"""Permanently removed hosts: their jobs, and their absence from listings."""

import asyncio
import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from lavad.adoption import Adoption
from lavad.agent_links.host_log import HostLog
from lavad.commit_mark import Mark
from lavad.core import commands as c
from lavad.core import invariants
from lavad.core.model import JobState
from lavad.core.model.reasons import Refused
from lavad.core.queries.pending_reasons import explain
from lavad.store.writer.batch import Batch
from tests.acceptance.personal import Cluster, a_cluster, wait_for
from tests.builders import ANN, ROOT, Story, a_host, a_job, each

if TYPE_CHECKING:
    from lavad.store.store import Store

S = JobState
EVERYWHERE = (["bhosts", "-w"], ["lshosts", "-w"], ["lsload", "-w"], ["bhosts", "-s"], ["bhosts", "-l"])


@pytest.fixture
def story() -> Story:
    """Three hosts with four slots each."""
    return Story(a_host("n1", 4), a_host("n2", 4), a_host("n3", 4))


def removed(story: Story, host: str) -> bool:
    """The reply to one command; the invariants hold afterwards."""
    outcome = story.do(c.RemoveHost(host, ROOT))
    invariants.check(story.cluster)
    return bool(outcome.reply)


def cut_off(story: Story, *names: str) -> None:
    """Let these hosts be silent from now on."""
    for name in names:
        story.do(c.AgentGone(name, story.cluster.hosts[name].incarnation))
    story.now += 60
    story.hear(*(name for name in story.cluster.hosts if name not in names))
    story.do(c.Tick())


def test_a_removed_host_takes_no_jobs_and_is_no_reason(story: Story) -> None:
    """Twelve slots become eight; pending reasons do not count the removed host."""
    assert removed(story, "n2")
    assert sorted(story.cluster.hosts) == ["n1", "n3"]
    keys = [story.run(a_job()) for _ in range(8)]
    assert {story.where(key.job)[0] for key in keys} == {"n1", "n3"}
    waiting = story.submit(a_job())
    story.plan()
    told = explain(story.cluster, story.cluster.jobs[waiting], 0, story.now)
    assert [reason.hosts for reason in told if reason.hosts] == [("n1", "n3")]


def test_jobs_of_a_lost_host_end_or_run_again_when_it_is_removed(story: Story) -> None:
    """The administrator confirms by it that none of them still runs."""
    again, once = story.run(a_job(hosts=("n2",), rerunnable=True)), story.run(a_job(hosts=("n2",)))
    cut_off(story, "n2")
    assert {story.state(again.job), story.state(once.job)} == {S.UNKWN}
    assert not removed(story, "n2")
    assert removed(story, "n2")
    assert (story.state(again.job), story.state(once.job)) == (S.PEND, S.EXIT)


def test_a_parallel_job_ends_on_its_other_hosts_before_the_host_is_gone(story: Story) -> None:
    """The host stays known for as long as an attempt that was on it has to end elsewhere."""
    key = story.run(each(2))
    lead, other = story.where(key.job)
    cut_off(story, other)
    assert not removed(story, other)
    assert other in story.cluster.hosts
    if story.state(key.job) not in (S.DONE, S.EXIT):
        assert not removed(story, other)
        story.finished(lead, key, status=15)
    assert removed(story, other)
    assert story.state(key.job) is S.EXIT


def test_a_host_that_runs_jobs_and_answers_is_not_removed(story: Story) -> None:
    """Its processes would run beside their replacements."""
    story.run(a_job(hosts=("n2",)))
    with pytest.raises(Refused, match="connected and runs jobs"):
        removed(story, "n2")
    with pytest.raises(Refused, match="Bad host name"):
        removed(story, "nowhere")
    with pytest.raises(Refused, match="denied"):
        story.do(c.RemoveHost("n1", ANN))
    assert len(story.cluster.hosts) == 3


def test_a_removed_host_may_join_again(story: Story) -> None:
    """With other facts than before; its place in the tables is its own."""
    removed(story, "n2")
    story.join(a_host("n2", 2))
    invariants.check(story.cluster)
    keys = [story.run(a_job(hosts=("n2",))) for _ in range(2)]
    assert {story.where(key.job)[0] for key in keys} == {"n2"}
    assert story.cluster.table.slots_max[story.cluster.table.rows["n2"]] == 2


def test_nothing_is_kept_of_a_removed_host(story: Story, tmp_path: Path) -> None:
    """Sites whose hosts come and go kept the names of all former hosts."""
    store = cast("Store", SimpleNamespace(mark=Mark("d", 1, 5), append=lambda batch, durable: None))
    hosts, adoption = HostLog(story.cluster), Adoption(story.cluster, store, tmp_path, lambda: story.now)
    adoption.recall([(1, json.dumps({"databases": [], "before": ["d", 1, 1, 1], "lost": [1, 2]}))])
    adoption.back("n1", [])
    newer = Mark("d", 2, 9, 3)
    adoption.adopted.set()  # returning hosts are not delayed here
    story.now += 100
    story.hear(*story.cluster.hosts)
    for host in ("n1", "n2"):
        assert asyncio.run(adoption.admit(host, newer, newer))
    assert asyncio.run(adoption.admit("n1", Mark(), Mark("other", 1, 1, 9)))
    story.now += 100
    story.hear("n2")
    story.do(c.Tick())
    hosts.notify(story.events)
    for host in ("n1", "n2"):
        story.events.clear()
        story.do(c.RemoveHost(host, ROOT))
        hosts.notify(story.events)
        adoption.notify(story.events)
    kept = {**vars(hosts), **vars(adoption)}
    assert [name for name, value in kept.items() if "n1" in str(value)] == []


def test_a_batch_takes_the_rows_of_removed_hosts_away() -> None:
    """The last change in a batch counts."""
    first, second = Batch(), Batch()
    first.hosts["n1"] = ("n1", "{}", "", "")
    second.hosts["n1"] = None
    first.merge(second)
    assert first.hosts == {"n1": None}
    assert first


@pytest.fixture(scope="module")
def personal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three hosts, some of which the tests remove."""
    directory = tmp_path_factory.mktemp("removal") / "D"
    with a_cluster(directory, 3, 2, LAVA_HEARTBEAT="1", LAVA_SILENT_AFTER="6") as cluster:
        yield cluster


@pytest.mark.acceptance
@pytest.mark.slow
def test_a_removed_host_is_gone_everywhere_and_stays_away(personal: Cluster) -> None:
    """Also for its own agent, which keeps running with its revoked certificate; after reconfig and after restarts."""
    done = personal.run("badmin", "hremove", "-C", "sold", "lava3")
    assert (done.returncode, done.stderr) == (0, "Remove <lava3> ...... done\n")

    def is_away() -> None:
        for words in EVERYWHERE:
            assert "lava3" not in personal.run(*words).stdout, words
        assert personal.run("bhosts", "lava3").returncode != 0
        assert re.search(r"Number of servers: +2\n", personal.run("badmin", "showstatus").stdout)

    is_away()
    personal.reconfigure()
    is_away()
    refused = personal.log("agent-lava3").count("is revoked")
    personal.kill("lavad", signal.SIGKILL)
    personal.up()
    wait_for(lambda: personal.log("agent-lava3").count("is revoked") > refused, 60, "its agent to be refused again")
    wait_for(lambda: personal.run("bhosts", "-noheader", "-o", "status").stdout.split() == ["ok"] * 2, 60, "two hosts")
    is_away()
    job = personal.submit("-n", "5", "sleep", "1")
    assert "lava3" not in personal.says("bjobs", "-l", str(job))
    personal.run("bkill", str(job))


@pytest.mark.acceptance
@pytest.mark.slow
def test_a_host_that_runs_jobs_is_removed_once_its_agent_is_gone(personal: Cluster) -> None:
    """The error message explains it; its job counts as lost then."""
    job = personal.submit("-m", "lava2", "-o", "/dev/null", "sleep", "1000")
    personal.becomes(job, "RUN")
    done = personal.run("badmin", "hremove", "lava2")
    assert done.returncode != 0
    assert "Host <lava2> is connected and runs jobs" in done.stderr
    personal.kill("agent-lava2")
    wait_for(lambda: "ok" not in personal.run("bhosts", "-noheader", "-o", "status", "lava2").stdout, 60, "its silence")
    done = personal.run("badmin", "hremove", "lava2")
    assert (done.returncode, done.stderr) == (0, "Remove <lava2> ...... done\n")
    assert personal.state(job) == "EXIT"
    assert "a host of the job was lost" in " ".join(personal.history(job).split())
    assert personal.run("badmin", "hremove").returncode != 0
