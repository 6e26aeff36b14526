"""A shepherd's start of one process with private files, as a program: TREE UID GID DIRECTORY COMMAND.

Says afterwards where the shepherd itself is, and ends as the command does.
"""

import os
import sys

from agents.shepherd.messages import JobSetup, Program
from agents.shepherd.process import start
from agents.shepherd.process.identity import Identity


def setup_of(uid: int, gid: int, tree: str) -> JobSetup:
    """A job of a user, with these private files."""
    nothing = dict.fromkeys(
        ("input", "output", "error", "output_dir", "pre_exec", "post_exec", "home", "name", "cwd"), ""
    )
    numbers = dict.fromkeys(("nice", "memory_limit_mib", "run_limit_s", "deadline"), 0)
    return JobSetup(
        user="somebody", uid=uid, gid=gid, groups=(gid,), environment={}, program=None, companions=(), umask=0o022,
        output_overwrite=False, error_overwrite=False, rlimits=(), terminate_interval_s=1.0, usage_interval_s=1.0,
        report=None, private_files=tree, **nothing, **numbers,
    )  # type: ignore[arg-type] # fmt: skip


def main() -> int:
    """Start, wait, and tell."""
    tree, uid, gid, directory, command = sys.argv[1:]
    identity, setup = Identity(), setup_of(int(uid), int(gid), tree)
    program = Program("/bin/sh", ("/bin/sh", "-c", command))
    codes, home = [], os.stat("/proc/self/ns/mnt")
    for _ in range(2):  # the second enters the namespace that the first has made
        identity.open_files_as(setup.uid, setup.gid, setup.groups)
        os.chdir(directory)
        try:
            pid = start.spawn(identity, setup, program, {b"PATH": b"/usr/bin:/bin"}, (0, 1, 2))
        finally:
            identity.back()
            os.chdir("/")
        codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    same = os.path.samestat(home, os.stat("/proc/self/ns/mnt"))
    print(f"shepherd: {os.getresuid()} {os.getcwd()} {'outside' if same else 'inside'}", flush=True)
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
