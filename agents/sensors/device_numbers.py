"""Device numbers of this host's GPUs, used to keep jobs from the GPUs of others."""

import contextlib
import logging
import os
import stat
from collections.abc import Sequence

import pynvml

LOG = logging.getLogger(__name__)


def device_numbers(paths: Sequence[str] = ()) -> tuple[str, ...]:
    """Return MAJOR:MINOR of each GPU, by index; ``paths`` names the files if NVML does not know them.

    Empty if not known of all: then no job is kept from any.
    """
    try:
        return tuple(map(_number, paths or _nvml_paths()))
    except (pynvml.NVMLError, OSError) as error:
        LOG.warning("event=gpu_files_unknown error=%r", str(error))
        return ()


def _nvml_paths() -> list[str]:
    pynvml.nvmlInit()
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        return [f"/dev/nvidia{pynvml.nvmlDeviceGetMinorNumber(handle)}" for handle in handles]
    finally:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def _number(path: str) -> str:
    about = os.stat(path)
    if not stat.S_ISCHR(about.st_mode):
        raise OSError(f"{path} is no character device")
    return f"{os.major(about.st_rdev)}:{os.minor(about.st_rdev)}"
