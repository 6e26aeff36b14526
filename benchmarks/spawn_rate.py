"""Spawn rate of the machine itself: `sh -c /bin/true` by vfork and by posix_spawn, from two processes at once."""

import os
import subprocess
import time

from benchmarks.figures import Figures

SECONDS = 2.0
ARGV = ["/bin/sh", "-c", "/bin/true"]


def _by_posix_spawn() -> None:
    os.waitpid(os.posix_spawn(ARGV[0], ARGV, os.environ), 0)


def _by_vfork() -> None:
    subprocess.run(ARGV, check=False, close_fds=False)


def _rate(spawn) -> float:  # type: ignore[no-untyped-def]
    """Spawns per second of two processes together."""
    counts = [_count_in_child(spawn) for _ in range(2)]
    total = 0
    for reader, child in counts:
        with os.fdopen(reader) as stream:
            total += int(stream.read())
        os.waitpid(child, 0)
    return total / SECONDS


def _count_in_child(spawn) -> tuple[int, int]:  # type: ignore[no-untyped-def]
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        return reader, child
    end, count = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        spawn()
        count += 1
    os.write(writer, str(count).encode())
    os._exit(0)


def measure(figures: Figures) -> None:
    """fork_exec_per_s: the better of the two methods."""
    figures.put("fork_exec_per_s", max(_rate(_by_posix_spawn), _rate(_by_vfork)))


if __name__ == "__main__":
    measure(Figures())
