"""Device files of MIG devices: access to a GPU instance is by a capability file of the driver, not by the GPU's own."""

from pathlib import Path

CAPABILITIES = Path("/proc/driver/nvidia/capabilities")
_MINOR = "DeviceFileMinor:"


def access_file(minor: int, instance: int) -> str:
    """Return the file by which processes reach a GPU instance.

    Raises:
        OSError: the driver does not name it.
    """
    path = CAPABILITIES / f"gpu{minor}" / "mig" / f"gi{instance}" / "access"
    for line in path.read_text(encoding="ascii").splitlines():
        if line.startswith(_MINOR):
            return f"/dev/nvidia-caps/nvidia-cap{int(line.removeprefix(_MINOR))}"
    raise OSError(f"{path} names no device file")
