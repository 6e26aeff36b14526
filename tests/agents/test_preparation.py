"""Preparation of jobs: done once for what an array's elements have in common."""

from pathlib import Path

import pytest

from agents.job_setup.host_context import HostContext
from agents.job_setup.preparation import Preparation
from agents.job_setup.users import Owner
from lavad.agent_links.seals import Seals
from protos.agents_pb2 import JobSpecBlob, Stage
from protos.common_pb2 import HostShare
from protos.jobs_pb2 import JobSpec

ANN = Owner("ann", 1000, 1000, (), "/home/ann", "/bin/sh")
BLOB = JobSpecBlob(job=7, spec=JobSpec(name="j", command="true"), user="ann", uid=1000, gid=1000, version=1)


@pytest.fixture
def preparation(tmp_path: Path) -> Preparation:
    """A host's, in a directory of the test."""
    (tmp_path / "hostfiles").mkdir()
    return Preparation(HostContext("h1", "/run/agent.sock", "/bin", "/etc/lava", False, oversubscribed=False), tmp_path)


def _sealed(index: int, **fields: object) -> Stage:
    """A stage order of an element as the master sends it."""
    order = Stage(allocation=[HostShare(host="h1", slots=1)], launch_now=True, spec_version=1, **fields)  # type: ignore[arg-type]
    Seals(b"key").seal_stage((7, index, 1), order)
    return order


def test_elements_whose_orders_differ_in_their_seals_only_share_a_setup(preparation: Preparation) -> None:
    """A shepherd then gets it once, and an element costs neither its environment nor its host files again."""
    first, second = _sealed(1), _sealed(2)
    assert first.seal != second.seal
    assert preparation.prepare(BLOB, first, ANN) is preparation.prepare(BLOB, second, ANN)
    assert second == _sealed(2)  # the order is left as it came: it is returned with its seals


def test_an_order_that_says_something_else_is_prepared_for_itself(preparation: Preparation) -> None:
    """Only the seals are left out: an element with another nice value is not given its neighbour's setup."""
    usual, nice = _sealed(1), _sealed(2, nice=5)
    assert preparation.prepare(BLOB, usual, ANN).job.nice == 0
    assert preparation.prepare(BLOB, nice, ANN).job.nice == 5
