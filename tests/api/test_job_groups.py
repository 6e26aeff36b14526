"""bjgroup: each group with the jobs below it, in pages, at a cost that grows with what is asked for."""

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from lavad.api.cluster import job_groups
from lavad.api.privacy import Sight
from lavad.core import commands as c
from lavad.core.cluster import Cluster
from lavad.core.model.reasons import Refused
from lavad.core.state.jobs.job_groups import JobGroups
from protos import cluster_pb2 as pb
from tests.builders import ANN, Story, a_cluster, a_host, a_job


def _with_jobs(**jobs: int) -> Story:
    """A host of four slots, and jobs of three slots in the groups /a, /a/b, ... by the letters of each word."""
    story = a_cluster(a_host(slots=4))
    for letters, number in jobs.items():
        group = "".join(f"/{letter}" for letter in letters)
        for _ in range(number):
            job = a_job(slots=3)
            story.submit(job._replace(shared=replace(job.shared, job_group=group)))
    return story


def _pages(cluster: Cluster, *names: str, slots: bool = False, caller: c.Caller = ANN) -> list[pb.JobGroupsReply]:
    async def body() -> list[pb.JobGroupsReply]:
        request = pb.JobGroupsRequest(names=names, slots=slots)
        return [page async for page in job_groups.pages(cluster, request, Sight(caller, cluster.policy))]

    return asyncio.run(body())


def _shown(cluster: Cluster, *names: str, slots: bool = False) -> list[str]:
    """Path, waiting and running of each group."""
    groups = [group for page in _pages(cluster, *names, slots=slots) for group in page.groups]
    return [f"{group.path} {group.pend} {group.run}" for group in groups]


def test_each_group_counts_those_below_it() -> None:
    """All of them by path; those without jobs of their own, too."""
    story = _with_jobs(abc=1, abd=2, a=1, x=1)
    story.plan()
    assert _shown(story.cluster) == ["/a 3 1", "/a/b 2 1", "/a/b/c 0 1", "/a/b/d 2 0", "/x 1 0"]
    assert _shown(story.cluster, slots=True) == ["/a 9 3", "/a/b 6 3", "/a/b/c 0 3", "/a/b/d 6 0", "/x 3 0"]


def test_named_groups_once_each() -> None:
    """Also if one is above another, and above one that is not named; what is not there is told once."""
    story = _with_jobs(abc=1, abd=2, a=1, x=1)
    assert _shown(story.cluster, "/a/b/d", "/a", "/a/", "/x") == ["/a 4 0", "/a/b/d 2 0", "/x 1 0"]
    assert [list(page.missing) for page in _pages(story.cluster, "/x", "/y")] == [["/y"]]
    with pytest.raises(Refused, match="a full path, such as /project/test, is expected"):
        _pages(story.cluster, "x")
    with pytest.raises(Refused, match="More than 10000 job groups were named at once"):
        _pages(story.cluster, *["/x"] * 10_001)


def test_one_group_costs_what_is_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """bjgroup of one group, as of bjobs -g, once went through all groups; of all it does so once for each."""
    story, looked_at = _with_jobs(ab=1, x=1), list[str]()
    for number in range(50):
        story.do(c.SetJobGroup(f"/x/{number}/y/z", None, ANN, False))
    plain = JobGroups.children

    def children(groups: JobGroups, path: str) -> Any:
        looked_at.append(path)
        return plain(groups, path)

    monkeypatch.setattr(JobGroups, "children", children)
    assert _shown(story.cluster, "/a/b") == ["/a/b 1 0"]
    assert looked_at == ["/a/b"]
    looked_at.clear()
    assert len(_shown(story.cluster)) == 153
    assert set(Counter(looked_at).values()) == {1}


def test_many_groups_come_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer of 25 MiB was more than a client takes; other calls are answered meanwhile."""
    monkeypatch.setattr(job_groups, "PAGE_BYTES", 1000)
    story = a_cluster()
    for number in range(20):
        story.do(c.SetJobGroup(f"/{number:0200}", number, ANN, False))
    pages = _pages(story.cluster)
    assert len(pages) == 5
    assert max(page.ByteSize() for page in pages) < 1500
    assert [group.limit for page in pages for group in page.groups] == list(range(20))


@pytest.mark.parametrize(("level", "shown"), [(0, ["/a"]), (1, ["/a"]), (2, []), (3, []), (4, []), (5, ["/a"])])
def test_groups_of_users_whose_jobs_are_hidden_do_not_exist(level: int, shown: list[str]) -> None:
    """SECURE_JOB_INFO_LEVEL: neither in the list of all nor by name; owner and administrators see them."""
    story = _with_jobs(a=1)
    story.cluster.policy = replace(story.cluster.policy, job_info_level=level)
    bob, root = c.Caller("bob", 1001), c.Caller("root", 0, is_administrator=True)
    seen = [[group.path for page in _pages(story.cluster, caller=bob) for group in page.groups]]
    seen.append([group.path for page in _pages(story.cluster, "/a", caller=bob) for group in page.groups])
    assert seen == [shown, shown]
    assert [list(page.missing) for page in _pages(story.cluster, "/a", caller=bob)] == [[] if shown else ["/a"]]
    for caller in (ANN, root):
        assert [group.path for page in _pages(story.cluster, caller=caller) for group in page.groups] == ["/a"]
