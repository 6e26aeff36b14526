"""lavactl compact: give the room of purged jobs back to the file system while lavad runs."""

from lavactl.admin import maintenance

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io


def main(argv: list[str], io: "Io") -> int:
    """Run it; the exit code."""
    return maintenance.run("compact", argv, io)
