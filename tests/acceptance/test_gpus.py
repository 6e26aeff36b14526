"""-gpu options of jobs, with real processes on a host whose four GPUs are reported by a fake NVML.

Devices 0 and 2 are joined by NVLink and near memory node 1, which has no processors here; 1 and 3 are joined and near
node 0, where all processors are.
"""

import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, a_cluster, wait_for
from tests.fakes import mps
from tests.fakes.nvml import FakeNvml

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

SHARED, EXCLUSIVE_PROCESS = 0, 3
PAIRS = ((0, 2), (1, 3))
HARDWARE = (
    "devices 4",
    *(f"gpu {one} peer {other}" for pair in PAIRS for one, other in (pair, pair[::-1])),
    *(f"gpu {gpu} nodes {2 if gpu in PAIRS[0] else 1}" for gpu in range(4)),
)
MODES = (
    "import pynvml as n; n.nvmlInit(); "
    "print('modes', *[n.nvmlDeviceGetComputeMode(n.nvmlDeviceGetHandleByIndex(g)) for g in range(4)], flush=True)"
)


class Site:
    """A host, its fake hardware, and the output of jobs."""

    def __init__(self, cluster: Cluster, nvml: FakeNvml, outputs: Path, mps_fails: Path) -> None:
        self.cluster = cluster
        self.nvml = nvml
        self.outputs = outputs
        self.mps_fails = mps_fails

    def submit(self, gpu: str, command: str = "sleep 300", *options: str) -> int:
        """Submit a job that reports its devices, then runs a command."""
        tell = f'echo "sees ${{CUDA_VISIBLE_DEVICES-nothing}}"; {command}'
        return self.cluster.submit("-gpu", gpu, *options, "-o", f"{self.outputs}/%J", tell)

    def said(self, job: int) -> str:
        """Output of the job so far."""
        path = self.outputs / str(job)
        return path.read_text() if path.exists() else ""

    def sees(self, job: int) -> tuple[int, ...]:
        """The devices that the job sees, once it runs."""
        wait_for(lambda: "sees" in self.said(job), 60, f"job {job} to run")
        found = re.search(r"^sees ([0-9,]+)$", self.said(job), re.MULTILINE)
        assert found, self.said(job)
        return tuple(map(int, found[1].split(",")))

    def wait_for_end(self, job: int) -> str:
        """Output of the job, after its end."""
        wait_for(lambda: self.state(job) in ("DONE", "EXIT"), 60, f"job {job} to end")
        return self.said(job)

    def state(self, job: int) -> str:
        return self.cluster.state(job)

    def end(self, *jobs: int) -> None:
        """Kill jobs, and wait for their end."""
        self.cluster.run("bkill", *map(str, jobs))
        for job in jobs:
            self.wait_for_end(job)

    def why(self, job: int) -> str:
        return " ".join(self.cluster.run("bjobs", "-p", str(job)).stdout.split())


@pytest.fixture(scope="module")
def site(open_directory: Path) -> Iterator[Site]:
    """One host of eight slots."""
    tools, outputs = open_directory / "gpu-tools", open_directory / "gpu-out"
    tools.mkdir()
    outputs.mkdir()
    nvml = FakeNvml(tools)
    nvml.describe(*HARDWARE)
    program, fails = mps.put_into(tools)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in nvml.environment.items():
            patch.setenv(name, value)
        patch.setenv("LAVA_MPS_CONTROL", str(program))
        with a_cluster(open_directory / "G", 1, 8, LAVA_TERMINATE_INTERVAL="1") as made:
            yield Site(made, nvml, outputs, fails)


@pytest.fixture(autouse=True)
def _emptied(site: Site) -> Iterator[None]:
    yield
    site.cluster.run("bkill", "0")
    wait_for(lambda: not site.cluster.run("bjobs", "-noheader").stdout, 60, "all jobs to end")


