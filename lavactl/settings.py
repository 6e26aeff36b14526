"""Cluster settings that commands need: lsf.conf, lava.conf, and the path of the agent's socket.

Invariants: both files are NAME=VALUE lines; of a name given twice the last counts; a missing file is an empty one.
Which files these are is the environment's to say, so they are read by ``read``, with the rights of who has it.
"""

from lavactl.files import read_whole
from protos.sitecopy import CONF, directory_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    # Content of a file; None if it cannot be read.
    Read = Callable[[str], bytes | None]

DEFAULT_SOCKET = "/run/lava/agent.sock"
# Units must not depend on the host: the master's value takes precedence over a file of the host.
SAME_EVERYWHERE = ("LSF_UNIT_FOR_LIMITS",)


def read_conf(path: str, read: "Read" = read_whole) -> dict[str, str]:
    """NAME=VALUE lines of a file; quotes around a value are dropped; an unreadable file is empty."""
    return values_of(read(path) or b"")


def values_of(content: bytes) -> dict[str, str]:
    """NAME=VALUE lines of the content of a file."""
    values = {}
    for line in content.decode("utf-8", "replace").splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and not name.startswith("#"):
            values[name.strip()] = value.partition(" #")[0].strip().strip("\"'")
    return values


def read_lsf_conf(environ: "Mapping[str, str]", read: "Read" = read_whole) -> dict[str, str]:
    """lsf.conf of the directory named by LSF_ENVDIR, else LSF_CONFDIR, else LAVA_ENVDIR, else of /etc."""
    for variable in ("LSF_ENVDIR", "LSF_CONFDIR", "LAVA_ENVDIR"):
        if environ.get(variable):
            return read_conf(f"{environ[variable]}/lsf.conf", read)
    return read_conf("/etc/lsf.conf", read)


def read_master_conf(environ: "Mapping[str, str]", read: "Read" = read_whole) -> "dict[str, str] | None":
    """The master's lsf.conf from the copy of this host's agent; None without a copy."""
    content = read(copy_beside(socket_path(environ, read)))
    return None if content is None else values_of(content)


def copy_beside(socket: str) -> str:
    """Path of the copy that the agent with this socket keeps."""
    return f"{directory_of(socket)}/{CONF}"


def setting(environ: "Mapping[str, str]", name: str, read: "Read" = read_whole) -> str | None:
    """Parameter of the lsf.conf that the environment names, otherwise of the master's."""
    if name in SAME_EVERYWHERE:
        masters = read_master_conf(environ, read)
        return read_lsf_conf(environ, read).get(name) if masters is None else masters.get(name)
    return read_lsf_conf(environ, read).get(name) or (read_master_conf(environ, read) or {}).get(name)


def tries_of(value: str | None, default: int) -> int:
    """Number of tries that LSB_NTRIES names, or the default."""
    return int(value) if value and value.isdigit() and int(value) > 0 else default


def socket_path(environ: "Mapping[str, str]", read: "Read" = read_whole) -> str:
    """Path of the local agent's socket: $LAVA_SOCKET, else LAVA_SOCKET in $LAVA_ENVDIR/lava.conf, else the system's."""
    named = environ.get("LAVA_SOCKET")
    if named:
        return named
    directory = environ.get("LAVA_ENVDIR")
    if directory:
        return read_conf(f"{directory}/lava.conf", read).get("LAVA_SOCKET") or DEFAULT_SOCKET
    return DEFAULT_SOCKET
