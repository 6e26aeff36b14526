"""Dependencies of jobs, as stories; the grammar has its own properties."""

import pytest

from lavad.core import commands as c
from lavad.core.decide.clock.tick import wake_at
from lavad.core.decide.jobs.dependencies import missing_parents
from lavad.core.events import DependencyMet, PendingEnded
from lavad.core.language.dependency import text_of
from lavad.core.model import JobState, pack_text
from lavad.core.model.policy import Policy
from lavad.core.model.ranges import Ranges
from lavad.core.model.reasons import Refused
from lavad.core.queries.pending_reasons import explain
from lavad.core.state.jobs.job_names import Names
from lavad.core.state.records import ArrayRecord
from lavad.simulator.cluster.restart import reborn
from tests.builders import ANN, BOB, Story, a_cluster, a_host, a_job

S = JobState
NEVER = "Dependency condition invalid or never satisfied"
WAITS = "Job dependency condition not satisfied"


def ended(story: Story, job: int, index: int = 0, status: int = 0) -> None:
    """Start and end a job that has been dispatched."""
    key = story.key(job, index)
    host = story.where(job, index)[0]
    story.started(host, key)
    story.finished(host, key, status)


def why(story: Story, job: int, index: int = 0) -> list[str]:
    """Pending reason of a job."""
    return [reason.text for reason in explain(story.cluster, story.cluster.jobs[job], index, story.now)]


@pytest.mark.parametrize(
    ("condition", "status", "starts"),
    [
        ("done({})", 0, True),
        ("{}", 0, True),
        ("done({})", 256, False),
        ("exit({})", 256, True),
        ("exit({}, 1)", 256, True),
        ("exit({}, > 1)", 256, False),
        ("exit({}, != 0)", 0, False),
        ("exit({}, >= 128)", 9, True),
        ("ended({})", 256, True),
        ("!done({})", 256, True),
        ("started({})", 0, True),
        ("post_done({})", 0, True),
        ("post_err({})", 256, False),
        ("done({}) || exit({}, 1)", 256, True),
        ("done({}) && ended({})", 256, False),
    ],
)
def test_a_job_waits_for_another(condition: str, status: int, starts: bool) -> None:
    """It is not a candidate before the condition is true, and its reason says if it ever can be."""
    story = a_cluster()
    first = story.submit(a_job())
    second = story.submit(a_job(dependency=condition.replace("{}", str(first))))
    story.plan()
    if not condition.startswith("!"):
        assert story.state(second) is S.PEND
        assert why(story, second) == [WAITS]
        assert not len(story.cluster.pending)
    ended(story, first, status=status)
    story.plan()
    assert (story.state(second) is S.STAGING) == starts
    assert starts or why(story, second) == [NEVER]


def test_array_to_array_pairs_elements() -> None:
    """Element i is released when the parent's i is done, and no other."""
    story = a_cluster(a_host("n1", 3))
    parent = story.submit(a_job(array="1-3"))
    child = story.submit(a_job(array="1-3", dependency=f"done({parent}[*])"))
    story.plan()
    ended(story, parent, 2)
    assert story.array(child).pending.text() == "2"
    story.plan()
    assert story.state(child, 2) is S.STAGING
    ended(story, parent, 1, status=256)
    ended(story, parent, 3)
    assert [why(story, child, index) for index in (1,)] == [[NEVER]]
    assert story.array(child).pending.text() == "3"
    assert story.array(child).unmet.text() == "1"


def test_a_million_elements_wait_for_a_million() -> None:
    """Elements are released as ranges: no object for an element, no list of them."""
    story = a_cluster()
    parent = story.submit(a_job(array="1-1000000"))
    child = story.submit(a_job(array="1-1000000", dependency=f'ended({parent}[*]) && !done("{parent}[7]")'))
    story.kill(parent, "1-400000")
    assert story.array(child).pending.text() == "1-400000"
    story.kill(parent)
    assert story.array(child).pending.text() == "1-1000000"


