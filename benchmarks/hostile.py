"""Cost of a hostile user to another: time of a `bsub` on an idle cluster, and with every bounded call made at once.

Run as root: `python -m benchmarks.hostile [BIN]`; BIN has commands that every user may run. The calls are made by an
ordinary user made for this, in processes that make one kind each again and again. Done when the 99th percentile is at
most three times that of the idle cluster.
"""

import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.figures import Figures, percentile
from benchmarks.scratch import scratch

SUBMISSIONS = 60
USERS = ("lavahost", "lavaguest")
GARBAGE = """
import os, socket
while True:
    with socket.socket(socket.AF_UNIX) as one:
        try:
            one.connect(os.environ["LAVA_SOCKET"]); one.sendall(b"GET / HTTP/1.1\\r\\n\\r\\n"); one.recv(100)
        except OSError: pass
"""
HELD = """
import os, socket, time
held = []
while True:
    try:
        one = socket.socket(socket.AF_UNIX); one.connect(os.environ["LAVA_SOCKET"]); held.append(one)
    except OSError:
        pass
    time.sleep(0.01)
    if len(held) > 900: held.clear()
"""


def calls(commands: str) -> list[str]:
    """Lines of the shell, each of which makes one kind of bounded call until it is ended."""
    wide = " ".join(["jobid:999"] * 9000)
    python = f"{commands}/python -S -c"
    return [
        f"while :; do bjobs -u all -a -o '{wide}'; done",
        "while :; do bjobs -u all -a -l; done",
        "while :; do for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do bqueues -l & done; wait; done",
        "while :; do bsub -H -o /dev/null -J 'a[1-1000]' true; bkill 0; done",
        f"{python} '{GARBAGE}'",
        f"{python} '{HELD}'",
    ]


def end(process: "subprocess.Popen[bytes]") -> None:
    """End a process that was started with a session of its own, and all that it has started in that."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(60)


def main() -> int:
    """Measure, print and keep the figures."""
    figures = Figures()
    with scratch() as place, _users() as (victim, attacker):
        place.chmod(0o755)
        environment = _cluster(place)
        try:
            _measure(figures, environment, victim, attacker)
        finally:
            subprocess.run([_program("lavactl"), "down", "--dir", str(place / "C"), "--purge"], check=True)
    sys.stderr.write(f"kept in {figures.keep()}\n")
    return 0


def _measure(figures: Figures, environment: dict[str, str], victim: str, attacker: str) -> None:
    figures.put("hostile.load_before", os.getloadavg()[0])
    idle = _submissions(environment, victim)
    figures.put("hostile.idle_bsub_p50_ms", 1e3 * percentile(idle, 50))
    figures.put("hostile.idle_bsub_p99_ms", 1e3 * percentile(idle, 99))
    own = _own(environment, attacker)
    siege = [
        subprocess.Popen(
            ["runuser", "-u", attacker, "--", "sh", "-c", text], env=own, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        for text in calls(str(Path(_program("python")).parent))
    ]  # fmt: skip
    try:
        under = _submissions(environment, victim)
    finally:
        for one in siege:
            end(one)
    figures.put("hostile.load_under", os.getloadavg()[0])
    figures.put("hostile.bsub_p50_ms", 1e3 * percentile(under, 50))
    figures.put("hostile.bsub_p99_ms", 1e3 * percentile(under, 99))
    figures.put("hostile.p99_ratio", percentile(under, 99) / percentile(idle, 99))


def _submissions(environment: dict[str, str], user: str) -> list[float]:
    times, own = [], _own(environment, user)
    words = ["runuser", "-u", user, "--", "bsub", "-H", "-o", "/dev/null", "true"]
    for _ in range(SUBMISSIONS):
        began = time.perf_counter()
        subprocess.run(words, env=own, check=True, capture_output=True)
        times.append(time.perf_counter() - began)
    return times


def _own(environment: dict[str, str], user: str) -> dict[str, str]:
    return {**environment, "HOME": pwd.getpwnam(user).pw_dir, "USER": user, "LOGNAME": user}


def _program(name: str) -> str:
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(sys.executable).parent
    return str(directory / name)


def _cluster(place: Path) -> dict[str, str]:
    directory = str(place / "C")
    subprocess.run([_program("lavactl"), "up", "--dir", directory], check=True, capture_output=True)
    shown = subprocess.run(
        ["sh", "-c", f'eval "$({_program("lavactl")} env --dir {directory})"; env -0'], check=True, capture_output=True
    ).stdout
    return dict(entry.split("=", 1) for entry in shown.decode().split("\0") if "=" in entry)


@contextmanager
def _users() -> Iterator[tuple[str, str]]:
    """Two ordinary users, for as long as they are needed."""
    made = [f"{name}{os.getpid()}" for name in USERS]
    for name in made:
        subprocess.run(["useradd", "--create-home", name], check=True)
    try:
        yield made[0], made[1]
    finally:
        for name in made:
            subprocess.run(["userdel", "--force", "--remove", name], check=False, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())
