"""Attempts that hosts report to a replaced database: their leases, and the reports accepted."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from agents.attempts.ledger import ENDED_BYTES, Ledger
from agents.master.session import details
from lavad.adoption import Adoption
from lavad.agent_links.links import AgentLinks
from lavad.agent_links.seals import Seals
from lavad.agent_links.spec_cache import Packed, blob_of
from lavad.api.agents import AgentService, key_of
from lavad.api.recovery import Recovering
from lavad.commit_mark import Mark
from lavad.core import commands as c
from lavad.core import events as e
from lavad.core.cluster import Cluster
from lavad.core.model import HostFacts, HostShare, JobState, Key
from lavad.core.model.policy import Policy
from lavad.core.state.records import Job
from lavad.store.writer.batch import Batch
from protos import agents_pb2 as pb
from protos import common_pb2
from protos.jobs_pb2 import JobSpec
from tests.builders import Story, a_job

if TYPE_CHECKING:
    from lavad.agent_links.spec_cache import SpecShelf
    from lavad.store.store import Store


def found(lease_s: float) -> tuple[Story, Key]:
    """A site that has set leases; an attempt that was begun under another rule is found on its host."""
    story = Story(HostFacts("n1", 2, keeps_leases=True), policy=Policy(fence_after_s=60.0))
    key = Key(story.submit(a_job(rerunnable=True)), 0, 7)
    started = c.ReportStarted("n1", key, 4321, story.now, "", "")
    story.do(c.RecoverAttempt(key, None, (HostShare("n1", 1),), started_at=story.now, lease_s=lease_s))
    story.back("n1", c.HeldAttempt(key, started, launched=True))
    return story, key


def after_long_silence(story: Story) -> None:
    """Let the host be silent for much longer than any lease."""
    for _ in range(3):
        story.now += 1000
        story.do(c.Tick())
        story.do(c.EndLeases())


def test_an_attempt_without_a_lease_is_not_taken_for_ended_when_it_was_found_anew() -> None:
    """Its shepherd never ends it, so a second start elsewhere would run beside it."""
    story, key = found(0.0)
    after_long_silence(story)
    assert story.state(key.job) is JobState.UNKWN


def test_an_attempt_with_a_lease_keeps_it_when_it_is_found_anew() -> None:
    """Its host has ended it, and it runs again."""
    story, key = found(60.0)
    after_long_silence(story)
    assert story.state(key.job) is JobState.PEND


def test_what_a_host_tells_unasked_is_not_heeded(tmp_path: Path) -> None:
    """Details are requested if it has seen lost commits, and once after an adoption."""
    store = cast("Store", SimpleNamespace(mark=Mark("d", 21, 1_000_100), append=lambda batch, durable: None))
    adoption = Adoption(Cluster(Policy()), store, tmp_path, lambda: 0.0)
    lost, mine = Mark("d", 10, 90, 50), Mark("d", 21, 1_000_100, 2000)
    assert not adoption.asks("n1", lost, True)  # there was no adoption
    assert not adoption.was_asked("n1")
    adoption.recall([(20, json.dumps({"databases": [], "before": ["d", 8, 40, 20], "lost": [20, 99]}))])
    assert not adoption.asks("n1", mine._replace(term=8, batch=40), False)
    assert adoption.asks("n1", lost, True)  # unsolicited: details are requested first
    assert not adoption.asks("n1", lost, True)
    assert adoption.was_asked("n1")
    adoption.back("n1", [])
    assert not adoption.was_asked("n1")
    assert not adoption.asks("n1", lost, False)


SEALS = Seals(b"of this cluster")


def _staged(job: int, *hosts: str, seals: Seals = SEALS) -> pb.Held:
    """An attempt in the agent's form, from its stage order."""
    stage = pb.Stage(allocation=[common_pb2.HostShare(host=name, slots=1) for name in hosts], run_limit_s=60)
    seals.seal_stage(Key(job, 0, 1), stage)
    return pb.Held(key=common_pb2.AttemptKey(job=job, attempt=1), order=pb.Order(stage=stage))


def _described(job: int, user: str, uid: int) -> pb.JobSpecBlob:
    spec = JobSpec(command="true", rerunnable=True, roles=[common_pb2.Role(tasks_min=1, tasks_max=1, slots_per_task=1)])
    blob = blob_of(spec, job, user, uid, 100, "normal", "c", 1.0)
    SEALS.seal_spec(blob)
    return blob


