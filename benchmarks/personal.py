"""A personal cluster for a measurement, and an ordinary user who submits to it.

The submitter is a forked child that takes that user's identity after importing everything: the interpreter itself may
lie where that user cannot read.
"""

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

SUBMITTER = "lavabench"
BIN = Path(sys.executable).parent


class Personal:
    """A running cluster: its directory, its sockets and its daemons' process ids."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.environment = _exports(directory)
        self.socket = self.environment["LAVA_SOCKET"]

    @property
    def master_pid(self) -> int:
        return int((self.directory / "lavad.pid").read_text())

    def master_pids(self) -> list[int]:
        """Process ids of the master and its writer."""
        pid = self.master_pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [pid, *map(int, children)]

    def command(self, *words: str) -> list[str]:
        """Command line of one of this installation's commands."""
        return [str(BIN / words[0]), *words[1:]]


def _exports(directory: Path) -> dict[str, str]:
    text = subprocess.run(
        [BIN / "lavactl", "env", "--dir", directory], check=True, capture_output=True, text=True
    ).stdout
    found = dict(os.environ)
    for line in text.splitlines():
        name, _, value = line.removeprefix("export ").partition("=")
        if name.startswith(("LAVA_", "LSF_")):
            found[name] = value.strip("'\"")
    return found


@contextlib.contextmanager
def cluster(hosts: int, slots: int) -> Iterator[Personal]:
    """Running cluster, taken down in any case."""
    top = Path(tempfile.mkdtemp(prefix="lava-bench-"))
    top.chmod(0o755)
    directory = top / "cluster"
    try:
        subprocess.run(
            [BIN / "lavactl", "up", "--hosts", str(hosts), "--slots", str(slots), "--dir", directory],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        yield Personal(directory)
    finally:
        subprocess.run([BIN / "lavactl", "down", "--dir", directory, "--purge"], check=False, stdout=subprocess.DEVNULL)
        shutil.rmtree(top, ignore_errors=True)


@contextlib.contextmanager
def submitter() -> Iterator[pwd.struct_passwd]:
    """Ordinary user of this machine, added for the measurement if root runs it; otherwise the caller."""
    if os.geteuid() != 0:
        yield pwd.getpwuid(os.geteuid())
        return
    added = False
    try:
        pwd.getpwnam(SUBMITTER)
    except KeyError:
        subprocess.run(["useradd", "--create-home", SUBMITTER], check=True)
        added = True
    try:
        yield pwd.getpwnam(SUBMITTER)
    finally:
        if added:
            subprocess.run(["userdel", "--remove", SUBMITTER], check=False, stderr=subprocess.DEVNULL)


def as_user(user: pwd.struct_passwd, work: Callable[[], Any]) -> Any:
    """Result of ``work`` (a list of numbers), computed in a child with that user's identity.

    Raises:
        RuntimeError: the child failed; its error is on stderr.
    """
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            ours.close()
            if os.geteuid() == 0:
                os.initgroups(user.pw_name, user.pw_gid)
                os.setgid(user.pw_gid)
                os.setuid(user.pw_uid)
            theirs.sendall(" ".join(repr(float(number)) for number in work()).encode())
            code = 0
        finally:
            theirs.close()
            os._exit(code)
    theirs.close()
    parts = []
    while part := ours.recv(1 << 16):
        parts.append(part)
    _, status = os.waitpid(child, 0)
    if status:
        raise RuntimeError("the submitting child failed")
    return [float(word) for word in b"".join(parts).split()]