def test_an_array_waits_as_a_whole() -> None:
    """On a whole array, on one element of it, on counts of its elements."""
    story = a_cluster(a_host("n1", 2))
    parent = story.submit(a_job(array="1-4"))
    waits = {
        "all": story.submit(a_job(array="1-2", dependency=f"ended({parent})")),
        "second": story.submit(a_job(dependency=f"done({parent}[2])")),
        "half": story.submit(a_job(dependency=f"numdone({parent}, >= 2)")),
        "every": story.submit(a_job(dependency=f"numended({parent}, *)")),
        "running": story.submit(a_job(dependency=f"numrun({parent}, 2)")),
        "failed": story.submit(a_job(dependency=f"exit({parent}, 3)")),
    }
    released: list[str] = []

    def new() -> list[str]:
        names = {job: name for name, job in waits.items()}
        found = [names[event.job] for event in story.events if isinstance(event, DependencyMet)]
        fresh = found[len(released) :]
        released.extend(fresh)
        return sorted(fresh)

    story.plan()
    assert new() == ["running"]
    story.kill(waits["running"])
    ended(story, parent, 1)
    assert new() == []
    ended(story, parent, 2)
    assert new() == ["half", "second"]
    story.kill(waits["half"])
    story.kill(waits["second"])
    story.plan()
    ended(story, parent, 3)
    ended(story, parent, 4, status=768)
    assert new() == ["all", "every"]
    assert why(story, waits["failed"]) == [NEVER]


def test_names_are_those_of_the_submitter() -> None:
    """All of several jobs of one name must have ended; another user's are ignored; a prefix matches many."""
    story = a_cluster()
    first, second = story.submit(a_job(name="step")), story.submit(a_job(name="step.2"))
    story.submit(a_job(name="step", caller=BOB, hold=True))
    one = story.submit(a_job(dependency='done("step")'))
    both = story.submit(a_job(dependency="done(step*)"))
    third = story.submit(a_job(name="step"))
    all_three = story.submit(a_job(dependency="done('step*')"))
    story.plan()
    for job in (first, second):
        ended(story, job)
    assert [story.job(job).may_start for job in (one, both, all_three)] == [True, True, False]
    ended(story, third)
    assert story.job(all_three).may_start
    with pytest.raises(Refused, match="No matching job found"):
        story.submit(a_job(dependency="done(stop)"))


def test_a_job_without_a_name_has_that_of_its_command() -> None:
    """As lists show it, of arrays too; jobs submitted before and after the user's first look-up count alike."""
    story = a_cluster()
    plain, named = story.submit(a_job(command="sleep 60")), story.submit(a_job(command="sleep 60", name="nap"))
    array = story.submit(a_job(command="solve -x", array="1-2"))
    one = story.submit(a_job(dependency="done('sleep 60')"))
    element = story.submit(a_job(dependency="done('solve -x[2]')"))
    script = story.submit(a_job(command="#!/bin/sh\n# rest\nsleep 5\n"))
    both = story.submit(a_job(dependency="done('sleep*')"))
    story.plan()
    ended(story, plain)
    ended(story, array, 2)
    assert [story.job(job).may_start for job in (one, element, both)] == [True, True, False]
    ended(story, script)
    assert story.job(both).may_start
    story.do(c.ModifyJob(story.target(named), a_job(name="mesh"), ANN, "", frozenset({"name"})))
    with pytest.raises(Refused, match="No matching job found"):
        story.submit(a_job(dependency="done('nap')"))


def test_many_distinct_commands_are_found_by_their_beginning() -> None:
    """Those of one look-up, and single ones after it; a forgotten one is found no more."""
    names = Names()
    jobs = [(pack_text("", f"run {number}"), number) for number in range(1, 101)]
    assert names.find(1, "run 1", True, []) == []
    for text, number in jobs:
        names.add(1, text, number)
    names.remove(1, *jobs[11])
    assert names.find(1, "run 1", True, []) == [1, 10, 11, *range(13, 20), 100]
    names.add(1, pack_text("", "run 1b"), 200)
    names.remove(1, *jobs[0])
    assert names.find(1, "run 1", True, [], most=20) == [10, 11, *range(13, 20), 100, 200]


def test_the_last_of_a_name() -> None:
    """JOB_DEP_LAST_SUB: only the newest job of that name matters."""
    story = a_cluster(policy=Policy(requires_last_dependency=True))
    story.submit(a_job(name="step", hold=True))
    last = story.submit(a_job(name="step"))
    waits = story.submit(a_job(dependency="done(step)"))
    story.plan()
    ended(story, last)
    assert story.job(waits).may_start


