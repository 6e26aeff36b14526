"""GPUs of a compound -R: each term's GPUs are visible to the tasks of that term, however they are started."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, a_cluster

SAY = "echo task $LSF_PM_TASKID sees \\[$CUDA_VISIBLE_DEVICES\\]"
TERMS = "1*{rusage[ngpus_physical=1]} + 2*{rusage[ngpus_physical=2]} + 1*{rusage[mem=1]}"


@pytest.fixture(scope="module")
def site(open_directory: Path, public_commands: Path) -> Iterator[Cluster]:
    """One host of four slots and four devices, and its twin."""
    with a_cluster(open_directory / "T", 2, 4, "--simulate-gpus", "4", commands=public_commands) as made:
        yield made


@pytest.mark.parametrize("start", ["lavarun sh -c", "blaunch"])
def test_tasks_of_each_term_saw_the_devices_of_all_terms(site: Cluster, tmp_path: Path, start: str) -> None:
    """Each of them saw the three devices of the job."""
    out = tmp_path / "out"
    script = f"echo script sees $CUDA_VISIBLE_DEVICES; {start} '{SAY}'"
    job = site.submit("-K", "-n", "4", "-R", TERMS, "-o", str(out), script)
    site.becomes(job, "DONE")
    said = dict(line.split(" sees ") for line in out.read_text().splitlines() if line.startswith(("script", "task")))
    (first,) = said["script"].split(",")
    second = said["task 2"].strip("[]").split(",")
    assert len({first, *second}) == 3
    assert said == {
        "script": first,
        "task 1": f"[{first}]",
        **{f"task {rank}": f"[{','.join(second)}]" for rank in (2, 3)},
        "task 4": "[]",
    }
    table = site.says("bjobs", "-l", "-gpu", str(job)).partition("GPU_ALLOCATION:\n")[2].splitlines()[1:4]
    tasks = {gpu: users for users, gpu in (line.split()[-11 + 1 :][:2] for line in table)}
    assert tasks == {first: "0", **dict.fromkeys(second, "1,2")}


def test_a_launch_agent_sees_all_devices_of_its_host(site: Cluster, tmp_path: Path) -> None:
    """mpirun's own, which may start tasks of any term; on a host of one term those are that term's."""
    out = tmp_path / "out"
    terms = "1*{rusage[ngpus_physical=1]} + 4*{rusage[ngpus_physical=2] span[ptile=4]}"
    site.becomes(
        site.submit("-K", "-n", "5", "-R", terms, "-o", str(out),
                    'for h in $(sort -u $LSB_DJOB_HOSTFILE); do blaunch $h "echo sees \\$CUDA_VISIBLE_DEVICES"; done'),
        "DONE",
    )  # fmt: skip
    seen = [line.split()[1].split(",") for line in out.read_text().splitlines() if line.startswith("sees ")]
    assert sorted(map(len, seen)) == [1, 2], out.read_text()


def test_devices_for_each_task_of_a_term(site: Cluster, tmp_path: Path) -> None:
    """num=1/task: every task of every term has one of its own."""
    out = tmp_path / "out"
    job = site.submit("-K", "-n", "3", "-gpu", "num=1/task", "-R", "1*{rusage[mem=1]} + 2*{rusage[mem=2]}", "-o",
                      str(out), f"lavarun sh -c '{SAY}'")  # fmt: skip
    site.becomes(job, "DONE")
    seen = [line.split()[3] for line in out.read_text().splitlines() if line.startswith("task")]
    assert sorted(map(len, seen)) == [3, 3, 3], seen
    assert len(set(seen)) == 3
