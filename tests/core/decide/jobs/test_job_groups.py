"""Owners of job groups: what DEFAULT_JOBGROUP means for a user is not taken by another."""

import pytest

from lavad.core import commands as c
from lavad.core.apply.restore import adopt_job_group
from lavad.core.decide.jobs import job_groups
from lavad.core.decide.jobs.job_groups import OWNED_MAX
from lavad.core.events import NewJob
from lavad.core.job_group_events import JobGroup
from lavad.core.language.job_groups import is_for_all, is_of_another
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import Refused
from tests.builders import ANN, BOB, ROOT, Story, a_cluster, a_host, a_job


def _in(group: str, caller: c.Caller = ANN) -> NewJob:
    return a_job(caller=caller, job_group=group)


def _with_default(path: str) -> Story:
    return a_cluster(a_host(slots=4), policy=Policy(default_job_group=path))


def _add(story: Story, path: str, caller: c.Caller, limit: int | None = None, exists: bool = False) -> None:
    story.do(c.SetJobGroup(path, limit, caller, exists))


def _owners(story: Story) -> dict[str, str]:
    return {group.path: group.owner for group in story.cluster.job_groups}


@pytest.mark.parametrize(
    ("default", "anns", "others"),
    [
        ("/%u", ["/ann", "/ann/x"], ["/bob", "/chem/scan"]),
        ("/of/%u", ["/of", "/of/ann", "/x/bob", "/bob"], ["/of/bob", "/of/bob/x"]),
        ("/%p/%u/x/", ["/md", "/md/ann", "/md/ann/y"], ["/md/bob", "/ann/bob/x"]),
        ("/of/u.%u_%p", ["/of/u.ann_md", "/of/uxann_md", "/of/u."], ["/of/u.bob_md", "/of/u.a.n_md"]),
        ("/chem", ["/chem/bob", "/bob"], []),
        ("", ["/bob"], []),
    ],
)
def test_whom_the_default_names(default: str, anns: list[str], others: list[str]) -> None:
    """The first part with %u says whose a group is, with all below it."""
    assert not [path for path in anns if is_of_another(path, "ann", default)]
    assert not [path for path in others if not is_of_another(path, "ann", default)]


@pytest.mark.parametrize(
    ("default", "shared", "others"),
    [
        ("/of/all/%u/x", ["/of", "/of/all"], ["/of/al", "/of/all/ann", "/o", "/x"]),
        ("/chem/", ["/chem"], ["/chem/x"]),
        ("/%u", [], ["/ann", "/%u"]),
        ("", [], ["/a"]),
    ],
)
def test_what_the_default_means_for_all(default: str, shared: list[str], others: list[str]) -> None:
    """Its parts before the first with a mark."""
    assert not [path for path in shared if not is_for_all(path, default)]
    assert not [path for path in others if is_for_all(path, default)]


def test_the_default_group_of_a_user_is_not_made_by_another() -> None:
    """With /%u bob once made /ann with a limit of 0, and ann's jobs never started."""
    story = _with_default("/%u")
    with pytest.raises(Refused, match="/ann: DEFAULT_JOBGROUP is /%u: this job group is created by the user whom"):
        _add(story, "/ann", BOB, 0)
    with pytest.raises(Refused, match="/ann/x: DEFAULT_JOBGROUP is /%u"):
        story.submit(_in("/ann/x", BOB))
    job = story.submit(_in("/bob", BOB))
    change = c.ModifyJob(story.target(job), _in("/ann", BOB), BOB, "job group", frozenset({"job_group"}))
    with pytest.raises(Refused, match="/ann: DEFAULT_JOBGROUP is /%u"):
        story.do(change)
    story.run(_in("/ann"))
    story.submit(_in("/ann", BOB))
    _add(story, "/chem", ROOT)
    _add(story, "/ann/x", ROOT, 2)
    assert _owners(story) == {"/bob": "bob", "/ann": "ann", "/chem": "root", "/ann/x": "root"}


def test_what_is_for_all_users_is_limited_by_administrators() -> None:
    """With /of/%u /of belongs to the first user with a job, who may neither limit it nor what is below it."""
    story = _with_default("/of/%u")
    with pytest.raises(Refused, match="/of: DEFAULT_JOBGROUP puts the jobs of all users there: only administrators"):
        _add(story, "/of", BOB, 0)
    story.submit(_in("/of/bob", BOB))
    story.submit(_in("/of/ann"))
    assert _owners(story) == {"/of": "bob", "/of/bob": "bob", "/of/ann": "ann"}
    for path in ("/of", "/of/ann"):
        with pytest.raises(Refused, match="User permission denied"):
            _add(story, path, BOB, 0, exists=True)
    _add(story, "/of/bob", BOB, 3, exists=True)
    _add(story, "/of", ROOT, 5, exists=True)


def test_a_limit_for_all_users_outlives_the_one_who_came_first() -> None:
    """bgdel of one's own groups leaves it."""
    story = _with_default("/of/%u")
    _add(story, "/of/bob", BOB)
    _add(story, "/of", ROOT, 5, exists=True)
    removed = story.do(c.RemoveJobGroups(c.Removed.OF_USER, "bob", BOB))
    assert removed.reply == ["/of/bob"]
    assert story.do(c.RemoveJobGroups(c.Removed.ALL, "", ROOT)).reply == ["/of"]


def _fill(story: Story, caller: c.Caller, first: int, more: int) -> None:
    for number in range(first, first + more):
        adopt_job_group(story.cluster, JobGroup(f"/filled{caller.user}{number}", caller.user, caller.uid, 0.0))


def test_one_user_leaves_room_for_the_others() -> None:
    """There is a bound for each user who is not an administrator; groups that are deleted count no more."""
    story = _with_default("")
    _fill(story, BOB, 0, OWNED_MAX)
    for path in ("/b", "/b/c"):
        with pytest.raises(Refused, match="User bob may own 5000 job groups; bgdel 0 removes those without jobs"):
            story.submit(_in(path, BOB))
    _add(story, "/b", ANN)
    _fill(story, BOB, 0, OWNED_MAX)  # another limit of the same groups
    story.do(c.RemoveJobGroups(c.Removed.ONE, "/filledbob0", BOB))
    _add(story, "/b/c", BOB)
    with pytest.raises(Refused, match="User bob may own 5000 job groups"):
        _add(story, "/b/d", BOB)
    _fill(story, ROOT, 0, OWNED_MAX)
    _add(story, "/r", ROOT)


def test_a_job_without_a_group_is_taken_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Users who make all the groups that there may be keep no other from submitting under DEFAULT_JOBGROUP."""
    monkeypatch.setattr(job_groups, "GROUPS_MAX", 10)
    story = _with_default("/%u/%p")
    _fill(story, BOB, 0, 10)
    for group in ("/ann/other", "/ann/default/x"):
        with pytest.raises(Refused, match="There are 10 job groups already; bgdel removes those without jobs"):
            story.submit(_in(group))
    story.submit(_in("/ann/default"))
    assert {"/ann", "/ann/default"} <= set(_owners(story))
