"""Clusters and ordinary users of the acceptance tests."""

from tests.acceptance.conftest import _ended_in_order, cluster, open_directory, shared_cluster, shared_directory
from tests.lavactl.conftest import desk
from tests.personal.conftest import account, other_account, public_commands

__all__ = [
    "_ended_in_order",
    "account",
    "cluster",
    "desk",
    "open_directory",
    "other_account",
    "public_commands",
    "shared_cluster",
    "shared_directory",
]
