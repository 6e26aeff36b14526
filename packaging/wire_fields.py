"""Writes lavactl/wire/fields.py from the .proto files, so that the messages of commands cannot differ from them."""

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from protos import agents_pb2, common_pb2, jobs_pb2

TABLE = Path(__file__).resolve().parent.parent / "lavactl" / "wire" / "fields.py"
HEAD = '''\
"""Fields of the messages that commands send and read: number, name and kind of each, in the notation of `lean.table`.

Written by packaging/wire_fields.py from protos/*.proto: change it there, then run make protos.
"""

FIELDS = {
'''
# Messages that commands use, and whatever these hold.
MESSAGES = (
    *("SubmitBatch", "SubmitReplies", "ListJobsRequest", "JobPage", "SignalRequest", "SignalReply", "ModifyRequest"),
    *("ModifyReply", "MoveRequest", "MoveReply", "ForceRequest", "ResizeRequest", "ResizeReply", "DependenciesRequest"),
    *("DependenciesReply", "WatchRequest", "JobChange", "ExplainRequest", "ExplainReply", "HistoryRequest"),
    *("PeekTicketRequest", "PeekRequest", "TailChunk", "AttemptKey", "TaskStart", "TaskInput", "TaskOutput"),
    *("AccountsRequest", "EnvironmentRequest", "EnvironmentReply", "PostRequest"),
    *("PostReply", "ReadRequest", "ReadReply", "WaitRequest", "WaitReply"),
)
# Fields that no command uses.
LEFT_OUT = {
    "HostShare": {"address", "resources"},
    "TaskCpus": {"nodes", "memory"},
    "JobSpec": {"submit_host", "environment_base", "environment_unset"},
    "Usage": {"seconds", "processes_max", "threads_max"},
    "WatchRequest": {"only_end"},
}
KINDS = {
    FieldDescriptor.TYPE_STRING: "s",
    FieldDescriptor.TYPE_BYTES: "b",
    FieldDescriptor.TYPE_UINT32: "u",
    FieldDescriptor.TYPE_UINT64: "u",
    FieldDescriptor.TYPE_ENUM: "u",
    FieldDescriptor.TYPE_DOUBLE: "d",
    FieldDescriptor.TYPE_BOOL: "t",
    FieldDescriptor.TYPE_INT32: "i",
}
LINE = 120


def described(name: str) -> Descriptor:
    """The definition of a message."""
    files = (common_pb2.DESCRIPTOR, jobs_pb2.DESCRIPTOR, agents_pb2.DESCRIPTOR)
    return next(file.message_types_by_name[name] for file in files if name in file.message_types_by_name)


def fields_of(message: Descriptor) -> list[FieldDescriptor]:
    """The fields of a message that commands use, by number."""
    left_out = LEFT_OUT.get(message.name, set())
    return sorted((one for one in message.fields if one.name not in left_out), key=lambda one: one.number)


def with_parts(message: Descriptor) -> Iterator[Descriptor]:
    """The messages that a message holds, at any depth, and itself last."""
    for field in fields_of(message):
        if field.message_type is not None:
            yield from with_parts(field.message_type)
    yield message


def entry(message: Descriptor) -> str:
    """One line of the table, broken where it is too long."""
    words = [
        f"{one.number} {one.name} {one.message_type.name if one.message_type else KINDS[one.type]}"
        + "*" * one.is_repeated
        for one in fields_of(message)
    ]
    text = ", ".join(words)
    line = f'    "{message.name}": "{text}",'
    if len(line) <= LINE:
        return f"{line}\n"
    parts = textwrap.wrap(
        text.replace(" ", "\0").replace(",\0", ", "), LINE - len('        " "'), break_long_words=False
    )
    lines = [f'        "{part} "\n' for part in parts[:-1]] + [f'        "{parts[-1]}"\n']
    return f'    "{message.name}": (\n{"".join(lines)}    ),\n'.replace("\0", " ")


def table() -> str:
    """The file's text: parts before the messages that hold them."""
    found = {part.name: part for name in MESSAGES for part in with_parts(described(name))}
    return HEAD + "".join(map(entry, found.values())) + "}\n"


def main() -> int:
    """Write the table, or with --check compare it; returns the exit code."""
    if sys.argv[1:] != ["--check"]:
        TABLE.write_text(table(), encoding="utf-8")
        return 0
    is_same = TABLE.read_text(encoding="utf-8") == table()
    print("" if is_same else f"{TABLE.name} is not what the .proto files generate: run make protos", end="")
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main())
