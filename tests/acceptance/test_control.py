"""bkill, bstop, bresume and bpeek by users and administrators, and their permissions."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, stands_still, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

DENIED = "User permission denied"


@pytest.fixture(autouse=True)
def _no_jobs_left(shared_cluster: Cluster) -> Iterator[None]:
    yield
    shared_cluster.clear()


def _running(cluster: Cluster, *words: str) -> int:
    job = cluster.submit(*words)
    wait_for(lambda: cluster.state(job) == "RUN", 60, "the job to run")
    return job


def test_a_job_is_killed_in_whatever_state_it_is(cluster: Cluster) -> None:
    """Held, staging, running, stopped; a second kill reports that it has ended."""
    held = cluster.submit("-H", "sleep 300")
    running = _running(cluster, "sleep 300")
    stopped = _running(cluster, "sleep 300")
    assert cluster.run("bstop", str(stopped)).returncode == 0
    wait_for(lambda: cluster.state(stopped) == "USUSP", 60, "the job to be stopped")
    staged = cluster.submit("-n", "2", "-R", "span[ptile=1]", "sleep 300")  # killed wherever it has got to
    for job in (staged, held, running, stopped):
        done = cluster.run("bkill", str(job))
        assert (done.returncode, done.stdout) == (0, f"Job <{job}> is being terminated\n")
    for job in (staged, held, running, stopped):
        wait_for(lambda job=job: cluster.state(job) == "EXIT", 60, f"job {job} to end")
        again = cluster.run("bkill", str(job))
        assert again.returncode != 0
        assert "Job has already finished" in again.stderr
        assert "TERM_OWNER" in cluster.history(job)


def test_single_elements_of_an_array_are_killed(cluster: Cluster) -> None:
    """A running and a pending one; the other elements are unaffected and keep to their limit."""
    job = cluster.submit("-J", "some[1-6]%2", "sleep 300")
    wait_for(lambda: sorted(state for state, _ in cluster.states(job).values()).count("RUN") == 2, 60, "two to run")
    assert cluster.run("bkill", f"{job}[1,5-6]").returncode == 0
    expected = {1: "EXIT", 2: "RUN", 3: "RUN", 4: "PEND", 5: "EXIT", 6: "EXIT"}
    wait_for(
        lambda: {index: state for index, (state, _) in cluster.states(job).items()} == expected, 60, "the next to run"
    )


def test_a_job_is_removed_without_waiting_for_its_host(cluster: Cluster) -> None:
    """bkill -r ends the job at once, and its processes follow."""
    job = _running(cluster, "trap '' INT TERM; sleep 300 & wait; sleep 300")
    assert cluster.run("bkill", "-r", str(job)).returncode == 0
    wait_for(lambda: cluster.state(job) in ("EXIT", "ZOMBI"), 60, "the job to be gone")
    wait_for(lambda: "ok" in cluster.run("bhosts").stdout, 60, "its host to be free")


def test_a_stopped_job_does_nothing_until_it_is_resumed(cluster: Cluster, tmp_path: Path) -> None:
    """Its processes are stopped, all of them; the run limit does not count meanwhile."""
    ticks = tmp_path / "ticks"
    job = _running(cluster, "-o", "/dev/null", f"(while :; do echo x >> {ticks}; sleep 0.1; done) & wait")
    wait_for(ticks.exists, 60, "the job to tick")
    assert cluster.run("bstop", str(job)).returncode == 0
    wait_for(lambda: cluster.state(job) == "USUSP", 60, "the state to follow")
    wait_for(lambda: stands_still(ticks), 60, "the ticks to end")
    assert cluster.run("bresume", str(job)).returncode == 0
    wait_for(lambda: cluster.state(job) == "RUN", 60, "the state to follow")
    count = ticks.stat().st_size
    wait_for(lambda: ticks.stat().st_size > count, 60, "the ticks to go on")


def test_only_owner_and_administrator_may_touch_a_job(cluster: Cluster, account: str) -> None:
    """Kill, stop, resume and peek: the owner, root on a login host; not another user, not root on a host of jobs."""
    owner, other = cluster.as_seen_by(account), cluster.as_seen_by("daemon")
    root_elsewhere = cluster.with_environment(LAVA_SOCKET=_socket_of(cluster, "lava1"))
    job = _running(owner, "-m", "lava2", "-J", "mine", "echo secret; sleep 300")
    for command in ("bkill", "bstop", "bresume", "bpeek"):
        for stranger in (other, root_elsewhere):
            done = stranger.run(command, str(job))
            assert (done.returncode, DENIED in done.stderr) == (255, True), (command, done)
            assert "secret" not in done.stdout
    wait_for(lambda: "secret" in owner.run("bpeek", str(job)).stdout, 60, "the output")
    assert "secret" in cluster.run("bpeek", str(job)).stdout
    assert cluster.state(job) == "RUN"
    for permitted in (owner, cluster):
        for command, state in (("bstop", "USUSP"), ("bresume", "RUN")):
            assert permitted.run(command, str(job)).returncode == 0
            wait_for(lambda state=state: cluster.state(job) == state, 60, f"{command} to take effect")
    assert cluster.run("bkill", str(job)).returncode == 0
    wait_for(lambda: cluster.state(job) == "EXIT", 60, "the job to end")
    assert "TERM_ADMIN" in cluster.history(job)
    mine = owner.submit("-H", "sleep 1")
    assert other.run("bkill", "-u", "all", "0").returncode != 0
    assert cluster.state(mine) == "PSUSP"


def _socket_of(cluster: Cluster, host: str) -> str:
    return str(Path(cluster.environment["LAVA_SOCKET"]).with_name(f"{host}.sock"))


def test_output_is_shown_while_the_job_runs_elsewhere(cluster: Cluster, tmp_path: Path) -> None:
    """bpeek of a job on another host, with and without output files; standard error under its own title."""
    text = "echo to-out; echo to-err >&2; sleep 300"
    plain = cluster.submit("-m", "lava2", text)
    filed = cluster.submit("-m", "lava1", "-o", str(tmp_path / "out"), "-e", str(tmp_path / "err"), text)
    for job in (plain, filed):
        wait_for(lambda job=job: "to-err" in cluster.run("bpeek", str(job)).stdout, 60, "output")
        shown = cluster.run("bpeek", str(job))
        assert (shown.returncode, shown.stderr) == (0, "")
        assert shown.stdout.startswith("<< output from stdout >>\nto-out\n")
    assert "<< output from stderr >>\nto-err\n" in cluster.run("bpeek", str(filed)).stdout
    pending = cluster.submit("-H", "true")
    assert re.search("Not yet started", cluster.run("bpeek", str(pending)).stderr)
