"""The systemd units: accepted by systemd without a warning, with the settings that the design relies on."""

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest

UNITS = Path(__file__).resolve().parents[2] / "packaging" / "systemd"
SYSTEM_UNITS = Path("/usr/lib/systemd/system")
NAMES = ("lavad.service", "lava-agent.service")


def settings(name: str) -> configparser.SectionProxy:
    """[Service] section of a unit; of a key given twice the last counts."""
    parser = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",), comment_prefixes=("#",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(UNITS / name)
    return parser["Service"]


def staged(root: Path) -> Path:
    """Root directory with the units and the commands they start, beside systemd's own units."""
    own = root / "etc" / "systemd" / "system"
    own.mkdir(parents=True)
    shutil.copytree(SYSTEM_UNITS, root / "usr" / "lib" / "systemd" / "system", symlinks=True)
    (root / "usr" / "bin").mkdir()
    commands = root / "opt" / "lava" / "bin"
    commands.mkdir(parents=True)
    for name in NAMES:
        shutil.copy(UNITS / name, own)
        command = commands / name.removesuffix(".service")
        command.write_text("#!/bin/sh\n")
        command.chmod(0o755)
    return root


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_has_nothing_to_say_about_the_units(tmp_path: Path) -> None:
    """Exit code 0 is not enough: a bad value is only a warning there."""
    root = staged(tmp_path / "root")
    done = subprocess.run(
        ["systemd-analyze", "verify", f"--root={root}", *NAMES], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_the_check_would_see_a_mistake(tmp_path: Path) -> None:
    """The test above is not blind."""
    root = staged(tmp_path / "root")
    unit = root / "etc" / "systemd" / "system" / "lava-agent.service"
    unit.write_text(unit.read_text().replace("KillMode=process", "KillMode=proces"))
    done = subprocess.run(
        ["systemd-analyze", "verify", f"--root={root}", unit.name], capture_output=True, text=True, check=False
    )
    assert "KillMode" in done.stderr or "kill mode" in done.stderr


def test_the_agent_can_be_restarted_under_its_jobs() -> None:
    """Settings of the agent's unit without which a restart would kill its jobs."""
    service = settings("lava-agent.service")
    expected = {
        "Type": "notify",
        "KillMode": "process",
        "SendSIGKILL": "no",
        "Delegate": "yes",
        "OOMScoreAdjust": "-900",
        "TasksMax": "infinity",
        "LimitNOFILE": "131072",
        "RuntimeDirectoryPreserve": "yes",
        "Restart": "always",
    }
    assert {name: service.get(name) for name in expected} == expected
    confining = [name for name in service if re.match(r"(Protect|Private|Restrict|NoNew|SystemCall|Capability)", name)]
    assert not confining, "it would confine every job"


def test_the_master_is_confined() -> None:
    """It runs as an unprivileged service user and can change to no other."""
    service = settings("lavad.service")
    expected = {
        "Type": "notify",
        "User": "lava",
        "NoNewPrivileges": "yes",
        "CapabilityBoundingSet": "",
        "ProtectSystem": "strict",
        "UMask": "0077",
    }
    assert {name: service.get(name) for name in expected} == expected


def test_the_units_start_the_commands_that_the_package_installs() -> None:
    """Names drift; this notices."""
    package = configparser.ConfigParser()
    package.read(UNITS.parents[1] / "setup.cfg")
    installed = package["options.entry_points"]["console_scripts"]
    for name in NAMES:
        command = settings(name)["ExecStart"].split()[0]
        assert re.search(rf"^{Path(command).name} = ", installed, re.MULTILINE)
