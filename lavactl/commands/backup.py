"""lavactl backup: copy the database to a file while lavad runs."""

from lavactl.admin import maintenance

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io


def main(argv: list[str], io: "Io") -> int:
    """Run it; the exit code."""
    return maintenance.run("backup", argv, io)
