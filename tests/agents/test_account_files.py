"""Accounts are asked for again as soon as this host's files of accounts have changed."""

import asyncio
from pathlib import Path

import pytest

from agents import account_files
from agents.job_setup import users
from agents.job_setup.users import Owner, UnknownUser, Users
from agents.local_socket.callers import CallFailed, UserNames


@pytest.fixture
def passwd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of accounts of the test's own: lines of a name and a uid."""
    path = tmp_path / "passwd"
    path.write_text("ann 1000\n")
    monkeypatch.setattr(account_files, "FILES", (str(path),))
    return path


def known(path: Path) -> dict[str, int]:
    """Accounts of the file."""
    return {name: int(uid) for name, uid in (line.split() for line in path.read_text().splitlines())}


def test_a_deleted_user_starts_nothing(passwd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer of a moment ago does not count once the file has changed."""

    def look_up(name: str, uid: int, gid: int, other: str) -> Owner:
        if known(passwd).get(name) != uid:
            raise UnknownUser(f"User {name} does not exist on this host.")
        return Owner(name, uid, gid, (gid,), "/", "/bin/sh")

    monkeypatch.setattr(users, "_look_up_both", look_up)
    cache = Users(clock=lambda: 0.0)

    async def story() -> None:
        found = await cache.find("ann", 1000, 1000)
        assert cache.cached("ann", 1000, 1000) == found
        passwd.write_text("ben 1000\n")
        assert cache.cached("ann", 1000, 1000) is None
        with pytest.raises(UnknownUser):
            await cache.find("ann", 1000, 1000)

    asyncio.run(story())


def test_accounts_from_elsewhere_are_remembered_for_seconds(passwd: Path) -> None:
    """A directory service does not tell that an account has gone."""
    now = [0.0]
    cache = Users(clock=lambda: now[0])

    async def story() -> None:
        import os
        import pwd

        own = pwd.getpwuid(os.getuid())
        await cache.find(own.pw_name, own.pw_uid, own.pw_gid)
        now[0] = account_files.REMEMBER_S - 0.1
        assert cache.cached(own.pw_name, own.pw_uid, own.pw_gid) is not None
        now[0] = account_files.REMEMBER_S
        assert cache.cached(own.pw_name, own.pw_uid, own.pw_gid) is None

    asyncio.run(story())


def test_a_freed_uid_is_its_new_users_at_once(passwd: Path) -> None:
    """The caller's name is that of now; without an account there is none."""

    def name_of(uid: int) -> str:
        return {number: name for name, number in known(passwd).items()}[uid]

    names = UserNames(name_of)

    async def story() -> None:
        assert await names.name(1000) == "ann"
        passwd.write_text("ben 1000\n")
        assert await names.name(1000) == "ben"
        passwd.write_text("")
        with pytest.raises(CallFailed, match="no user name"):
            await names.name(1000)
        names.close()

    asyncio.run(story())
