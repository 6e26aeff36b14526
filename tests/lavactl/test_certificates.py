"""Revocation of the certificates of a name: of a misspelt one nothing is revoked, and that is said."""

from pathlib import Path

import pytest

from lavactl.commands import certificates
from lavactl.personal import directory as files
from lavactl.wire.connection import LostError
from protos.trust import tickets
from protos.trust.certificates import Certificate, Register
from tests.lavactl.scripted import NOW, Desk, Result


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cluster directory with a certificate for n1 and a ticket for n2; its master knows n3 as well."""
    directory = tmp_path / "D"
    files.create(directory, files.Settings("c1", "127.0.0.1:1", "127.0.0.1:1", "127.0.0.1:2", "root"))
    Register(directory).note_issued(Certificate("abc123", "n1", NOW, NOW + 1e6))
    tickets.admit(directory / "tickets", "secret", tickets.Entry(NOW + 1e6, "n2"), NOW)
    monkeypatch.setattr(certificates, "ask", lambda socket: dict.fromkeys(("n1", "n3"), "ok"))
    return directory


def _revoke(desk: Desk, cluster: Path, name: str) -> Result:
    return desk.type("lavactl", "certificates", str(cluster), "--revoke", name)


@pytest.mark.parametrize("host", ["n1", "n2", "n3"])
def test_a_known_host_is_revoked(desk: Desk, cluster: Path, host: str) -> None:
    """By certificate, by ticket, or by the master, and as often as asked."""
    for _ in range(2):
        result = _revoke(desk, cluster, host)
        assert (result.code, result.out) == (
            0,
            f"The certificates of host {host} and the tickets for it are revoked.\n",
        )
        assert bool(result.err) is (host != "n1")
    assert Register(cluster).host_revoked_at(host)


def test_a_misspelt_name_is_no_success(desk: Desk, cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It read "The certificates of host nosuch ... are revoked", with exit code 0."""
    result = _revoke(desk, cluster, "nosuch")
    assert (result.code, result.out) == (255, "")
    assert result.err == "nosuch: no certificate, ticket or host of that name is known; nothing is revoked.\n"
    monkeypatch.setattr(certificates, "ask", _unheard)
    result = _revoke(desk, cluster, "nosuch")
    assert (result.code, result.out) == (255, "")
    assert result.err.endswith("nothing is revoked. The master cannot be asked for its hosts: no answer\n")
    assert not Register(cluster).host_revoked_at("nosuch")


def _unheard(socket: Path) -> dict[str, str]:
    raise LostError("no answer")
