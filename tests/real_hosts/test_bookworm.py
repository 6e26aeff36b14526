"""lava as a site has it, on booted hosts of Debian 12: all tests are in ``story``."""

from tests.real_hosts.containers import BOOKWORM as RELEASE
from tests.real_hosts.story import *  # noqa: F403

__all__ = ["RELEASE"]
