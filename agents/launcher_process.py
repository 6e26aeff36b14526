"""Launcher from the agent's side: its start, and requests for shepherds."""

import logging
import marshal
import os
import socket
import sys
from pathlib import Path
from typing import NamedTuple

from agents.shepherd.confinement.hierarchy import Base

LOG_MAX = 4 << 20
LOG = logging.getLogger("lava.agent")


class Spool(NamedTuple):
    """Directories of an agent that its shepherds use."""

    shepherds: Path
    outputs: Path
    log: Path  # file for error messages of launcher and shepherds


class LauncherProcess:
    """Launcher as a child of this process; started with posix_spawn, so also while gRPC's threads exist."""

    def __init__(self, spool: Spool, base: Base) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        encoded = marshal.dumps((base.version, base.paths), 4).hex()
        script = str(Path(__file__).with_name("launcher.py"))
        argv = [sys.executable, "-I", "-S", script, str(spool.shepherds), str(spool.outputs), encoded]
        environment = {name: os.environ[name] for name in ("PATH", "LANG", "TZ", "LAVA_FAIL") if name in os.environ}
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        actions = [
            (os.POSIX_SPAWN_DUP2, theirs.fileno(), 3),
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDWR, 0),
            (os.POSIX_SPAWN_DUP2, 0, 1),
            (os.POSIX_SPAWN_OPEN, 2, str(spool.log), flags, 0o600),
        ]
        with theirs:
            if theirs.fileno() == 3:  # dup2 onto itself would leave it to be closed at exec
                theirs.set_inheritable(True)
            self.pid = os.posix_spawn(sys.executable, argv, environment, file_actions=actions)
        self.control = ours
        self.control.setblocking(False)

    def request(self, slots: list[int]) -> None:
        """Request shepherds in these slots; OSError if the launcher is gone."""
        self.control.send(marshal.dumps(tuple(slots), 4))

    def close(self) -> None:
        """Close the connection, which ends the launcher. Safe to call again."""
        self.control.close()


def shorten(log: Path) -> None:
    """Empty a log that is large; its last part stays beside it as NAME.old. Who writes there appends, and goes on."""
    try:
        with open(log, "r+b") as stream:
            size = os.fstat(stream.fileno()).st_size
            if size <= LOG_MAX:
                return
            stream.seek(size - LOG_MAX)
            old = os.open(f"{log}.old", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with open(old, "wb") as kept:
                kept.write(stream.read(LOG_MAX))
            stream.truncate(0)
    except FileNotFoundError:
        return  # its directory was deleted; the next launcher makes it anew
    except OSError as error:
        LOG.warning("event=log_not_shortened path=%s error=%r", log, error.strerror)
