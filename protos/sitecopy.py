"""Directory of the master's settings on each host: written by its agent, read by commands."""

CONF = "lsf.conf"
PARAMS = "lsbatch/{}/configdir/lsb.params"


def directory_of(socket: str) -> str:
    """The directory beside an agent's socket: ``/run/lava/agent.lsf`` for ``/run/lava/agent.sock``."""
    return socket.removesuffix(".sock") + ".lsf"
