"""Replay of all jobs that can start: those that never could, even alone, are left out.

A job that can't start may delay others (under strict order none passes it), so the jobs left at the end are tried alone
first; only if each of them could start alone are all of them left out.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from lavad.core.model import HostFacts, Shared
from lavad.core.model.policy import Policy
from lavad.simulator.replay.fast_replay import BriefReplay
from lavad.simulator.replay.replay import STUCK_NAMED_MAX, Replay, StuckError
from lavad.simulator.replay.report import Ran
from lavad.simulator.replay.workload import Submission


class NothingLeftError(Exception):
    """Refusal: no job of the history could be replayed."""


@dataclass(slots=True)
class Possible:
    """Replay with the interface of ``Replay``. ``refused`` counts jobs by reason, ``notes`` lists other omissions."""

    submissions: Sequence[Submission]
    hosts: Sequence[HostFacts]
    policy: Policy
    is_brief: bool
    refused: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    def run(self) -> list[Ran]:
        """Return what ran, in the order of submission; empty if nothing could run."""
        left, left_out = self.submissions, _LeftOut()
        while True:
            replay = self._replay(left)
            try:
                ran = replay.run()
            except StuckError as error:
                left = self._without(left, error, left_out)
                continue
            self.refused = replay.refused
            self.notes = left_out.lines()
            return ran

    def _replay(self, submissions: Sequence[Submission]) -> Replay:
        kind = BriefReplay if self.is_brief else Replay
        return kind(submissions, self.hosts, self.policy)

    def _without(self, submissions: Sequence[Submission], error: StuckError, left_out: "_LeftOut") -> list[Submission]:
        """Leave out the stuck jobs that are stuck alone, or else all stuck jobs."""
        alone = self._stuck_alone([submissions[place] for place in error.places])
        gone: set[int] = set()
        for place in error.places:
            one = submissions[place]
            why = alone.get(one.command.job.shared) if alone else error
            if why is not None:
                gone.add(place)
                left_out.add(one, why)
        if not gone:
            raise error
        return [one for place, one in enumerate(submissions) if place not in gone]

    def _stuck_alone(self, submissions: Sequence[Submission]) -> dict[Shared, StuckError]:
        """Return the error of each class of jobs that can't start on the empty machine."""
        kinds: dict[Shared, Submission] = {}
        for one in submissions:
            kinds.setdefault(one.command.job.shared, one)
        found = {}
        for kind, one in kinds.items():
            try:
                self._replay([one]).run()
            except StuckError as error:
                found[kind] = error
        return found


class _LeftOut:
    """Number of jobs left out, and the first of them with their reasons."""

    def __init__(self) -> None:
        self._count = 0
        self._told: list[str] = []

    def add(self, one: Submission, why: StuckError) -> None:
        """Add a job or an array that can never start."""
        self._count += len(one.runs)
        if len(self._told) < STUCK_NAMED_MAX:
            slots = one.command.job.shared.request.slots_min
            self._told.append(f"job {one.number}, of {slots} slots: {why.reason}")

    def lines(self) -> list[str]:
        """Return one line, or none if nothing was left out."""
        if not self._count:
            return []
        jobs = "1 job" if self._count == 1 else f"{self._count} jobs"
        more = [f"and {self._count - len(self._told)} more"] if len(self._told) < self._count else []
        named = "; ".join(self._told + more)
        return [f"left out {jobs} that can never start on this machine under this policy: {named}"]
