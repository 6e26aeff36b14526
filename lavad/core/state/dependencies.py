"""Index of job dependencies: from a parent job to the jobs whose conditions refer to it, by the kind of change that
matters.

A change without dependants costs one look-up. Changes are only noted here (``dependents_to_check``); conditions are
evaluated once for each step, however many parents changed in it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto

from lavad.core.language.dependency import ConditionKind, Expression, clauses_of
from lavad.core.model import FINAL, HOLDING, JobState

_STARTED = (HOLDING | FINAL) - {JobState.STAGING}


class DependencyKey(Enum):
    """Kind of change of a parent that can change a condition."""

    END = auto()
    START = auto()
    ANY = auto()  # counts of elements in a state, and external statuses


_MATTERS = {
    ConditionKind.STARTED: DependencyKey.START,
    ConditionKind.NUMPEND: DependencyKey.ANY,
    ConditionKind.NUMRUN: DependencyKey.ANY,
    ConditionKind.NUMSTART: DependencyKey.ANY,
    ConditionKind.NUMHOLD: DependencyKey.ANY,
    ConditionKind.EXTERNAL: DependencyKey.ANY,
}


@dataclass(slots=True)
class Budget:
    """Room of one step for evaluations; conditions with more than ``largest`` references are left to another step."""

    conditions: int
    references: int  # in all of them
    largest: float
    is_used: bool = False

    def take(self, size: int) -> bool:
        """Take the room of a condition with so many references; False if there is not so much. The first has it."""
        if not self.conditions or (self.is_used and size > self.references):
            return False
        self.conditions -= 1
        self.references -= size
        self.is_used = True
        return True


class Dependants:
    """Pending dependent jobs. ``dependents_to_check`` maps a job to the elements to evaluate again; None: all."""

    def __init__(self) -> None:
        self.conditions: dict[int, Expression] = {}
        self.dependents_to_check: dict[int, set[int] | None] = {}
        self._watchers: dict[
            int, dict[DependencyKey, dict[int, bool]]
        ] = {}  # parent -> dependant -> True if element by element
        self.by_group: dict[str, set[int]] = {}  # job group -> dependants on counts of its jobs
        self._sizes: dict[int, tuple[int, int]] = {}  # dependant -> uid, references to parents
        self._references: dict[int, int] = {}  # uid -> those of all dependants of the user

    def __len__(self) -> int:
        return len(self.conditions)

    def is_parent(self, job: int) -> bool:
        """True if a pending job depends on this one."""
        return job in self._watchers

    def parents(self) -> list[int]:
        """All jobs that pending jobs depend on."""
        return list(self._watchers)

    def of(self, parent: int) -> list[int]:
        """Jobs whose conditions refer to this one."""
        return sorted({job for jobs in self._watchers.get(parent, {}).values() for job in jobs})

    def references(self, uid: int) -> int:
        """Number of references to parents in the conditions of all dependants of a user."""
        return self._references.get(uid, 0)

    def size(self, job: int) -> int:
        """Number of references to parents in the condition of a dependant; 0 for any other job."""
        return self._sizes.get(job, (0, 0))[1]

    def add(self, job: int, uid: int, condition: Expression) -> None:
        """Add a pending job with its owner and condition, to be evaluated once in any case."""
        self.conditions[job] = condition
        self.dependents_to_check[job] = None
        clauses = list(clauses_of(condition))
        self._sizes[job] = uid, len(clauses)
        self._references[uid] = self.references(uid) + len(clauses)
        for clause in clauses:
            if clause.ref.group:
                self.by_group.setdefault(clause.ref.group, set()).add(job)
                continue
            watchers = self._watchers.setdefault(clause.ref.job, {}).setdefault(
                _MATTERS.get(clause.kind, DependencyKey.END), {}
            )
            watchers[job] = clause.ref.each and watchers.get(job, True)

    def remove(self, job: int) -> list[int]:
        """Remove a dependant; return the parents that have none left."""
        condition = self.conditions.pop(job, None)
        self.dependents_to_check.pop(job, None)
        if condition is None:
            return []
        uid, size = self._sizes.pop(job)
        self._references[uid] -= size
        if not self._references[uid]:
            del self._references[uid]
        left = []
        for group in {clause.ref.group for clause in clauses_of(condition) if clause.ref.group}:
            self.by_group[group].discard(job)
            if not self.by_group[group]:
                del self.by_group[group]
        for parent in {clause.ref.job for clause in clauses_of(condition) if clause.ref.job}:
            watchers = self._watchers[parent]
            for matter in [matter for matter, jobs in watchers.items() if jobs.pop(job, None) is not None]:
                if not watchers[matter]:
                    del watchers[matter]
            if not watchers:
                del self._watchers[parent]
                left.append(parent)
        return left

    def note(self, parent: int, index: int, old: JobState, new: JobState) -> None:
        """Note that a job or an element (``index`` 0: a plain job, or many elements) went from one state to another."""
        watchers = self._watchers.get(parent)
        if watchers is None:
            return
        self._stir(watchers.get(DependencyKey.ANY), index)
        if (new in FINAL) is not (old in FINAL):
            self._stir(watchers.get(DependencyKey.END), index)
        if (new in _STARTED) is not (old in _STARTED):
            self._stir(watchers.get(DependencyKey.START), index)

    def note_post(self, parent: int, index: int) -> None:
        """Note that the post-execution commands of an ended job or element have ended."""
        self._stir(self._watchers.get(parent, {}).get(DependencyKey.END), index)

    def note_status(self, parent: int, index: int) -> None:
        """Note that the external status of a job or element was set."""
        self._stir(self._watchers.get(parent, {}).get(DependencyKey.ANY), index)

    def note_groups(self, changed: Iterable[str]) -> None:
        """Note that numbers of jobs of these groups, or of groups below them, have changed."""
        for group in changed:
            for job in self.by_group.get(group, ()):
                self.dependents_to_check[job] = None

    def _stir(self, watchers: dict[int, bool] | None, index: int) -> None:
        for job, by_element in (watchers or {}).items():
            noted = self.dependents_to_check.setdefault(job, set())
            if not (by_element and index):
                self.dependents_to_check[job] = None
            elif noted is not None:
                noted.add(index)

    def stir_all(self) -> None:
        """Mark all conditions for evaluation: after a restart earlier notes are lost."""
        self.dependents_to_check = dict.fromkeys(self.conditions)

    def take(self, budget: Budget) -> list[tuple[int, set[int] | None]]:
        """Take jobs to evaluate, as far as the budget allows; the others stay noted."""
        taken = []
        for job, indices in self.dependents_to_check.items():
            size = self.size(job)
            if size > budget.largest:
                continue
            if not budget.take(size):
                break
            taken.append((job, indices))
        for job, _ in taken:
            del self.dependents_to_check[job]
        return taken
