"""Tickets and the master's list of them; private files; lava.conf."""

from pathlib import Path

import pytest

from protos import conffile, notify
from protos.trust import tickets
from protos.trust.private import PrivateFileError, read_private, write_private
from protos.trust.roles import TrustError
from protos.trust.tickets import Entry, Ticket, read_ticket


def a_ticket(secret: str = "s") -> Ticket:
    """Any ticket."""
    return Ticket("c", ("m:1",), "m:2", "PEM", secret, 100.0)


def test_the_masters_list_holds_no_secret(tmp_path: Path) -> None:
    """A reader of the list cannot join with its content."""
    secret = tickets.make_secret()
    tickets.admit(tmp_path / "tickets", secret, Entry(100.0), now=0.0)
    assert secret not in (tmp_path / "tickets").read_text()
    assert (tmp_path / "tickets").stat().st_mode & 0o777 == 0o600
    tickets.check(tmp_path / "tickets", secret, now=99.0)
    with pytest.raises(TrustError, match="expired"):
        tickets.check(tmp_path / "tickets", secret, now=100.0)
    with pytest.raises(TrustError, match="not known"):
        tickets.check(tmp_path / "tickets", secret + "x", now=1.0)


def test_an_old_ticket_stays_good_beside_a_new_one_until_its_end(tmp_path: Path) -> None:
    """Making a ticket revokes none, and drops expired ones."""
    path = tmp_path / "tickets"
    tickets.admit(path, "first", Entry(100.0), now=0.0)
    tickets.admit(path, "second", Entry(200.0), now=50.0)
    tickets.check(path, "first", now=60.0)
    tickets.admit(path, "third", Entry(300.0), now=150.0)
    assert len(path.read_text().splitlines()) == 2
    with pytest.raises(TrustError, match="not known"):
        tickets.check(path, "first", now=60.0)


def test_without_a_list_nobody_joins(tmp_path: Path) -> None:
    """A missing, damaged or world-readable list admits no host."""
    path = tmp_path / "tickets"
    with pytest.raises(TrustError, match="not known"):
        tickets.check(path, "x")
    write_private(path, b"what is this\n")
    with pytest.raises(TrustError, match="tickets:1: expected"):
        tickets.check(path, "x")
    path.chmod(0o644)
    with pytest.raises(TrustError, match="chmod 600"):
        tickets.check(path, "x")


def test_a_ticket_reads_back(tmp_path: Path) -> None:
    """A ticket file is private and never shows its secret in a log."""
    a_ticket("hidden").write(tmp_path / "ticket")
    assert read_ticket(tmp_path / "ticket") == a_ticket("hidden")
    assert "hidden" not in repr(read_ticket(tmp_path / "ticket"))


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"{", b"\xff", b'{"cluster": 1}', b"null"])
def test_a_damaged_ticket_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    """For any content of the file."""
    write_private(tmp_path / "ticket", content)
    with pytest.raises(TrustError, match="is not a ticket of a lava cluster"):
        read_ticket(tmp_path / "ticket")


def test_private_files_are_private_from_the_first_instant(tmp_path: Path) -> None:
    """For any umask and any earlier file."""
    path = tmp_path / "secret"
    path.write_text("old")
    path.chmod(0o666)
    write_private(path, b"new")
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_private(path) == b"new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["secret"]
    with pytest.raises(PrivateFileError, match="is not a file"):
        read_private(tmp_path)


def test_settings_are_read_with_their_quotes_comments_and_signs() -> None:
    """A value may hold blanks, = and #."""
    text = '# comment\n\nLAVA_A=b\n LAVA_ADMINISTRATORS = "ann bob" \nLAVA_DATABASE=postgresql://u@h/n?a=b#c\nLAVA_E=\n'
    assert conffile.parse(text, "x") == {
        "LAVA_A": "b",
        "LAVA_ADMINISTRATORS": "ann bob",
        "LAVA_DATABASE": "postgresql://u@h/n?a=b#c",
        "LAVA_E": "",
    }
    assert conffile.parse(conffile.render(conffile.parse(text, "x")), "y") == conffile.parse(text, "x")


def test_all_wrong_lines_are_told_at_once() -> None:
    """Each with file, line and what was expected."""
    with pytest.raises(conffile.ConfError) as caught:
        conffile.parse('LAVA_A=1\nnonsense\nlower=1\nLAVA_A=2\nLAVA_B="open\n', "lava.conf")
    assert [line.partition(": ")[0] for line in str(caught.value).splitlines()] == [
        "lava.conf:2",
        "lava.conf:3",
        "lava.conf:4",
        "lava.conf:5",
    ]


def test_changed_settings_leave_the_rest_alone() -> None:
    """Comments and order are the owner's."""
    text = "# mine\nLAVA_A=1\n\n# yours\nLAVA_B=2\n"
    assert conffile.replaced(text, {"LAVA_B": "x y", "LAVA_C": "3"}) == (
        '# mine\nLAVA_A=1\n\n# yours\nLAVA_B="x y"\nLAVA_C=3\n'
    )


def test_a_secret_setting_may_live_in_a_private_file(tmp_path: Path) -> None:
    """NAME or NAME_FILE, not both, and the file must be private."""
    write_private(tmp_path / "database", b"postgresql://u:p@h/n\n")
    assert conffile.secret({"LAVA_DATABASE_FILE": "database"}, "LAVA_DATABASE", tmp_path) == "postgresql://u:p@h/n"
    assert conffile.secret({"LAVA_DATABASE": "sqlite:///x"}, "LAVA_DATABASE", tmp_path) == "sqlite:///x"
    assert conffile.secret({}, "LAVA_DATABASE", tmp_path) is None
    with pytest.raises(conffile.ConfError, match="both set"):
        conffile.secret({"LAVA_DATABASE": "a", "LAVA_DATABASE_FILE": "b"}, "LAVA_DATABASE", tmp_path)
    (tmp_path / "database").chmod(0o644)
    with pytest.raises(conffile.ConfError, match="chmod 600"):
        conffile.secret({"LAVA_DATABASE_FILE": "database"}, "LAVA_DATABASE", tmp_path)


def test_readiness_is_told_to_whoever_asked_and_to_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """sd_notify by hand, by path and by abstract name; a listener that is gone is no error."""
    import os
    import socket

    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    assert not notify.ready()
    for name, address in (
        (str(tmp_path / "n"), str(tmp_path / "n")),
        (f"@lava-{os.getpid()}", f"\0lava-{os.getpid()}"),
    ):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
            listener.bind(address)
            monkeypatch.setenv("NOTIFY_SOCKET", name)
            assert notify.ready("all is well")
            assert listener.recv(500).decode().split("\n") == [
                "READY=1",
                f"MAINPID={os.getpid()}",
                "STATUS=all is well",
            ]
        assert not notify.ready()
