"""Plants each bug of ``planted.py`` in a copy of the sources and shows that the tests detect it.

``python -m tests.mutants.run [WORD...]``: only bugs whose name contains one of the words. Exits 1 if one survives.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.mutants.planted import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("lavad", "agents", "lavactl", "protos", "tests", "setup.cfg")
FAST = ("tests/core", "tests/transcripts", "tests/engine", "tests/agents/test_ledger.py")
PROPERTIES = ("tests/properties/test_promised.py", "tests/properties/test_reservations.py")
HISTORIES = ("tests/simulation",)
SUITES: dict[str, dict[str, tuple[str, ...]]] = {
    "any": {"the core's tests": FAST, "the seeds": HISTORIES},
    "history": {"the seeds": HISTORIES},
    "properties": {"the properties": PROPERTIES},
}
# More than in `make test`, which has no time for them.
SEEDS = "150"
EXAMPLES = "1"
TIMEOUT_S = 600  # a mutant may loop for ever; the properties take 300 s on a busy machine


def copy_to(place: Path) -> None:
    """Copy the sources, without generated files."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, place / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, place / name)


def plant(place: Path, mutant: Mutant) -> None:
    """Change the one place.

    Raises:
        LookupError: the text is not there just once, so the list of mutants has to be brought up to date.
    """
    path = place / mutant.file
    text = path.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        raise LookupError(f"{mutant.name}: its text is {text.count(mutant.old)} times in {mutant.file}")
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")


def sees(place: Path, tests: tuple[str, ...]) -> str:
    """Kind of failure of these tests in the copy; empty if they pass.

    A run that does not end counts as a failure, and is named as such: on a busy machine the bug may not be the cause.
    """
    environment = {**os.environ, "PYTHONPATH": str(place), "FAULT_SEEDS": SEEDS, "LAVA_EXAMPLES": EXAMPLES}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(command, cwd=place, env=environment, capture_output=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"did not end within {TIMEOUT_S} s of"
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stdout.decode()[-2000:] + done.stderr.decode()[-2000:])
    return "seen by" if done.returncode else ""


def fate(mutant: Mutant) -> str:
    """Kind of failure and suite that detects the bug; empty if none does."""
    with tempfile.TemporaryDirectory(prefix="lava-mutant-") as folder:
        place = Path(folder)
        copy_to(place)
        plant(place, mutant)
        for suite, tests in SUITES[mutant.by].items():
            if how := sees(place, tests):
                return f"{how} {suite}"
    return ""


def main(words: list[str]) -> int:
    """Try every mutant."""
    survivors = 0
    for mutant in MUTANTS:
        if words and not any(word in mutant.name for word in words):
            continue
        found = fate(mutant)
        survivors += not found
        sys.stdout.write(f"{found or 'SURVIVES':24} {mutant.name}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{survivors} of the planted bugs survive\n")
    return min(survivors, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
