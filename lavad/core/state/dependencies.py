"""Who waits for whom: from a job to the jobs whose conditions speak of it, by what of it matters to them.

A parent that changes in a way that matters to nobody costs one look-up. What changed is only noted here (``stirred``);
the conditions are evaluated once for each step, however many parents changed in it.
"""

from enum import Enum, auto
from itertools import islice

from lavad.core.language.dependency import ConditionKind, Expression, clauses_of
from lavad.core.model import FINAL, HOLDING, JobState

_STARTED = (HOLDING | FINAL) - {JobState.STAGING}


class DependencyKey(Enum):
    """What of a parent can change a condition."""

    END = auto()
    START = auto()
    ANY = auto()  # counts of elements in a state


_MATTERS = {
    ConditionKind.STARTED: DependencyKey.START,
    ConditionKind.NUMPEND: DependencyKey.ANY,
    ConditionKind.NUMRUN: DependencyKey.ANY,
    ConditionKind.NUMSTART: DependencyKey.ANY,
    ConditionKind.NUMHOLD: DependencyKey.ANY,
}


class Dependants:
    """``stirred`` maps a dependent job to the elements of it to look at again; None: all of it."""

    def __init__(self) -> None:
        self.conditions: dict[int, Expression] = {}
        self.stirred: dict[int, set[int] | None] = {}
        self._watchers: dict[
            int, dict[DependencyKey, dict[int, bool]]
        ] = {}  # parent -> dependant -> element by element

    def __len__(self) -> int:
        return len(self.conditions)

    def is_parent(self, job: int) -> bool:
        """Does anybody still wait for this job?"""
        return job in self._watchers

    def parents(self) -> list[int]:
        """All jobs that somebody waits for."""
        return list(self._watchers)

    def of(self, parent: int) -> list[int]:
        """The jobs whose conditions speak of this one."""
        return sorted({job for jobs in self._watchers.get(parent, {}).values() for job in jobs})

    def add(self, job: int, condition: Expression) -> None:
        """This job waits until the condition holds; it is looked at once in any case."""
        self.conditions[job] = condition
        self.stirred[job] = None
        for clause in clauses_of(condition):
            watchers = self._watchers.setdefault(clause.ref.job, {}).setdefault(
                _MATTERS.get(clause.kind, DependencyKey.END), {}
            )
            watchers[job] = clause.ref.each and watchers.get(job, True)

    def remove(self, job: int) -> list[int]:
        """The job does not wait any more: the parents that nobody waits for now."""
        condition = self.conditions.pop(job, None)
        self.stirred.pop(job, None)
        if condition is None:
            return []
        left = []
        for parent in {clause.ref.job for clause in clauses_of(condition)}:
            watchers = self._watchers[parent]
            for matter in [matter for matter, jobs in watchers.items() if jobs.pop(job, None) is not None]:
                if not watchers[matter]:
                    del watchers[matter]
            if not watchers:
                del self._watchers[parent]
                left.append(parent)
        return left

    def note(self, parent: int, index: int, old: JobState, new: JobState) -> None:
        """A job or an element (``index`` 0: a plain job, or many elements at once) went from one state to another."""
        watchers = self._watchers.get(parent)
        if watchers is None:
            return
        self._stir(watchers.get(DependencyKey.ANY), index)
        if (new in FINAL) is not (old in FINAL):
            self._stir(watchers.get(DependencyKey.END), index)
        if (new in _STARTED) is not (old in _STARTED):
            self._stir(watchers.get(DependencyKey.START), index)

    def _stir(self, watchers: dict[int, bool] | None, index: int) -> None:
        for job, by_element in (watchers or {}).items():
            noted = self.stirred.setdefault(job, set())
            if not (by_element and index):
                self.stirred[job] = None
            elif noted is not None:
                noted.add(index)

    def stir_all(self) -> None:
        """After a restart nobody knows what was noted: look at everything once."""
        self.stirred = dict.fromkeys(self.conditions)

    def take(self, most: int) -> list[tuple[int, set[int] | None]]:
        """Up to so many of those to look at; the others stay noted."""
        if not self.stirred:
            return []
        taken = list(islice(self.stirred.items(), most))
        for job, _ in taken:
            del self.stirred[job]
        return taken