@pytest.mark.parametrize(
    ("condition", "sentence"),
    [
        ("done(999)", "Job <999>: No matching job found"),
        ("done({array}[7])", r"Job <2\[7\]>: No matching job found"),
        ("done({plain}[1])", "Job <1> is not a job array"),
        ("numdone({plain}, 1)", "Job <1> is not a job array"),
        ("done({array}[*])", "is no array"),
        ("done(", "Dependency condition syntax error at character 6: expected a job id or a job name, found the end"),
        ("done({plain}) and done({plain})", "at character 9: expected &&, || or the end"),
        ("external({plain}, 'two words')", 'expected one word, such as "half"'),
        ("external({plain})", "at character 11: expected ,, found"),
        ("rsv({plain}, 'x')", r"rsv\(\) at character 1 is not supported yet"),
    ],
)
def test_what_can_not_be_meant_is_refused(condition: str, sentence: str) -> None:
    """The refusal is one sentence, with the place."""
    story = a_cluster()
    plain, array = story.submit(a_job()), story.submit(a_job(array="1-3"))
    with pytest.raises(Refused, match=sentence):
        story.submit(a_job(dependency=condition.replace("{plain}", str(plain)).replace("{array}", str(array))))


def test_arrays_of_different_size_can_not_be_paired() -> None:
    """The sentence is LSF's."""
    story = a_cluster()
    parent = story.submit(a_job(array="1-3"))
    with pytest.raises(Refused, match="Dependent arrays do not have the same size"):
        story.submit(a_job(array="1-4", dependency=f"done({parent}[*])"))
    with pytest.raises(Refused, match="Dependent arrays do not have the same indices"):
        story.submit(a_job(array="2-4", dependency=f"done({parent}[*])"))


def test_a_forgotten_parent_is_remembered_for_who_waits() -> None:
    """It is remembered after a restart, too, and dropped with its last dependant."""
    story = a_cluster(policy=Policy(clean_period_s=100.0))
    parent, other = story.submit(a_job(array="1-2")), story.submit(a_job(hold=True))
    waits = story.submit(a_job(dependency=f"exit({parent}[2], 5) && done({other})"))
    story.plan()
    ended(story, parent, 1)
    ended(story, parent, 2, status=5 << 8)
    story.hear("n1", "n2")
    story.wait(200)
    assert parent not in story.cluster.jobs
    story.cluster = reborn(story.cluster)
    story.cluster.begin(story.now)
    assert not missing_parents(story.cluster)
    for name in ("n1", "n2"):
        story.join(a_host(name))
    story.do(c.ResumeJob(story.target(other), ANN))
    story.worklist.look_at_everything(story.cluster)
    story.plan()
    ended(story, other)
    assert story.job(waits).may_start
    assert not story.cluster.remembered
    with pytest.raises(Refused, match="No matching job found"):
        story.submit(a_job(dependency=f"done({parent})"))


def test_a_condition_that_was_true_once_is_forgotten() -> None:
    """The condition held while the parent ran; that it does not hold any more delays no job."""
    story = a_cluster(a_host("n1", 1))
    parent = story.submit(a_job(array="1-2"))
    waits = story.submit(a_job(dependency=f"numpend({parent}, 1)", hold=True))
    story.plan()
    ended(story, parent, 1)
    story.plan()
    story.do(c.ResumeJob(story.target(waits), ANN))
    assert story.job(waits).may_start


def test_orphans_end_when_they_are_told_to() -> None:
    """With -ti a chain of them ends, one after the other; without it they stay pending for ever."""
    story = a_cluster()
    parent = story.submit(a_job())
    child = story.submit(a_job(dependency=f"done({parent})", ends_orphan=True))
    grandchild = story.submit(a_job(array="1-2", dependency=f"done({child})", ends_orphan=True))
    patient = story.submit(a_job(dependency=f"done({child})"))
    story.plan()
    story.kill(parent)
    key = story.key(parent)
    story.finished("n1", key, 130 << 8)
    assert story.state(child) is S.EXIT
    assert story.array(grandchild).is_over
    assert why(story, patient) == [NEVER]
    reasons = {event.reason for event in story.events if isinstance(event, PendingEnded)}
    assert {reason.partition(":")[0] for reason in reasons} == {"TERM_ORPHAN_SYSTEM"}


def test_a_condition_is_changed_and_taken_away() -> None:
    """bmod -w and -wn; other changes leave it as it was."""
    story = a_cluster()
    held, other = story.submit(a_job(hold=True)), story.submit(a_job(hold=True))
    waits = story.submit(a_job(array="1-3", dependency=f"done({held})"))

    def change(dependency: str, *fields: str) -> None:
        job = a_job(array="1-3", dependency=dependency)
        story.do(c.ModifyJob(story.target(waits), job, ANN, "", frozenset(fields)))

    change("nonsense(", "name")
    assert list(story.cluster.dependants.conditions) == [waits]
    change(f"ended({other})", "dependency")
    story.kill(other)
    assert story.array(waits).pending.text() == "1-3"
    change(f"ended({held})", "dependency")
    assert not story.array(waits).pending
    change("", "dependency")
    assert story.array(waits).pending.text() == "1-3"
    assert not len(story.cluster.dependants)


