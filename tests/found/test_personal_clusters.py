"""Personal clusters: ownership of their directory, the cluster chosen by a shell, and files readable to other users."""

import os
import pwd
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lavactl.errors import CommandError
from lavactl.personal.trust import check_directory
from lavad.config.accounts import Accounts
from lavad.config.values import Wrong
from tests.acceptance.personal import Cluster

is_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make what belongs to another user")
STRANGER = 54321


@pytest.fixture
def made() -> Iterator[Path]:
    """A directory of the tests' own under /tmp, where all may write."""
    with tempfile.TemporaryDirectory(prefix="lava-d-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def strangers(made: Path) -> Path:
    """A directory of another user."""
    (made / "theirs").mkdir()
    os.chown(made / "theirs", STRANGER, STRANGER)
    return made / "theirs"


def below_strangers(made: Path) -> Path:
    """One's own directory in that of another user, who can exchange it."""
    (strangers(made) / "mine").mkdir()
    return made / "theirs" / "mine"


def through_strangers_link(made: Path) -> Path:
    """A link of another user's, at the moment to a directory of one's own."""
    (made / "mine").mkdir()
    (made / "link").symlink_to(made / "mine")
    os.chown(made / "link", STRANGER, STRANGER, follow_symlinks=False)
    return made / "link"


def open_to_all(made: Path) -> Path:
    """A directory writable by all."""
    (made / "open").mkdir()
    (made / "open").chmod(0o1777)
    return made / "open"


def open_to_a_group(made: Path) -> Path:
    """The members of a group may."""
    (made / "shared").mkdir()
    os.chown(made / "shared", -1, STRANGER)
    (made / "shared").chmod(0o775)
    return made / "shared" / "new"


@is_root
@pytest.mark.parametrize(
    "make",
    [strangers, below_strangers, through_strangers_link, open_to_all, open_to_a_group],
    ids=lambda one: one.__name__,
)
def test_a_directory_that_others_may_change_is_refused(make: Callable[[Path], Path], made: Path) -> None:
    """An existing one, and one to be made below it."""
    path = make(made)
    with pytest.raises(CommandError, match="cannot hold a cluster"):
        check_directory(path)
    if make is not open_to_all:  # a new entry belongs to its maker, as in /tmp
        with pytest.raises(CommandError, match="cannot hold a cluster"):
            check_directory(path / "deeper")


def test_ones_own_directory_is_taken(made: Path) -> None:
    """Also a new one, also in /tmp, also by a link of one's own."""
    (made / "link").symlink_to(made)
    for path in (made, made / "new", made / "link" / "new", Path("/tmp/lava-not-there")):
        check_directory(path)


@is_root
def test_up_takes_no_directory_of_somebody_else(cluster: Cluster, made: Path) -> None:
    """Neither does down, which would trust the files there."""
    directory = strangers(made)
    try:
        for command in ("up", "down"):
            done = cluster.run("lavactl", command, "--dir", str(directory))
            assert done.returncode != 0
            assert "cannot hold a cluster" in done.stderr
        assert not list(directory.iterdir())
    finally:
        if (directory / "personal.json").exists():
            cluster.run("lavactl", "down", "--dir", str(directory), "--purge")


@is_root
def test_an_egroup_of_somebody_else_is_not_run(made: Path) -> None:
    """It would run with lavad's rights."""
    program, trace = made / "egroup", made / "trace"
    program.write_text(f"#!/bin/sh\necho ran > {trace}\necho ann\n")
    program.chmod(0o755)
    accounts = Accounts()
    accounts.egroup_dir = str(made)
    assert accounts.external("-u", "lab") == ["ann"]
    trace.unlink()
    for owner, mode in ((STRANGER, 0o755), (0, 0o775), (0, 0o757)):
        os.chown(program, owner, 0)
        program.chmod(mode)
        with pytest.raises(Wrong, match="is not run"):
            accounts.external("-u", "lab")
    assert not trace.exists()


def test_logs_are_their_owners(cluster: Cluster) -> None:
    """Other users cannot read them."""
    logs = list((cluster.directory / "log").iterdir())
    assert logs
    assert [path for path in logs if path.stat().st_mode & 0o077] == []


def test_down_and_up_mean_the_cluster_of_the_shell(cluster: Cluster, made: Path) -> None:
    """In one shell, by name, with another user data directory and no lavactl on PATH before."""
    lavactl = cluster._commands / "lavactl"
    script = f"""
        set -e
        eval "$('{lavactl}' env --dir '{cluster.directory}')"
        lavactl down
        test ! -S "$LAVA_SOCKET"
        lavactl up
        bsub -K -o /dev/null true
    """
    home = pwd.getpwuid(os.geteuid()).pw_dir
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": home, "XDG_DATA_HOME": str(made)}
    try:
        done = subprocess.run(
            ["/bin/bash", "-c", script], env=environment, capture_output=True, text=True, timeout=120, check=False
        )
    finally:
        cluster.up()
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"The cluster in {cluster.directory} is down." in done.stdout
    assert not list(made.iterdir())


def test_down_takes_no_other_cluster_than_the_shells(cluster: Cluster, made: Path) -> None:
    """Without the shell's cluster, the one in the fixed folder is not taken instead."""
    other = cluster.with_environment(LAVA_ENVDIR=str(made / "gone"), XDG_DATA_HOME=str(made))
    done = other.run("lavactl", "down")
    assert done.returncode != 0
    assert "is gone; name another one with --dir" in done.stderr


def test_the_index_list_of_an_array_may_be_long(cluster: Cluster) -> None:
    """Only its name may not."""
    indices = list(range(1, 3001, 2))
    text = ",".join(map(str, indices))
    assert len(text) > 4094
    job = cluster.submit("-H", "-J", f"sweep[{text}]", "true")
    assert cluster.counts(job)["NJOBS"] == len(indices)
    cluster.says("bkill", str(job))
    done = cluster.run("bsub", "-J", "x" * 4095 + "[1-2]", "true")
    assert "Bad job name: it must be printable and of 1 to 4094 characters" in done.stderr
