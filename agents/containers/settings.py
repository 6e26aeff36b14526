"""Settings of containers: which runtimes the site's hosts have, and where images are kept.

Read from the master's welcome, passed on to the process that enters a container. Without a runtime images are ignored.
"""

from collections.abc import Mapping
from typing import NamedTuple

RUNTIMES = ("apptainer", "podman", "bubblewrap")
SPACE_MIB = 4096


class ContainerSettings(NamedTuple):
    """The site's settings.

    Attributes:
        runtimes: in the order of preference; empty if images are ignored.
        image_dir: directory of imported images; empty for one in the home directory of the job's user.
        trusts_all: images that any user has imported into it are used, not only those of root and the job's user.
        space_mib: least free space in that directory at an import.
        binds: further directories of the host, as SOURCE, SOURCE:DESTINATION or SOURCE:DESTINATION:ro.
        podman_options: options of ``podman run`` in place of the default ones.
    """

    runtimes: tuple[str, ...] = ()
    image_dir: str = ""
    trusts_all: bool = False
    space_mib: int = SPACE_MIB
    binds: tuple[str, ...] = ()
    podman_options: tuple[str, ...] = ()

    @staticmethod
    def of(settings: Mapping[str, str]) -> "ContainerSettings":
        """Read the welcome; a master of an earlier version sends none. It has checked the values."""
        return ContainerSettings(
            tuple(name for name in settings.get("LAVA_CONTAINERS", "").split() if name in RUNTIMES),
            settings.get("LAVA_IMAGE_DIR", ""),
            settings.get("LAVA_IMAGE_TRUST", "") == "all",
            int(settings.get("LAVA_IMAGE_SPACE") or SPACE_MIB),
            tuple(settings.get("LAVA_CONTAINER_BINDS", "").split()),
            tuple(settings.get("LAVA_PODMAN_OPTIONS", "").split()),
        )
