"""Paths of the job socket and of notice files: a directory beside the local socket, which every job may enter.

A container binds the directory, not the socket in it: the next agent makes a new one.
"""

import os
from pathlib import Path

PATH_MAX = 107  # bytes of a socket's path that the kernel takes


def directory_of(local_socket: str) -> str:
    """Return the directory for jobs of the agent with this local socket; empty without one, as when a host is ended."""
    if not local_socket:
        return ""
    path = Path(local_socket)
    return str(path.with_name(f"{path.stem}.jobs"))


def socket_of(local_socket: str) -> str:
    """Return the path of the job socket; empty if there is none, or it is too long for the kernel."""
    path = f"{directory_of(local_socket)}/socket"
    return path if local_socket and len(os.fsencode(path)) <= PATH_MAX else ""


def make_directory(directory: str) -> None:
    """Make the directory of the job socket and of notice files: passable for all, listed by the agent's user alone.

    Raises:
        OSError: that fails.
    """
    path = Path(directory)
    path.mkdir(mode=0o711, parents=True, exist_ok=True)
    path.chmod(0o711)
