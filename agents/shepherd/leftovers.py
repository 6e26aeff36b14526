"""Killing what an attempt has left: nothing of it may start more meanwhile, and what does not die is killed again."""

from agents.shepherd.limits import Confinement

PAUSE_S, PAUSE_MAX_S = 0.02, 1.0  # between two tries, ever longer


class Leftovers:
    """What is left in a slot's group."""

    def __init__(self, confinement: Confinement) -> None:
        self._confinement = confinement
        self._pause_s = PAUSE_S
        self._denied = False

    def kill(self) -> int:
        """Kill all of it; how many there were."""
        self._denied = True
        return self._confinement.kill()

    def pause_s(self) -> float:
        """How long to wait before the next try."""
        pause_s, self._pause_s = self._pause_s, min(PAUSE_MAX_S, 1.5 * self._pause_s)
        return pause_s

    def allow_forks(self) -> None:
        """All of it is gone: what comes next may start processes."""
        if self._denied:
            self._confinement.allow_forks()
            self._denied = False