def _entered(
    held: list[pb.Held], blobs: list[pb.JobSpecBlob], cluster: Cluster | None = None
) -> list[c.RecoverAttempt]:
    hello = pb.Hello(held=held, specs=blobs)
    hello.facts.name = "n1"
    return list(Recovering(cluster or Cluster(Policy()), cast("SpecShelf", _Shelf()), SEALS, hello, key_of).held())


class _Shelf:
    """Packs no spec."""

    def pack(self, spec: JobSpec, user: str) -> Packed:
        return Packed(b"", "", None)


MINE = Mark("d", 21, 1_000_100, 1)


class _Heard:
    """Context of a session that records its messages."""

    def __init__(self) -> None:
        self.said: list[pb.Orders] = []

    async def write(self, message: pb.Orders) -> None:
        self.said.append(message)


def _admitted(service: AgentService, host: str, mark: Mark, seals: Seals | None, highest_term: int = 0) -> str:
    """Error with which the host's session is refused; empty if it is admitted."""
    database, term, batch, next_job = mark
    seen = pb.CommitMark(database=database, term=term, batch=batch, next_job=next_job)
    seen.seal = seals.of_mark(mark) if seals is not None else b""
    context = _Heard()
    asyncio.run(service._agree(host, pb.Hello(mark=seen, highest_term=highest_term), cast("Any", context)))
    return context.said[0].welcome.error if context.said else ""


def _young_master(directory: Path) -> tuple[AgentService, Adoption]:
    """A master that has just started, without any returned host."""
    store = cast("Store", SimpleNamespace(mark=MINE))
    cluster = Cluster(Policy())
    adoption = Adoption(cluster, store, directory, lambda: 0.0)
    links = AgentLinks(cluster, cast("Any", None), SEALS)
    return AgentService(cast("Any", None), links, cast("Any", None), b"", None, adoption), adoption


@pytest.mark.parametrize(
    "more",
    [
        MINE._replace(term=22, next_job=2),
        MINE._replace(batch=1_000_101, next_job=2),
        MINE._replace(term=2**64 - 1, batch=2**64 - 1, next_job=2**64 - 1),
        MINE._replace(database="another", next_job=2),
    ],
)
@pytest.mark.parametrize("seals", [None, Seals(b"of another cluster")])
def test_one_host_cannot_stop_a_young_master(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, more: Mark, seals: Seals | None
) -> None:
    """A host that claimed a newer mark stopped all of them, and adopting arbitrary numbers failed."""
    service, adoption = _young_master(tmp_path)
    refused = _admitted(service, "n1", more, seals)
    assert "Host n1 says that it has seen" in refused
    assert not adoption.is_behind
    assert adoption.reason == ""
    assert not _admitted(service, "n2", MINE._replace(batch=5, next_job=2), SEALS)
    assert [record.levelname for record in caplog.records if "host=doubted name=n1" in record.message] == ["WARNING"]


def test_a_term_that_a_host_alone_has_heard_stops_that_host_alone(tmp_path: Path) -> None:
    """The newest term that it obeys bears no seal."""
    service, adoption = _young_master(tmp_path)
    assert "Host n1 says" in _admitted(service, "n1", MINE._replace(batch=5, next_job=2), SEALS, highest_term=10**15)
    assert not adoption.is_behind


def test_what_a_master_has_told_a_host_stops_a_database_that_is_older(tmp_path: Path) -> None:
    """One host is enough if it has the master's seal for it."""
    service, adoption = _young_master(tmp_path)
    assert "lavactl adopt" in _admitted(service, "n1", MINE._replace(batch=1_000_101, next_job=2), SEALS)
    assert adoption.is_behind


def test_a_host_puts_no_attempts_of_other_hosts_into_the_books() -> None:
    """One host of a cluster must not start jobs on all others."""
    told = _entered([_staged(5, "n2"), _staged(5, "n1")], [])
    assert [share.host for one in told for share in one.allocation] == ["n1"]


