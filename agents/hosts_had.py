"""The hosts that an attempt has had by now and holds no longer, which its report names."""

from collections.abc import Sequence

from protos.agents_pb2 import Resize
from protos.common_pb2 import HostShare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agents.ledger import Entry


def without(entry: "Entry", resize: Resize) -> list[HostShare]:
    """What the attempt has given up with another allocation, which the entry does not have yet. By what each host had
    when it left; one that is back is not among them."""
    kept = {share.host for share in resize.allocation}
    had = (*resize.given_up, *entry.given_up, *_accepted(entry))
    return list({share.host: share for share in had if share.host not in kept}.values())


def _accepted(entry: "Entry") -> Sequence[HostShare]:
    """The newest allocation that the job had: not one that it was not told of, or would not have."""
    will_not = entry.resized is not None and entry.resized.resized.failed
    return entry.before if will_not or not entry.is_told else entry.stage.allocation
