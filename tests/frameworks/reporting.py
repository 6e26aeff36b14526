"""Output of the frameworks themselves for the reader of a run: printed, and kept in .cache/frameworks/said."""

from pathlib import Path

from tests.frameworks.environments import HOME
from tests.seeds.site import Site

PROGRAMS = Path(__file__).parent / "programs"


def note(framework: str, line: str) -> None:
    """Print a line of a framework's output, and keep it."""
    print(f"\n{framework}: {line}", flush=True)
    with open(HOME / "said", "a", encoding="utf-8") as kept:
        print(f"{framework}: {line}", file=kept)


def ends(site: Site, job: int, limit_s: float) -> None:
    """Wait for the job to be done; if it is not, show the end of what each of its tasks has said."""
    try:
        site.ends(job, limit_s=limit_s)
    except AssertionError as error:
        said = site.cluster.run("lavactl", "logs", str(job), "--apart").stdout
        raise AssertionError(f"{error}\n{said[-12000:]}") from error
