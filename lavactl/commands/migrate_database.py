"""lavactl migrate-database: copy the cluster from one database to another."""

from lavactl.admin import maintenance

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io


def main(argv: list[str], io: "Io") -> int:
    """Run it; the exit code."""
    return maintenance.run("migrate-database", argv, io)
