"""The version of a build, which tells it apart from every other one."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from protos import version

ROOT = Path(__file__).resolve().parents[2]
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def _repository(place: Path, head: str) -> Path:
    git = place / ".git"
    git.mkdir(parents=True)
    (git / "HEAD").write_text(head)
    return git


def test_a_checkout_has_the_commit_of_its_branch(tmp_path: Path) -> None:
    """Git keeps the branch in a file of its own, among others, or not at all."""
    git = _repository(tmp_path / "a", "ref: refs/heads/main\n")
    assert version.commit_of(tmp_path / "a") == ""
    (git / "packed-refs").write_text(
        f"# pack-refs with: peeled\n{COMMIT[::-1]} refs/heads/x\n{COMMIT} refs/heads/main\n"
    )
    assert version.commit_of(tmp_path / "a") == COMMIT
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "refs" / "heads" / "main").write_text(f"{COMMIT[::-1]}\n")
    assert version.commit_of(tmp_path / "a") == COMMIT[::-1]
    (git / "HEAD").write_text(f"{COMMIT}\n")
    assert version.commit_of(tmp_path / "a") == COMMIT


def test_a_further_work_tree_has_its_own(tmp_path: Path) -> None:
    """Its .git is a file that names a directory of the first one's."""
    git = _repository(tmp_path / "a", "ref: refs/heads/main\n")
    own = git / "worktrees" / "b"
    own.mkdir(parents=True)
    (own / "HEAD").write_text("ref: refs/heads/b\n")
    (own / "commondir").write_text("../..\n")
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "refs" / "heads" / "b").write_text(f"{COMMIT}\n")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / ".git").write_text(f"gitdir: {own}\n")
    assert version.commit_of(tmp_path / "b") == COMMIT


def test_sources_without_git_have_the_release_alone(tmp_path: Path) -> None:
    """Nothing is made up."""
    assert version.commit_of(tmp_path) == ""
    assert version.described("") == version.RELEASE
    assert version.described(COMMIT) == f"{version.RELEASE}+g01234567"


@pytest.mark.slow
def test_an_installation_has_the_commit_that_it_was_built_from(tmp_path: Path) -> None:
    """pip builds it from a checkout, and what is installed says the commit without one."""
    sources = tmp_path / "sources"
    skipped = shutil.ignore_patterns(".git", ".venv", ".cache", "build", "dist", "*.egg-info", "tests", "shared")
    shutil.copytree(ROOT, sources, ignore=skipped)
    _repository(sources, f"{COMMIT}\n")
    words = ["wheel", "-qq", "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path / "dist"), str(sources)]
    subprocess.run([sys.executable, "-m", "pip", *words], check=True, timeout=300)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    words = [sys.executable, "-c", "import protos; print(protos.__version__)"]
    done = subprocess.run(words, cwd=tmp_path / "site", capture_output=True, text=True, check=True)
    assert done.stdout == f"{version.RELEASE}+g01234567\n"
