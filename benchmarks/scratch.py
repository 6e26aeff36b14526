"""Where the output files of measured jobs go: a file system in memory of our own, where that can be had.

On a disk a measurement would be of what the runs before it left: ext4, for one, looks long and hard for an inode for
each new file for minutes after thousands of others were deleted. Every system under test writes to the same place.
"""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """An empty directory that everyone may write to. Enter it before the cluster starts, whose hosts see what is there
    by then. Without root's rights it is on the disk.
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
