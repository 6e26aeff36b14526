"""Version of all programs: that of the release and, behind a plus sign, the commit that they were built from.

An installation has the commit in a file, which setup.py writes; a checkout reads its own, and any other copy of the
sources has none.
"""

from pathlib import Path

RELEASE = "0.1.0"  # setup.cfg says the same, and reading that of the installation takes 40 ms
DIGITS = 8
FILE = Path(__file__).with_name("commit")  # of an installation


def version() -> str:
    """Return the version, as ``0.1.0+g1234abcd``."""
    if FILE.is_file():
        return described(FILE.read_text(encoding="ascii"))
    return described(commit_of(FILE.parents[1]))


def described(commit: str) -> str:
    """Return the version of a build from that commit; empty for none that is known."""
    return f"{RELEASE}+g{commit[:DIGITS]}" if commit else RELEASE


def commit_of(checkout: Path) -> str:
    """Return the commit that a checkout, or a further work tree of one, has at present; empty if it is none."""
    try:
        place = checkout / ".git"
        if place.is_file():
            place = checkout / place.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
        head = (place / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref: "):
            return head
        shared = place / "commondir"
        common = place / shared.read_text(encoding="utf-8").strip() if shared.is_file() else place
        return _commit_of_branch(common, head.removeprefix("ref: "))
    except OSError:
        return ""


def _commit_of_branch(common: Path, name: str) -> str:
    if (common / name).is_file():
        return (common / name).read_text(encoding="utf-8").strip()
    lines = (common / "packed-refs").read_text(encoding="utf-8").splitlines()
    return next((line.partition(" ")[0] for line in lines if line.endswith(f" {name}")), "")