def test_a_host_tells_of_jobs_only_as_the_master_has_described_them() -> None:
    """An invented rerunnable job of root's would be entered, refused there, and started on another host."""
    (genuine,) = _entered([_staged(5, "n1")], [_described(5, "alice", 1000)])
    assert genuine.job is not None
    assert (genuine.job.shared.user, genuine.job.shared.uid) == ("alice", 1000)
    for field, value in (("user", "root"), ("uid", 0), ("queue", "night"), ("job", 6)):
        forged = _described(5, "alice", 1000)
        setattr(forged, field, value)
        job = forged.job
        assert not _entered([_staged(job, "n1")], [forged])
    forged = _described(5, "alice", 1000)
    forged.spec.command = "false"
    assert not _entered([_staged(5, "n1")], [forged])


def test_a_host_tells_of_attempts_only_as_the_master_has_staged_them() -> None:
    """Not on hosts outside the allocation, nor future attempts, nor other specs."""
    blob = _described(5, "alice", 1000)
    wider = _staged(5, "n1")
    wider.order.stage.allocation.add(host="n2", slots=4)
    later = _staged(5, "n1")
    later.key.attempt = 2
    longer = _staged(5, "n1")
    longer.order.stage.run_limit_s = 0
    bare = pb.Held(key=common_pb2.AttemptKey(job=5, attempt=1))
    for one in (wider, later, longer, bare, _staged(5, "n1", seals=Seals(b"of another cluster"))):
        assert not _entered([one], [blob])
    assert _entered([_staged(5, "n1", "n2")], [blob])


def test_a_host_cannot_say_how_the_waiting_jobs_of_others_ended() -> None:
    """An end without its sealed order is unproven."""
    story = Story(HostFacts("n1", 0))
    job = story.submit(a_job())
    finished = pb.Report(finished=pb.Finished(status=0, time=1.0))
    hello = pb.Hello(ended=[pb.Held(key=common_pb2.AttemptKey(job=job, attempt=1), last=finished)])
    hello.facts.name = "n1"
    recovering = Recovering(story.cluster, cast("SpecShelf", None), SEALS, hello, key_of)
    assert [enter for enter, _ in recovering.ended() if enter is not None] == []


def test_a_waiting_job_that_may_have_run_is_held_and_no_other(tmp_path: Path) -> None:
    """An attempt that ended before its agent restarted leaves a log without a seal: it must not run a second time."""
    story = Story(HostFacts("n1", 4))
    waiting, array, running = (story.submit(job) for job in (a_job(), a_job(array="1-3"), a_job()))
    store = cast("Store", SimpleNamespace(mark=MINE, append=lambda batch, durable: None))
    adoption = Adoption(story.cluster, store, tmp_path, lambda: 0.0)
    links = AgentLinks(story.cluster, cast("Any", None), SEALS)
    engine = SimpleNamespace(cluster=story.cluster, post=lambda commands: [story.do(one) for one in commands])
    service = AgentService(cast("Any", engine), links, cast("Any", None), b"", None, adoption)
    story.do(c.RecoverAttempt(Key(running, 0, 1), None, (HostShare("n1", 1),), started_at=story.now))
    finished = pb.Report(finished=pb.Finished(status=0, time=1.0))
    keys = [(waiting, 0, 1), (array, 2, 1), (running, 0, 9), (waiting + 1000, 0, 1)]
    ended = [pb.Held(key=common_pb2.AttemptKey(job=j, index=i, attempt=a), last=finished) for j, i, a in keys]
    hello = pb.Hello(is_detailed=True, ended=ended)
    hello.facts.name = "n1"
    service._recover(adoption, "n1", hello)
    assert story.state(waiting) is JobState.PSUSP
    assert story.state(array, 2) is JobState.PSUSP
    assert story.state(array, 1) is JobState.PEND
    assert story.state(running) is JobState.STAGING


