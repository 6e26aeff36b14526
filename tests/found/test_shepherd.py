"""What users did to shepherds: processes of root that keep their jobs."""

import asyncio
import contextlib
import pwd
import subprocess
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents.conftest import place, somebody
from tests.agents.hosts import Host, Place, blob, stage

__all__ = ["place", "somebody"]

pytestmark = pytest.mark.slow
SLOTS = 4
LINKS = 39  # the most that Linux follows

# Stops everything its user may signal, again and again, until it is killed itself.
STOPPER = """
#include <signal.h>
#include <unistd.h>
int main(void) { for (;;) { kill(-1, SIGSTOP); usleep(20); } }
"""


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """One test in a loop of its own."""
    asyncio.run(coroutine)


@pytest.fixture
def stopper(place: Place) -> Path:
    """The attacker's program."""
    source = place.root / "stopper.c"
    source.write_text(STOPPER)
    program = place.root / "stopper"
    subprocess.run(["gcc", "-O2", "-o", program, source], check=True)
    program.chmod(0o755)
    return program


@pytest.fixture
def far_away(place: Place) -> Path:
    """A program that takes the kernel long to find."""
    target = Path("/bin/true")
    for number in range(LINKS):
        deep = place.work / "/".join(["d"] * 100)
        deep.mkdir(parents=True, exist_ok=True)
        link = deep / str(number)
        link.symlink_to(target)
        target = link
    return target


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.root
def test_a_user_stops_no_shepherd(place: Place, stopper: Path, far_away: Path) -> None:
    """While jobs start, their user stops all that he may: shepherds go on, and run limits hold."""

    async def story() -> None:
        async with Host(place, slots=SLOTS) as host:
            keys = []
            with _running_as(place.user, stopper):
                for number in range(1, 40):
                    job = blob(place, number, str(far_away))
                    keys.append(await host.run(job, stage(run_limit_s=0.5)))
                    await asyncio.sleep(0.02)
            shepherds = [handle.pid for handle in host.local.pool.handles()]
            assert [pid for pid in shepherds if _state(pid) == "T"] == []
            for key in keys:
                await host.report(key, "finished")

    run(story())


@contextlib.contextmanager
def _running_as(user: pwd.struct_passwd, program: Path) -> Iterator[None]:
    process = subprocess.Popen([program], user=user.pw_uid, group=user.pw_gid, extra_groups=[])
    try:
        yield
    finally:
        process.kill()
        process.wait()
