"""File system in memory for the output files of measured jobs, where it can be mounted.

On a disk the result would depend on earlier runs: ext4, for one, searches long for an inode for each new file for
minutes after thousands of others were deleted. Every system under test writes to the same place.
"""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """Empty directory writable by all. Enter it before the cluster starts, whose hosts see the mounts of that time.
    Without root's rights it is on the disk.
    """
    with tempfile.TemporaryDirectory(prefix="lava-bench-out-") as name:
        mounted = os.geteuid() == 0 and _succeeds("mount", "-t", "tmpfs", "-o", "mode=0777", "none", name)
        try:
            Path(name).chmod(0o777)
            yield Path(name)
        finally:
            if mounted:
                subprocess.run(["umount", "--lazy", name], check=False)


def _succeeds(*command: str) -> bool:
    return subprocess.run(command, check=False, capture_output=True).returncode == 0
