"""Choice of the GPU vendor of this host."""

from agents.gpus.nvidia import Nvidia
from agents.gpus.simulated import Simulated
from agents.gpus.vendor import Vendor

VENDORS: tuple[Vendor, ...] = (Nvidia(),)


def vendor(simulate: int = 0) -> Vendor:
    """Return the vendor of this host's devices; of ``simulate`` simulated ones if that is not 0.

    A host has devices of one vendor: of the first whose driver is loaded. Without any driver the first vendor's is
    awaited.
    """
    if simulate:
        return Simulated(simulate)
    return next((one for one in VENDORS if one.is_present()), VENDORS[0])
