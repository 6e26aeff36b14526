"""Dependency conditions and begin times with real processes: no job starts before its condition is met."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]


def test_a_pipeline_runs_in_its_order(cluster: Cluster, tmp_path: Path) -> None:
    """Two steps, their sum after both, one for the case that something fails; and an orphan."""
    out = tmp_path / "order"
    first = cluster.submit("-J", "step1", "-H", f"echo first >> {out}")
    second = cluster.submit("-J", "step2", "-H", f"echo second >> {out}; exit 3")
    total = cluster.submit("-w", 'done("step1") && exit(step2, >= 3)', f"echo sum >> {out}")
    fallback = cluster.submit("-w", f"exit({first})", "-ti", f"echo never >> {out}")
    shown = cluster.run("bjobs", "-UF", str(total)).stdout
    assert 'Dependency Condition <done("step1") && exit(step2, >= 3)>' in shown
    assert "Job dependency condition not satisfied;" in shown
    children = cluster.run("bjdepinfo", "-c", str(first)).stdout.splitlines()[1:]
    assert [line.split()[1:3] for line in children] == [[str(total), "PEND"], [str(fallback), "PEND"]]
    parents = cluster.run("bjdepinfo", str(total)).stdout.splitlines()[1:]
    assert [line.split()[1:4] for line in parents] == [[str(first), "PSUSP", "step1"], [str(second), "PSUSP", "step2"]]
    for job in (first, second):
        assert cluster.run("bresume", str(job)).returncode == 0
    wait_for(lambda: cluster.state(total) == "DONE", 60, "the sum")
    wait_for(lambda: cluster.state(fallback) == "EXIT", 60, "the orphan's end")
    assert sorted(out.read_text().split()[:2]) == ["first", "second"]
    assert out.read_text().split()[2:] == ["sum"]
    assert "TERM_ORPHAN_SYSTEM" in cluster.history(fallback)
    assert "Dependency condition satisfied" in cluster.history(total)


def test_a_condition_is_waited_for_over_a_kill_of_the_master(cluster: Cluster) -> None:
    """bwait: it asks the new master again; what can never be met, or is wrong, is told at once."""
    job = cluster.submit("-H", "true")
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(cluster.run, "bwait", "-w", f"done({job})", timeout_s=180)
        cluster.kill("lavad")
        cluster.up()
        assert not waiting.done()
        assert cluster.run("bresume", str(job)).returncode == 0
        ended = waiting.result(180)
    assert (ended.returncode, ended.stdout) == (0, "")
    never = cluster.run("bwait", "-w", f"exit({job})")
    assert (never.returncode, never.stderr) == (255, "The wait condition can never be met any more.\n")
    assert "Dependency condition syntax error at character 6" in cluster.run("bwait", "-w", "done(").stderr


def test_array_follows_array_element_by_element(cluster: Cluster, tmp_path: Path) -> None:
    """An element of the second array runs as soon as its own predecessor is done, while others are pending, also after
    the master was killed.
    """
    go = tmp_path / "go"
    job = cluster.submit("-J", "make[1-4]", f'[ "$LSB_JOBINDEX" != 3 ] || while [ ! -e {go} ]; do sleep 0.1; done')
    use = cluster.submit("-J", "use[1-4]", "-w", 'done("make[*]")', "true")
    wait_for(lambda: sorted(index for index, (state, _) in cluster.states(use).items() if state == "DONE") == [1, 2, 4],
             60, "the elements whose predecessors are done")  # fmt: skip
    assert cluster.state(use, 3) == "PEND"
    cluster.kill("lavad")
    cluster.up()
    assert cluster.state(use, 3) == "PEND"
    go.touch()
    wait_for(lambda: cluster.state(use, 3) == "DONE", 60, "the last one")
    assert cluster.state(job, 3) == "DONE"


def test_a_job_that_can_never_start_says_so(cluster: Cluster) -> None:
    """Until its condition is changed."""
    failed = cluster.submit("false")
    waits = cluster.submit("-w", f"done({failed})", "true")
    wait_for(lambda: "never satisfied" in cluster.run("bjobs", "-l", str(waits)).stdout, 60, "the reason")
    refused = cluster.run("bsub", "-w", "done(nobody)", "true")
    assert (refused.returncode, refused.stderr) == (255, "nobody: No matching job found. Job not submitted.\n")
    assert cluster.run("bkill", str(waits)).returncode == 0


def test_a_begin_time_comes(cluster: Cluster, tmp_path: Path) -> None:
    """The job starts then, not before, also if the time is changed; a time that has passed is refused."""
    began = tmp_path / "began"
    at = time.strftime("%Y:%m:%d:%H:%M", time.localtime(time.time() + 3600))
    done = cluster.run("bsub", "-b", at, f"date +%s.%N > {began}")
    assert "Job will be scheduled after " in done.stderr
    job = int(done.stdout.partition("<")[2].partition(">")[0])
    reason = "The job has a specified start time;"
    wait_for(lambda: reason in cluster.run("bjobs", "-l", str(job)).stdout, 60, "the reason")
    begin = time.time() + 2
    cluster.change(job, begin_time=begin)
    cluster.becomes(job, "DONE")
    assert float(began.read_text()) >= begin
    assert cluster.run("bsub", "-b", "2001:1:1:0:0", "true").returncode == 255
