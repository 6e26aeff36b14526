"""Facts of a host by the names that requirements give them."""

from collections.abc import Callable
from typing import Any

from lavad.core.model import HostFacts

FACTS: dict[str, Callable[[HostFacts], Any]] = {
    "ncpus": lambda facts: facts.cpus,
    "nthreads": lambda facts: facts.cpus,
    "ncores": lambda facts: facts.cores or facts.cpus,
    "nprocs": lambda facts: facts.sockets,
    "ndisks": lambda facts: facts.disks,
    "maxmem": lambda facts: facts.memory_mib,
    "maxswp": lambda facts: facts.swap_mib,
    "maxtmp": lambda facts: facts.tmp_mib,
    "cpuf": lambda facts: facts.cpu_factor,
    "type": lambda facts: facts.type,
    "model": lambda facts: facts.model,
    "hname": lambda facts: facts.name,
    "status": lambda facts: "ok",  # hosts that are not ok are not evaluated
    "server": lambda facts: facts.server,
    "rexpri": lambda facts: 0,
    "maxslots": lambda facts: facts.slots,
    "gpu_driver": lambda facts: facts.gpu_driver,
    **{name: lambda facts: facts.gpus for name in ("ngpus", "ngpus_physical", "ngpus_shared")},
    **{name: lambda facts: facts.gpus for name in ("ngpus_excl_p", "ngpus_excl_t")},
}


def device_model(facts: HostFacts, number: int) -> str:
    """Model of one GPU of a host; empty if there is none of that number."""
    return facts.devices[number].model if number < len(facts.devices) else ""
