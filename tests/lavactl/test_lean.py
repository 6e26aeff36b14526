"""The lean messages against the real ones: same fields, same bytes, both ways."""

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message as RealMessage
from hypothesis import given, settings
from hypothesis import strategies as st

from lavactl.wire import lean, messages
from protos import agents_pb2, common_pb2, jobs_pb2

KINDS = {
    FieldDescriptor.TYPE_STRING: lean.TEXT,
    FieldDescriptor.TYPE_BYTES: lean.BYTES,
    FieldDescriptor.TYPE_UINT32: lean.NUMBER,
    FieldDescriptor.TYPE_UINT64: lean.NUMBER,
    FieldDescriptor.TYPE_ENUM: lean.NUMBER,
    FieldDescriptor.TYPE_DOUBLE: lean.DOUBLE,
    FieldDescriptor.TYPE_BOOL: lean.BOOL,
    FieldDescriptor.TYPE_INT32: lean.SIGNED,
}
NAMES = [
    name
    for name in messages.__all__
    if isinstance(getattr(messages, name), type) and issubclass(getattr(messages, name), lean.Message)
]


def real(name: str) -> Any:
    """The generated class or number of that name."""
    return next(getattr(module, name) for module in (common_pb2, jobs_pb2, agents_pb2) if hasattr(module, name))


@pytest.mark.parametrize("name", NAMES)
def test_tables_agree_with_the_proto_files(name: str) -> None:
    """Each lean field has the number, name, kind and repetition of the generated one."""
    fields = real(name).DESCRIPTOR.fields_by_number
    for number, (field, kind, repeated) in getattr(messages, name).FIELDS.items():
        described = fields[number]
        assert (described.name, described.is_repeated) == (field, repeated)
        if described.message_type is not None:
            assert kind.__name__ == described.message_type.name
        else:
            assert kind == KINDS[described.type]


def test_numbers_agree_with_the_proto_files() -> None:
    """States and actions."""
    numbers = [name for name in messages.__all__ if isinstance(getattr(messages, name), int)]
    assert len(numbers) > 50
    for name in numbers:
        assert getattr(messages, name) == real(name)


TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
VALUES: dict[int, st.SearchStrategy[Any]] = {
    lean.TEXT: TEXTS,
    lean.BYTES: st.binary(max_size=8),
    lean.NUMBER: st.integers(0, 2**31 - 1),
    lean.DOUBLE: st.floats(allow_nan=False),
    lean.BOOL: st.booleans(),
    lean.SIGNED: st.integers(-(2**31), 2**31 - 1),
}


def filled(kind: type[lean.Message]) -> st.SearchStrategy[Any]:
    """Messages with any of their fields set."""
    fields = {}
    for name, (field_kind, repeated) in kind.NAMES.items():
        one = VALUES[field_kind] if isinstance(field_kind, int) else st.deferred(lambda k=field_kind: filled(k))  # type: ignore[misc]
        fields[name] = st.lists(one, max_size=2) if repeated else one
    return st.fixed_dictionaries({}, optional=fields).map(lambda values: kind(**values))


def differences(one: Any, other: RealMessage, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Fields in which the lean message does not have the real one's value."""
    for name, (kind, repeated) in one.NAMES.items():
        mine, theirs = getattr(one, name), getattr(other, name)
        if repeated and len(mine) != len(theirs):
            yield path + name, mine, theirs
        for left, right in zip(mine, theirs, strict=False) if repeated else [(mine, theirs)]:
            if not isinstance(kind, int):
                yield from differences(left, right, f"{path}{name}.")
            elif left != right and not (kind == lean.DOUBLE and math.isclose(left, right)):
                yield path + name, left, right


@pytest.mark.slow
@settings(max_examples=40)
@pytest.mark.parametrize("name", ["SubmitItem", "ListJobsRequest", "SignalRequest", "PeekRequest", "WatchRequest"])
@given(data=st.data())
def test_the_library_reads_what_is_written(name: str, data: st.DataObject) -> None:
    """Requests: encoded here, decoded by the master."""
    message = data.draw(filled(getattr(messages, name)))
    assert list(differences(message, real(name).FromString(message.SerializeToString()))) == []


@pytest.mark.slow
@settings(max_examples=40)
@pytest.mark.parametrize("name", ["JobPage", "SubmitReplies", "SignalReply", "JobChange", "ExplainReply", "TailChunk"])
@given(data=st.data())
def test_what_the_library_writes_is_read(name: str, data: st.DataObject) -> None:
    """Answers: encoded by the master, decoded here."""
    kind = getattr(messages, name)
    written = real(name).FromString(data.draw(filled(kind)).SerializeToString()).SerializeToString()
    assert list(differences(kind.FromString(written), real(name).FromString(written))) == []


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_a_decode_error(data: bytes) -> None:
    """Garbage is no other exception and no endless loop."""
    read: messages.JobPage | None = None
    with contextlib.suppress(lean.DecodeError):
        read = messages.JobPage.FromString(data)
    assert read is None or read.SerializeToString() is not None


def test_unknown_fields_are_skipped() -> None:
    """A newer master may send more fields."""
    assert messages.Rlimit.FromString(b"\x52\x03abc" + b"\x59" + bytes(8) + b"\x10\x07").soft == 7


def test_a_message_that_was_only_read_is_not_present() -> None:
    """Looking at a field does not set it."""
    job = messages.JobRecord()
    assert not job.usage.pids
    assert not job.HasField("usage")
    job.usage.cpu_s = 1.0
    assert job.HasField("usage")


def test_large_pages_are_read_by_the_library() -> None:
    """Ten thousand jobs would take the lean reader too long."""
    page = jobs_pb2.JobPage(jobs=[jobs_pb2.JobRecord(job=number, name="n" * 40) for number in range(1000)])
    assert isinstance(messages.read_page(page.SerializeToString()), jobs_pb2.JobPage)
    assert messages.read_page(jobs_pb2.JobPage(jobs=page.jobs[:3]).SerializeToString()).jobs[2].job == 2
