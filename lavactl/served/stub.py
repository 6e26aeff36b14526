"""Stub of a command: asks this host's agent to run it, and passes its output on; else it becomes the whole command.

Written out by `lavactl.served.stubs` with the places below filled in, and compiled; it imports nothing of lava's, and
little else: its cost is that of an interpreter, 7.7 ms of CPU where ``python3 -IS -c pass`` takes 7.3. What it was
started with, it sends; after GO the command is done once: by the agent's serving process, or here again under the same
request id where that is the same as once. What it has read of standard input is kept for the whole command.
"""

import posix
import sys
from _signal import SIG_DFL, SIG_IGN, SIGINT, SIGPIPE, getsignal, signal  # type: ignore[import-not-found]
from _socket import AF_UNIX, MSG_NOSIGNAL, SO_RCVTIMEO, SO_SNDTIMEO, SOCK_STREAM, SOL_SOCKET, socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn
else:
    NoReturn = None  # typing takes longer to import than all the rest

FULL, SOCKET = "@FULL@", "@SOCKET@"
VERSION = b"4"
PATIENCE_S = 3
PIECE = 1 << 16  # bytes read at once: memory for more is taken from the system anew each time
SETTINGS_MAX = 1 << 16
MESSAGE, CREDIT, END = 3, 6, 7
# These do something that done twice is not the same: after a lost answer they are not run again.
ONCE = ("bkill", "bstop", "bresume", "brequeue", "bresize", "brun", "btop", "bbot", "brsvadd", "brsvmod", "brsvdel",
        "scancel", "scontrol")  # fmt: skip

# Submissions have a name of their own: done again after a lost answer they are still one.
SUBMITS = ("bsub", "sbatch")
WORDS_MAX = 64

NAME = sys.argv[0].rpartition("/")[2]

if getsignal(SIGINT) is not SIG_IGN:
    signal(SIGINT, SIG_DFL)


def encoded(text: str) -> bytes:
    """Bytes of an argument, as they were given."""
    return text.encode("utf-8", "surrogateescape")


def read_all(descriptor: int, limit: int, copy: int = -1) -> bytes:
    """Bytes up to the end of a file, or to a number of them; written to another one, too."""
    parts, size = [], 0
    while size < limit:
        part = posix.read(descriptor, min(limit - size, PIECE))
        if not part:
            break
        if copy >= 0:
            put(copy, part)
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def read_file(path: str | bytes, limit: int) -> bytes:
    """Beginning of a file."""
    descriptor = posix.open(path, posix.O_RDONLY)
    try:
        return read_all(descriptor, limit)
    finally:
        posix.close(descriptor)


def environment() -> list[bytes]:
    """The environment as it was given: Python adds LC_CTYPE to its own."""
    return [entry for entry in read_file("/proc/self/environ", 1 << 27).split(b"\0") if b"=" in entry]


class Input:
    """Standard input that was read, in memory; -1 for none."""

    kept = -1


def read_input(limit: int) -> bytes:
    """Beginning of standard input."""
    if Input.kept < 0:
        Input.kept = posix.memfd_create("input")
    return read_all(0, limit, Input.kept)


def become(again: bytes = b"") -> NoReturn:
    """Become the whole command, with the agent's socket and the input that this stub had."""
    signal(SIGPIPE, SIG_DFL)
    entries: dict[bytes, bytes] = {}
    for entry in environment():
        name, _, value = entry.partition(b"=")
        entries.setdefault(name, value)
    if not (entries.get(b"LAVA_SOCKET") or entries.get(b"LAVA_ENVDIR")):
        entries[b"LAVA_SOCKET"] = encoded(SOCKET)
    if again:
        entries[b"LAVA_REQUEST_ID"] = again.hex().encode()
    path = FULL + "/" + NAME
    try:
        if Input.kept >= 0:
            posix.lseek(Input.kept, 0, 0)
            posix.dup2(Input.kept, 0)
        posix.execve(path, [path, *sys.argv[1:]], entries)
    except OSError as error:
        put(2, encoded(NAME + ": " + path + why_not(path, error.strerror or "") + "\n"))
        posix._exit(255)