class _Adopting:
    """A master whose database is from before a job was requeued, and its hosts, which have waited for the adoption."""

    def __init__(self, directory: Path) -> None:
        self.story = Story(HostFacts("n1", 4), HostFacts("n2", 4))
        self.job = self.story.submit(a_job())
        self.older, self.newer = Key(self.job, 0, 1), Key(self.job, 0, 2)
        self.story.do(c.RecoverAttempt(self.older, None, (HostShare("n1", 1),), started_at=self.story.now))
        self.story.do(c.ReportStarted("n1", self.older, 1, self.story.now, "", ""))
        store = cast("Store", SimpleNamespace(mark=MINE, append=lambda batch, durable: None))
        self.adoption = Adoption(self.story.cluster, store, directory, lambda: 0.0)
        self.adoption.is_settling = True
        self.adoption._asked |= {"n1", "n2"}
        links = AgentLinks(self.story.cluster, cast("Any", None), SEALS)
        engine = SimpleNamespace(
            cluster=self.story.cluster,
            clock=lambda: self.story.now,
            post=lambda commands: [self.story.do(one) for one in commands],
        )
        self.service = AgentService(cast("Any", engine), links, cast("Any", None), b"", None, self.adoption)

    def hello(self, host: str, held: list[pb.Held], ended: list[pb.Held]) -> None:
        """A host tells what it has."""
        outbox = SimpleNamespace(hear=lambda sent, sequence: None, nudge=lambda: None, close=lambda: None)
        hello = pb.Hello(is_detailed=True, incarnation=9, held=held, ended=ended)
        hello.facts.name, hello.facts.slots, hello.facts.server = host, 4, True
        self.service._hello(host, cast("Any", outbox), pb.Reports(hello=hello))

    def settle(self) -> None:
        """All hosts are back, or have had their time."""
        self.adoption.is_settling = False
        self.service.enter_ends(self.adoption)


def _with(one: pb.Held, key: Key, **last: Any) -> pb.Held:
    """The same attempt number and order, sealed, with a last report."""
    one.key.attempt = key.attempt
    SEALS.seal_stage(key, one.order.stage)
    one.last.CopyFrom(pb.Report(**last))
    return one


@pytest.mark.parametrize("knows_its_end", [False, True])
@pytest.mark.parametrize("order", [("n1", "n2"), ("n2", "n1")])
def test_a_job_that_runs_elsewhere_since_is_not_lost_with_its_older_attempt(
    tmp_path: Path, order: tuple[str, str], knows_its_end: bool
) -> None:
    """The job had been requeued since the backup. Its host of then, if it came first, had it recorded as ended or lost,
    and what ran was in no list.
    """
    master = _Adopting(tmp_path)
    began = master.story.now + 60.0
    master.story.now += 600.0
    killed = _with(_staged(master.job, "n1"), master.older, finished=pb.Finished(status=143 << 8, time=began - 1.0))
    runs = _with(_staged(master.job, "n2"), master.newer, started=pb.Started(pid=7, time=began))
    told = {"n1": ([], [killed] if knows_its_end else []), "n2": ([runs], [])}
    for host in order:
        master.hello(host, *told[host])
    master.settle()
    job = master.story.cluster.jobs[master.job]
    assert master.story.state(master.job) is JobState.RUN
    assert master.newer in master.story.cluster.attempts
    assert master.older not in master.story.cluster.attempts
    requeued = [event for event in master.story.events if isinstance(event, e.JobRequeued)]
    assert [event.at for event in requeued] == [began]
    assert isinstance(job, Job)
    assert job.attempt is not None
    assert job.attempt.started_at == began


@pytest.mark.parametrize("order", [("n1", "n2"), ("n2", "n1")])
def test_the_newest_end_of_a_job_counts(tmp_path: Path, order: tuple[str, str]) -> None:
    """Both attempts have ended since."""
    master = _Adopting(tmp_path)
    began = master.story.now + 60.0
    master.story.now += 600.0
    killed = _with(_staged(master.job, "n1"), master.older, finished=pb.Finished(status=143 << 8, time=began - 1.0))
    ended = _with(_staged(master.job, "n2"), master.newer, finished=pb.Finished(status=3 << 8, time=began + 5.0))
    told = {"n1": killed, "n2": ended}
    for host in order:
        master.hello(host, [], [told[host]])
    master.settle()
    job = master.story.cluster.jobs[master.job]
    assert isinstance(job, Job)
    assert job.end is not None
    assert (job.attempts, job.end.status) == (2, 3 << 8)


def test_an_attempt_that_no_host_knows_any_more_is_lost(tmp_path: Path) -> None:
    """As before, when all hosts have told what they hold."""
    master = _Adopting(tmp_path)
    master.hello("n1", [], [])
    assert master.story.state(master.job) is JobState.RUN
    master.settle()
    assert master.story.state(master.job) is JobState.EXIT
    assert not master.adoption.lacking