def test_linked_devices_go_together_and_pairs_stay_whole(site: Site) -> None:
    """Two devices are a linked pair; one device breaks a pair only once; glink=yes waits for a whole one."""
    first, second = site.submit("num=2"), site.submit("num=2")
    assert {site.sees(first), site.sees(second)} == set(PAIRS)
    told = site.cluster.says("bjobs", "-l", "-gpu", str(first)).partition("GPU_ALLOCATION:\n")[2].splitlines()[1:]
    devices = [line.split()[-10:] for line in told]
    assert [(words[1], words[-1]) for words in devices] == [
        (str(site.sees(first)[0]), "-/Y"),
        (str(site.sees(first)[1]), "Y/-"),
    ]
    third = site.submit("num=1")
    wait_for(lambda: "Not enough GPUs" in site.why(third), 60, "the third job to say why it waits")
    site.end(first)
    single = site.sees(third)[0]
    broken = next(pair for pair in PAIRS if single in pair)
    linked = site.submit("num=2:glink=yes")
    wait_for(lambda: "Not enough GPUs" in site.why(linked), 60, "the linked pair to be waited for")
    site.end(second)
    assert site.sees(linked) == next(pair for pair in PAIRS if pair != broken)
    other = site.submit("num=1")
    assert site.sees(other) == tuple(gpu for gpu in broken if gpu != single)


def test_linked_devices_are_not_made_of_two_halves(site: Site) -> None:
    """With one device free of each pair, two free devices are not linked: glink=yes is pending with that reason."""
    pair_a, pair_b = site.submit("num=2"), site.submit("num=2")
    site.sees(pair_a), site.sees(pair_b)
    waiting = [site.submit("num=1") for _ in range(4)]
    site.end(pair_a, pair_b)
    where = {job: site.sees(job)[0] for job in waiting}
    site.end(*(job for job, gpu in where.items() if gpu in (0, 1)))
    linked = site.submit("num=2:glink=yes")
    wait_for(lambda: "not linked or placed" in site.why(linked), 60, "the linked pair to be waited for")
    assert sorted(site.sees(site.submit("num=2"))) == [0, 1]


def test_devices_near_the_processors(site: Site) -> None:
    """A bound job's GPUs are on the node of its processors, and it waits for one there; aff=no takes any."""
    bound = ("-R", "affinity[thread(1)]")
    pairs = {site.sees(job): job for job in (site.submit("num=2"), site.submit("num=2"))}
    site.end(pairs[PAIRS[0]])
    near = site.submit("num=1", "sleep 300", *bound)
    wait_for(lambda: "No free GPUs near the processors" in site.why(near), 60, "the job to say why it waits")
    assert site.sees(site.submit("num=1:aff=no", "sleep 300", *bound))[0] in PAIRS[0]
    site.end(pairs[PAIRS[1]])
    assert site.sees(near)[0] in PAIRS[1]


def test_blocks_of_tasks_and_devices_for_each_task(site: Site) -> None:
    """block=yes: consecutive ranks share a device; num=1/task: each rank sees its own; otherwise all see all."""
    ranks = "lavarun sh -c 'echo rank $LSF_PM_TASKID $CUDA_VISIBLE_DEVICES'"

    def seen(gpu: str) -> list[str]:
        said = site.wait_for_end(site.submit(gpu, ranks, "-n", "4"))
        return [line.split()[2] for line in sorted(line for line in said.splitlines() if line.startswith("rank"))]

    plain, blocks, own = seen("num=2"), seen("num=2:block=yes"), seen("num=1/task")
    assert plain == [plain[0]] * 4
    assert blocks == [*blocks[0:1] * 2, *blocks[3:4] * 2]
    assert sorted([blocks[0], blocks[3]]) == sorted(plain[0].split(","))
    assert sorted(own) == ["0", "1", "2", "3"]


def test_devices_that_jobs_share(site: Site) -> None:
    """More jobs than devices run with j_exclusive=no; a job without it waits for an exclusive device."""
    jobs = [site.submit("num=1:j_exclusive=no") for _ in range(6)]
    assert {site.sees(job)[0] for job in jobs} == {0, 1, 2, 3}
    alone = site.submit("-")
    wait_for(lambda: "Not enough GPUs" in site.why(alone), 60, "the job to wait")
    site.end(*(job for job in jobs if site.sees(job) == (2,)))
    assert site.sees(alone) == (2,)


