"""Directories of LSF files for tests: written from texts, read with fake accounts."""

import textwrap
from collections.abc import Mapping
from pathlib import Path

from lavad.config.accounts import Accounts
from lavad.config.load import Loaded, load
from lavad.config.values import Wrong
from lavad.core.model.policy import Policy

SITE = Path(__file__).resolve().parent / "site"


class MadeUp(Accounts):
    """Fake accounts: every name is a user; Unix has one group, and egroup another."""

    def is_user(self, name: str) -> bool:
        return name not in ("staff", "empty")

    def group(self, name: str) -> frozenset[str] | None:
        return frozenset({"gil", "hal"}) if name == "staff" else None

    def external(self, kind: str, name: str) -> list[str]:
        if name == "slow":
            raise Wrong("egroup took longer than 10 seconds")
        return ["ivy", "jan"] if kind == "-u" else ["h1", "h2"]


class Few(MadeUp):
    """Of all the world only these have accounts."""

    def is_user(self, name: str) -> bool:
        return name in self.known_users()

    def known_users(self) -> list[str]:
        return ["alice", "bob", "carol"]


def write(directory: Path, files: Mapping[str, str]) -> Path:
    """Files of these texts in a directory."""
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return directory


def loaded(
    directory: Path,
    files: Mapping[str, str] | None = None,
    base: Policy | None = None,
    accounts: Accounts | None = None,
    joined: frozenset[str] = frozenset(),
) -> Loaded:
    """Result of loading these files."""
    return load(write(directory, files or {}), base or Policy(), "c1", accounts or MadeUp(), joined)


def policy_of(directory: Path, files: Mapping[str, str]) -> Policy:
    """The policy of files that have no errors."""
    found = loaded(directory, files)
    assert not found.errors, "\n".join(map(str, found.errors))
    return found.policy


def said(found: Loaded) -> list[str]:
    """All complaints, without the directory."""
    return [str(one)[len(str(Path(one.file).parent)) + 1 :] for one in found.complaints]
