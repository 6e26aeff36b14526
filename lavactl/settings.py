"""Cluster settings that commands need: lsf.conf, lava.conf, and the path of the agent's socket.

Invariants: both files are NAME=VALUE lines; of a name given twice the last counts; a missing file is an empty one.
"""

import os

from protos.sitecopy import CONF, directory_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_SOCKET = "/run/lava/agent.sock"
# Units must not depend on the host: the master's value takes precedence over a file of the host.
SAME_EVERYWHERE = ("LSF_UNIT_FOR_LIMITS",)


def read_conf(path: str) -> dict[str, str]:
    """NAME=VALUE lines of a file; quotes around a value are dropped; an unreadable file is empty."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return {}
    values = {}
    for line in lines:
        name, equals, value = line.strip().partition("=")
        if equals and not name.startswith("#"):
            values[name.strip()] = value.partition(" #")[0].strip().strip("\"'")
    return values


def read_lsf_conf(environ: "Mapping[str, str]") -> dict[str, str]:
    """lsf.conf of the directory named by LSF_ENVDIR, else LSF_CONFDIR, else LAVA_ENVDIR, else of /etc."""
    for variable in ("LSF_ENVDIR", "LSF_CONFDIR", "LAVA_ENVDIR"):
        if environ.get(variable):
            return read_conf(f"{environ[variable]}/lsf.conf")
    return read_conf("/etc/lsf.conf")


def read_master_conf(environ: "Mapping[str, str]") -> "dict[str, str] | None":
    """The master's lsf.conf from the copy of this host's agent; None without a copy."""
    path = f"{directory_of(socket_path(environ))}/{CONF}"
    return read_conf(path) if os.path.exists(path) else None


def setting(environ: "Mapping[str, str]", name: str) -> str | None:
    """Parameter of the lsf.conf that the environment names, otherwise of the master's."""
    masters = read_master_conf(environ)
    if masters is not None and name in SAME_EVERYWHERE:
        return masters.get(name)
    return read_lsf_conf(environ).get(name) or (masters or {}).get(name)


def socket_path(environ: "Mapping[str, str]") -> str:
    """Path of the local agent's socket: $LAVA_SOCKET, else LAVA_SOCKET in $LAVA_ENVDIR/lava.conf, else the system's."""
    named = environ.get("LAVA_SOCKET")
    if named:
        return named
    directory = environ.get("LAVA_ENVDIR")
    if directory:
        return read_conf(f"{directory}/lava.conf").get("LAVA_SOCKET") or DEFAULT_SOCKET
    return DEFAULT_SOCKET