def why_not(path: str, reason: str) -> str:
    """The reason that keeps the whole command from running: a script is there although its interpreter is not."""
    try:
        head = read_file(path, 4096)
    except OSError:
        head = b""
    words = head[2:].split()
    if head[:2] == b"#!" and words and posix.access(path, posix.X_OK):
        interpreter = words[0].decode("utf-8", "surrogateescape")
        return " cannot be run by its interpreter " + interpreter + ": " + reason + "."
    return " cannot be executed: " + reason + ". lavactl up, or link, writes the commands anew."


def put(descriptor: int, data: bytes) -> None:
    """Write all of it."""
    while data:
        data = data[posix.write(descriptor, data) :]


def settings(entries: list[bytes]) -> list[bytes]:
    """Path and answer for the file that nearly every command looks at; empty ones if it is long."""
    values: dict[bytes, bytes] = {}
    for entry in entries:
        if entry.startswith((b"LSF_ENVDIR=", b"LSF_CONFDIR=", b"LAVA_ENVDIR=")):
            values.setdefault(*entry.split(b"=", 1))
    named = (values.get(name) for name in (b"LSF_ENVDIR", b"LSF_CONFDIR", b"LAVA_ENVDIR"))
    path = (next(filter(None, named), None) or b"/etc") + b"/lsf.conf"
    found = answer(b"R", (SETTINGS_MAX + 1).to_bytes(4, "little") + path)
    return [path, found] if len(found) <= SETTINGS_MAX + 1 else [b"", b""]


def kind_of(path: bytes) -> bytes:
    """Kind of the file at a path: d, f, x for a program, or -."""
    try:
        mode = posix.stat(path).st_mode & 0o170000
    except (OSError, ValueError):
        return b"-"
    if mode == 0o040000:
        return b"d"
    if mode != 0o100000:
        return b"-"
    return b"x" if posix.access(path, posix.X_OK) else b"f"


def kinds() -> bytes:
    """Kind of the file that each word names, where a submission will look at it: b for a program of the machine's."""
    if NAME not in SUBMITS:
        return b""
    found = bytearray()
    for text in sys.argv[1 : WORDS_MAX + 1]:
        kind = b"?" if text.startswith("-") else kind_of(encoded(text))
        if kind == b"x" and answer(b"R", b"\4\0\0\0" + encoded(text)) == b"+\x7fELF":
            kind = b"b"
        found += kind
    return bytes(found)


def directory(entries: list[bytes]) -> bytes:
    """The current directory, as the shell names it."""
    physical = posix.getcwdb()
    logical = next((entry[4:] for entry in entries if entry.startswith(b"PWD=")), b"")
    if logical.startswith(b"/") and logical != physical:
        here, there = posix.stat("."), posix.stat(logical)
        if (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino):
            return logical
    return physical


def width(entries: list[bytes]) -> bytes:
    """Width of the terminal in columns; 80 without one."""
    columns = next((entry[8:] for entry in entries if entry.startswith(b"COLUMNS=")), b"")
    if columns.isdigit() and int(columns):
        return columns
    for descriptor in (1, 2):
        try:
            return b"%d" % (posix.get_terminal_size(descriptor).columns or 80)
        except OSError:
            continue
    return b"80"


def request(entries: list[bytes], name: bytes, place: bytes) -> bytes:
    """Everything that the command was started with, and the socket's path."""
    flags = sum(bit for descriptor, bit in enumerate((1, 2, 4)) if posix.isatty(descriptor))
    mask = posix.umask(0o077)
    posix.umask(mask)
    words = [encoded(NAME), *map(encoded, sys.argv[1:])]
    head = [VERSION, b"%d" % flags, b"%d" % mask, width(entries), name, directory(entries), place]
    strings = [*head, *settings(entries), kinds(), b"%d" % len(words), *words, *entries]
    return b"".join(len(one).to_bytes(4, "little") + one for one in strings)


def path_of_socket(entries: list[bytes]) -> bytes:
    """Path of the agent's socket: that of the environment, or of the cluster's file, or the one written here."""
    ours = (entry for entry in entries[::-1] if entry.startswith((b"LAVA_SOCKET=", b"LAVA_ENVDIR=")))
    given = dict(entry.split(b"=", 1) for entry in ours)
    if given.get(b"LAVA_SOCKET"):
        return given[b"LAVA_SOCKET"]
    if given.get(b"LAVA_ENVDIR"):
        for line in read_file(given[b"LAVA_ENVDIR"] + b"/lava.conf", 1 << 20).split(b"\n")[::-1]:
            if line.strip().startswith(b"LAVA_SOCKET="):
                return line.partition(b"=")[2].strip().strip(b"\"'")
    return encoded(SOCKET)


