"""Records of a list without details and reasons, in their serialised form: the quick way of `listing.record_message`.

A serialised record is its fields one behind the other, so those that many jobs share are serialised once. Invariant:
the records are those of `listing.record_message`, whatever the job.
"""

import struct

from lavad.api import translate
from lavad.api.jobs import listing
from lavad.api.privacy import Sight
from lavad.core.model import JobState, Shared
from lavad.core.state.records import ArrayRecord, Job
from protos import jobs_pb2 as pb

SHARED_MAX = 4096
_VARINT, _FIXED, _BYTES = 0, 1, 2
_DOUBLE = struct.Struct("<d")


def varint(number: int) -> bytes:
    """Serialise a number."""
    if number < 0x80:
        return _SMALL[number]
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


_SMALL = tuple(bytes((number,)) for number in range(0x80))


def _tag(name: str, wire: int) -> bytes:
    return varint(pb.JobRecord.DESCRIPTOR.fields_by_name[name].number << 3 | wire)


_RECORD = varint(pb.JobPage.DESCRIPTOR.fields_by_name["jobs"].number << 3 | _BYTES)
_JOB, _INDEX, _STATE, _PRIORITY = (_tag(name, _VARINT) for name in ("job", "index", "state", "priority"))
_TIME, _NAME = _tag("submit_time", _FIXED), _tag("name", _BYTES)


class PlainRecords:
    """Serialised records for one caller."""

    def __init__(self, sight: Sight) -> None:
        self._sight = sight
        self._shared: dict[int, tuple[Shared, bytes]] = {}  # kept beside its fields, so that its id stays its own
        self.forget()

    def forget(self) -> None:
        """Forget the job of the last record: it may change when others are served."""
        self._record: Job | ArrayRecord | None = None
        self._start, self._words, self._has_details = b"", dict[str, str](), False

    def record(self, item: listing.Item) -> bytes:
        """Return the record of a job or element as an entry of a page."""
        record, index, job = item
        if record is not self._record:
            self._begin(record)
        state = job.state if job is not None else record.state_of(index) if isinstance(record, ArrayRecord) else None
        name = listing.display_name(record, index, self._words).encode()
        body = b"".join((
            self._start, _INDEX, varint(index), _STATE, varint(translate.state_message(state or JobState.EXIT)),
            _NAME, varint(len(name)), name, b"" if job is None else self._run(job),
        ))  # fmt: skip
        return _RECORD + varint(len(body)) + body

    def _begin(self, record: Job | ArrayRecord) -> None:
        self._record, self._words = record, record.words
        self._has_details = self._sight.has_details(record.shared)
        own = (_JOB, varint(record.id), _TIME, _DOUBLE.pack(record.submitted_at), _PRIORITY, varint(record.priority))
        self._start = b"".join((self._fields_of(record.shared), *own))

    def _fields_of(self, shared: Shared) -> bytes:
        known = self._shared.get(id(shared))
        if known is None:
            if len(self._shared) >= SHARED_MAX:
                self._shared.clear()
            message = pb.JobRecord(
                user=shared.user,
                queue=shared.queue,
                from_host=shared.from_host,
                project=shared.project,
                slots_min=shared.request.slots_min,
                slots_max=shared.request.slots_max,
            )
            known = self._shared[id(shared)] = (shared, message.SerializeToString())
        return known[1]

    def _run(self, job: Job) -> bytes:
        message = pb.JobRecord()
        listing.add_run(message, job)
        if not self._has_details:
            listing.hide_details(message)
        return message.SerializeToString()
