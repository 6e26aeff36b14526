"""bhist's answers: the owners that are queried in the store, the details of the jobs found, and who may see them."""

import marshal
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from lavad.api.details import READ_AT_ONCE
from lavad.api.history import answers
from lavad.api.history.answers import Answers, filter_of
from lavad.api.history.question import HISTORIES, RECORDS, Question, question_of
from lavad.core import commands as c
from lavad.core.commands import Caller
from lavad.core.model import HostShare
from lavad.core.model.policy import Policy
from lavad.core.model.rules.names import Names
from lavad.core.model.rules.queues import JobDefaults, Queue
from lavad.core.plan import Start, Starts
from lavad.store.reading import reader
from protos import common_pb2
from protos import jobs_pb2 as pb
from tests.fakes.world import new_job
from tests.store.saved import Saved, saving

ANN = Caller("ann", 1000)
ROOT = Caller("root", 0, is_administrator=True)
LAB = Names(False, frozenset({"bob", "carol"}))
NOBODY = Names(False)
GROUPS = {"lab": Names(False, frozenset({"ann", "bob"})), "other": Names(False, frozenset({"eve"}))}


@pytest.mark.parametrize(
    ("wanted", "user", "group"),
    [
        (pb.JobFilter(), "ann", NOBODY),
        (pb.JobFilter(user="bob"), "bob", NOBODY),
        (pb.JobFilter(user="lab"), "lab", LAB),
        (pb.JobFilter(user="all"), "", NOBODY),
        (pb.JobFilter(refs=[common_pb2.JobRef(job=7)]), "", NOBODY),
    ],
)
def test_whose_jobs_are_asked_for(wanted: pb.JobFilter, user: str, group: Names) -> None:
    """The caller's, one user's, those of a group's members, all users', or any owner's for jobs named by id."""
    policy = Policy(user_groups={"lab": LAB, "theirs": LAB})
    question = _question(HISTORIES, pb.HistoryRequest(filter=wanted), ANN, policy, wanted.user)
    made = filter_of(wanted, question.caller, question.policy().user_groups, 0.0)
    assert (made.user, made.group) == (user, group)


def _question(*parts: Any, **more: Any) -> Question:
    """A question as it arrives in the reader process."""
    kind, request, *rest = parts
    return Question._make(marshal.loads(marshal.dumps(tuple(question_of(kind, request, 10.0, *rest, **more)))))


class _Holder:
    """A database; counts the specs read together."""

    def __init__(self, saved: Saved, monkeypatch: pytest.MonkeyPatch) -> None:
        self.saved = saved
        self.read: list[Counter[int]] = []
        monkeypatch.setattr(answers.reader, "read_specs", self._read_specs)

    def _read_specs(self, connection: Connection, jobs: Collection[int]) -> dict[int, bytes]:
        self.read.append(Counter(jobs))
        return _READ_SPECS(connection, jobs)

    def submit(self, user: str = "ann", **parts: Any) -> None:
        spec = pb.JobSpec(command="./solve", dependency="ended(1)", environment=[b"A=b"]).SerializeToString()
        assert self.saved.world.do(c.SubmitJob(new_job(user=user, spec=spec, **parts), Caller(user, 1000)))

    def told(self, caller: Caller = ANN, policy: Policy | None = None, user: str = "", **wanted: Any) -> pb.HistoryPage:
        """All histories, as one page."""
        request = pb.HistoryRequest(filter=pb.JobFilter(user=user, finished_too=True), **wanted)
        question = _question(HISTORIES, request, caller, policy or Policy(), user)
        return pb.HistoryPage.FromString(b"".join(Answers(self.saved.read).pages(question)))

    def listed(self, jobs: Collection[int], caller: Caller, policy: Policy, **wanted: Any) -> pb.JobPage:
        """Records of jobs that memory has forgotten, as one page."""
        refs = [common_pb2.JobRef(job=job) for job in jobs]
        request = pb.ListJobsRequest(filter=pb.JobFilter(refs=refs), details=wanted.pop("details", False))
        question = _question(RECORDS, request, caller, policy, **wanted)
        return pb.JobPage.FromString(b"".join(Answers(self.saved.read).pages(question)))


_READ_SPECS = reader.read_specs


@pytest.fixture
def holder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[_Holder]:
    """A holder of an empty database."""
    with saving(f"sqlite:///{tmp_path}/lava.db") as saved:
        yield _Holder(saved, monkeypatch)


def test_long_histories_have_what_was_submitted(holder: _Holder) -> None:
    """The whole submission without its environment; specs are read for some jobs at a time, and only if asked for."""
    for _ in range(1, 2 * READ_AT_ONCE):
        holder.submit()
    told = [job.record for job in holder.told(details=True).jobs]
    assert {(one.spec.command, one.spec.dependency, len(one.spec.environment)) for one in told} == {
        ("./solve", "ended(1)", 0)
    }
    assert [len(read) for read in holder.read] == [READ_AT_ONCE, READ_AT_ONCE - 1]
    holder.read.clear()
    brief = holder.told().jobs
    assert [(one.job, one.name) for one in brief] == [(one.job, one.name) for one in told]
    assert not any(one.HasField("record") or one.notes for one in brief)
    assert not holder.read


