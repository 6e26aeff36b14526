"""What a host is and how loaded it is: facts once, load again and again.

Everything here may block for a moment (NVML, a slow file system under the temporary directory), so it is called from a
thread of its own and never from an event loop. Nothing here raises because a device is broken: what cannot be read is
left at zero, and a GPU that fails says so in its `status`.
"""

from agents.sensors.elim import Elims
from agents.sensors.facts import facts
from agents.sensors.load import Sampler, significant

__all__ = ["Elims", "Sampler", "facts", "significant"]
