"""The -w language: printed conditions are parsed back, and evaluation agrees with a slow obvious one."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lavad.core import commands as c
from lavad.core.cluster import Cluster
from lavad.core.decide.jobs.dependencies import evaluated, is_never, verdict
from lavad.core.events import AttemptDispatched, DependencyMet
from lavad.core.language.dependency import And, Clause, ConditionKind, Expression, Not, Or, Ref, parse, text_of
from lavad.core.model import FINAL, JobState
from lavad.core.model.ranges import Ranges
from lavad.core.model.reasons import Refused
from lavad.core.state.attempts import exit_code
from lavad.core.state.records import ArrayRecord
from tests.builders import ROOT, Story, a_cluster, a_host, a_job

S = JobState
COUNTS = [kind for kind in ConditionKind if kind.is_count]
SINGLE = [kind for kind in ConditionKind if not kind.is_count and kind is not ConditionKind.EXTERNAL]
OPERATORS = (">", ">=", "<", "<=", "==", "!=")
INDICES = (1, 2, 3, 4)
NAMES = st.text("ab _.-/:", min_size=1, max_size=6).filter(lambda name: name == name.strip() and name.strip())


def refs(jobs: st.SearchStrategy[int], with_names: bool, pairs: bool) -> st.SearchStrategy[Ref]:
    """References to jobs or, where there may be some, to names."""
    places = st.sampled_from([{}, {"index": 1}, {"index": 3}, *([{"each": True}] if pairs else [])])
    by_id = st.builds(lambda job, place: Ref(job=job, **place), jobs, places)
    by_name = st.builds(
        lambda name, prefix, place: Ref(name=name, is_prefix=prefix, **place), NAMES, st.booleans(), places
    )
    return by_id | by_name if with_names else by_id


def clauses(ref: st.SearchStrategy[Ref], whole: st.SearchStrategy[Ref]) -> st.SearchStrategy[Clause]:
    """Single conditions."""
    exits = st.builds(Clause, st.just(ConditionKind.EXIT), ref, st.sampled_from(OPERATORS), st.integers(0, 4))
    counts = st.builds(Clause, st.sampled_from(COUNTS), whole, st.sampled_from(OPERATORS), st.integers(0, 5))
    every = st.builds(lambda kind, one: Clause(kind, one, "==", 0, True), st.sampled_from(COUNTS), whole)
    words = st.text("ab-/.", min_size=1, max_size=4)
    statuses = st.builds(lambda one, word: Clause(ConditionKind.EXTERNAL, one, word=word), ref, words)
    return st.builds(Clause, st.sampled_from(SINGLE), ref) | exits | counts | every | statuses


def expressions(leaf: st.SearchStrategy[Clause]) -> st.SearchStrategy[Expression]:
    """Conditions of all depths."""

    def deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        several = st.lists(inner, min_size=2, max_size=3).map(tuple)
        return st.builds(Not, inner) | st.builds(And, several) | st.builds(Or, several)

    return st.recursive(leaf, deeper, max_leaves=6)


ANY_JOB = st.integers(1, 10**9)
ANYTHING = expressions(clauses(refs(ANY_JOB, True, True), st.builds(lambda job: Ref(job=job), ANY_JOB)))


@given(ANYTHING)
def test_what_is_printed_is_read_back(expression: Expression) -> None:
    """The printer and the parser agree on every expression; so conditions may be stored as text."""
    assert parse(text_of(expression)) == expression


@given(st.text(st.sampled_from("done(exit)&|!123[*]\"' ,<>=ab"), max_size=40))
def test_any_text_is_read_or_refused_with_a_place(text: str) -> None:
    """One sentence that names a character; never another error."""
    sentence = _refusal_of(text)
    assert "at character" in sentence if sentence else parse(text_of(parse(text))) == parse(text)


def _refusal_of(text: str) -> str:
    try:
        parse(text)
    except Refused as refusal:
        return str(refusal)
    return ""


# -- the twin: it evaluates everything, each time
# ------------------------------------------------------------------------


def slow(cluster: Cluster, expression: Expression, index: int) -> bool:
    """True if the condition holds now."""
    match expression:
        case Not(part):
            return not slow(cluster, part, index)
        case And(parts):
            return all(slow(cluster, part, index) for part in parts)
        case Or(parts):
            return any(slow(cluster, part, index) for part in parts)
        case Clause(kind, ref):
            states = _states(cluster, ref, index)
            if kind.is_count:
                counted = sum(kind.value in _COUNTED_AS.get(state, ()) for state, _ in states)
                return _compare(expression.operator, counted, len(states) if expression.every else expression.number)
            return all(_meets(expression, state, code) for state, code in states)


_COUNTED_AS = {
    S.PEND: ("numpend",),
    S.PSUSP: ("numhold",),
    S.STAGING: ("numrun",),
    S.RUN: ("numrun", "numstart"),
    S.USUSP: ("numstart",),
    S.DONE: ("numdone", "numended"),
    S.EXIT: ("numexit", "numended"),
}


def _states(cluster: Cluster, ref: Ref, index: int) -> list[tuple[JobState, int]]:
    record = cluster.jobs[ref.job]
    if not isinstance(record, ArrayRecord):
        return [(record.state, exit_code(record.end.status) if record.end else 0)]
    chosen = [index if ref.each else ref.index] if ref.each or ref.index else list(record.indices)
    found = []
    for one in chosen:
        job, state = cluster.element(record.id, one), record.state_of(one)
        assert state is not None
        found.append((state, exit_code(job.end.status) if job is not None and job.end is not None else 0))
    return found


def _meets(clause: Clause, state: JobState, code: int) -> bool:
    match clause.kind:
        case ConditionKind.DONE:
            return state is S.DONE
        case ConditionKind.EXIT:
            return state is S.EXIT and (not clause.operator or _compare(clause.operator, code, clause.number))
        case ConditionKind.STARTED:
            return state not in (S.PEND, S.PSUSP, S.STAGING)
        case ConditionKind.POST_ERR | ConditionKind.EXTERNAL:
            return False
        case _:
            return state in FINAL


def _compare(operator: str, left: int, right: int) -> bool:
    below, equal = left < right, left == right
    return {">": not below and not equal, ">=": not below, "<": below, "<=": below or equal, "==": equal}.get(
        operator, not equal
    )


PLAIN, ARRAY = 1, 2
PARENTS = expressions(
    clauses(
        st.sampled_from([Ref(job=PLAIN), *[Ref(job=ARRAY, **place) for place in ({}, {"index": 2}, {"each": True})]]),
        st.just(Ref(job=ARRAY)),
    )
)


class Life:
    """A plain job and an array, and jobs dependent on them, at random."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.story = a_cluster(a_host("n1", 3))
        for parent in (a_job(), a_job(array="1-4")):
            self.story.submit(parent)
        self.held = {
            number: data.draw(PARENTS, label=f"condition {number}") for number in range(data.draw(st.integers(1, 3)))
        }
        self.waits: dict[int, Expression] = {}
        self.was_true: set[tuple[int, int]] = set()

    def submit(self, number: int) -> None:
        """Submit one more dependent job."""
        text = text_of(self.held[number])
        job = self.story.submit(a_job(array="1-4", dependency=text, hold=self.data.draw(st.booleans()), queue="idle"))
        self.waits[job] = self.held[number]

    def happens(self) -> None:
        """Something happens to the parents."""
        story, draw = self.story, self.data.draw
        target = story.target(*draw(st.sampled_from([(PLAIN, ""), (ARRAY, ""), (ARRAY, "2"), (ARRAY, "1-3")])))
        deed = draw(st.sampled_from(["plan", "report", "report", "report", "stop", "resume", "kill"]))
        try:
            if deed == "plan":
                story.plan()
            elif deed == "report":
                self.report()
            else:
                kind = {"stop": c.StopJob, "resume": c.ResumeJob, "kill": c.KillJob}[deed]
                story.do(kind(target, ROOT))  # type: ignore[operator]
        except Refused:
            return

    def report(self) -> None:
        """An attempt starts or ends."""
        story = self.story
        if story.cluster.attempts:
            key = self.data.draw(st.sampled_from(sorted(story.cluster.attempts)))
            attempt = story.cluster.attempts[key]
            if attempt.started_at:
                story.finished("n1", key, self.data.draw(st.sampled_from([0, 256, 512, 9])))
            else:
                story.started("n1", key)

    def check(self) -> None:
        """Exactly the conditions that held are released; for one element and for all at once alike."""
        cluster = self.story.cluster
        for job, condition in self.waits.items():
            array = self.story.array(job)
            true = [index for index in INDICES if slow(cluster, condition, index)]
            assert [index for index in INDICES if verdict(cluster, condition, index).holds] == true
            met, lost = evaluated(cluster, condition, Ranges([range(1, 5)]))
            assert (list(met), list(lost)) == (true, [i for i in INDICES if is_never(cluster, condition, i)])
            self.was_true |= {(job, index) for index in true}
            released = {index for index in INDICES if index not in array.unmet}
            assert released - set(array.killed) == {index for index in INDICES if (job, index) in self.was_true}
            finals = {index: verdict(cluster, condition, index) for index in INDICES}
            self.finals.setdefault(job, {}).update({i: v.holds for i, v in finals.items() if v.is_final})
            assert all(finals[index].holds == holds for index, holds in self.finals[job].items())

    finals: dict[int, dict[int, bool]]


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.data())
def test_conditions_hold_when_they_are_read_slowly(data: st.DataObject) -> None:
    """Over random histories: index, columns and single verdicts agree with the twin; final verdicts stay."""
    life = Life(data)
    life.finals = {}
    for number in life.held:
        life.submit(number)
        life.check()
    for _ in range(data.draw(st.integers(0, 12))):
        life.happens()
        life.check()
    _starts_only_what_was_true(life.story, life)


def _starts_only_what_was_true(story: Story, life: Life) -> None:
    met: set[tuple[int, int]] = set()
    for event in story.events:
        if isinstance(event, DependencyMet):
            met |= {(event.job, index) for index in event.indices}
        elif isinstance(event, AttemptDispatched) and event.key.job in life.waits:
            assert (event.key.job, event.key.index) in met