def test_elements_share_what_was_submitted(holder: _Holder) -> None:
    """The first tells it for all, if the client can share it."""
    holder.submit(indices=(range(1, 4),))
    holder.submit()
    shared = holder.told(details=True, shares_details=True).jobs
    assert [one.index for one in shared if one.record.HasField("spec")] == [1, 0]
    assert all(one.record.spec.dependency for one in holder.told(details=True).jobs)
    assert [sorted(read) for read in holder.read] == [[1, 2], [1, 2]]


def test_a_long_answer_comes_in_pages(holder: _Holder, monkeypatch: pytest.MonkeyPatch) -> None:
    """No page is much larger than its limit, and together they are all jobs in order."""
    monkeypatch.setattr(answers.listing, "PAGE_BYTES", 300)
    holder.submit(indices=(range(1, 41),))
    request = pb.HistoryRequest(details=True)
    pages = list(Answers(holder.saved.read).pages(_question(HISTORIES, request, ANN, Policy())))
    assert max(map(len, pages)) < 1000
    assert [one.index for page in pages for one in pb.HistoryPage.FromString(page).jobs] == list(range(1, 41))


SEEN = [
    (0, {"ann", "bob", "eve"}, {"ann", "bob", "eve"}),
    (1, {"ann", "bob", "eve"}, {"ann", "bob"}),
    (2, {"ann", "bob"}, {"ann", "bob"}),
    (3, {"ann", "bob"}, {"ann"}),
    (4, {"ann"}, {"ann"}),
    (5, {"ann", "bob", "eve"}, {"ann"}),
]


@pytest.mark.parametrize(("level", "summary", "details"), SEEN)
def test_what_each_level_shows_of_past_jobs(holder: _Holder, level: int, summary: set[str], details: set[str]) -> None:
    """As of those in memory, in histories and in lists; an administrator sees all; groups are those of the policy."""
    for user in ("ann", "bob", "eve"):
        holder.submit(user)
    policy = Policy(job_info_level=level, history_access="G", user_groups=GROUPS)
    assert {one.user for one in holder.told(policy=policy, user="all").jobs} == summary
    assert {one.user for one in holder.told(policy=policy, user="all", details=True).jobs} == details
    assert len(holder.told(ROOT, policy, user="all", details=True).jobs) == 3
    assert {one.user for one in holder.listed([1, 2, 3], ANN, policy).jobs} == summary
    page = holder.listed([1, 2, 3, 77], ANN, policy, details=True)
    assert {one.user for one in page.jobs} == summary
    assert {one.user for one in page.jobs if one.spec.dependency} == details
    hidden = holder.listed([1, 2, 3, 77], ANN, policy, needs_details=True)
    assert {one.user for one in hidden.jobs} == details
    missing = {job for job, user in ((1, "ann"), (2, "bob"), (3, "eve")) if user not in details}
    assert {ref.job for ref in hidden.missing} == missing | {77}


def test_histories_of_others_may_be_closed(holder: _Holder) -> None:
    """SECURE_INFODIR_USER_ACCESS = Y shows own jobs only, whatever the level of lists."""
    for user in ("ann", "bob"):
        holder.submit(user)
    policy = Policy(job_info_level=0, history_access="Y", user_groups=GROUPS)
    assert {one.user for one in holder.told(policy=policy, user="all").jobs} == {"ann"}
    assert {one.user for one in holder.listed([1, 2], ANN, policy).jobs} == {"ann", "bob"}


def test_the_question_names_only_what_the_answer_needs() -> None:
    """Of the groups those of the caller and the named one, of the queues those with limits of processes."""
    queues = (Queue("plain"), Queue("small", defaults=JobDefaults(rlimits=(("core", 0, 5),))))
    policy = Policy(queues=queues, user_groups={**GROUPS, "third": LAB})
    question = _question(HISTORIES, pb.HistoryRequest(), ANN, policy, "other")
    assert set(question.groups) == {"lab", "other"}
    reduced = question.policy()
    assert reduced.user_groups["lab"] == GROUPS["lab"]
    assert [queue.name for queue in reduced.queues] == ["small"]
    assert reduced.queues[0].defaults.rlimits == (("core", 0, 5),)


def test_a_long_history_shows_the_limits_of_the_queue(holder: _Holder) -> None:
    """Those that the job does not set itself."""
    holder.submit()
    queues = (Queue("normal", defaults=JobDefaults(rlimits=(("core", 0, 5),))),)
    (one,) = holder.told(policy=Policy(queues=queues), details=True).jobs
    assert [(limit.name, limit.soft) for limit in one.record.spec.rlimits] == [("core", 5)]


def test_the_record_of_a_past_job(holder: _Holder) -> None:
    """Its end, hosts and figures are those of the store."""
    holder.submit()
    world = holder.saved.world
    world.do(c.ApplyPlan(Starts((Start(1, 0, (HostShare("n000", 1),), "free"),))))
    element = world.cluster.element(1, 0)
    assert element is not None
    world.do(c.ReportFinished("n000", element.key, 256, world.now, "", 1.5, 77, also_released=True))
    (one,) = holder.listed([1], ANN, Policy()).jobs
    assert (one.exit_status, one.usage.cpu_s, [share.host for share in one.hosts]) == (256, 1.5, ["n000"])
