"""Inputs of loading besides the files: directories, accounts of this machine, egroup, the time zone."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from lavad.config import accounts, load
from lavad.config.accounts import Accounts
from lavad.config.values import Wrong
from tests.config.files import loaded, said, write


def test_where_the_files_are(tmp_path: Path) -> None:
    """In the order lava.conf's setting, beside lava.conf, $LSF_ENVDIR; otherwise no files."""
    own, elsewhere = tmp_path / "own", tmp_path / "elsewhere"
    write(tmp_path, {"own/lsf.conf": "", "elsewhere/lsf.conf": "", "third/lsb.queues": ""})
    environment = {"LSF_ENVDIR": str(elsewhere)}
    assert load.find_directory(own, "", {}) == own
    assert load.find_directory(own, "", environment) == elsewhere
    assert load.find_directory(own, "../third", environment) == own / "../third"
    write(tmp_path, {"own/lsb.users": ""})
    assert load.find_directory(own, "", environment) == own


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    """Named in lava.conf and missing: an error, not the built-in rules."""
    found = load.load(tmp_path / "gone", load.Policy())
    assert [str(error) for error in found.errors] == [f"{tmp_path}/gone: expected a directory with LSF's files"]


def test_accounts_of_this_machine() -> None:
    """Users and Unix groups; those for whom a group is the first one belong to it."""
    found = Accounts()
    assert found.is_user("root")
    assert not found.is_user("no such user")
    assert "root" in (found.group("root") or ())
    assert found.group("no such group") is None


def _egroup(directory: Path, body: str) -> Accounts:
    program = directory / "egroup"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    found = Accounts()
    found.egroup_dir = str(directory)
    return found


def test_egroup(tmp_path: Path) -> None:
    """It is asked with -u or -m and the group's name, and prints the members."""
    assert _egroup(tmp_path, 'echo "$1" "$2"; echo ann').external("-u", "crew") == ["-u", "crew", "ann"]
    with pytest.raises(Wrong, match="ended with exit code 3"):
        _egroup(tmp_path, "exit 3").external("-m", "rack")
    with pytest.raises(Wrong, match="there is none"):
        Accounts().external("-m", "rack")


@pytest.mark.slow
def test_egroup_has_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hanging egroup is killed after a timeout."""
    monkeypatch.setattr(accounts, "EGROUP_TIMEOUT_S", 0.3)
    with pytest.raises(Wrong, match="took longer than"):
        _egroup(tmp_path, "exec sleep 60").external("-u", "crew")


def test_the_local_time_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    """TZ takes precedence over /etc/localtime; an unknown name means UTC."""
    for name, expected in (("Europe/Berlin", "Europe/Berlin"), ("Nowhere/Atall", "UTC")):
        monkeypatch.setenv("TZ", name)
        load.local_zone.cache_clear()
        assert str(load.local_zone()) == expected
    load.local_zone.cache_clear()


def test_a_tree_copied_from_elsewhere(tmp_path: Path) -> None:
    """For missing directories named in lsf.conf, the files beside it are used, with a warning."""
    found = loaded(tmp_path, {
        "lsf.conf": "LSF_CONFDIR=/no/such/conf\nLSB_CONFDIR=/no/such/lsbatch\n",
        "lsf.shared": "Begin Cluster\nClusterName\nmill\nEnd Cluster\n",
        "lsf.cluster.mill": "Begin Host\nHOSTNAME model type server RESOURCES\nh1 ! ! 1 ()\nEnd Host\n",
        "lsbatch/mill/configdir/lsb.queues": "Begin Queue\nQUEUE_NAME = night\nEnd Queue\n",
    })  # fmt: skip
    assert said(found) == [
        "lsf.conf:1: LSF_CONFDIR = /no/such/conf: there is no such directory; files beside lsf.conf count",
        "lsf.conf:2: LSB_CONFDIR = /no/such/lsbatch: there is no such directory; files beside lsf.conf count",
    ]
    assert found.policy.known_hosts == {"h1"}
    assert "night" in [queue.name for queue in found.policy.queues]


ODD: dict[str, Callable[[Path], object]] = {
    "It is no regular file": os.mkfifo,
    "It is a directory": Path.mkdir,
    "Too many levels of symbolic links": lambda path: path.symlink_to(path.name),
    "No such file or directory": lambda path: path.symlink_to("nowhere"),
    "It is larger than 16 MiB": lambda path: path.touch() or os.truncate(path, (16 << 20) + 1),
}


@pytest.mark.parametrize("problem", ODD)
def test_what_is_there_and_can_not_be_read_is_no_missing_file(tmp_path: Path, problem: str) -> None:
    """An unreadable file is an error, also an included one: the built-in queues do not replace the site's. A pipe
    without a writer does not block.
    """
    ODD[problem](tmp_path / "odd")
    ODD[problem](tmp_path / "lsb.queues")
    found = loaded(tmp_path, {"lsb.users": '#INCLUDE "odd"\n'})
    assert [str(error).rpartition(": ")[2] for error in found.errors] == [problem, problem]


def test_a_directory_that_lavad_may_not_enter(tmp_path: Path) -> None:
    """An existing one named in lsf.conf is an error; the files beside lsf.conf are not used instead."""
    (tmp_path / "conf").symlink_to("conf")
    found = loaded(tmp_path, {"lsf.conf": "LSF_CONFDIR=conf\n"})
    assert said(found) == ["lsf.conf:1: LSF_CONFDIR = conf: expected a directory that lavad may enter"]
    assert found.errors
