"""Owners of personal clusters in tests, and the parts of a cluster visible from outside."""

import json
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PATIENCE_S = 120


@dataclass
class Person:
    """A user with a home, a way to become that user, and a usable installation of lava."""

    name: str
    home: Path
    commands: Path
    become: tuple[str, ...] = ()
    directories: list[Path] = field(default_factory=list)

    def run(self, *argv: str, env: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
        """Run a program as this person, with a shell's environment."""
        environment = {
            "HOME": str(self.home),
            "USER": self.name,
            "LOGNAME": self.name,
            "PATH": f"{self.commands}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            **(env or {}),
        }
        try:
            return subprocess.run(
                [*self.become, "env", "-i", *(f"{name}={value}" for name, value in environment.items()), *argv],
                cwd="/",
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=PATIENCE_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"{argv} took longer than {PATIENCE_S} s: {error.stderr!r}{self.logs()}") from None

    def logs(self) -> str:
        """Last lines of all daemons' logs, for diagnosing a failed test."""
        text = ""
        for log in sorted(log for directory in self.directories for log in directory.rglob("*.log")):
            lines = log.read_text(errors="replace").splitlines()[-20:]
            text += "\n--- " + "\n".join([str(log), *lines])
        return text

    def lavactl(self, *argv: str, env: dict[str, str] | None = None) -> str:
        """Run lavactl, which must succeed; its output."""
        done = self.run(str(self.commands / "lavactl"), *argv, env=env)
        assert done.returncode == 0, done.stdout + done.stderr + self.logs()
        return done.stdout

    def up(self, directory: Path, *options: str) -> str:
        """Bring up a cluster that will be taken down in the end."""
        self.directories.append(directory)
        return self.lavactl("up", "--dir", str(directory), *options)

    def shell_environment(self, directory: Path) -> dict[str, str]:
        """A shell's environment after `lavactl env`."""
        exports = self.lavactl("env", "--dir", str(directory))
        done = self.run("sh", "-c", f"{exports}\nexec env -0")
        assert done.returncode == 0, done.stderr
        return dict(line.split("=", 1) for line in done.stdout.split("\0") if "=" in line)

    def purge(self) -> None:
        """Take down every cluster that was brought up."""
        for directory in self.directories:
            if (directory / "personal.json").exists():
                self.run(str(self.commands / "lavactl"), "down", "--purge", "--dir", str(directory))


def record(directory: Path) -> dict[str, Any]:
    """Record of a cluster."""
    found: dict[str, Any] = json.loads((directory / "personal.json").read_text())
    return found


def table(directory: Path) -> dict[str, int]:
    """The pids of a cluster's processes by name."""
    found = json.loads((directory / "processes.json").read_text())
    return {name: process["pid"] for name, process in found.items()}


def is_open(path: Path) -> bool:
    """True if other users may enter or run this."""
    named, real = Path(os.path.abspath(path)), path.resolve()
    return all(step.stat().st_mode & 0o001 for step in (*named.parents, *real.parents, real))
