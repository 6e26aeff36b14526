"""Wait until daemons report readiness (sd_notify), or end instead.

Each daemon gets a socket of its own, so that a message identifies its sender without trusting its content. Nothing is
polled periodically: the wait is for messages, for exits and for one deadline.
"""

import os
import re
import select
import socket
import time
from dataclasses import dataclass
from pathlib import Path

from lavactl.errors import CommandError
from lavactl.personal.starting import Starting

_MESSAGE_BYTES = 4096
_LAST_LINES_BYTES = 2000
_SPOKEN = re.compile(r"(?:lavad|lava-agent): ")  # a daemon's message to its starter, on one or more lines
_ROUTINE = re.compile(r"\blevel=(DEBUG|INFO|WARNING)\b")


@dataclass(slots=True)
class Awaited:
    """A starting daemon: its notify socket and its log."""

    name: str
    socket: socket.socket
    path: Path
    log: Path
    starting: Starting | None = None

    def close(self) -> None:
        """Stop listening; later messages of the daemon are lost, which does it no harm."""
        self.socket.close()
        self.path.unlink(missing_ok=True)


def listen(name: str, path: Path, log: Path) -> Awaited:
    """Make a notify socket at `path`, to be given to the daemon as $NOTIFY_SOCKET."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
    try:
        listener.bind(str(path))
    except OSError as error:
        listener.close()
        raise CommandError(f"{path} cannot be made: {error.strerror}.") from error
    os.chmod(path, 0o600)
    return Awaited(name, listener, path, log)


def wait_all(awaited: list[Awaited], patience_s: float) -> None:
    """Return when all are ready; CommandError, naming a log, if one ends or on timeout."""
    deadline = time.monotonic() + patience_s
    poller = select.poll()
    words: dict[int, Awaited] = {}
    exits: dict[int, Awaited] = {}
    try:
        for one in awaited:
            if one.starting is None:
                continue
            words[one.socket.fileno()] = one
            exits[os.pidfd_open(one.starting.process.pid)] = one
        for descriptor in (*words, *exits):
            poller.register(descriptor, select.POLLIN)
        while words:
            _one_round(poller, words, exits, deadline)
    finally:
        for descriptor in exits:
            os.close(descriptor)


def _one_round(poller: select.poll, words: dict[int, Awaited], exits: dict[int, Awaited], deadline: float) -> None:
    remaining_s = deadline - time.monotonic()
    happened = [descriptor for descriptor, _ in poller.poll(max(0.0, remaining_s) * 1000)]
    if not happened:
        slow = next(iter(words.values()))
        raise CommandError(f"{slow.name} is not ready in time{last_words(slow.log)}")
    for descriptor in happened:
        if descriptor in words and b"READY=1" in words[descriptor].socket.recv(_MESSAGE_BYTES).split(b"\n"):
            poller.unregister(descriptor)
            del words[descriptor]
    for descriptor in happened:
        if descriptor in exits:
            raise CommandError(f"{exits[descriptor].name} ended at once{last_words(exits[descriptor].log)}")


def last_words(log: Path) -> str:
    """End of a sentence about a daemon: its last log line or its final message, and the path of the log."""
    try:
        with open(log, "rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(0, stream.tell() - _LAST_LINES_BYTES))
            lines = stream.read().decode("utf-8", "replace").split("\n")
    except OSError:
        lines = []
    said = [line.strip() for line in lines if line.strip()]
    # An error matters more than the routine lines after it.
    errors = [line for line in said if not _ROUTINE.search(line)]
    if not said:
        return f"; see {log}."
    spoken = [at for at, line in enumerate(errors) if _SPOKEN.match(line)]
    words = "\n".join(errors[spoken[-1] :]) if spoken else (errors or said)[-1]
    return f": {_SPOKEN.sub('', words)} (see {log})."