def test_what_a_dash_means(site: Site) -> None:
    """-gpu - means LSB_GPU_REQ's value; a malformed one is reported when the files are read."""
    site.cluster.reconfigure({"lsf.conf": "LSB_GPU_REQ=num=3\n"})
    try:
        assert len(site.sees(site.submit("-"))) == 3
        site.cluster.write_lsf_files({"lsf.conf": "LSB_GPU_REQ=num=many\n"})
        assert "LSB_GPU_REQ" in site.cluster.run("badmin", "ckconfig", "-v").stdout
    finally:
        site.cluster.reconfigure({"lsf.conf": ""})


def test_the_compute_mode_is_the_jobs_and_goes_with_it(site: Site) -> None:
    """The job reads its device's mode by NVML itself; when it has gone the device is as it was."""
    job = site.submit("num=1:mode=exclusive_process", f'{sys.executable} -c "{MODES}"; sleep 300')
    (gpu,) = site.sees(job)
    wait_for(lambda: "modes" in site.said(job), 60, "the job to read the modes")
    found = re.search(r"^modes (.+)$", site.said(job), re.MULTILINE)
    assert found
    assert [int(mode) for mode in found[1].split()] == [EXCLUSIVE_PROCESS if at == gpu else SHARED for at in range(4)]
    site.end(job)
    wait_for(lambda: site.nvml.mode(gpu) == SHARED, 60, "the mode to be put back")


def test_a_mode_is_put_back_by_the_next_agent(site: Site) -> None:
    """The agent dies while the job runs, the job ends without an agent: the next one restores the mode from before the
    job.
    """
    site.nvml.describe(*HARDWARE, *(f"gpu {gpu} mode {EXCLUSIVE_PROCESS}" for gpu in range(4)))
    try:
        flag = site.outputs / "go"
        job = site.submit("num=1:mode=shared", f"until [ -e {flag} ]; do sleep 0.1; done")
        (gpu,) = site.sees(job)
        assert site.nvml.mode(gpu) == SHARED
        agent = f"agent-{site.cluster.hosts()[0]}"
        site.cluster.kill(agent, signal.SIGKILL)
        wait_for(lambda: not site.cluster.is_running(agent), 60, "the agent to be gone")
        flag.touch()
        site.cluster.up()
        site.wait_for_end(job)
        wait_for(lambda: site.nvml.mode(gpu) == EXCLUSIVE_PROCESS, 60, "the mode to be put back")
    finally:
        site.nvml.describe(*HARDWARE)


def test_a_job_has_its_own_mps_daemon(site: Site) -> None:
    """It runs before the job does, on the job's devices alone, with directories of the job's, and ends with it."""
    tell = "cat $CUDA_MPS_LOG_DIRECTORY/control.log; ls $CUDA_MPS_PIPE_DIRECTORY; echo dir $CUDA_MPS_PIPE_DIRECTORY; "
    job = site.submit("num=2:mps=yes", tell + "echo pid $(cat $CUDA_MPS_LOG_DIRECTORY/pid); sleep 300")
    wait_for(lambda: "pid" in site.said(job), 60, "the job to run")
    said = site.said(job)
    visible = re.search(r"^sees (.+)$", said, re.MULTILINE)
    assert visible
    assert re.fullmatch(r"GPU-[^,]+,GPU-[^,]+", visible[1])
    assert f"devices {visible[1]}" in said
    assert "\ncontrol\n" in said
    found = re.search(r"^dir (\S+)\npid (\d+)$", said, re.MULTILINE)
    assert found
    directory, pid = Path(found[1]).parent, int(found[2])
    assert Path(f"/proc/{pid}").exists()
    site.end(job)
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), 60, "the daemon to end")
    wait_for(lambda: not directory.exists(), 60, "its directory to be removed")


def test_the_variable_may_be_left_alone(site: Site) -> None:
    """mps=no,nocvd: the job finds its devices by other means."""
    assert "sees nothing" in site.wait_for_end(site.submit("num=1:mps=no,nocvd", "true"))


def test_a_daemon_that_does_not_start_is_the_hosts_fault(site: Site) -> None:
    """The job is pending again, with the host's message in its history."""
    site.mps_fails.touch()
    try:
        job = site.submit("num=1:mps=yes", "true")
        wait_for(lambda: "avoided for a while" in site.why(job), 60, "the refusal to be told")
        assert "MPScontroldaemon" in "".join(site.cluster.history(job).split())  # it is wrapped over lines
        assert site.state(job) == "PEND"
        assert site.said(job) == ""
    finally:
        site.mps_fails.unlink()
