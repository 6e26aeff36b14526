"""User accounts of this machine, and external groups, as far as the configuration refers to them.

Looked up only when the files are read: the directory service behind it may be slow, and the core never asks.
"""

import contextlib
import grp
import os
import pwd
import subprocess
from pathlib import Path

from lavad.config.values import Wrong

EGROUP_TIMEOUT_S = 10.0


class NoEgroup(Wrong):
    """The site has no egroup program: its groups of that kind are empty, as in LSF."""


class Accounts:
    """Users and Unix groups of this host; ``egroup_dir`` is the directory of the site's egroup program."""

    def __init__(self) -> None:
        self.egroup_dir = ""
        self._users: dict[str, bool] = {}
        self._groups: dict[str, frozenset[str] | None] = {}

    def is_user(self, name: str) -> bool:
        """Return True if this machine has an account of that name."""
        if name not in self._users:
            self._users[name] = _is_user(name)
        return self._users[name]

    def known_users(self) -> list[str]:
        """Return the users that can be listed; a directory service may withhold some."""
        return [account.pw_name for account in pwd.getpwall()]

    def group(self, name: str) -> frozenset[str] | None:
        """Return the members of a Unix group, also those with it as primary group; None if there is no such group."""
        if name not in self._groups:
            self._groups[name] = _group(name)
        return self._groups[name]

    def external(self, kind: str, name: str) -> list[str]:
        """Return the members of a group from the site's egroup program; ``kind`` is -u for users, -m for hosts.

        Raises:
            NoEgroup: there is no such program.
            Wrong: it fails, or it takes too long.
        """
        program = Path(self.egroup_dir) / "egroup"
        if not self.egroup_dir or not os.access(program, os.X_OK):
            raise NoEgroup("(!) takes an executable egroup in LSF_SERVERDIR of lsf.conf, and there is none")
        real = program.resolve()
        if not all(map(is_safe, (real, real.parent, program.parent))):
            raise Wrong(f"{program} is not run: another user than root and lavad's own may change it")
        try:
            done = subprocess.run(
                [str(program), kind, name],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=EGROUP_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Wrong(f"{program} {kind} {name} took longer than {EGROUP_TIMEOUT_S:.0f} seconds") from None
        except OSError as error:
            raise Wrong(f"{program}: {error.strerror}") from None
        if done.returncode:
            raise Wrong(f"{program} {kind} {name} ended with exit code {done.returncode}")
        return done.stdout.split()


def is_safe(path: Path) -> bool:
    """Return True if only root and this process's user may write the file, which runs with lavad's rights."""
    facts = path.stat()
    return facts.st_uid in (0, os.geteuid()) and not facts.st_mode & 0o022


def _is_user(name: str) -> bool:
    with contextlib.suppress(KeyError):
        return pwd.getpwnam(name).pw_name == name
    return False


def _group(name: str) -> frozenset[str] | None:
    try:
        entry = grp.getgrnam(name)
    except KeyError:
        return None
    first = {account.pw_name for account in pwd.getpwall() if account.pw_gid == entry.gr_gid}
    return frozenset(entry.gr_mem) | first
