"""The configuration that a master goes on with when its files have errors at its start."""

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lavactl.personal import directory as files
from lavad.api.cluster import configuration
from lavad.config import last_good
from lavad.config.load import load
from lavad.core.model.policy import Policy
from protos.conffile import ConfError

SITE = Path(__file__).with_name("site")
QUEUES = "Begin Queue\nQUEUE_NAME = day\nPRIORITY = {}\nEnd Queue\n"
DUSK = QUEUES.replace("day", "dusk")
BY_NIGHT = "#if time(20:00-8:00)\n" + DUSK.format(50) + "#else\n" + DUSK.format(10) + "#endif\n"


def _cluster(directory: Path) -> Path:
    files.create(directory, files.Settings("one", "127.0.0.1:1", "127.0.0.1:1", "127.0.0.1:2", "root"))
    (directory / "state").mkdir(mode=0o700, exist_ok=True)
    (directory / "lsb.queues").write_text(QUEUES.format(30))
    return directory


@pytest.mark.parametrize("name", ["site", "with times of day", "in two directories"])
def test_a_configuration_is_kept_whole(tmp_path: Path, name: str) -> None:
    """Everything that was read comes back: what counts at other times of the day, too, and included files."""
    place, state = tmp_path / "files", tmp_path / "state"
    shutil.copytree(SITE, place)
    state.mkdir()
    if name == "with times of day":
        (place / "more").mkdir()
        (place / "lsb.queues").rename(place / "more" / "queues")
        (place / "lsb.queues").write_text('#INCLUDE "more/queues"\n' + BY_NIGHT)
    if name == "in two directories":
        (tmp_path / "lsb").mkdir()
        (place / "lsb.queues").rename(tmp_path / "lsb" / "lsb.queues")
        with (place / "lsf.conf").open("a") as conf:
            conf.write(f"\nLSB_CONFDIR={tmp_path / 'lsb'}\n")
    at = time.time()
    loaded = load(place, Policy(), at=at)
    assert not loaded.errors
    last_good.keep(state, map(Path, loaded.files))
    shutil.rmtree(place)
    found = last_good.recall(state)
    assert found is not None
    with found.written() as directory:
        again = load(Path(directory), Policy(), at=at, is_copy=True)
    assert again.policy == loaded.policy
    assert {held: one.policy for held, one in again.variants.items()} == {
        held: one.policy for held, one in loaded.variants.items()
    }
    assert (state / last_good.FILE_NAME).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", [b"", b"junk", b"[]", b'{"at": 1}'])
def test_what_is_damaged_counts_for_nothing(tmp_path: Path, content: bytes) -> None:
    """The master then starts with good files only."""
    assert last_good.recall(tmp_path) is None
    (tmp_path / last_good.FILE_NAME).write_bytes(content)
    (tmp_path / last_good.FILE_NAME).chmod(0o600)
    assert last_good.recall(tmp_path) is None


def test_the_files_of_before_count_at_a_start_with_errors(tmp_path: Path) -> None:
    """The sentence has the first error and how many more there are; a good start has none."""
    directory = _cluster(tmp_path / "C")
    settings = configuration.settings_at_start(directory)
    assert configuration.policy_at_start(settings)[1] == ""
    (directory / "lsb.queues").write_text(QUEUES.format("high") + QUEUES.format("low").replace("day", "night"))
    loaded, problem = configuration.policy_at_start(settings)
    assert [queue.priority for queue in loaded.policy.queues if queue.name == "day"] == [30]
    assert f"{directory}/lsb.queues:3: PRIORITY = high: expected a whole number" in problem
    assert problem.endswith("and 1 more errors. See badmin ckconfig.")


def test_a_wrong_line_of_lava_conf_does_not_keep_the_master_down(tmp_path: Path) -> None:
    """The value of before counts; at the first start of all there is none, and the line is refused."""
    directory = _cluster(tmp_path / "C")
    path = directory / "lava.conf"
    sound = path.read_text()
    path.write_text(f"{sound}LAVA_HEARTBEAT=0\n")
    with pytest.raises(ConfError, match="LAVA_HEARTBEAT must be a positive number"):
        configuration.settings_at_start(directory)
    path.write_text(f"{sound}LAVA_HEARTBEAT=9\n")
    assert configuration.policy_at_start(configuration.settings_at_start(directory))[1] == ""
    path.write_text(f"{sound}LAVA_HEARTBEAT=0\n")
    settings = configuration.settings_at_start(directory)
    assert settings.heartbeat_s == 9.0
    assert "LAVA_HEARTBEAT must be a positive number" in configuration.policy_at_start(settings)[1]


def test_a_refusal_is_shown_by_systemctl_status(tmp_path: Path) -> None:
    """A master that cannot start tells systemd the sentence, too: the exit code alone helps no administrator."""
    directory = _cluster(tmp_path / "C")
    (directory / "lsb.queues").write_text(QUEUES.format("high"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        listener.settimeout(60)
        environment = {**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify")}
        words = [sys.executable, "-m", "lavad", "--conf", str(directory)]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=120)
        said = listener.recv(4096).decode()
    assert done.returncode == 1
    assert said.startswith(f"STATUS={directory}/lsb.queues:3: PRIORITY = high: expected a whole number")


def test_lsfs_files_are_checked_without_a_cluster(tmp_path: Path) -> None:
    """The directory of an LSF has no lava.conf; one without any file is named."""
    words = [sys.executable, "-m", "lavad", "--check-config", "--conf"]
    (tmp_path / "empty").mkdir()
    (tmp_path / "lsf").mkdir()
    (tmp_path / "lsf" / "lsb.queues").write_text(QUEUES.format("high"))
    for name, said in (
        ("empty", "empty: expected lava.conf or LSF's files."),
        ("lsf", "lsb.queues:3: PRIORITY = high:"),
    ):
        done = subprocess.run([*words, str(tmp_path / name)], capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 1
        assert said in done.stderr
    (tmp_path / "lsf" / "lsb.queues").write_text(QUEUES.format(3))
    done = subprocess.run([*words, str(tmp_path / "lsf")], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "No errors found.\n")
