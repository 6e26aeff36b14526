"""Settings of the master in lava.conf."""

from pathlib import Path

import pytest

from agents.containers.settings import ContainerSettings
from agents.job_setup.preparation import Bounds
from lavad.settings import read_settings
from protos.conffile import ConfError

NEEDED = "LAVA_LISTEN=127.0.0.1:6920\nLAVA_ENROL_LISTEN=127.0.0.1:6921\nLAVA_STATE_DIR=/var/lib/lava\n"


def test_what_is_not_said_has_its_default(tmp_path: Path) -> None:
    """An empty value counts as unset."""
    (tmp_path / "lava.conf").write_text(f"{NEEDED}LAVA_CLUSTER_NAME=\nLAVA_HEARTBEAT=\n")
    settings = read_settings(tmp_path)
    assert (settings.cluster, settings.heartbeat_s) == ("lava", 5.0)
    assert settings.database == "sqlite:////var/lib/lava/lava.db"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (
            "LAVA_CLUSTER_NAME=../../etc",
            "must be up to 39 letters, digits, dots, dashes and underscores, not '../../etc'",
        ),
        ("LAVA_CLUSTER_NAME=a b", "must be up to 39 letters"),
        ("LAVA_CLUSTER_NAME=\x1b[2J", r"must be up to 39 letters, .* not '\\x1b\[2J'"),
        ("LAVA_HEARTBEAT=0", "must be a positive number of seconds, not '0'"),
        ("LAVA_HEARTBEAT=nan", "must be a positive number of seconds, not 'nan'"),
        ("LAVA_HEALTH_CHECK=check -x", "must be the full path of a program, not 'check -x'"),
        ("LAVA_HEALTH_CHECK='/opt", "must be the full path of a program"),
        ("LAVA_HEALTH_CHECK_SHARE=0", "must be a percentage from 1 to 100, not '0'"),
        ("LAVA_HEALTH_CHECK_SHARE=101", "must be a percentage from 1 to 100, not '101'"),
        ("LAVA_CONTAINERS=docker", "must list apptainer, podman, bubblewrap, or none, not 'docker'"),
        ("LAVA_IMAGE_DIR=images", "must be a full path, not 'images'"),
        ("LAVA_IMAGE_TRUST=some", "must be owner or all, not 'some'"),
        ("LAVA_IMAGE_SPACE=1G", "must be a whole number, 0 or more, not '1G'"),
        ("LAVA_CONTAINER_BINDS=/a:b", "must list SOURCE, SOURCE:DESTINATION or SOURCE:DESTINATION:ro"),
        ("LAVA_CONTAINER_BINDS=/a:/b:rx", "must list SOURCE"),
        ("LAVA_USAGE_INTERVAL=soon", "must be a number of seconds, not 'soon'"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, line: str, complaint: str) -> None:
    """With file, setting, and expected value. A cluster's name is part of file names, so it contains no path."""
    (tmp_path / "lava.conf").write_text(f"{NEEDED}{line}\n")
    with pytest.raises(ConfError, match=f"/lava.conf: {line.partition('=')[0]} {complaint}"):
        read_settings(tmp_path).policy()


@pytest.mark.parametrize("ports", ["20000", "5-4", "0-9", "1-70000", "a-b"])
def test_ports_of_tasks_are_a_range(tmp_path: Path, ports: str) -> None:
    """Agents get it as it is written; anything else keeps the master from its start."""
    (tmp_path / "lava.conf").write_text(f"{NEEDED}LAVA_TASK_PORTS=21000-21999\n")
    assert read_settings(tmp_path).of_agents() == {"LAVA_TASK_PORTS": "21000-21999"}
    assert Bounds.of({"LAVA_TASK_PORTS": "21000-21999"}).task_ports == range(21000, 22000)
    (tmp_path / "lava.conf").write_text(f"{NEEDED}LAVA_TASK_PORTS={ports}\n")
    with pytest.raises(ConfError, match="LAVA_TASK_PORTS must be a range of ports, as 20000-29999, not"):
        read_settings(tmp_path).policy()


def test_containers_are_the_agents(tmp_path: Path) -> None:
    """The settings of containers reach the agents; without a word of it images are ignored."""
    lines = "LAVA_CONTAINERS=bubblewrap podman\nLAVA_IMAGE_DIR=/images/\nLAVA_IMAGE_TRUST=all\nLAVA_IMAGE_SPACE=10\n"
    lines += "LAVA_CONTAINER_BINDS=/data:/mnt:ro\nLAVA_PODMAN_OPTIONS=--runtime runc\n"
    (tmp_path / "lava.conf").write_text(NEEDED + lines)
    found = ContainerSettings.of(read_settings(tmp_path).of_agents())
    options = ("--runtime", "runc")
    assert found == ContainerSettings(("bubblewrap", "podman"), "/images", True, 10, ("/data:/mnt:ro",), options)
    (tmp_path / "lava.conf").write_text(f"{NEEDED}LAVA_CONTAINERS=none\n")
    assert ContainerSettings.of(read_settings(tmp_path).of_agents()) == ContainerSettings()
