"""Served commands: the conversation between a stub, the local agent, and the process that runs the command for it.

A stub is a program of a few lines. It opens the call ``COMMAND`` on the local socket with what it was started with, and
gets messages of one kind each. Until it has said GO nothing is done for it, and it may still run the whole command
itself. The agent passes messages on to a process that serves commands; that process's own calls are made on a
connection which the agent has given it for this one command, so that the caller is who the kernel says.

Every message is its kind, one byte, and a value. A request, and what the serving process is told of it, are lists of
strings, each with its length. A request holds the file of settings that nearly every command looks at, and what a
submission will ask about its words: each question costs four messages.
"""

COMMAND = "/lava.local/Command"  # called by stubs
SERVE = "/lava.local/Serve"  # called by the serving process, on the connection of one command

VERSION = b"4"  # of this protocol; a stub of another one runs the whole command

READY = b"ready"  # from the serving process to its agent, once

# To the stub.
ACCEPTED = b"A"
OUTPUT = b"O"  # bytes for standard output
ERROR = b"E"  # bytes for standard error
ASK_KIND = b"K"  # as ASK_FILE: answered by one of the kinds below, then as ASK_FILE
ASK_FILE = b"R"  # a number of bytes (4) and a path: answered by READ and the bytes, or by UNREADABLE
ASK_INPUT = b"I"  # a number of bytes: answered by READ and standard input up to that number, or by UNREADABLE
BECOME = b"X"  # run the whole command: nothing was done for it
LOST = b"L"  # how far the command came is not known
DONE = b"D"  # exit code, one byte: the last message

# From the stub.
GO = b"G"
KINDS = {b"d": "directory", b"f": "file", b"x": "program", b"-": ""}
# Of a word of a submission, in its request: one of the kinds, a program in ELF's format, or nothing.
BINARY, UNKNOWN = b"b", b"?"
READ, UNREADABLE = b"+", b"-"

SETTINGS_MAX = 1 << 16  # bytes of a file of settings in a request; a longer one is asked for

# Flags of a request.
TERMINAL = (1, 2, 4)  # standard input, output, error is a terminal


def packed(strings: "list[bytes]") -> bytes:
    """Pack strings, each behind its length in four bytes."""
    return b"".join(len(one).to_bytes(4, "little") + one for one in strings)


def unpacked(data: bytes) -> "list[bytes]":
    """Unpack the result of `packed`.

    Raises:
        ValueError: it is cut short.
    """
    found, at = [], 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "little")
        at += 4 + size
        if at > len(data):
            raise ValueError("a string is cut short")
        found.append(data[at - size : at])
    return found
