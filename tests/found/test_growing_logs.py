"""Logs that grew without bound: those of shepherds, and those of a personal cluster's daemons."""

import os
from pathlib import Path

import pytest

from agents import launcher_process
from agents.launcher_process import shorten
from lavactl.personal.hosts import namespace_exec


def test_the_log_of_shepherds_is_emptied_under_those_who_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """real-hosts 2.5: its last part stays beside it; one whose directory has gone is none to shorten."""
    monkeypatch.setattr(launcher_process, "LOG_MAX", 8)
    log = tmp_path / "shepherds.log"
    writer = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(writer, b"one\ntwo\n")
    shorten(log)
    assert log.read_bytes() == b"one\ntwo\n"
    os.write(writer, b"three\n")
    shorten(log)
    os.write(writer, b"four\n")
    os.close(writer)
    assert log.read_bytes() == b"four\n"
    old = tmp_path / "shepherds.log.old"
    assert old.read_bytes() == b"o\nthree\n"
    assert old.stat().st_mode & 0o777 == 0o600
    shorten(tmp_path / "gone" / "shepherds.log")
    assert not caplog.records
    shorten(tmp_path)
    assert "event=log_not_shortened" in caplog.text


def test_a_daemon_of_a_personal_cluster_begins_a_large_log_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one before stays beside it, and replaces an older one."""
    monkeypatch.setattr(namespace_exec, "LOG_MAX", 8)
    log = tmp_path / "lavad.log"
    for text in (b"12345678", b"9"):
        descriptor = namespace_exec._open_log(str(log))
        os.write(descriptor, text)
        os.close(descriptor)
    assert log.read_bytes() == b"123456789"
    os.close(namespace_exec._open_log(str(log)))
    assert log.read_bytes() == b""
    assert (tmp_path / "lavad.log.old").read_bytes() == b"123456789"
