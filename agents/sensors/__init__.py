"""Sensors of a host: its facts, read once, and its load, sampled repeatedly.

Every function may block for a moment (a driver, a slow file system under the temporary directory), so it is called from
a thread of its own and never from an event loop. None raises for a broken device: unreadable values are zero, and a
failing GPU has the error in its `status`.
"""

from agents.sensors.elim import Elims
from agents.sensors.facts import facts
from agents.sensors.load import Sampler, significant

__all__ = ["Elims", "Sampler", "facts", "significant"]
