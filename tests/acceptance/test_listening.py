"""Listening sockets of a running cluster are exactly the documented ones."""

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

COMMANDS = Path(sys.executable).parent
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "ports-and-files.md"

TCP_LISTEN = "0A"
UNIX_ACCEPTS = 0x10000


@dataclass
class Doors:
    """Ports of TCP and UDP, and paths of Unix sockets, that accept connections."""

    tcp: set[int] = field(default_factory=set)
    udp: set[int] = field(default_factory=set)
    paths: set[str] = field(default_factory=set)


def processes_of(directory: Path) -> Iterator[Path]:
    """The processes of a cluster: its directory is in their arguments or their environment."""
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if any(str(directory).encode() in (entry / part).read_bytes() for part in ("cmdline", "environ")):
                yield entry


def sockets_of(process: Path) -> set[str]:
    """Inodes of the sockets that a process has open."""
    links = []
    for link in (process / "fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            links.append(os.readlink(link))
    return {link[8:-1] for link in links if link.startswith("socket:[")}


def find_doors(directory: Path) -> Doors:
    """Listening sockets of the processes of a cluster, each in its own network namespace."""
    doors = Doors()
    for process in processes_of(directory):
        with contextlib.suppress(OSError):  # it has ended
            own = sockets_of(process)
            for name in ("tcp", "tcp6", "udp", "udp6"):
                for line in (process / "net" / name).read_text(encoding="ascii").splitlines()[1:]:
                    words = line.split()
                    if words[9] in own and (words[3] == TCP_LISTEN or name.startswith("udp")):
                        getattr(doors, name[:3]).add(int(words[1].rpartition(":")[2], 16))
            for line in (process / "net" / "unix").read_text(encoding="utf-8").splitlines()[1:]:
                words = line.split(maxsplit=7)
                if words[6] in own and int(words[3], 16) & UNIX_ACCEPTS:
                    doors.paths.add(words[7] if len(words) > 7 else "without a name")
    return doors


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Path]:
    """A running cluster of two hosts."""
    directory = tmp_path / "cluster"
    lavactl = str(COMMANDS / "lavactl")
    try:
        up = [lavactl, "up", "--hosts", "2", "--slots", "2", "--dir", str(directory)]
        subprocess.run(up, check=True, capture_output=True)
        yield directory
    finally:
        subprocess.run([lavactl, "down", "--dir", str(directory)], check=True, capture_output=True)


# A job holds an agent and a shepherd busy while the doors are counted.
SUBMIT = """
eval "$("$1" env --dir "$2")"
bsub -n 2 sleep 300
until bjobs | grep -q RUN; do sleep 0.1; done
"""


@pytest.mark.slow
@pytest.mark.acceptance
def test_nothing_listens_but_what_is_documented(cluster: Path) -> None:
    """The open ports are the documented three, and the Unix sockets are the agents', the jobs' and the shepherds'."""
    submit = ["sh", "-ec", SUBMIT, "sh", str(COMMANDS / "lavactl"), str(cluster)]
    subprocess.run(submit, check=True, capture_output=True, timeout=60)
    documented = {int(port) for port in re.findall(r"\b69\d\d\b", PAGE.read_text(encoding="utf-8"))}
    doors = find_doors(cluster)
    assert doors.tcp == documented
    assert doors.udp == set()
    agents = {path.stem.removeprefix("agent-") for path in cluster.glob("agent-*.pid")}
    # The kernel shows the name under which a socket was bound; a shepherd's is the number of its slot.
    paths = [Path(path) for path in doors.paths]
    names = {path.name.partition(".sock")[0] for path in paths if path.parent.suffix != ".jobs"}
    assert {name for name in names if not name.isdigit()} == agents
    assert {path.parent.stem for path in paths if path.parent.suffix == ".jobs"} == agents
