"""Users and groups that are named on the command line: accounts of this host, and whoever the cluster knows."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io


def unknown_users(names: list[str], io: "Io") -> list[str]:
    """Those of the names that are no account of this host, and neither a user nor a group that the cluster knows."""
    strangers = [name for name in names if name != "all" and io.home_of(name) is None]
    if not strangers:
        return []
    from protos import cluster_pb2

    return list(io.client().users(cluster_pb2.UsersRequest(names=strangers)).missing)
