"""lavactl init: content and permissions of a cluster directory, and that it is never overwritten."""

import io as streams
import os
import socket
from pathlib import Path

import pytest

from lavactl.io import Io
from lavactl.main import run
from lavad.api.enrolment import master_identity
from protos import conffile
from protos.trust import tickets
from protos.trust.authority import Authority
from protos.trust.private import read_private
from protos.trust.tickets import read_ticket


def lavactl(*argv: str, cwd: Path) -> tuple[int, str, str]:
    """Run lavactl in this process; exit code, output, errors."""
    out, err = streams.BytesIO(), streams.BytesIO()
    io = Io(stdin=streams.BytesIO(), stdout=out, stderr=err, raw_environ=[b"HOME=/nonexistent"], cwd=str(cwd))
    code = run("lavactl", list(argv), io)
    return code, out.getvalue().decode(), err.getvalue().decode()


def test_a_cluster_directory_is_complete_and_its_secrets_are_private(tmp_path: Path) -> None:
    """Everything the master and a first host need, whatever the umask."""
    before = os.umask(0o000)
    try:
        code, out, err = lavactl("init", "D", "--cluster", "blue", "--listen", "127.0.0.1:7000", cwd=tmp_path)
    finally:
        os.umask(before)
    directory = tmp_path / "D"
    assert (code, err) == (0, "")
    assert f"lavad --conf {directory}" in out
    modes = {str(path.relative_to(directory)): path.stat().st_mode & 0o777 for path in directory.rglob("*")}
    assert modes == {
        "ca": 0o755,
        "ca/ca.key": 0o600,
        "ca/ca.pem": 0o644,
        "lava.conf": 0o644,
        "lsf.conf": 0o644,
        "master.key": 0o600,
        "master.pem": 0o644,
        "state": 0o700,
        "ticket": 0o600,
        f"ticket.{socket.gethostname()}": 0o600,
        "tickets": 0o600,
    }
    settings = conffile.read(directory / "lava.conf")
    assert settings["LAVA_CLUSTER_NAME"] == "blue"
    assert settings["LAVA_MASTER"] == settings["LAVA_LISTEN"] == "127.0.0.1:7000"
    assert settings["LAVA_ENROL_LISTEN"] == "127.0.0.1:7001"
    assert settings["LAVA_DATABASE"] == f"sqlite:///{directory}/state/lava.db"
    master_identity(directory)
    ticket = read_ticket(directory / "ticket")
    assert (ticket.cluster, ticket.masters, ticket.enrol) == ("blue", ("127.0.0.1:7000",), "127.0.0.1:7001")
    tickets.check(directory / "tickets", ticket.secret)


def test_public_files_are_public_under_a_strict_umask(tmp_path: Path) -> None:
    """An agent of another user must be able to read the conf and the authority's certificate."""
    before = os.umask(0o077)
    try:
        assert lavactl("init", "D", cwd=tmp_path)[0] == 0
    finally:
        os.umask(before)
    assert (tmp_path / "D").stat().st_mode & 0o777 == 0o755
    for name in ("lava.conf", "ca/ca.pem", "master.pem"):
        assert (tmp_path / "D" / name).stat().st_mode & 0o777 == 0o644


def test_a_master_on_all_addresses_is_reached_by_name(tmp_path: Path) -> None:
    """0.0.0.0 is no address that an agent could dial."""
    assert lavactl("init", "D", cwd=tmp_path)[0] == 0
    settings = conffile.read(tmp_path / "D" / "lava.conf")
    assert settings["LAVA_LISTEN"] == "0.0.0.0:6920"
    assert not settings["LAVA_MASTER"].startswith("0.0.0.0")
    assert settings["LAVA_MASTER"].endswith(":6920")


@pytest.mark.parametrize("present", ["lava.conf", "ca", "master.key", "ticket", "tickets"])
def test_nothing_is_ever_overwritten(tmp_path: Path, present: str) -> None:
    """A second init would lock out every host; it changes nothing."""
    (tmp_path / "D").mkdir()
    (tmp_path / "D" / present).write_text("mine")
    code, out, err = lavactl("init", "D", cwd=tmp_path)
    assert (code, out) == (255, "")
    assert err == f"{tmp_path}/D holds a cluster already ({present}); nothing was changed.\n"
    assert [path.read_text() for path in (tmp_path / "D").iterdir()] == ["mine"]


