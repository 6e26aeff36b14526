"""Device numbers of this host's GPUs, used to keep jobs from the GPUs of others."""

import logging
import os
import stat
from collections.abc import Sequence

from agents.gpus.vendor import Vendor

LOG = logging.getLogger(__name__)


def device_numbers(vendor: Vendor, paths: Sequence[str] = ()) -> tuple[str, ...]:
    """Return MAJOR:MINOR of each GPU, by index; ``paths`` names the files if the vendor's driver does not know them.

    Empty if not known of all: then no job is kept from any.
    """
    try:
        return tuple(map(_number, paths or vendor.device_files()))
    except OSError as error:
        LOG.warning("event=gpu_files_unknown error=%r", str(error))
        return ()


def _number(path: str) -> str:
    about = os.stat(path)
    if not stat.S_ISCHR(about.st_mode):
        raise OSError(f"{path} is no character device")
    return f"{os.major(about.st_rdev)}:{os.minor(about.st_rdev)}"
