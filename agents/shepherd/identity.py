"""Acting as a user, and back again, without ever forking.

As root the process keeps 0 as its saved user id. Files are opened under the effective id alone, where the user can
neither signal nor trace this process; the real id is the user's only around `posix_spawn`, because exec would leave a
job the real id 0 otherwise. Exec drops the saved id and every capability. Without root everything here does nothing:
jobs run as ourselves.
"""

import os


class Identity:
    """Whose files this process opens and whose processes it starts."""

    def __init__(self) -> None:
        self._root = os.geteuid() == 0
        self.can_return_from_nice = self._root and _is_first_namespace()
        self._groups: tuple[int, tuple[int, ...]] | None = None
        self._uid = 0
        self._is_user = False

    def open_files_as(self, uid: int, gid: int, groups: tuple[int, ...]) -> None:
        """Become the user for file access. OSError (EPERM) when this process may not."""
        if not self._root:
            return
        self._is_user = True  # whatever of it succeeds
        if self._groups != (gid, groups):
            os.setgroups(groups)
            os.setresgid(gid, gid, gid)
            self._groups = (gid, groups)
        self._uid = uid
        os.setresuid(0, uid, 0)

    def start_as_user(self) -> None:
        """From file access to the moment of spawning."""
        if self._root:
            os.setresuid(self._uid, self._uid, 0)

    def back(self) -> None:
        """Be the shepherd again. Safe to call again."""
        if self._is_user:
            os.setresuid(0, 0, 0)
            self._is_user = False


def _is_first_namespace() -> bool:
    """Is root here root of the machine? Only that one may raise its own priority again."""
    with open("/proc/self/uid_map", encoding="ascii") as file:
        return file.read().split() == ["0", "0", "4294967295"]