def test_held_and_killed_elements_of_a_waiting_array() -> None:
    """bstop, bresume and bkill reach blocked elements like all others."""
    story = a_cluster()
    parent = story.submit(a_job(hold=True))
    waits = story.submit(a_job(array="1-6", dependency=f"ended({parent})"))
    story.do(c.StopJob(story.target(waits, "1-2"), ANN))
    story.kill(waits, "3")
    story.do(c.ResumeJob(story.target(waits, "1"), ANN))
    array = story.array(waits)
    assert (array.blocked.text(), array.held.text(), array.exited) == ("1,4-6", "2", 1)
    story.kill(parent)
    assert (array.pending.text(), array.held.text()) == ("1,4-6", "2")
    story.do(c.ResumeJob(story.target(waits), ANN))
    assert array.pending == Ranges.parse("1-2,4-6")


def test_a_begin_time_is_waited_for() -> None:
    """The tick at that time releases it; both begin time and condition must be met."""
    story = a_cluster()
    parent = story.submit(a_job())
    early = story.submit(a_job(begin_at=story.now + 50))
    both = story.submit(a_job(array="1-2", begin_at=story.now + 50, dependency=f"done({parent})"))
    assert why(story, early) == ["The job has a specified start time"]
    assert why(story, both, 1) == ["The job has a specified start time", WAITS]
    assert wake_at(story.cluster, story.now) == story.now + 50
    story.plan()
    ended(story, parent)
    assert not story.array(both).pending
    story.now += 50
    story.hear("n1", "n2")
    story.wait(0)
    story.plan()
    assert story.state(early) is S.STAGING
    assert story.state(both, 1) is S.STAGING


def test_a_job_that_waits_at_its_deadline_is_ended() -> None:
    """It would only be killed if it were started."""
    story = a_cluster(a_host("n1", 1))
    story.run(a_job())
    late = story.submit(a_job(terminate_at=story.now + 30))
    array = story.submit(a_job(array="1-3", terminate_at=story.now + 30, hold=True))
    story.plan()
    story.wait(31)
    assert story.state(late) is S.EXIT
    assert story.array(array).is_over
    end = story.job(late).end
    assert end is not None
    assert end.reason.startswith("TERM_DEADLINE")


def depend(story: Story, job: int, dependency: str) -> None:
    """bmod -w."""
    wanted = a_job(array="1-2" if isinstance(story.cluster.jobs[job], ArrayRecord) else "", dependency=dependency)
    story.do(c.ModifyJob(story.target(job), wanted, ANN, "", frozenset({"dependency"})))


@pytest.mark.parametrize(
    "condition", ["done(4)", "ended(3)", "done(4) && !done(1)", "done(1) && done(3)", "started(4) || done(3)"]
)
def test_nobody_waits_for_himself(condition: str) -> None:
    """Neither directly nor through others: 4 depends on 3, 3 on 2, and 2 is to depend on one of them."""
    story = a_cluster()
    story.submit(a_job(hold=True))
    second = story.submit(a_job(hold=True))
    third = story.submit(a_job(dependency=f"done({second})"))
    story.submit(a_job(dependency=f"done({third})"))
    with pytest.raises(Refused, match="Job <2> would wait for itself"):
        depend(story, second, condition)
    assert second not in story.cluster.dependants.conditions


@pytest.mark.parametrize("condition", ["done(3) || done(1)", "!started(3) && done(1)", "done(1)"])
def test_a_way_round_is_no_circle(condition: str) -> None:
    """Conditions that can become true without the job itself are accepted."""
    story = a_cluster()
    story.submit(a_job(hold=True))
    second = story.submit(a_job(hold=True))
    story.submit(a_job(dependency=f"done({second})"))
    depend(story, second, condition)
    assert second in story.cluster.dependants.conditions


def test_an_array_may_wait_for_one_of_its_elements() -> None:
    """The element has started already."""
    story = a_cluster(a_host("n1", 1))
    array = story.submit(a_job(array="1-2"))
    story.plan()
    with pytest.raises(Refused, match="would wait for itself"):
        depend(story, array, f"done({array})")
    depend(story, array, f"done({array}[1])")
    ended(story, array, 1)
    story.plan()
    assert story.state(array, 2) is S.STAGING


