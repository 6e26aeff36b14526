"""The pages of docs/subsystems: short, with files that exist, and with each module of what they explain.

Of the agent, pages name folders instead of leaves where no more is to be said of each: see ``FOLDERS``. Migrations are
named by their folder, too.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted((ROOT / "docs" / "subsystems").glob("*.md"))
OVERVIEWS = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "docs" / "architecture.md")
LINES_MAX = 150
EXPLAINED = ("lavad/core/scheduling", "lavad/store", "agents")
FOLDERS = (
    "agents/attempts/",
    "agents/containers/",
    "agents/gpus/",
    "agents/job_setup/",
    "agents/job_socket/",
    "agents/local_socket/",
    "agents/master/",
    "agents/ranks/",
    "agents/sensors/",
    "agents/shepherd/confinement/",
    "agents/shepherd/process/",
    "agents/shepherd/tasks/",
    "agents/shepherd_pool/",
    "lavad/store/migrations/versions/",
)
NAMED = re.compile(r"`((?:lavad|lavactl|agents|protos|tests|benchmarks|packaging|docs)/[\w./-]*|\w+\.md)`")
FILE = re.compile(r"`(\w+\.py)`")
IDENTIFIER = re.compile(r"`(?:\w+\.)?(\w*(?:[a-z]_|_[a-z]|[A-Z]_?[a-z])\w*)`")
NAVIGATION = re.compile(r"subsystems/[\w-]+\.md")


def paths_in(page: Path) -> set[str]:
    """Files and folders that a page names."""
    return set(NAMED.findall(page.read_text(encoding="utf-8")))


def modules() -> list[str]:
    """Modules written by hand of all that the pages explain."""
    found = [path for folder in EXPLAINED for path in sorted((ROOT / folder).rglob("*.py"))]
    return [path.relative_to(ROOT).as_posix() for path in found if path.name != "__init__.py"]


def exists(name: str) -> bool:
    """True for a file or folder of the repository, or a page beside the flow chart."""
    return (ROOT / name).exists() or (ROOT / "lavad/core/scheduling" / name).exists()


def test_there_is_a_page_for_each_subsystem() -> None:
    """Nine pages and their list are in the site's navigation."""
    assert len(PAGES) == 10
    listed = NAVIGATION.findall((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert sorted(listed) == [f"subsystems/{page.name}" for page in PAGES]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_short(page: Path) -> None:
    """A page is read in one go."""
    assert len(page.read_text(encoding="utf-8").splitlines()) <= LINES_MAX


@pytest.mark.parametrize("page", [*PAGES, *OVERVIEWS], ids=lambda page: page.stem)
def test_every_file_named_exists(page: Path) -> None:
    """A file that has moved is named by its new place, in the overviews as well."""
    assert sorted(name for name in paths_in(page) if not exists(name)) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_identifier_occurs(page: Path) -> None:
    """A name of code occurs in a file that the page names; a file without its folder is beside one of these."""
    text = page.read_text(encoding="utf-8")
    files = [ROOT / name for name in paths_in(page) if name.endswith((".py", ".proto", ".md"))]
    content = " ".join(path.read_text(encoding="utf-8") for path in files if path.exists())
    known = set(re.findall(r"\w+", content))
    assert sorted(set(IDENTIFIER.findall(text)) - known) == []
    near = {one.name for path in files for one in path.parent.glob("*.py")}
    assert sorted(set(FILE.findall(text)) - near) == []


def test_every_module_is_named() -> None:
    """A module of the scheduler, the store or the agent is in some page's list, or its folder is."""
    named = set[str]().union(*map(paths_in, PAGES))
    assert sorted(set(FOLDERS) - named) == []
    assert [name for name in modules() if name not in named and not name.startswith(FOLDERS)] == []


def test_the_flow_chart_is_named() -> None:
    """The page of the pass leads to the chart beside the code, which links cannot reach from the site."""
    assert "lavad/core/scheduling/cycle.md" in paths_in(ROOT / "docs" / "subsystems" / "scheduling-pass.md")


def test_every_page_is_in_the_navigation() -> None:
    """A reader of the site finds each page of docs."""
    listed = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert pages == listed
