"""Recorder of LSF's logs: reads what the database has beyond the position, a page at a time, and tells it in the files.

An end is told in lsb.acct when all its hosts have released it and so have told what they used, or after a while. An
array of a million elements that is killed is told in parts.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from google.protobuf.message import DecodeError
from sqlalchemy import Connection, Engine, exists, select, tuple_

from lavad.core.model.ranges import Ranges
from lavad.store import schema
from lavad.store.lsf_logs import event_records, job_records
from lavad.store.lsf_logs.event_records import OF_ELEMENTS, Told
from lavad.store.lsf_logs.job_records import Submission
from lavad.store.lsf_logs.log_files import LogFiles
from lavad.store.reading.accounts import Ended, ended_waiting, read_attempts
from lavad.store.reading.history import ENDS_IN_QUEUE
from lavad.store.reading.restore import SharedTexts
from lavad.store.rows import values as v
from protos.jobs_pb2 import JobSpec

log = logging.getLogger(__name__)

PAGE = 500  # rows of the history in one turn
ELEMENTS = 2000  # of an array in one turn
HELD_S = 600.0  # the longest time that an end waits for the usage of its hosts
HELD_EVERY_S = 1.0
_KEPT = 4096  # submissions
_TEXTS_KEPT = 10_000
_KEYS_AT_ONCE = 200
CHANGING = ("submitted", "modified", "switched")  # kinds of history rows after which a submission is read again

events, specs, arrays = schema.job_events.c, schema.specs.c, schema.arrays.c
jobs, parts = schema.jobs.c, schema.parts.c
allocations, hosts = schema.allocations.c, schema.hosts.c
Key = tuple[int, int, int]


class Recorder:
    """Teller of one database in one directory."""

    def __init__(
        self,
        engine: Engine,
        files: LogFiles,
        is_short: bool,
        factors: dict[str, float],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._engine = engine
        self._files = files
        self._is_short = is_short
        self._factors_of_models = factors
        self._factors: dict[str, float] = {}
        self._submissions: OrderedDict[int, Submission] = OrderedDict()
        self._texts = SharedTexts()
        self._looked_at = 0.0

    def turn(self) -> bool:
        """Tell the next page; return True if there may be more.

        Raises:
            CannotWrite: the files can't be written now; nothing counts as told.
            SQLAlchemyError: the database can't be read now.
        """
        position = self._files.position
        with self._engine.begin() as connection:
            rows = _read(connection, position.seq)
            page = _Page(self, connection, position.within)
            self._read_submissions(connection, rows)
            for row in rows:
                page.tell(row)
                if page.is_full:
                    break
            self._tell_ends(connection, page)
        if page.acct or page.events or page.held_changed:
            self._files.append(b"".join(page.acct), b"".join(page.events))
            self._take(page)
            self._files.save()
            self._files.switch(self._clock())
        else:
            self._take(page)
        return len(rows) == PAGE or page.is_full

    def _take(self, page: "_Page") -> None:
        position = self._files.position
        position.seq, position.within = max(position.seq, page.seq), page.within
        position.held, position.jobs = page.held, position.jobs + page.jobs

    def _tell_ends(self, connection: Connection, page: "_Page") -> None:
        """Tell the ended attempts that no host holds any more."""
        now = self._clock()
        page.held = [*self._files.position.held, *page.ended]
        if not page.held or (not page.ended and now - self._looked_at < HELD_EVERY_S):
            return
        self._looked_at = now
        held = {(int(job), int(index), int(attempt)): at for job, index, attempt, at in page.held}
        unreleased = _unreleased(connection, list(held))
        due = [key for key, at in held.items() if key not in unreleased or now - at > HELD_S]
        found = read_attempts(connection, due)
        for key in due:
            if key in found:
                page.finish(found[key])
        page.held = [[*key, at] for key, at in held.items() if key in unreleased and now - at <= HELD_S]
        page.held_changed = page.held_changed or bool(due)

    # -- what records need -------------------------------------------------------------------------------------------

    def submission(self, connection: Connection, job: int, index: int = 0) -> Submission | None:
        """Return a submission, or what an element has instead; None if the database has it no more."""
        if job not in self._submissions:
            self._keep_submissions(connection, [job])
        found = self._submissions.get(job)
        return self._own(connection, found, index) if index and found is not None and found.has_parts else found

    def _own(self, connection: Connection, one: Submission, index: int) -> Submission:
        """Return the submission as an element has it that was changed by itself."""
        is_its = (jobs.job == one.job, jobs.idx == index, parts.job == jobs.job, parts.part == jobs.part)
        row = connection.execute(select(parts.shared, parts.words, parts.spec).where(*is_its)).first()
        if row is None:
            return one
        shared, spec = self._texts.decode(row.shared), _spec_of(one.job, row.spec)
        return replace(one, shared=shared, words=row.words, spec=spec)

    def _read_submissions(self, connection: Connection, rows: Iterable[Any]) -> None:
        """Read those of a page that are not known or may have been changed, in few statements."""
        named = {row.job for row in rows if row.job and (row.kind in CHANGING or row.job not in self._submissions)}
        for job in named:
            self._submissions.pop(job, None)
        wanted = sorted(named)
        for start in range(0, len(wanted), _KEYS_AT_ONCE):
            self._keep_submissions(connection, wanted[start : start + _KEYS_AT_ONCE])

    def _keep_submissions(self, connection: Connection, ids: Sequence[int]) -> None:
        has_parts = exists().where(parts.job == specs.job).label("has_parts")
        query = select(specs.job, specs.submitted_at, specs.shared, specs.words, specs.spec, arrays.indices, has_parts)
        query = query.select_from(schema.specs).outerjoin(schema.arrays, arrays.job == specs.job)
        for row in connection.execute(query.where(specs.job.in_(ids))):
            if len(self._texts) >= _TEXTS_KEPT:
                self._texts = SharedTexts()
            shared = self._texts.decode(row.shared)
            spec = _spec_of(row.job, row.spec)
            self._submissions[row.job] = Submission(
                row.job, row.submitted_at, shared, row.words, spec, row.indices or "", bool(row.has_parts)
            )
        while len(self._submissions) > _KEPT:
            self._submissions.popitem(last=False)

    def factor_of(self, host: str, connection: Connection) -> float:
        """Return the CPU factor of a host; 1 of an unknown one."""
        known = self._factors.get(host)
        if known is None:
            row = connection.execute(select(hosts.facts).where(hosts.name == host)).first()
            if row is None:
                return 1.0
            facts = v.decode_facts(row.facts)
            known = self._factors[host] = self._factors_of_models.get(facts.model, facts.cpu_factor)
        return known

    @property
    def is_short(self) -> bool:
        """True if lists of hosts are shortened."""
        return self._is_short


class _Page:
    """Records of one turn."""

    def __init__(self, recorder: Recorder, connection: Connection, within: int) -> None:
        self._recorder = recorder
        self._connection = connection
        self._factor = partial(recorder.factor_of, connection=connection)
        self.seq, self.within = 0, within
        self.acct: list[bytes] = []
        self.events: list[bytes] = []
        self.ended: list[list[float]] = []
        self.held: list[list[float]] = []
        self.held_changed = False
        self.jobs = 0
        self.is_full = False

    def tell(self, row: Any) -> None:
        """Tell a row of the history, or the next elements of it."""
        if row.job == 0:
            record = event_records.control(row.kind, row.at, row.detail)
            self.events += [record] if record is not None else []
        else:
            one = self._recorder.submission(self._connection, row.job, row.idx)
            if one is not None and not self._tell_job(row, one):
                return
        self.seq, self.within = row.seq, 0

    def _tell_job(self, row: Any, one: Submission) -> bool:
        """Tell a row about a job; False if elements of it are left."""
        told = Told(one, row.at, row.kind, row.detail, self._factor, self._recorder.is_short)
        if row.kind == "submitted":
            self.events.append(job_records.job_new(one))
            self.events += [told.status(0, event_records.PSUSP)] if told.detail.get("hold") else []
        elif (row.kind in OF_ELEMENTS or "indices" in told.detail) and one.indices and not row.idx:
            return self._tell_elements(told, one)
        else:
            self._tell_one(told, row.idx)
        if row.kind in ("finished", "requeued"):
            self.ended.append([row.job, row.idx, row.attempt, row.at])
            self.held_changed = True
        self.jobs += row.kind == "finished"
        return True

    def _tell_elements(self, told: Told, one: Submission) -> bool:
        indices = Ranges.parse(str(told.detail.get("indices", one.indices)))
        last = self.within + ELEMENTS
        for index in _some(indices, self.within, last):
            self._tell_one(told, index)
        self.is_full = True
        if last < len(indices):
            self.within = last
            return False
        return True

    def _tell_one(self, told: Told, index: int) -> None:
        self.events += event_records.records(told, index)
        if told.kind in ENDS_IN_QUEUE:
            one, state = told.one, ENDS_IN_QUEUE[told.kind]
            self.jobs += 1
            reason = str(told.detail.get("reason", ""))
            self.finish(ended_waiting(told.at, one.job, index, one.submitted_at, reason, ("", "", b""), state))

    def finish(self, end: Ended) -> None:
        """Tell an end in lsb.acct."""
        one = self._recorder.submission(self._connection, end.job, end.index)
        if one is not None:
            self.acct.append(job_records.job_finish(one, end, self._factor, self._recorder.is_short))


def _spec_of(job: int, stored: bytes) -> JobSpec:
    """Parse a spec, without its environment; of one that is damaged the fields are empty that nothing else knows."""
    try:
        spec = JobSpec.FromString(stored)
    except DecodeError:
        log.warning("lsf_logs=damaged_spec job=%d", job)
        return JobSpec()
    spec.ClearField("environment")
    spec.ClearField("input_data")
    spec.ClearField("esub_output")
    return spec


def _read(connection: Connection, after: int) -> Sequence[Any]:
    columns = (events.job, events.seq, events.idx, events.attempt, events.at, events.kind, events.detail)
    return connection.execute(select(*columns).where(events.seq > after).order_by(events.seq).limit(PAGE)).all()


def _unreleased(connection: Connection, keys: Sequence[Key]) -> set[Key]:
    """Return those attempts that some host has not released."""
    place = tuple_(allocations.job, allocations.idx, allocations.attempt)
    found: set[Key] = set()
    for start in range(0, len(keys), _KEYS_AT_ONCE):
        query = select(allocations.job, allocations.idx, allocations.attempt)
        found.update(
            tuple(row) for row in connection.execute(query.where(place.in_(keys[start : start + _KEYS_AT_ONCE])))
        )
    return found


def _some(indices: Ranges, first: int, last: int) -> Iterable[int]:
    """Yield the indices from one place of the set to another, without walking over those before."""
    place = 0
    for part in indices.parts():
        begin, end = max(first - place, 0), last - place
        if end <= 0:
            return
        yield from part[begin:end]
        place += len(part)