def test_the_jobs_of_a_group_are_counted() -> None:
    """Those of the groups below it, too, as bjgroup counts them; of an empty group no number is that of all."""
    story = a_cluster(a_host(slots=3))
    first, second = story.submit(a_job(job_group="/g")), story.submit(a_job(job_group="/g/below"))
    waiting = {
        text: story.submit(a_job(hold=False, dependency=text))
        for text in ('numdone("/g", 1)', "numended(/g/, *)", 'numexit("/g/below", > 0)', 'numrun("/g", >= 2)')
    }
    conditions = story.cluster.dependants.conditions
    assert [text_of(conditions[job]) for job in waiting.values()][:2] == ['numdone("/g", == 1)', 'numended("/g", *)']
    story.plan()
    released = [text for text, job in waiting.items() if job not in conditions]
    assert released == ['numrun("/g", >= 2)']
    ended(story, first)
    assert [text for text, job in waiting.items() if job not in conditions] == ['numdone("/g", 1)', *released]
    ended(story, second, status=256)
    assert not conditions
    assert not story.cluster.dependants.by_group


def test_a_group_that_is_not_there() -> None:
    """It may be the name of an array; else it is refused, as any name. An empty group releases nothing."""
    story = a_cluster()
    with pytest.raises(Refused, match="/x: No matching job found"):
        story.submit(a_job(dependency='numdone("/x", *)'))
    array = story.submit(a_job(array="1-2", name="/x"))
    dependent = story.submit(a_job(dependency='numdone("/x", *)'))
    assert text_of(story.cluster.dependants.conditions[dependent]) == f"numdone({array}, *)"
    story.do(c.SetJobGroup("/empty", None, ANN))
    waits = story.submit(a_job(dependency='numdone("/empty", *)'))
    assert waits in story.cluster.dependants.conditions


def posted(story: Story, job: int, text: str, indices: str = "", number: int = 0) -> None:
    """Post a message to a job, or to an element."""
    target = c.Target(job, Ranges.parse(indices) if indices else None)
    story.do(c.PostMessage(target, ANN, number, text, "", b""))


def test_a_job_waits_for_an_external_status() -> None:
    """lsf.md 5.5: the first word of message 0 (bstatus -d) is compared; a restart of the master forgets none."""
    story = a_cluster()
    first = story.submit(a_job())
    second = story.submit(a_job(dependency=f"external({first}, 'half')"))
    posted(story, first, "halfway there")
    posted(story, first, "half", number=1)
    assert (story.job(second).may_start, why(story, second)) == (False, [WAITS])
    third = story.submit(a_job(dependency=f'external({first}, "halfway")'))
    assert story.job(third).may_start, "it was posted before"
    posted(story, first, "half of it")
    assert story.job(second).may_start
    story.cluster = reborn(story.cluster)
    fourth = story.submit(a_job(dependency=f"external({first}, half)"))
    assert story.job(fourth).may_start


def test_an_external_status_that_an_ended_job_lacks() -> None:
    """It is not expected any more, and with -ti the dependant would end; one that is posted after all counts."""
    story = a_cluster(a_host("n1"))
    first = story.submit(a_job())
    waits = story.submit(a_job(dependency=f"external({first}, 'half')"))
    story.plan()
    ended(story, first)
    assert why(story, waits) == [NEVER]
    posted(story, first, "half")
    assert story.job(waits).may_start


def test_elements_wait_for_the_external_status_of_their_pairs() -> None:
    """`external("a[*]", ...)` by element; without an index that of the array as a whole."""
    story = a_cluster()
    array = story.submit(a_job(array="1-3"))
    pairs = story.submit(a_job(array="1-3", dependency=f"external({array}[*], half)"))
    whole = story.submit(a_job(dependency=f"external({array}, half)"))
    one = story.submit(a_job(dependency=f"external({array}[3], half)"))
    posted(story, array, "half", "2")
    record = story.cluster.jobs[pairs]
    assert isinstance(record, ArrayRecord)
    assert (list(record.pending), story.job(whole).may_start, story.job(one).may_start) == ([2], False, False)
    posted(story, array, "half")
    assert (list(record.pending), story.job(whole).may_start) == ([2], True)
    later = story.cluster.jobs[story.submit(a_job(array="1-3", dependency=f"external({array}[*], half)"))]
    assert isinstance(later, ArrayRecord)
    assert list(later.pending) == [2]
