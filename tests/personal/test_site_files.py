"""lavactl up --conf-from: a site's files are found at LSF's paths, copied, and not read again."""

import os
from pathlib import Path

import pytest

from lavactl.errors import CommandError
from lavactl.personal import check_config, site_files
from tests.config.files import SITE, loaded, said, write

SHARED = "Begin Cluster\nClusterName  Servers\nmill  (h1)\nEnd Cluster\n"
CLUSTER = "Begin Host\nHOSTNAME model type server RESOURCES\nh1 ! ! 1 ()\nEnd Host\n"
QUEUES = "Begin Queue\nQUEUE_NAME = {}\nEnd Queue\n"


def _copied(source: Path, directory: Path) -> list[str]:
    """Copy them; the notes."""
    directory.mkdir()
    found = site_files.find(source)
    site_files.copy(found, directory)
    return found.notes


def _queues(directory: Path) -> list[str]:
    found = loaded(directory)
    assert said(found) == []
    assert all(Path(file).is_relative_to(directory) for file in found.files)
    return [queue.name for queue in found.policy.queues if queue.name != "default"]


def test_all_files_of_a_directory(tmp_path: Path) -> None:
    """A directory without any is refused."""
    _copied(SITE, tmp_path / "D")
    assert sorted(os.listdir(tmp_path / "D")) == sorted(os.listdir(SITE))
    with pytest.raises(CommandError, match="holds none of LSF's files"):
        site_files.find(tmp_path / "nothing")


def test_a_copied_tree(tmp_path: Path) -> None:
    """The original machine's LSF_CONFDIR is missing here: lsf.cluster and the lsb files below the copy are found, with
    a note.
    """
    tree = write(tmp_path / "tree", {
        "lsf.conf": "LSF_CONFDIR=/no/such\nLSF_UNIT_FOR_LIMITS=GB\n",
        "lsf.shared": SHARED,
        "lsf.cluster.mill": CLUSTER,
        "lsf.cluster.other": CLUSTER.replace("h1", "h9"),
        "lsbatch/mill/configdir/lsb.queues": QUEUES.format("night"),
        "lsbatch/other/configdir/lsb.queues": QUEUES.format("wrong"),
    })  # fmt: skip
    assert _copied(tree, tmp_path / "D") == [
        f"LSF_CONFDIR in {tree}/lsf.conf is /no/such, which is not there: the files of {tree} count.",
        f"5 of LSF's files are copied from {tree} and {tree}/lsbatch/mill/configdir.",
    ]
    assert _queues(tmp_path / "D") == ["night"]
    assert loaded(tmp_path / "D").policy.known_hosts == {"h1"}
    assert loaded(tmp_path / "D").settings == {"LSF_UNIT_FOR_LIMITS": "GB"}


def test_an_installation(tmp_path: Path) -> None:
    """lsf.conf in one directory, the rest in those it names: copied, and afterwards no file of the site is read."""
    write(tmp_path, {
        "etc/lsf.conf": f"LSF_CONFDIR={tmp_path}/conf\nLSB_CONFDIR={tmp_path}/batch\n",
        "conf/lsf.shared": SHARED,
        "conf/lsf.cluster.mill": CLUSTER,
        "batch/mill/configdir/lsb.queues": QUEUES.format("long"),
    })  # fmt: skip
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    _copied(tmp_path / "etc", tmp_path / "D")
    assert {path: path.stat().st_mtime_ns for path in before} == before
    write(tmp_path, {"batch/mill/configdir/lsb.queues": QUEUES.format("changed")})
    assert _queues(tmp_path / "D") == ["long"]


def test_what_files_include(tmp_path: Path) -> None:
    """Included files are copied as well, those that they include, too; complaints name the same lines."""
    site = write(tmp_path / "site", {
        "lsb.queues": '#INCLUDE "more/queues"\n' + QUEUES.format("own"),
        "more/queues": f'#INCLUDE "{tmp_path}/far"\n' + QUEUES.format("near"),
    })  # fmt: skip
    write(tmp_path, {"far": QUEUES.format("far")})
    _copied(site, tmp_path / "D")
    write(tmp_path, {"far": "broken", "site/more/queues": "broken"})
    assert _queues(tmp_path / "D") == ["far", "near", "own"]


@pytest.mark.slow
def test_mistakes_are_told_before_anything_is_made(tmp_path: Path) -> None:
    """All errors, by their place in the site's own files, including included ones; warnings do not prevent it."""
    site = write(tmp_path / "site", {
        "lsb.params": "Begin Parameters\nCLEAN_PERIOD = soon\nEnd Parameters\n",
        "lsb.queues": '#INCLUDE "more"\nBegin Queue\nQUEUE_NAME = a\nPRIORITY = x\nPRE_EXEC = /b\nEnd Queue\n',
        "more": "Begin Queue\nQUEUE_NAME = b\nNICE = 99\nEnd Queue\n",
    })  # fmt: skip
    with pytest.raises(CommandError) as caught:
        check_config.check(site_files.find(site))
    assert str(caught.value).splitlines() == [
        f"{site}/more:3: NICE = 99: expected a whole number from -20 to 20",
        f"{site}/lsb.params:2: CLEAN_PERIOD = soon: expected a whole number from 1 to 2147483647",
        f"{site}/lsb.queues:4: PRIORITY = x: expected a whole number from 1 to 2147483647",
        f"The files of {site} have errors; no cluster was made.",
    ]
    write(site, {"lsb.params": "", "more": "", "lsb.queues": QUEUES.format("a\nPRE_EXEC = /b")})
    check_config.check(site_files.find(site))


@pytest.mark.slow
def test_what_is_only_doubtful_is_said_and_hinders_nothing(tmp_path: Path) -> None:
    """A misspelt parameter is told with the line of the site's own file."""
    (tmp_path / "lsb.queues").write_text("Begin Queue\nQUEUE_NAME = day\nPRIORTY = 3\nEnd Queue\n")
    found = check_config.check(site_files.find(tmp_path))
    assert any(line.startswith(f"{tmp_path}/lsb.queues:3: PRIORTY: unknown parameter") for line in found), found
