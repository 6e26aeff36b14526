"""lavactl simulate --from-history: the cluster's real history, replayed under other rules and on other hosts."""

import json
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, a_cluster

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]


def figures(cluster: Cluster, *options: str) -> dict[str, float]:
    """The figures of a replay of the cluster's history."""
    done = cluster.run("lavactl", "simulate", "--from-history", "--json", *options)
    assert done.returncode == 0, done.stderr
    values: dict[str, float] = json.loads(done.stdout)
    return values


def test_the_past_under_other_rules(tmp_path: Path) -> None:
    """Half-second jobs on two slots: wide ones, an array that runs one element at a time, a job dependent on it."""
    with a_cluster(tmp_path / "cluster", 1, 2) as cluster:
        wide = cluster.submit("-J", "w[1-3]", "-n", "2", "-W", "1", "-R", "select[mem>1]", "sleep", "0.5")
        array = cluster.submit("-J", "a[1-3]%1", "-W", "1", "sleep", "0.5")
        last = cluster.submit("-K", "-w", f"ended({array})", "true")

        starts = tmp_path / "starts"
        as_it_was = figures(cluster, "--starts", str(starts))
        lines = dict(line.split() for line in starts.read_text().splitlines())
        assert set(lines) == {*(f"{job}[{index}]" for job in (wide, array) for index in (1, 2, 3)), str(last)}
        assert as_it_was["jobs_kept"] == as_it_was["recorded_jobs_kept"] == 7
        assert 0 < as_it_was["mean_wait_s"] <= as_it_was["recorded_mean_wait_s"] + 0.2  # it starts jobs in no time

        roomy = figures(cluster, "--hosts", "+10")
        assert roomy["mean_wait_s"] < as_it_was["mean_wait_s"]  # less than half, if they are submitted quickly
        assert roomy["recorded_mean_wait_s"] == as_it_was["recorded_mean_wait_s"]

        other = tmp_path / "other"
        other.mkdir()
        (other / "lsb.queues").write_text("Begin Queue\nQUEUE_NAME = normal\nRUNLIMIT = 1\nEnd Queue\n")
        assert figures(cluster, "--conf", str(other))["jobs_kept"] == 7
        (other / "lsb.queues").write_text("Begin Queue\nQUEUE_NAME = long\nEnd Queue\n")
        done = cluster.run("lavactl", "simulate", "--from-history", "--conf", str(other))
        assert done.returncode == 1
        assert "dropped 7 of 7 jobs: normal: No such queue" in done.stderr