def test_an_existing_configuration_directory_can_become_a_cluster(tmp_path: Path) -> None:
    """LSF's own files stay as they are beside lava's."""
    (tmp_path / "D").mkdir()
    (tmp_path / "D" / "lsb.queues").write_text("Begin Queue\nEnd Queue\n")
    assert lavactl("init", "D", cwd=tmp_path)[0] == 0
    assert (tmp_path / "D" / "lsb.queues").read_text() == "Begin Queue\nEnd Queue\n"


def test_a_database_password_stays_out_of_the_public_file(tmp_path: Path) -> None:
    """It lives in a file of its own that only the owner reads."""
    url = "postgresql+psycopg://lava:hidden@db.example.org/lava"
    assert lavactl("init", "D", "--db", url, cwd=tmp_path)[0] == 0
    assert "hidden" not in (tmp_path / "D" / "lava.conf").read_text()
    settings = conffile.read(tmp_path / "D" / "lava.conf")
    assert conffile.secret(settings, "LAVA_DATABASE", tmp_path / "D") == url
    assert read_private(tmp_path / "D" / "database").decode().strip() == url


def test_a_new_ticket_leaves_the_cluster_as_it_is(tmp_path: Path) -> None:
    """Hosts that have joined stay, and an earlier ticket stays valid."""
    lavactl("init", "D", cwd=tmp_path)
    old, authority = read_ticket(tmp_path / "D" / "ticket"), (tmp_path / "D" / "ca" / "ca.pem").read_bytes()
    code, out, _ = lavactl("init", "D", "--new-ticket", "--ticket-days", "2", cwd=tmp_path)
    assert (code, out) == (0, f"{tmp_path}/D/ticket admits one new host for 2 days.\n")
    new = read_ticket(tmp_path / "D" / "ticket")
    assert new.secret != old.secret
    assert new.expires < old.expires
    for ticket in (old, new):
        tickets.check(tmp_path / "D" / "tickets", ticket.secret)
    assert Authority.load(tmp_path / "D" / "ca").certificate_pem == authority


def test_a_ticket_for_one_host(tmp_path: Path) -> None:
    """A file of its own beside the one for any host; an invalid host name is refused."""
    lavactl("init", "D", cwd=tmp_path)
    for_any = (tmp_path / "D" / "ticket").read_bytes()
    code, out, _ = lavactl("init", "D", "--new-ticket", "--host", "n001", cwd=tmp_path)
    assert (code, out) == (0, f"{tmp_path}/D/ticket.n001 admits host n001 and no other for 30 days.\n")
    assert (tmp_path / "D" / "ticket.n001").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "D" / "ticket").read_bytes() == for_any
    for name in ("", "../n1"):
        code, out, err = lavactl("init", "D", "--new-ticket", "--host", name, cwd=tmp_path)
        assert (code, out) == (255, "")
        assert f"{name!r} cannot name a host" in err


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["D", "E"],
        [""],
        ["D\n"],
        ['D"'],
        ["D?x"],
        ["/proc/nope"],
        ["D", "--cluster"],
        ["D", "--cluster", ""],
        ["D", "--cluster", "a b"],
        ["D", "--cluster", "x" * 40],
        ["D", "--listen", "here"],
        ["D", "--listen", "1.2.3.4:65535"],
        ["D", "--listen", "1.2.3.4:0"],
        ["D", "--db", "mysql://x/y"],
        ["D", "--db", "nonsense"],
        ["D", "--ticket-days", "0"],
        ["D", "--ticket-days", "many"],
        ["D", "--new-ticket"],
        ["D", "--new-ticket=yes"],
        ["D", "--host", "n1"],
        ["D", "--new-ticket", "--host", "a/b"],
        ["D", "--nonsense"],
        ["-x"],
        ["D", "--db", "postgresql://[::1/x"],
    ],
)
def test_nonsense_is_answered_with_a_sentence_and_makes_nothing(tmp_path: Path, argv: list[str]) -> None:
    """No traceback, no half-made directory."""
    code, out, err = lavactl("init", *argv, cwd=tmp_path)
    assert code != 0
    assert out == ""
    assert err.strip()
    assert "Traceback" not in err
    assert "unexpected" not in err
    assert not (tmp_path / "D" / "lava.conf").exists()