def test_a_resized_attempt_is_known_again() -> None:
    """The seal of its allocation follows it, also over a restart of its agent."""
    key, held = Key(5, 0, 1), _staged(5, "n1", "n2")
    ledger = Ledger()
    ledger.learn(_described(5, "alice", 1000))
    order = held.order
    order.key.CopyFrom(held.key)
    order.allocation_version = 1
    ledger.order(order)
    ledger.placed(key)
    smaller = [common_pb2.HostShare(host="n1", slots=1)]
    resize = pb.Resize(allocation=smaller, allocation_seal=SEALS.of_allocation(key, smaller))
    ledger.order(pb.Order(key=held.key, allocation_version=2, resize=resize))
    again = Ledger()
    again.learn(_described(5, "alice", 1000))
    for one in ledger.orders_of(ledger.entries[key]):
        again.restore(one)
    for kept in (ledger, again):
        (command,) = _entered(kept.held(detailed=True), [])
        assert [share.host for share in command.allocation] == ["n1"]


def test_a_restarted_master_asks_no_host_a_second_time(tmp_path: Path) -> None:
    """The list of hosts already asked was lost, so a host could report more attempts after each restart."""
    rows: list[tuple[int, str]] = []

    def append(batch: Batch, durable: Callable[[], None]) -> None:
        rows[:] = [(int(str(row[1])), str(row[2])) for row in batch.standing.values() if row is not None]

    store = cast("Store", SimpleNamespace(mark=Mark("d", 21, 1_000_100), append=append))
    lost, mine = Mark("d", 10, 90, 50), Mark("d", 21, 1_000_100, 2000)
    before = {"databases": [], "before": ["d", 8, 40, 20], "lost": [20, 2000]}
    rows.append((20, json.dumps(before)))
    first = Adoption(Cluster(Policy()), store, tmp_path, lambda: 0.0)
    first.recall(rows)
    assert first.asks("n1", lost, False)
    first.back("n1", [])
    second = Adoption(Cluster(Policy()), store, tmp_path, lambda: 0.0)
    second.recall(rows)
    assert not second.asks("n1", lost, False)
    assert not second.asks("n3", mine, False)  # it has joined since: the adopted term is all that it knows
    assert second.asks("n2", lost, False)  # it was away until now


def test_ends_of_wide_jobs_are_bounded_by_their_size() -> None:
    """A thousand ends of jobs on a thousand hosts were a hundred megabytes in each agent."""
    ledger = Ledger()
    allocation = [
        common_pb2.HostShare(host=f"node{number:04}", address=f"node{number:04}:4001") for number in range(5000)
    ]
    order = pb.Order(stage=pb.Stage(allocation=allocation))
    for job in range(1, 201):
        ledger.remember(pb.Held(key=common_pb2.AttemptKey(job=job, attempt=1), order=order))
        ledger.remember(pb.Held(key=common_pb2.AttemptKey(job=job, attempt=1), order=order))  # the same, again
    kept = [one.key.job for one in ledger.ended.values()]
    size = sum(one.ByteSize() for one in ledger.ended.values())
    assert ENDED_BYTES - 2 * order.ByteSize() < size <= ENDED_BYTES
    assert kept == list(range(201 - len(kept), 201))


def test_a_host_tells_in_one_message_what_it_holds_and_as_many_ends_as_fit() -> None:
    """A thousand ended jobs with the environments of users were more than a master takes, and the host stayed out."""
    ledger = Ledger()
    for job in range(1, 11):
        ledger.learn(pb.JobSpecBlob(job=job, user="a" * 1000))
        ledger.remember(pb.Held(key=common_pb2.AttemptKey(job=job, attempt=1)))
    specs, ended = details(ledger, 3500)
    assert [one.key.job for one in ended] == [8, 9, 10]
    assert {blob.job for blob in specs} == {8, 9, 10}
    specs, ended = details(ledger, 1 << 20)
    assert [one.key.job for one in ended] == list(range(1, 11))


def test_an_adoption_waits_for_hosts_that_were_not_refused_before_it(tmp_path: Path) -> None:
    """Carried out before the second host had come, it ended with the first one, whose job was lost: it ran on n2."""
    adoption = _Adopting(tmp_path).adoption
    for host in adoption._cluster.hosts.values():
        host.is_connected = False
    adoption._awaited = {"n1"}
    adoption._adopted()
    adoption.back("n1", [])
    assert not adoption._all_back.is_set()
    adoption.back("n2", [])
    assert adoption._all_back.is_set()
