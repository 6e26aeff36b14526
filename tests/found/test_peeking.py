"""bpeek: wrong output shown, and calls that blocked other users."""

import asyncio
import os
import pwd
import secrets
import signal
import subprocess
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.peers import Peers
from agents.ranks import output, readers
from protos.agents_pb2 import JobSpecBlob, TailChunk, TailRequest
from tests.agents.conftest import place, somebody
from tests.agents.hosts import NAME, Host, Key, Place, blob, key_message, until

__all__ = ["place", "somebody"]

pytestmark = pytest.mark.slow


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run one test in an event loop of its own."""
    asyncio.run(coroutine)


@pytest.fixture
def another() -> Iterator[pwd.struct_passwd]:
    """A second ordinary user."""
    name = f"la{secrets.token_hex(4)}"
    subprocess.run(["useradd", "-M", "-d", "/nonexistent", "-s", "/bin/sh", name], check=True)
    yield pwd.getpwnam(name)
    subprocess.run(["userdel", name], check=True)


class Gate:
    """Holds up the opening of one output, as a file server that hangs does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, belongs: Callable[[str], bool]) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()
        self._belongs, self._open = belongs, os.open
        monkeypatch.setattr(os, "open", self._waiting_open)

    def _waiting_open(self, path: Any, *rest: Any, **more: Any) -> int:
        if isinstance(path, str) and path.startswith("/proc/") and "/fd/" in path and self._belongs(path):
            self.reached.set()
            self.opened.wait(120)
        return self._open(path, *rest, **more)


async def _peek(host: Host, key: Key, follow: bool = False) -> list[TailChunk]:
    said: list[TailChunk] = []

    async def send(chunk: TailChunk) -> None:
        said.append(chunk)

    peers = Peers(NAME, host.local.attempts, host.local.counting, lambda: b"")
    await peers.tail(TailRequest(key=key_message(key), follow=follow), send)
    return said


@pytest.mark.root
def test_another_users_output_is_never_shown(
    place: Place, another: pwd.struct_passwd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a reader waits to open a job's output, the job ends, and another user's job takes its slot."""
    secret = place.root / "secret"
    secret.mkdir(mode=0o700)
    os.chown(secret, another.pw_uid, another.pw_gid)

    async def story() -> None:
        async with Host(place, slots=1) as host:
            mine = await host.run(blob(place, 1, "echo mine; exec sleep 1000", output=str(place.out("mine"))))
            await host.report(mine, "started")
            gate = Gate(monkeypatch, lambda _: True)
            peeking = asyncio.create_task(_peek(host, mine))
            await until(gate.reached.is_set)
            await host.signal(mine, signal.SIGKILL)
            await host.report(mine, "finished")
            job = _job_of(another, blob(place, 2, "echo secret; exec sleep 1000", output=str(secret / "out"), cwd="/"))
            theirs = await host.run(job)
            await host.report(theirs, "started")
            await until(lambda: (secret / "out").exists() and "secret" in (secret / "out").read_text())
            gate.opened.set()
            chunks = await peeking
            assert [chunk.data for chunk in chunks] == [b""]
            assert chunks[0].error == "the job has just ended"

    run(story())


def _job_of(user: pwd.struct_passwd, job: JobSpecBlob) -> JobSpecBlob:
    job.user, job.uid, job.gid = user.pw_name, user.pw_uid, user.pw_gid
    return job


@pytest.mark.root
def test_files_that_hang_hold_up_their_own_user_only(
    place: Place, another: pwd.struct_passwd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many readers wait for a dead file server: another user's bpeek answers."""

    async def story() -> None:
        async with Host(place, slots=2) as host:
            hanging = await host.run(blob(place, 1, "exec sleep 1000"))
            await host.report(hanging, "started")
            shepherd = host.shepherd_of(hanging)
            place.root.joinpath("theirs").mkdir(mode=0o777)
            os.chown(place.root / "theirs", another.pw_uid, another.pw_gid)
            theirs = place.root / "theirs" / "out"
            other = await host.run(_job_of(another, blob(place, 2, "echo fine; exec sleep 99", output=str(theirs))))
            await host.report(other, "started")
            await until(lambda: theirs.exists() and theirs.read_text() == "fine\n")
            gate = Gate(monkeypatch, lambda path: path.startswith(f"/proc/{shepherd}/"))
            waiting = [asyncio.create_task(_peek(host, hanging)) for _ in range(10)]
            await until(gate.reached.is_set)
            try:
                async with asyncio.timeout(60):
                    assert [chunk.data for chunk in await _peek(host, other)] == [b"fine\n"]
            finally:
                gate.opened.set()
                await asyncio.gather(*waiting)

    run(story())


def _inotify_instances() -> int:
    found = 0
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found += os.readlink(entry) == "anon_inode:inotify"
        except FileNotFoundError:
            continue
    return found


def test_followers_share_what_the_kernel_has_little_of(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """One inotify instance serves all followers; a user's followers are bounded, with a message."""
    monkeypatch.setattr(readers, "READINGS_MAX", 16)
    before = _inotify_instances()

    async def story() -> None:
        async with Host(place, slots=1) as host:
            go = place.out("go")
            job = blob(place, 1, f"until [ -e {go} ]; do sleep 0.02; done; echo more")
            key = await host.run(job)
            await host.report(key, "started")
            followers = [asyncio.create_task(_peek(host, key, follow=True)) for _ in range(130)]
            await until(lambda: _inotify_instances() > before)
            refused = 130 - readers.READINGS_MAX
            await until(lambda: sum(task.done() for task in followers) >= refused)
            assert _inotify_instances() == before + 1
            go.touch()
            said = await asyncio.gather(*followers)
            errors = [chunks[0].error for chunks in said if chunks and chunks[0].error]
            assert len(errors) == refused
            assert set(errors) == {"too much output is being read on this host at the same time; try again"}
            assert sum(b"more" in b"".join(chunk.data for chunk in chunks) for chunks in said) == readers.READINGS_MAX
        await until(lambda: _inotify_instances() == before)

    run(story())


def test_an_open_that_nobody_waits_for_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that disconnected while a file server hung leaves no descriptor, and its threads end."""
    path = tmp_path / "out"
    path.touch()

    async def story() -> None:
        reached, go, opened = threading.Event(), threading.Event(), []
        real = os.open

        def slow(name: Any, *rest: Any) -> int:
            reached.set()
            go.wait(120)
            opened.append(real(name, *rest))
            return opened[-1]

        monkeypatch.setattr(os, "open", slow)
        opening = asyncio.create_task(output.open_output(str(path), os.geteuid(), (), lambda: True))
        await until(reached.is_set)
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        go.set()
        await until(lambda: bool(opened) and not Path(f"/proc/self/fd/{opened[0]}").exists())
        await until(lambda: not readers.READERS._users)
        assert not Path(f"/proc/self/fd/{opened[0]}").exists()

    run(story())
