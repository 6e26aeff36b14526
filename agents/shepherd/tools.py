"""Resources of a shepherd that the attempt it holds uses."""

from collections.abc import Callable
from typing import NamedTuple

from agents.shepherd.confinement.groups import Confinement
from agents.shepherd.lease import Lease
from agents.shepherd.process.identity import Identity
from agents.shepherd.spool import ExitLog, OutputFile
from agents.shepherd.tasks.kept import Watch


class Tools(NamedTuple):
    """Slot, user, files and agent."""

    confinement: Confinement
    identity: Identity
    log: ExitLog
    output: OutputFile
    lease: Lease
    null: int  # /dev/null
    send: Callable[[bytes], None]  # to the agent, if there is one
    send_optional: Callable[[bytes], None]  # dropped if the agent does not read
    watch: Watch
    has_agent: Callable[[], bool]
