"""Ownership check of a cluster's directory: only root and the caller may change it or a directory above it.

Write access to the directory of a cluster includes the choice of its administrators and of its daemons' programs.
"""

import grp
import os
import pwd
import stat
from pathlib import Path

from lavactl.errors import CommandError

_NO_LOGIN = ("nologin", "false", "sync")


def check_directory(path: Path, *, of_service: bool = False) -> None:
    """CommandError if another user may change the directory, or exchange it for another one.

    Args:
        path: absolute; missing parts are not checked.
        of_service: the directory itself may belong to an account that cannot log in: the master runs as that, and root
            administers it.
    """
    for step, is_goal in _way(path):
        if of_service and is_goal and os.geteuid() == 0 and cannot_log_in(step.stat().st_uid):
            continue
        why = _why_not(step, is_goal)
        if why:
            raise CommandError(f"{path} cannot hold a cluster: {step} {why}.")


def _way(path: Path) -> list[tuple[Path, bool]]:
    """Every existing file on the path, as named and with links followed; True for the directory itself."""
    real = path.resolve()
    steps = dict.fromkeys((*reversed(path.parents), path, *reversed(real.parents), real))
    return [(step, step == real) for step in steps if os.path.lexists(step)]


def _why_not(step: Path, is_goal: bool) -> str:
    facts = step.lstat()
    # The owner of the root directory is root, also where a user namespace shows another id for it.
    if facts.st_uid not in (0, os.geteuid(), Path("/").stat().st_uid):
        return f"belongs to {_user_name(facts.st_uid)}, who could change what is in it"
    if stat.S_ISLNK(facts.st_mode):
        return ""
    if not stat.S_ISDIR(facts.st_mode):
        return "is not a directory"
    if facts.st_mode & stat.S_ISVTX and not is_goal:
        return ""  # as /tmp: others may add files, and neither rename nor remove those of this user
    if facts.st_mode & stat.S_IWOTH:
        return "may be changed by all users (chmod o-w)"
    if facts.st_mode & stat.S_IWGRP and not _is_own_group(facts.st_gid):
        return "may be changed by its group (chmod g-w)"
    return ""


def _is_own_group(gid: int) -> bool:
    """True if only root and this user are in the group, as where each user has a private group."""
    try:
        account, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    others = set(group.gr_mem) - {account.pw_name, "root"}
    return not others and (gid == 0 or (gid == account.pw_gid and group.gr_name == account.pw_name))


def cannot_log_in(uid: int) -> bool:
    """True for a service account, by its shell."""
    try:
        shell = pwd.getpwuid(uid).pw_shell
    except KeyError:
        return False
    return os.path.basename(shell) in _NO_LOGIN


def _user_name(uid: int) -> str:
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user id {uid}"