class Agent:
    """Connection to the agent, and the one call on it."""

    def __init__(self, path: bytes) -> None:
        self.socket = socket(AF_UNIX, SOCK_STREAM)
        self.patience(PATIENCE_S)
        self.socket.connect(path)
        self.buffer = b""
        self.taken = 0

    def patience(self, seconds: int) -> None:
        """Wait so long for the agent, 0 for ever; the kernel waits, without asking it before each call."""
        for option in (SO_RCVTIMEO, SO_SNDTIMEO):
            self.socket.setsockopt(SOL_SOCKET, option, seconds.to_bytes(8, sys.byteorder) + bytes(8))

    def frame(self, kind: int, payload: bytes) -> None:
        """Send a frame of the call."""
        data = (1).to_bytes(4, "little") + bytes((kind, 0, 0, 0)) + len(payload).to_bytes(4, "little") + payload
        while data:
            data = data[self.socket.send(data, MSG_NOSIGNAL) :]

    def take(self, size: int) -> bytes:
        """The next bytes; OSError if the agent has gone."""
        parts, have = [self.buffer], len(self.buffer)
        while have < size:
            part = self.socket.recv(max(size - have, PIECE))
            if not part:
                raise OSError
            parts.append(part)
            have += len(part)
        whole = b"".join(parts)
        self.buffer = whole[size:]
        return whole[:size]

    def message(self) -> bytes:
        """The next message; OSError if there is none any more."""
        while True:
            header = self.take(12)
            payload = self.take(int.from_bytes(header[8:12], "little"))
            if header[4] == END:
                raise OSError
            if header[4] == MESSAGE:
                self.taken += 1
                if self.taken == 16:
                    self.frame(CREDIT, (16).to_bytes(4, "little"))
                    self.taken = 0
                return payload


def answer(kind: bytes, value: bytes) -> bytes:
    """Answer to a question of the serving process."""
    if kind == b"K":
        found = kind_of(value[4:])
        return found + (answer(b"R", value) if found in b"fx" else b"-")
    try:
        limit = int.from_bytes(value[:4], "little")
        return b"+" + (read_file(value[4:], limit) if kind == b"R" else read_input(limit))
    except (OSError, ValueError):
        return b"-"


def show(kind: bytes, value: bytes) -> None:
    """Write output or an error message."""
    try:
        put(1 if kind == b"O" else 2, value)
    except OSError as error:
        if kind == b"O":
            put(2, encoded("Cannot write the output: " + (error.strerror or "") + ".\n"))
            posix._exit(255)


def carry(agent: Agent) -> bool:
    """Pass on what comes until the command has ended or is lost; True if it may be run here."""
    is_shown = False
    try:
        while True:
            message = agent.message()
            kind, value = message[:1], message[1:]
            if kind == b"O" or kind == b"E":
                is_shown = True
                show(kind, value)
            elif kind == b"D":
                posix._exit(value[0])
            elif kind == b"X":
                return True
            elif kind == b"L":
                break
            else:
                agent.frame(MESSAGE, answer(kind, value))
    except OSError:
        pass  # the agent has gone
    return NAME in SUBMITS or not (is_shown or NAME in ONCE)


def main() -> None:
    """Run the command."""
    for descriptor in (0, 1, 2):
        posix.fstat(descriptor)  # a closed one is the whole command's to report
    entries = environment()
    name, place = posix.urandom(16), path_of_socket(entries)
    agent = Agent(place)
    message = request(entries, name, place)
    if len(message) > 7 << 20:
        become()
    agent.frame(2, (len(b"/lava.local/Command")).to_bytes(2, "little") + b"/lava.local/Command" + message)
    if agent.message() != b"A":
        become()
    signal(SIGPIPE, SIG_DFL)
    agent.frame(MESSAGE, b"G")
    agent.patience(0)
    if carry(agent):
        become(name)
    put(2, encoded(NAME + ": the agent of this host ended before its answer: it is not known what was done.\n"))
    posix._exit(255)


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError):
        become()
