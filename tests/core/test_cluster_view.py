"""Scheduling and queries read the cluster: they know its view, and assign to nothing of it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import lavad.core
from lavad.core.cluster import Cluster
from lavad.core.cluster_view import ClusterView
from lavad.core.model.policy import Policy

CORE = Path(lavad.core.__file__).parent
FOLDERS = ("scheduling", "queries")


def _written(code: str) -> Iterator[str]:
    """Targets of assignments and deletions that belong to a cluster."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            text = ast.unparse(node.value)
            if any(word.strip("_") == "cluster" for word in text.replace("[", ".").split(".")):
                yield ast.unparse(node)


@pytest.mark.parametrize("folder", FOLDERS)
def test_nothing_of_the_cluster_is_assigned(folder: str) -> None:
    """Nor to attributes of its parts, which are the live ones; nor is the cluster's own type known."""
    for path in sorted((CORE / folder).rglob("*.py")):
        code = path.read_text(encoding="utf-8")
        assert not list(_written(code)), path
        assert "lavad.core.cluster import" not in code, path


def test_a_write_would_be_found() -> None:
    """Of an attribute, of an item, and by deletion."""
    code = "self._cluster.table.names = []\ncluster.jobs[1] = 2\ndel cluster.hosts['a']\nself.cluster = cluster"
    assert list(_written(code)) == ["self._cluster.table.names", "cluster.jobs[1]", "cluster.hosts['a']"]


def test_the_view_has_only_what_a_cluster_has() -> None:
    """Properties without setters, and look-ups."""
    cluster = Cluster(Policy())
    for name, member in vars(ClusterView).items():
        if not name.startswith("_"):
            assert hasattr(cluster, name), name
            assert callable(member) or (isinstance(member, property) and member.fset is None), name
