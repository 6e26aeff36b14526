"""Killing of an attempt's leftovers: they cannot fork meanwhile, and survivors are killed again."""

from agents.shepherd.confinement.groups import Confinement

PAUSE_S, PAUSE_MAX_S = 0.02, 1.0  # between two tries, growing


class Leftovers:
    """Leftover processes in a slot's group."""

    def __init__(self, confinement: Confinement) -> None:
        self._confinement = confinement
        self._pause_s = PAUSE_S
        self._denied = False

    def kill(self) -> int:
        """Kill all of them; return their number."""
        self._denied = True
        return self._confinement.kill()

    def pause_s(self) -> float:
        """Return the seconds until the next try."""
        pause_s, self._pause_s = self._pause_s, min(PAUSE_MAX_S, 1.5 * self._pause_s)
        return pause_s

    def allow_forks(self) -> None:
        """Permit forks again once all are gone."""
        if self._denied:
            self._confinement.allow_forks()
            self._denied = False
