"""Surroundings that the job files expect of their images: programs by name, and files at fixed paths.

The paths are there for this test's cluster alone: its daemons run in a mount namespace, made as a job's own is.
"""

import os
import stat
from pathlib import Path

from agents.shepherd.process.private_files import make

PROGRAMS = (
    "python", "python3", "pip", "wget", "git", "tar", "rm", "sleep", "mkdir", "mpirun", "mpiexec", "horovodrun",
    "jupyter", "mpi_hello_world", "work", "pause", "entrypoint-tester",
)  # fmt: skip
# Programs and directories of the images at fixed paths.
FIXED = ("home/mpiuser/pi", "usr/sbin/sshd")
FOLDERS = ("opt/tf-benchmarks/scripts/tf_cnn_benchmarks",)


def build(folder: Path) -> Path:
    """Write the programs and the tree; returns the directory that goes first in PATH."""
    program = folder / "program"
    source = (Path(__file__).parent / "program.py").read_text(encoding="utf-8")
    program.write_text(f"#!/usr/bin/python3 -IS\n{source}", encoding="utf-8")
    program.chmod(0o755)
    (folder / "bin").mkdir()
    for name in PROGRAMS:
        (folder / "bin" / name).symlink_to(program)
    for name in FIXED:
        path = folder / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(program.read_bytes())
        path.chmod(0o755)
    for name in FOLDERS:
        (folder / "tree" / name).mkdir(parents=True)
    return folder / "bin"


def commands_inside(folder: Path, installed: Path) -> Path:
    """Commands that run in a mount namespace where the tree is at its paths; the namespace lives as long as this."""
    mounts = make(str(folder / "tree")).mounts
    inside = folder / "commands"
    inside.mkdir()
    for command in installed.iterdir():
        if command.is_file() and command.stat().st_mode & stat.S_IXUSR:
            enter = f"nsenter --mount=/proc/{os.getpid()}/fd/{mounts}"
            text = f'#!/bin/sh\nexec {enter} sh -c \'cd "$0" && exec "$@"\' "$PWD" {command} "$@"\n'
            (inside / command.name).write_text(text)
            (inside / command.name).chmod(0o755)
    return inside
