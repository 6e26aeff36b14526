"""Caller identification by the master: root only from administrative hosts, and no caller without a valid name."""

import asyncio
import socket
from pathlib import Path
from typing import Any

import grpc
import pytest

from lavad.api import identity
from lavad.core.commands import Caller
from lavad.settings import Settings, read_settings
from protos.wire import CALLER_GID, CALLER_UID, CALLER_USER

SETTINGS = Settings(
    Path("/"), "c", "", "", "", Path("/"), frozenset({"root", "ann"}), frozenset({"login"}), master_host="m"
)


class Aborted(Exception):
    """Status and text that ended a call."""


class Context:
    """A call from an agent on behalf of a user."""

    def __init__(self, host: str, user: str, uid: str) -> None:
        self.host = host
        self.metadata = ((CALLER_USER, user), (CALLER_UID, uid), (CALLER_GID, "0"))

    def auth_context(self) -> dict[str, list[bytes]]:
        return {"x509_subject_alternative_name": [f"lava://agent/{self.host}".encode()]}

    def invocation_metadata(self) -> Any:
        return self.metadata

    async def abort(self, code: grpc.StatusCode, text: str) -> None:
        raise Aborted(code, text)


def caller(host: str, user: str, uid: str, starts_jobs: bool = True, settings: Settings = SETTINGS) -> Caller:
    """Caller as identified by the master."""
    context: Any = Context(host, user, uid)
    return asyncio.run(identity.caller(context, settings, starts_jobs))


def test_root_starts_jobs_from_listed_hosts_only() -> None:
    """One agent in wrong hands must not become root on all other hosts."""
    assert caller("login", "root", "0").is_administrator
    with pytest.raises(Aborted, match="Root may not submit"):
        caller("node7", "root", "0")
    with pytest.raises(Aborted, match="Root may not submit"):
        caller("node7", "toor", "0")
    assert not caller("node7", "root", "0", starts_jobs=False).is_administrator
    assert not caller("node7", "ann", "1000").is_administrator


def test_a_site_may_let_administrators_work_on_every_host(tmp_path: Path) -> None:
    """LAVA_ADMIN_HOSTS=all; root still submits from the named and the default hosts only."""
    text = f"LAVA_LISTEN=x:1\nLAVA_ENROL_LISTEN=x:2\nLAVA_STATE_DIR={tmp_path}\nLAVA_ADMINISTRATORS=root ann\n"
    (tmp_path / "lava.conf").write_text(f"{text}LAVA_ADMIN_HOSTS=all login\n")
    settings = read_settings(tmp_path)
    assert caller("node7", "ann", "1000", settings=settings).is_administrator
    assert not caller("node7", "eve", "1001", settings=settings).is_administrator
    assert caller("login", "root", "0", settings=settings).is_administrator
    with pytest.raises(Aborted, match="Root may not submit"):
        caller("node7", "root", "0", settings=settings)
    (tmp_path / "lava.conf").write_text(f"{text}LAVA_LOGIN_HOSTS=front\nLAVA_ADMIN_HOSTS=all\n")
    assert read_settings(tmp_path).administration_hosts == {"front", socket.gethostname()}


@pytest.mark.parametrize(
    ("user", "uid"), [("", "5"), ("%00", "5"), ("a%0Ab", "5"), ("x" * 5000, "5"), ("eve", "-1"), ("eve", "9" * 30)]
)
def test_users_without_a_proper_name_or_number(user: str, uid: str) -> None:
    """They would break lists and tables."""
    with pytest.raises(Aborted, match="named no user"):
        caller("login", user, uid)
