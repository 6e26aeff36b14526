"""Records of a list without details and reasons, in their serialised form: the quick way of `listing.record_message`.

A serialised record is its fields one behind the other, so those that many jobs share are serialised once. Invariant:
the records are those of `listing.record_message`, whatever the job.
"""

import struct

from lavad.api.jobs import listing
from lavad.api.privacy import Sight
from lavad.core.model import JobState, Shared
from lavad.core.state.records import ArrayRecord, Job
from protos import jobs_pb2 as pb
from protos import names

SHARED_MAX = 4096
_VARINT, _FIXED, _BYTES = 0, 1, 2
_DOUBLE = struct.Struct("<d")


def varint(number: int) -> bytes:
    """Serialise a number."""
    if number < 0x80:
        return _SMALL[number]
    if number < 0x4000:
        return bytes((number & 0x7F | 0x80, number >> 7))
    if number < 0x200000:
        return bytes((number & 0x7F | 0x80, number >> 7 & 0x7F | 0x80, number >> 14))
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
_JOB, _INDEX, _STATE, _PRIORITY, _ATTEMPT = (
    _tag(name, _VARINT) for name in ("job", "index", "state", "priority", "attempt")
)
_STATES = {state: _STATE + varint(state) for state in JobState}  # the numbers of the wire are the same
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
        self._start, self._name = b"", b""

    def record(self, item: listing.Item) -> bytes:
        """Return the record of a job or element as an entry of a page."""
        record, index, job = item
        if record is not self._record:
            self._begin(record)
        state = job.state if job is not None else record.state_of(index) if isinstance(record, ArrayRecord) else None
        start, name = self._start, self._name
        if index:
            start += _INDEX + varint(index)
            name = b"%b[%d]" % (name, index) if isinstance(record, ArrayRecord) else name
        run = b"" if job is None else self._run(job)
        body = b"".join((start, _STATES[state or JobState.EXIT], _NAME, varint(len(name)), name, run))
        return _RECORD + varint(len(body)) + body

    def _begin(self, record: Job | ArrayRecord) -> None:
        self._record = record
        own = self._fields_of(record.shared), _JOB, varint(record.id), _TIME, _DOUBLE.pack(record.submitted_at)
        self._start = b"".join(own)
        if record.priority:
            self._start += _PRIORITY + varint(record.priority)
        name, command, _ = record.text.split(b"\0", 2)  # the first of its texts, as they are packed
        self._name = name or names.of_command(command.decode()).encode()

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
        if job.attempt is None and job.end is None:
            return _ATTEMPT + varint(job.attempts) if job.attempts else b""
        message = pb.JobRecord()
        listing.add_run(message, job)
        if not self._sight.has_details(job.shared):
            listing.hide_details(message)
        return message.SerializeToString()
