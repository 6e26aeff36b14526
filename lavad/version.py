"""Version of the master, from its package metadata."""

from importlib.metadata import PackageNotFoundError, version


def _version() -> str:
    try:
        return version("lava-hpc")
    except PackageNotFoundError:  # run from a checkout that is not installed
        return "0.0.0"


VERSION = _version()
