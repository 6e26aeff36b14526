"""Activity of an attempt on its hosts, as their agents report it: parts without activity, hosts without processes.

What hosts report is volatile, they repeat it at each hello; that a job hangs is stored, so that it is told once.
"""

from collections.abc import Mapping
from typing import NamedTuple

_NOTHING: Mapping[str, float] = {}


class Hang(NamedTuple):
    """Hang of a job: all its parts have been inactive for ``inactive_s``.

    ``number`` counts the hangs of the attempt. ``due``: the job's policy acts then at the latest, earlier when all
    hosts have saved their stacks; 0: nothing is waited for. ``stacks``: host, and the file there or why there is none.
    """

    since: float
    inactive_s: float
    number: int
    due: float = 0.0
    stacks: tuple[tuple[str, str], ...] = ()


class Activity(NamedTuple):
    """Activity of an attempt. ``inactive``: hosts whose parts are, and since when; ``unused``: hosts without a process
    of it, and since when."""

    inactive: Mapping[str, float] = _NOTHING
    hang: Hang | None = None
    hangs: int = 0  # of this attempt until now
    unused: Mapping[str, float] = _NOTHING


ACTIVE = Activity()  # shared by all attempts without anything to tell
