"""Hosts that an attempt has released, for its job report."""

from collections.abc import Sequence

from protos.agents_pb2 import Resize
from protos.common_pb2 import HostShare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agents.attempts.ledger_entry import Entry


def without(entry: "Entry", resize: Resize) -> list[HostShare]:
    """Return the released hosts after a resize that the entry does not have yet, each with its last share.

    A host that has rejoined is not among them.
    """
    kept = {share.host for share in resize.allocation}
    had = (*resize.given_up, *entry.given_up, *_accepted(entry))
    return list({share.host: share for share in had if share.host not in kept}.values())


def _accepted(entry: "Entry") -> Sequence[HostShare]:
    """Return the newest allocation that the job had: not one it was not notified of, or refused."""
    will_not = entry.resized is not None and entry.resized.resized.failed
    return entry.before if will_not or not entry.is_told else entry.stage.allocation
